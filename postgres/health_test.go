package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
)

func levels(t *testing.T, h postgres.Health) map[string]postgres.Level {
	t.Helper()
	m := map[string]postgres.Level{}
	for _, f := range h {
		m[f.Name] = f.Level
		if f.Value == "" || (f.Level == postgres.OK) != (f.Detail == "" && f.Remedy == "") {
			t.Errorf("%+v", f)
		}
	}
	return m
}

func TestCheckLedger(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	h, err := postgres.CheckLedger(t.Context(), d.admin, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, level := range levels(t, h) {
		if level != postgres.OK {
			t.Errorf("%s: %s", name, level)
		}
	}
	if len(h) != 12 {
		t.Errorf("%d findings", len(h))
	}

	h, err = postgres.CheckLedger(t.Context(), d.admin, "absent")
	if err != nil || levels(t, h)["schema"] != postgres.Problem {
		t.Errorf("no tables: %+v, %v", h, err)
	}
	d.exec(t, `INSERT INTO agentic.ledger_migration (version_id, is_applied) VALUES (99, true)`)
	h, err = postgres.CheckLedger(t.Context(), d.admin, "")
	if err != nil || levels(t, h)["schema"] != postgres.Problem || !strings.Contains(h[0].Remedy, "newer") {
		t.Errorf("newer tables: %+v, %v", h, err)
	}
	d.exec(t, `DELETE FROM agentic.ledger_migration WHERE version_id = 99`)

	c := d.config(t, 1)
	c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	h, err = postgres.CheckLedger(t.Context(), d.newPool(t, c), "")
	if m := levels(t, h); err != nil || m["pool"] != postgres.Problem || m["synchronous_commit"] != postgres.OK {
		t.Errorf("a pool of one, and commits that do not wait: %+v, %v", h, err)
	}
	if _, err := postgres.CheckLedger(t.Context(), d.admin, "pg_x"); !errors.Is(err, client.ErrLedger) {
		t.Errorf("a schema of the system's: %v", err)
	}
	c = d.config(t, 2)
	c.ConnConfig.Database = "nobody_made_it"
	if _, err := postgres.CheckLedger(t.Context(), d.newPool(t, c), ""); !errors.Is(err, client.ErrLedger) {
		t.Errorf("no database: %v", err)
	}
}

func TestCheckLedgerOfFewRights(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	c := d.config(t, 2)
	role := "poor_" + c.ConnConfig.Database
	d.exec(t, `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA agentic TO `+role+`; GRANT SELECT ON ALL TABLES IN SCHEMA agentic TO `+role)
	t.Cleanup(func() { d.exec(t, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	c.ConnConfig.User = role
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	h, err := postgres.CheckLedger(t.Context(), d.newPool(t, c), "")
	if m := levels(t, h); err != nil || m["rights"] != postgres.Problem || m["schema"] != postgres.OK {
		t.Errorf("%+v, %v", h, err)
	}
	d.exec(t, `REVOKE ALL ON SCHEMA agentic FROM `+role)
	h, err = postgres.CheckLedger(t.Context(), d.newPool(t, c), "")
	if m := levels(t, h); err != nil || m["schema"] != postgres.Problem || m["server"] != postgres.OK || !strings.Contains(h[0].Remedy, "USAGE on the schema") {
		t.Errorf("without rights on the schema: %+v, %v", h, err)
	}
}
