package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgmigrate"
	"github.com/agentic-go/agentic/internal/pgtest"
)

// Among many requests no statement reads the whole table; those of a batch not even
// with a plan that was made while there were none.
func TestLedgerStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := MigrateLedger(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	plan := func(name, sql string) string {
		t.Helper()
		most := 0
		for _, m := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(sql, -1) {
			var n int
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		exec(`PREPARE ` + name + ` AS ` + sql)
		args := ""
		if most > 0 {
			args = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", most), ", ") + ")"
		}
		rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+name+args, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(lines) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		exec(`DEALLOCATE ` + name)
		return strings.Join(lines, "\n")
	}
	check := func(when string, statements map[string]string) {
		t.Helper()
		for name, sql := range statements {
			if p := plan(name, sql); strings.Contains(p, "Seq Scan") {
				t.Errorf("%s, %s:\n%s", name, when, p)
			}
		}
	}
	l := &Ledger{sql: newLedgerSQL(pgmigrate.DefaultSchema)}
	s := l.sql
	exec(`SET plan_cache_mode = force_generic_plan`)
	batch := map[string]string{"b_insert": s.insert, "b_take": s.take, "b_append": s.append, "b_free": s.free, "b_renew": s.renew}
	exec(`BEGIN`)
	exec(s.prelude)
	check("when there are none", batch)
	exec(`COMMIT`)

	exec(`INSERT INTO agentic.ledger_request (key, intent, window_us, term_us, created_at, window_ends, seen_at, attempted_at, attempted_by, next_check, fence,
		holder, principal, environment, request_id, origin, action_id, supersedes, input_digest, profile_digest, openapi_digest, input, input_sum, outcome)
		SELECT sha256(i::text::bytea), i, 1, 1, now() + i * interval '1 ms', now(), now(), now(), i, CASE WHEN i > 19900 THEN now() END, 1,
		i, 'alice', 'production', 'request-' || i, 'https://a.example', 'a', '', i::text, 'p', 'o', '', '', CASE WHEN i <= 19900 THEN 'succeeded' END
		FROM generate_series(1, 20000) i`)
	exec(`INSERT INTO agentic.ledger_entry SELECT i, 1, i, '[]', '{}' FROM generate_series(1, 20000) i`)
	exec(`ANALYZE agentic.ledger_request, agentic.ledger_entry`)
	exec(`BEGIN`)
	exec(s.prelude)
	check("when there are many", batch)
	exec(`COMMIT`)
	newest, _ := l.listSQL(&client.Filter{Limit: 20})
	due, _ := l.listSQL(&client.Filter{Due: true, Order: client.DueFirst, Limit: 20})
	open, _ := l.listSQL(&client.Filter{Open: true, Order: client.UrgentFirst})
	old, _ := l.listSQL(&client.Filter{Before: time.Now(), Limit: 20})
	alone := map[string]string{"a_load": s.load, "a_held": s.held, "a_written": s.written, "a_duplicate": s.duplicate,
		"a_sweep": l.named(sweepSQL), "a_newest": newest, "a_due": due, "a_open": open, "a_old": old}
	for name, sql := range alone {
		// A publisher's documents are few, and read at once.
		if p := strings.ReplaceAll(plan(name, sql), "Seq Scan on ledger_snapshot", ""); strings.Contains(p, "Seq Scan") {
			t.Errorf("%s:\n%s", name, p)
		}
	}
}
