package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/postgres"
)

// newLedgerDatabase is a database with the tables of a ledger.
func newLedgerDatabase(tb testing.TB, cluster *pgtest.Cluster) *database {
	tb.Helper()
	d := connectTo(tb, cluster.NewDatabase(tb))
	if err := postgres.MigrateLedger(context.Background(), d.admin, ""); err != nil {
		tb.Fatal(err)
	}
	return d
}

// openLedger closes the ledger before its pool.
func (d *database) openLedger(tb testing.TB, pool *pgxpool.Pool, change func(*postgres.LedgerConfig)) *postgres.Ledger {
	tb.Helper()
	c := postgres.LedgerConfig{Pool: pool}
	if change != nil {
		change(&c)
	}
	l, err := postgres.OpenLedger(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

// takeOver has the lease of a hold end, and another have it.
func (d *database) takeOver(tb testing.TB, schema string, s client.Scope, requestID string) {
	tb.Helper()
	d.exec(tb, `UPDATE `+schema+`.ledger_request SET fence = fence + 1, lease_until = NULL
		WHERE principal = $1 AND environment = $2 AND request_id = $3`, []byte(s.Principal), []byte(s.Environment), requestID)
}

// The suite passes with every way in which a host's pool may run statements, and
// where each transaction may find another session, as behind a pooler.
func TestLedgerSuite(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pgxpool.Config){
		"statements are cached": func(*pgxpool.Config) {},
		"a session each": func(c *pgxpool.Config) {
			c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
			c.AfterRelease = func(*pgx.Conn) bool { return false }
		},
		"simple protocol": func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol },
		"an odd role": func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
			c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
			c.ConnConfig.RuntimeParams["timezone"] = "Asia/Kathmandu"
			c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
			c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := connectTo(t, pgtest.Shared(t).NewDatabase(t))
			ledgertest.Ledger(t, func(t *testing.T) ledgertest.LedgerStore {
				schema := fmt.Sprintf("ledger_%d", schemas.Add(1))
				if err := postgres.MigrateLedger(t.Context(), d.admin, schema); err != nil {
					t.Fatal(err)
				}
				return ledgertest.LedgerStore{
					Open: func(t *testing.T, clock func() time.Time) desk.Ledger {
						c := d.config(t, 2)
						change(c)
						return d.openLedger(t, d.newPool(t, c), func(c *postgres.LedgerConfig) { c.Clock, c.Schema = clock, schema })
					},
					TakeOver: func(t *testing.T, s client.Scope, id string) { d.takeOver(t, schema, s, id) },
				}
			})
		})
	}
}

var schemas atomic.Int64
