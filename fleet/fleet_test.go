package fleet_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
)

func TestAnotherHostsWorkerVerifiesWhatACrashedHostLeft(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.crash(ann, "crashed-1")
	stop := h.start([]client.Scope{ann})
	time.Sleep(1500 * time.Millisecond) // the lease is over, its term is not
	if n := h.svc.count(); n != 0 {
		t.Fatalf("%d reads before it is due", n)
	}
	h.ahead.Add(int64(time.Minute))
	h.waitVerified(ann, 1)
	stop()
	if n := h.svc.count(); n != 1 || h.svc.posts != 0 {
		t.Errorf("%d reads and %d submissions", n, h.svc.posts)
	}
	if h.jobs("completed") != 1 || h.jobs() != 1 {
		t.Errorf("%d jobs, %d completed", h.jobs(), h.jobs("completed"))
	}
}

// What one host left pending is verified by a worker of another; each look makes the
// job for the next.
func TestPendingBecomesVerified(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	host := h.ledger(h.newPool())
	if res, err := h.execute(host, ann, "pending-1"); err != nil || res.Receipt.Outcome != agentic.Pending {
		t.Fatal(res, err)
	}
	if n := h.jobs("scheduled", "available"); n != 1 {
		t.Fatalf("%d jobs", n)
	}
	defer h.start([]client.Scope{ann}, func(c *fleet.Config) { c.PollOnly = true })()
	h.wait("a second look", func() bool { return h.svc.count() >= 2 })
	h.svc.pending.Store(false)
	h.waitVerified(ann, 1)
	if h.svc.posts != 1 {
		t.Errorf("%d submissions", h.svc.posts)
	}
}

