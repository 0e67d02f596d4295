//go:build unix

package hosts

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func newPool(t *testing.T, database string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// audit has the server itself watch every write of a hold: one that comes when the
// lease has ended, or under the number of another holder, is a stale holder's.
func audit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `
CREATE INDEX audit_id ON agentic.ledger_request (id);
CREATE TABLE audit (what text NOT NULL, request_id text NOT NULL);
CREATE FUNCTION audit_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO audit SELECT CASE
		WHEN OLD.lease_until IS NULL OR OLD.lease_until <= statement_timestamp() THEN 'after the lease'
		WHEN NEW.fence <> OLD.fence OR NEW.holder <> OLD.holder THEN 'with a takeover'
		WHEN OLD.outcome IN ('succeeded', 'failed') THEN 'after the end'
		ELSE 'held' END, OLD.request_id;
	RETURN NULL;
END $$;
CREATE TRIGGER audit_write AFTER UPDATE OF entries ON agentic.ledger_request
	FOR EACH ROW WHEN (NEW.entries > OLD.entries) EXECUTE FUNCTION audit_write();
CREATE FUNCTION audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO audit SELECT 'of another holder', r.request_id FROM agentic.ledger_request r
		WHERE r.id = NEW.request AND r.holder <> NEW.holder;
	RETURN NULL;
END $$;
CREATE TRIGGER audit_entry AFTER INSERT ON agentic.ledger_entry FOR EACH ROW EXECUTE FUNCTION audit_entry()`); err != nil {
		t.Fatal(err)
	}
}

func checkAudit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT what, count(*), min(request_id) FROM audit GROUP BY what`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	held := 0
	for rows.Next() {
		var what, example string
		var n int
		if err := rows.Scan(&what, &n, &example); err != nil {
			t.Fatal(err)
		}
		if what == "held" {
			held = n
			continue
		}
		t.Errorf("%d writes %s, such as that of %s", n, what, example)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if held == 0 {
		t.Error("the server saw no write")
	}
	t.Logf("the server saw %d writes of holds, each under its own lease", held)
}
