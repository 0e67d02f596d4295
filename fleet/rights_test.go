package fleet_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/pgtest"
)

// documented are the grants that a file of documentation shows.
func documented(t *testing.T, file string) (grants string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "GRANT ")[1:] {
		if stmt, _, _ := strings.Cut(part, ";"); strings.HasSuffix(stmt, "TO host") {
			grants += "GRANT " + strings.ReplaceAll(stmt, "//", "") + ";"
		}
	}
	return grants
}

// The rights that the documentation names are enough for a host. Without the one on a
// sequence it makes no job and loses no receipt, and Look says which is missing.
func TestRights(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	exec := func(sql string) {
		t.Helper()
		if _, err := h.pool.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatal(err)
		}
	}
	c, err := pgxpool.ParseConfig(h.url)
	if err != nil {
		t.Fatal(err)
	}
	role := "host_" + c.ConnConfig.Database
	exec(`CREATE ROLE ` + role + ` LOGIN`)
	c.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role)
	})
	look := func() fleet.Tables {
		t.Helper()
		got, err := fleet.Look(t.Context(), pool, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := look(); !got.There || got.Version != 0 || len(got.Closed) < 6 {
		t.Errorf("without any right: %+v", got)
	}
	exec(strings.ReplaceAll(documented(t, "doc.go")+documented(t, "../postgres/doc.go"), "TO host", "TO "+role))
	got := look()
	if want := (fleet.Tables{There: true, Version: got.Wanted, Wanted: got.Wanted, Closed: []string{}}); !cmp.Equal(want, got) || got.Wanted < 6 {
		t.Errorf("with the documented rights: %+v", got)
	}
	h.svc.pending.Store(true)
	host := h.ledger(pool)
	if res, err := h.execute(host, ann, "request-1"); err != nil || res.Receipt.Outcome != agentic.Pending || h.jobs() != 1 {
		t.Fatalf("%+v, %v, %d jobs", res, err, h.jobs())
	}

	exec(`REVOKE ALL ON SEQUENCE agentic.river_job_id_seq FROM ` + role)
	if diff := cmp.Diff([]string{"river_job_id_seq"}, look().Closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if res, err := h.execute(host, ann, "request-2"); err != nil || res.Receipt.Outcome != agentic.Pending || h.jobs() != 1 {
		t.Errorf("%+v, %v, %d jobs", res, err, h.jobs())
	}
	h.svc.pending.Store(false)
	h.ahead.Add(int64(24 * 60 * 60e9)) // due
	if n, err := h.ledger(h.pool).Sweep(t.Context(), []client.Scope{ann}, 10); n == 0 || err != nil || h.jobs() < 2 {
		t.Errorf("swept %d, %v; %d jobs", n, err, h.jobs())
	}
	if got, err := fleet.Look(t.Context(), h.pool, "absent"); got.There || err != nil {
		t.Errorf("an absent schema: %+v, %v", got, err)
	}
}