// A receipt and the job that it makes necessary are one commit.
func TestJobAndReceiptAreOneCommit(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	enqueue := fleet.Enqueuer("")
	receipts := func() (n int) {
		t.Helper()
		if err := h.pool.QueryRow(t.Context(), `SELECT count(receipt) FROM agentic.ledger_entry`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	calls := 0
	host := h.ledger(h.newPool(), func(c *postgres.LedgerConfig) {
		c.Enqueue = func(ctx context.Context, tx pgx.Tx, due []postgres.Due) error {
			if h.jobs() != 0 || receipts() != 0 {
				t.Errorf("%d jobs and %d receipts after the connection was killed", h.jobs(), receipts())
			}
			if err := enqueue(ctx, tx, due); err != nil {
				return err
			}
			if calls++; calls <= 2 {
				if _, err := h.pool.Exec(ctx, `SELECT pg_terminate_backend($1)`, int32(tx.Conn().PgConn().PID())); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
	})
	res, err := h.execute(host, ann, "killed-1")
	if err != nil || res.Receipt.Outcome != agentic.Pending || calls != 3 {
		t.Errorf("%+v, %v after %d calls", res, err, calls)
	}
	if h.jobs() != 1 || receipts() != 1 {
		t.Errorf("%d jobs and %d receipts", h.jobs(), receipts())
	}
	var args string
	if err := h.pool.QueryRow(t.Context(), `SELECT args::text FROM agentic.river_job`).Scan(&args); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(args, "Printer") || strings.Contains(args, "support") {
		t.Errorf("a job holds more than the names of a request: %s", args)
	}
}

// When a job is due is told by the database's clock, whatever that of the host says:
// here it is an hour ahead.
func TestJobsAreDueByTheDatabasesClock(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	if _, err := h.pool.Exec(t.Context(), `CREATE SCHEMA behind;
		CREATE FUNCTION behind.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '1 hour' $$`); err != nil {
		t.Fatal(err)
	}
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // after a commit it does nothing
	if _, err := tx.Exec(t.Context(), `SET LOCAL search_path = behind, pg_catalog`); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := fleet.Enqueuer("")(t.Context(), tx, []postgres.Due{
		{Scope: ann, RequestID: "later-01", At: now.Add(-30 * time.Minute)},
		{Scope: ann, RequestID: "due-0001", At: now.Add(-90 * time.Minute)},
	}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if later, due := h.jobs("scheduled"), h.jobs("available"); later != 1 || due != 1 {
		t.Errorf("%d jobs for later, %d due", later, due)
	}
}

// Two hosts share three hundred requests: each is executed once, never twice at once.
func TestTwoHostsShareTheWork(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.took = 5 * time.Millisecond
	const n = 300
	h.crash(ann, ids("request", n)...)
	h.ahead.Add(int64(time.Minute))
	var stops []func()
	for range 2 {
		stops = append(stops, h.start([]client.Scope{ann}))
	}
	h.waitVerified(ann, n)
	for _, stop := range stops {
		stop()
	}
	if got := h.svc.count(); got != n || h.svc.posts != 0 {
		t.Errorf("%d reads for %d requests, %d submissions", got, n, h.svc.posts)
	}
	var workers int
	if err := h.pool.QueryRow(t.Context(), `SELECT count(DISTINCT attempted_by[1]) FROM agentic.river_job`).Scan(&workers); err != nil {
		t.Fatal(err)
	}
	if workers != 2 || h.jobs() != n {
		t.Errorf("%d hosts did %d jobs", workers, h.jobs())
	}
}

func TestJobsOfAnotherScopeAreNotTaken(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	host := h.ledger(h.newPool())
	for _, scope := range []client.Scope{ann, bob} {
		if _, err := h.execute(host, scope, "pending-1"); err != nil {
			t.Fatal(err)
		}
	}
	h.crash(bob, "crashed-1")
	h.svc.pending.Store(false)
	h.ahead.Add(int64(time.Minute))
	if _, err := h.pool.Exec(t.Context(), `UPDATE agentic.river_job SET scheduled_at = now(), state = 'available'`); err != nil {
		t.Fatal(err)
	}
	stop := h.start([]client.Scope{ann})
	h.waitVerified(ann, 1)
	time.Sleep(time.Second)
	stop()
	if got := h.outcomes(bob); got[agentic.Pending] != 1 || got[""] != 1 || h.jobs("available") != 1 || h.jobs() != 2 {
		t.Errorf("outcomes of the other scope: %v, %d jobs left of %d", got, h.jobs("available"), h.jobs())
	}
	h.start([]client.Scope{bob, ann})
	h.waitVerified(bob, 2)
}

// A job that was lost, or that River discarded, is made again; one that lives is not
// made twice, however long its request is overdue.
func TestLostJobIsFoundAgain(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	host := h.ledger(h.newPool())
	if _, err := h.execute(host, ann, "pending-1"); err != nil {
		t.Fatal(err)
	}
	sweep := func() int {
		t.Helper()
		n, err := host.Sweep(t.Context(), []client.Scope{ann}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, lose := range []string{
		`DELETE FROM agentic.river_job`,
		`UPDATE agentic.river_job SET state = 'discarded', finalized_at = now()`,
	} {
		h.ahead.Add(int64(time.Minute))
		sweep()
		if n := h.jobs("scheduled", "available"); n != 1 {
			t.Fatalf("%d living jobs when it is a minute overdue", n)
		}
		h.ahead.Add(int64(20 * time.Minute))
		sweep() // it lives
		if n := h.jobs("scheduled", "available"); n != 1 {
			t.Fatalf("%d living jobs when it is overdue", n)
		}
		if _, err := h.pool.Exec(t.Context(), lose); err != nil {
			t.Fatal(err)
		}
		if n := sweep(); n != 0 {
			t.Errorf("lost at once: %d", n)
		}
		h.ahead.Add(int64(20 * time.Minute))
		if n := sweep(); n != 1 || h.jobs("scheduled", "available") != 1 {
			t.Errorf("loss %d: Sweep made %d, %d living jobs", i, n, h.jobs("scheduled", "available"))
		}
	}
	h.svc.pending.Store(false)
	if _, err := h.pool.Exec(t.Context(), `UPDATE agentic.river_job SET scheduled_at = now(), state = 'available' WHERE state = 'scheduled'`); err != nil {
		t.Fatal(err)
	}
	h.start([]client.Scope{ann})
	h.waitVerified(ann, 1)
}

// What a worker had that was killed, and what is held by another execution, goes on.
func TestRescuedAndHeldJobs(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	host := h.ledger(h.newPool(), func(c *postgres.LedgerConfig) { c.Lease = time.Minute })
	for _, id := range []string{"killed-1", "held-0001"} {
		if _, err := h.execute(host, ann, id); err != nil {
			t.Fatal(err)
		}
	}
	h.svc.pending.Store(false)
	hold, err := host.Take(t.Context(), ann, "held-0001", client.IntendPrepare, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE agentic.river_job SET scheduled_at = now(), state = 'available'`,
		`UPDATE agentic.river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 hour' WHERE args->>'request_id' = 'killed-1'`,
	} {
		if _, err := h.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	h.start([]client.Scope{ann})
	h.waitVerified(ann, 1)
	h.wait("the job of what is held is snoozed", func() bool {
		var n int
		if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM agentic.river_job WHERE metadata ? 'snoozes'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	h.waitVerified(ann, 2)
}

// A database that is restarted in the middle is waited for: work goes on by itself,
// and no outcome is false.
func TestServerRestart(t *testing.T) {
	cluster := pgtest.Start(t)
	h := newHouse(t, cluster.NewDatabase(t))
	h.svc.took = 20 * time.Millisecond
	const n = 200
	h.crash(ann, ids("request", n)...)
	h.ahead.Add(int64(time.Minute))
	h.start([]client.Scope{ann}, func(c *fleet.Config) { c.Concurrency, c.Rescue = 4, time.Second })
	for i, m := range []pgtest.Mode{pgtest.Immediate, pgtest.Fast} {
		h.wait("some work", func() bool { return h.svc.count() > (i+1)*30 })
		cluster.Restart(t, m)
		h.wait("the database", func() bool { return h.pool.Ping(t.Context()) == nil })
	}
	// A lease of before may stand for a second, and its request is due a term later.
	h.wait("all verified", func() bool {
		h.ahead.Add(int64(time.Second))
		return h.outcomes(ann)[agentic.Succeeded] == n
	})
	if h.svc.posts != 0 {
		t.Errorf("%d submissions", h.svc.posts)
	}
	if got := h.svc.count(); got > n+20 {
		t.Errorf("%d reads for %d requests", got, n)
	}
}

// A stop begins nothing, lets what runs go on, and cancels it after the grace period;
// the next worker goes on with it.
func TestStop(t *testing.T) {
	for _, tt := range []struct {
		name         string
		took         time.Duration
		grace        time.Duration
		verified     int
		least, limit time.Duration
	}{
		{"all of it ends", time.Second, 0, 3, 0, 5 * time.Second},
		{"the grace period ends", time.Hour, 500 * time.Millisecond, 0, 500 * time.Millisecond, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
			h.svc.took = tt.took
			h.crash(ann, ids("request", 10)...)
			h.ahead.Add(int64(time.Minute))
			stop := h.start([]client.Scope{ann}, func(c *fleet.Config) { c.Concurrency, c.Grace = 3, tt.grace })
			h.wait("three run", func() bool { return h.svc.count() == 3 })
			at := time.Now()
			stop()
			if took := time.Since(at); took < tt.least || took > tt.limit {
				t.Errorf("it stopped after %v", took)
			}
			if got := h.outcomes(ann)[agentic.Succeeded]; got != tt.verified || h.svc.count() != 3 {
				t.Errorf("%d verified, %d reads", got, h.svc.count())
			}
			if n := h.jobs("running"); n != 0 {
				t.Errorf("%d jobs run when nobody does", n)
			}
			h.svc.took = 0
			h.ahead.Add(int64(time.Minute)) // what was cancelled is due a term after it began
			h.start([]client.Scope{ann})
			h.waitVerified(ann, 10)
		})
	}
}

// Nor does one begin that waited for another scope's to end.
func TestStopWithManyScopes(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.took = 2 * time.Second
	h.crash(ann, ids("request", 5)...)
	h.crash(bob, ids("request", 5)...)
	h.ahead.Add(int64(time.Minute))
	stop := h.start([]client.Scope{ann, bob}, func(c *fleet.Config) { c.Concurrency = 3 })
	h.wait("three run and three wait", func() bool { return h.svc.count() == 3 && h.jobs("running") == 6 })
	stop()
	if n := h.svc.count(); n != 3 {
		t.Errorf("%d reads", n)
	}
}

func TestMigrate(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := fleet.Migrate(t.Context(), pool, ""); err == nil || !strings.Contains(err.Error(), "agentic") {
		t.Errorf("without a schema: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `CREATE SCHEMA jobs`); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := fleet.Migrate(t.Context(), pool, "jobs"); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	group.Wait()
	if ok, err := fleet.Migrated(t.Context(), pool, "jobs"); !ok || err != nil {
		t.Errorf("Migrated: %v, %v", ok, err)
	}
	if err := fleet.Enqueuer("no such; schema")(t.Context(), nil, nil); err == nil {
		t.Error("Enqueuer took a schema that is no name")
	}
}

// River keeps no text of an error or a panic, and a job that stands in the queue of
// another scope is not done.
func TestJobsThatFail(t *testing.T) {
	h := newHouse(t, pgtest.Shared(t).NewDatabase(t))
	h.svc.pending.Store(true)
	host := h.ledger(h.newPool())
	for _, id := range []string{"astray-01", "panics-01"} {
		if _, err := h.execute(host, ann, id); err != nil {
			t.Fatal(err)
		}
	}
	h.svc.pending.Store(false)
	if _, err := h.pool.Exec(t.Context(), `UPDATE agentic.river_job SET queue = $1 WHERE args->>'request_id' = 'astray-01'`, fleet.Queue(bob)); err != nil {
		t.Fatal(err)
	}
	h.svc.panics.Store(true)
	h.start([]client.Scope{bob, ann})
	failed := func(id string) (state, text string) {
		t.Helper()
		if err := h.pool.QueryRow(t.Context(), `SELECT state::text, coalesce(array_to_string(errors, ' '), '') FROM agentic.river_job WHERE args->>'request_id' = $1 ORDER BY id LIMIT 1`,
			id).Scan(&state, &text); err != nil {
			t.Fatal(err)
		}
		return state, text
	}
	h.wait("a panic", func() bool { _, text := failed("panics-01"); return text != "" })
	h.svc.panics.Store(false)
	if _, text := failed("panics-01"); !strings.Contains(text, "the worker panicked") || strings.Contains(text, "confidential") || strings.Contains(text, "goroutine") {
		t.Errorf("River keeps %s", text)
	}
	h.waitVerified(ann, 1)
	if state, text := failed("astray-01"); state != "cancelled" || !strings.Contains(text, "another scope") {
		t.Errorf("the job astray is %s: %s", state, text)
	}
}

func TestNewRefuses(t *testing.T) {
	pool, w, l, scopes := new(pgxpool.Pool), new(reconcile.Worker), new(postgres.Ledger), []client.Scope{ann}
	for name, c := range map[string]fleet.Config{
		"no pool":    {Worker: w, Ledger: l, Scopes: scopes},
		"no worker":  {Pool: pool, Ledger: l, Scopes: scopes},
		"no ledger":  {Pool: pool, Worker: w, Scopes: scopes},
		"no scope":   {Pool: pool, Worker: w, Ledger: l},
		"bad schema": {Pool: pool, Worker: w, Ledger: l, Scopes: scopes, Schema: "a.b"},
	} {
		if _, err := fleet.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
