package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
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
	panics  atomic.Bool
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
	if s.panics.Load() {
		panic("confidential")
	}
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
