package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
)

func TestMigrateByManyHostsAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer pool.Close()
			for _, schema := range []string{"", "second"} {
				if err := postgres.Migrate(t.Context(), pool, schema); err != nil {
					t.Errorf("schema %q: %v", schema, err)
				}
				if _, err := postgres.NewStore(t.Context(), postgres.StoreConfig{Pool: pool, Schema: schema}); err != nil {
					t.Errorf("schema %q: %v", schema, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWrongVersionsOfTables(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	db := d.newDB(t, d.config(t, 4))
	open := func(schema string) error {
		_, err := postgres.NewStore(t.Context(), postgres.StoreConfig{Pool: d.admin, Schema: schema})
		_, errSQL := postgres.NewSQLStore(t.Context(), postgres.SQLStoreConfig{DB: db, Schema: schema})
		if (err == nil) != (errSQL == nil) {
			t.Errorf("over pgx %v, over database/sql %v", err, errSQL)
		}
		return err
	}
	if err := open("absent"); !errors.Is(err, postgres.ErrNotMigrated) {
		t.Errorf("no tables: %v", err)
	}
	d.exec(t, `CREATE SCHEMA fresh`)
	if err := open("fresh"); !errors.Is(err, postgres.ErrNotMigrated) {
		t.Errorf("an empty schema: %v", err)
	}
	if err := postgres.MigrateSQL(t.Context(), db, "fresh"); err != nil {
		t.Errorf("a schema that was there: %v", err)
	}
	d.exec(t, `INSERT INTO agentic.migration (version_id, is_applied) VALUES (99, true)`)
	if err := open(""); !errors.Is(err, postgres.ErrNewer) || errors.Is(err, service.ErrUnavailable) {
		t.Errorf("newer tables: %v", err)
	}
	if err := postgres.Migrate(t.Context(), d.admin, ""); !errors.Is(err, postgres.ErrNewer) {
		t.Errorf("Migrate over newer tables: %v", err)
	}
	for _, schema := range []string{"Agentic", "a-b", `a"b`, "1a", "pg_x", "information_schema", "a.b", " ", strings.Repeat("a", 64)} {
		if err := postgres.Migrate(t.Context(), d.admin, schema); err == nil {
			t.Errorf("schema %q was taken", schema)
		}
	}
	if _, err := postgres.NewStore(t.Context(), postgres.StoreConfig{}); err == nil {
		t.Error("no pool")
	}
}

func TestMigrateNeedsTwoConnections(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	if err := postgres.Migrate(t.Context(), d.newPool(t, d.config(t, 1)), "one"); err == nil {
		t.Error("a pool of one connection migrated")
	}
	if err := postgres.Migrate(t.Context(), d.newPool(t, d.config(t, 2)), "two"); err != nil {
		t.Error(err)
	}
}

// The rights in the package's documentation are enough to serve.
func TestServingRoleHasFewRights(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	c := d.config(t, 2)
	role := "app_" + c.ConnConfig.Database
	d.exec(t, `CREATE ROLE `+role+` LOGIN;
		GRANT USAGE ON SCHEMA agentic TO `+role+`;
		GRANT SELECT ON agentic.migration TO `+role+`;
		GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.tracked_request TO `+role+`;
		GRANT INSERT ON note TO `+role)
	t.Cleanup(func() { d.exec(t, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	c.ConnConfig.User = role
	pool := d.newPool(t, c)
	s := newStore(t, pool)
	k := key("request-1")
	if err := submit(t.Context(), s, insertPgx, k, "one"); err != nil {
		t.Fatal(err)
	}
	unsettled := s.Transact(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := s.Claim(ctx, tx, key("request-2"), "f", window)
		return err
	})
	if unsettled == nil || errors.Is(unsettled, service.ErrUnavailable) {
		t.Errorf("a claim that was not settled: %v", unsettled)
	}
	d.advance(t, 3*window)
	if n, err := s.Sweep(t.Context(), window, 10); err != nil || n != (service.Swept{Expired: 1, Deleted: 1}) {
		t.Errorf("Sweep: %+v, %v", n, err)
	}
}

// The rights in the package's documentation are enough for a ledger.
func TestHostRoleHasFewRights(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	c := d.config(t, 2)
	role := "host_" + c.ConnConfig.Database
	d.exec(t, `CREATE ROLE `+role+` LOGIN;
		GRANT USAGE ON SCHEMA agentic TO `+role+`;
		GRANT SELECT ON agentic.ledger_migration TO `+role+`;
		GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.ledger_snapshot, agentic.ledger_request, agentic.ledger_entry, agentic.ledger_note TO `+role)
	t.Cleanup(func() { d.exec(t, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	c.ConnConfig.User = role
	pool := d.newPool(t, c)
	l := d.openLedger(t, pool, nil)
	b := bindingOf("request-1")
	h := begin(t, l, b)
	if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Unknown)); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "ann", Verb: client.Abandon, Reason: "too old"}); err != nil {
		t.Fatal(err)
	}
	if p, err := l.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true}); err != nil || p.Requests != 1 || p.Snapshots != 2 {
		t.Errorf("Purge: %+v, %v", p, err)
	}
	if found, err := postgres.CheckLedger(t.Context(), pool, ""); err != nil || levels(t, found)["rights"] != postgres.OK {
		t.Errorf("CheckLedger: %+v, %v", found, err)
	}
}

func TestLedgerNeedsItsTables(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t)) // those of a store
	open := func(c postgres.LedgerConfig) error {
		_, err := postgres.OpenLedger(t.Context(), c)
		return err
	}
	if err := open(postgres.LedgerConfig{Pool: d.admin}); !errors.Is(err, postgres.ErrNotMigrated) || !errors.Is(err, client.ErrLedger) {
		t.Errorf("no tables: %v", err)
	}
	if err := postgres.MigrateLedger(t.Context(), d.admin, ""); err != nil {
		t.Fatal(err)
	}
	if err := postgres.MigrateLedger(t.Context(), d.admin, ""); err != nil {
		t.Errorf("a second time: %v", err)
	}
	c := d.config(t, 2)
	c.ConnConfig.Database = "nobody_made_it"
	err := postgres.MigrateLedger(t.Context(), d.newPool(t, c), "")
	if !errors.Is(err, client.ErrLedger) || errors.Is(err, service.ErrUnavailable) || strings.Contains(err.Error(), "postgres: migrate") {
		t.Errorf("no database: %v", err)
	}
	newStore(t, d.admin)
	d.openLedger(t, d.admin, nil)
	d.exec(t, `INSERT INTO agentic.ledger_migration (version_id, is_applied) VALUES (99, true)`)
	if err := open(postgres.LedgerConfig{Pool: d.admin}); !errors.Is(err, postgres.ErrNewer) || !errors.Is(err, client.ErrLedger) {
		t.Errorf("newer tables: %v", err)
	}
	for _, c := range []postgres.LedgerConfig{{}, {Pool: d.admin, Lease: time.Millisecond}, {Pool: d.admin, Schema: "pg_x"}, {Pool: d.newPool(t, d.config(t, 1))}} {
		if err := open(c); !errors.Is(err, client.ErrLedger) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
