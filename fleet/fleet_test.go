package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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

var (
	ann = client.Scope{Principal: "ann \xe2\x82\xac \x00 \"", Environment: "live"} // any UTF-8 will do
	bob = client.Scope{Principal: "bob", Environment: "live"}
)

const patience = time.Minute

// plan is the example of the draft's reading guide, with one quick check.
func plan(t testing.TB) *agentic.Plan {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	profile := bytes.Replace(read("profile.json"), []byte(`"maxChecks": 3`), []byte(`"maxChecks": 1`), 1)
	p, err := agentic.Load(profile, read("openapi.json"), "", agentic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// service knows every request. A submission is counted; a worker must make none.
type service struct {
	t       *testing.T
	pending atomic.Bool
	took    time.Duration

	mu      sync.Mutex
	posts   int
	reads   map[string]int // status reads by request
	running map[string]bool
}

func newService(t *testing.T) *service {
	return &service{t: t, reads: map[string]int{}, running: map[string]bool{}}
}

func (s *service) Approve(string, string) error { return nil }

func (s *service) Submit(context.Context, client.Submission) client.Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts++
	return answer(`{}`)
}

func (s *service) Get(ctx context.Context, r client.Read) client.Exchange {
	id := r.URL[strings.LastIndex(r.URL, "/")+1:]
	if id, ok := strings.CutPrefix(id, "t-"); ok {
		return answer(fmt.Sprintf(`{"id":"t-%s","request_id":%q,"subject":"Printer on fire","status":"open"}`, id, id))
	}
	s.mu.Lock()
	if s.running[id] {
		s.t.Errorf("two executions of %s at once", id)
	}
	s.running[id] = true
	s.reads[id]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running[id] = false
	}()
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return client.Exchange{Reach: client.MaybeSent, Class: client.ClassCanceled, Err: ctx.Err()}
	}
	if s.pending.Load() {
		return answer(fmt.Sprintf(`{"request_id":%q,"status":"pending","resource_id":null}`, id))
	}
	return answer(fmt.Sprintf(`{"request_id":%q,"status":"succeeded","resource_id":"t-%s"}`, id, id))
}

func (s *service) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.reads {
		n += k
	}
	return n
}

func answer(body string) client.Exchange {
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: 200, ContentType: "application/json", Body: []byte(body)}}
}

// house is a database with the tables, and a clock that its ledgers share.
type house struct {
	t     *testing.T
	url   string
	pool  *pgxpool.Pool // of the test
	svc   *service
	ahead atomic.Int64 // of the ledgers' clock, which begins hours late: River finds due at once what they schedule
}

func newHouse(t *testing.T, url string) *house {
	h := &house{t: t, url: url, svc: newService(t)}
	h.ahead.Store(int64(-3 * time.Hour))
	h.pool = h.newPool()
	if ok, err := fleet.Migrated(t.Context(), h.pool, ""); ok || err != nil {
		t.Fatalf("Migrated before: %v, %v", ok, err)
	}
	if err := postgres.MigrateLedger(t.Context(), h.pool, ""); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Migrate(t.Context(), h.pool, ""); err != nil {
		t.Fatal(err)
	}
	if ok, err := fleet.Migrated(t.Context(), h.pool, ""); !ok || err != nil {
		t.Fatalf("Migrated: %v, %v", ok, err)
	}
	return h
}

func (h *house) newPool() *pgxpool.Pool {
	h.t.Helper()
	pool, err := pgxpool.New(h.t.Context(), h.url+"&pool_max_conns=10")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	return pool
}

func (h *house) ledger(pool *pgxpool.Pool, change ...func(*postgres.LedgerConfig)) *postgres.Ledger {
	h.t.Helper()
	cfg := postgres.LedgerConfig{Pool: pool, Lease: time.Second, Enqueue: fleet.Enqueuer(""),
		Clock: func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }}
	for _, c := range change {
		c(&cfg)
	}
	l, err := postgres.OpenLedger(h.t.Context(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (h *house) client(l *postgres.Ledger, scope client.Scope) *client.Client {
	h.t.Helper()
	c, err := client.New(client.Config{Ledger: l, Transport: h.svc, Scope: scope})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// execute runs one new request on a host.
func (h *house) execute(l *postgres.Ledger, scope client.Scope, id string) (client.Result, error) {
	return h.client(l, scope).Execute(h.t.Context(),
		client.Request{Plan: plan(h.t), Input: []byte(`{"subject":"Printer on fire"}`), ID: id, AllowDuplicate: true})
}

// crash leaves requests as a host does that is killed while it has them.
func (h *house) crash(scope client.Scope, ids ...string) {
	h.t.Helper()
	l := h.ledger(h.pool)
	c, p := h.client(l, scope), plan(h.t)
	for _, id := range ids {
		if _, err := c.Prepare(h.t.Context(), client.Request{Plan: p, Input: []byte(`{"subject":"Printer on fire"}`), ID: id, AllowDuplicate: true}); err != nil {
			h.t.Fatal(err)
		}
		if _, err := l.Take(h.t.Context(), scope, id, client.IntendSubmit, 0); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil { // nobody renews the leases
		h.t.Fatal(err)
	}
}

// start runs a fleet with its own pool and ledger; the function ends it.
func (h *house) start(scopes []client.Scope, change ...func(*fleet.Config)) (stop func()) {
	h.t.Helper()
	pool := h.newPool()
	l := h.ledger(pool)
	w, err := reconcile.New(reconcile.Config{Client: h.client(l, client.Scope{}), Ledger: l, Scopes: scopes,
		Limits: reconcile.Limits{Concurrency: 8, Rate: 1e6}})
	if err != nil {
		h.t.Fatal(err)
	}
	cfg := fleet.Config{Pool: pool, Worker: w, Ledger: l, Scopes: scopes, Sweep: 200 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(h.t.Output(), nil))}
	for _, c := range change {
		c(&cfg)
	}
	f, err := fleet.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				h.t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			h.t.Error("Run does not end")
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// outcomes counts the requests of a scope by the outcome of their last receipt.
func (h *house) outcomes(scope client.Scope) map[agentic.Outcome]int {
	h.t.Helper()
	l := h.ledger(h.pool)
	defer l.Close()
	list, err := l.List(h.t.Context(), client.Filter{}.In(scope))
	if err != nil {
		h.t.Fatal(err)
	}
	n := map[agentic.Outcome]int{}
	for _, s := range list {
		n[s.Outcome]++
	}
	return n
}

func (h *house) wait(what string, done func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			h.t.Fatalf("waiting in vain: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (h *house) waitVerified(scope client.Scope, n int) {
	h.t.Helper()
	h.wait(fmt.Sprint(n, " verified"), func() bool { return h.outcomes(scope)[agentic.Succeeded] == n })
}

// jobs counts the jobs in states; none is all.
func (h *house) jobs(states ...string) (n int) {
	h.t.Helper()
	if states == nil {
		states = []string{"available", "scheduled", "running", "retryable", "completed", "discarded", "cancelled"}
	}
	if err := h.pool.QueryRow(h.t.Context(), `SELECT count(*) FROM agentic.river_job WHERE state::text = ANY ($1)`, states).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return list
}

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

	refused := errors.New("no more jobs")
	host := h.ledger(h.newPool(), func(c *postgres.LedgerConfig) {
		c.Enqueue = func(ctx context.Context, tx pgx.Tx, due []postgres.Due) error {
			if err := enqueue(ctx, tx, due); err != nil {
				t.Error(err)
			}
			return refused
		}
	})
	if _, err := h.execute(host, ann, "refused-1"); !errors.Is(err, client.ErrLedger) || !errors.Is(err, refused) {
		t.Errorf("Execute: %v", err)
	}
	if h.jobs() != 0 || receipts() != 0 {
		t.Errorf("%d jobs and %d receipts after Enqueue failed", h.jobs(), receipts())
	}

	calls := 0
	host = h.ledger(h.newPool(), func(c *postgres.LedgerConfig) {
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
