package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/reconcile"
)

const support = "https://support.example"

var ann = client.Scope{Principal: "ann", Environment: "test"}

// planAt is the example of the draft's reading guide, of a service at an origin.
func planAt(t testing.TB, origin string) *agentic.Plan {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(strings.ReplaceAll(string(b), support, origin))
	}
	p, err := agentic.Load(read("profile.json"), read("openapi.json"), "", agentic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// services are all services behind one transport. A submission fails the test.
type services struct {
	t *testing.T

	mu       sync.Mutex
	status   func(ctx context.Context, origin, id string) client.Exchange // nil: succeeded
	approve  func(origin string) error
	took     time.Duration // of each exchange
	reads    []read        // status reads
	now, top map[string]int
}

type read struct {
	at         time.Time
	origin, id string
}

func newServices(t *testing.T) *services {
	return &services{t: t, now: map[string]int{}, top: map[string]int{}}
}

func (s *services) Approve(origin, _ string) error {
	if s.approve == nil {
		return nil
	}
	return s.approve(origin)
}

func (s *services) Submit(context.Context, client.Submission) client.Exchange {
	s.t.Error("a worker submitted")
	return broken(client.ClassBroken)
}

func (s *services) Get(ctx context.Context, r client.Read) client.Exchange {
	id := r.URL[strings.LastIndex(r.URL, "/")+1:]
	if ticket, ok := strings.CutPrefix(id, "t-"); ok {
		return answer(200, fmt.Sprintf(`{"id":%q,"request_id":%q,"subject":"Printer on fire","status":"open"}`, id, ticket))
	}
	s.mu.Lock()
	s.reads = append(s.reads, read{time.Now(), r.Origin, id})
	s.now[r.Origin]++
	s.top[r.Origin] = max(s.top[r.Origin], s.now[r.Origin])
	status, took := s.status, s.took
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now[r.Origin]--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return client.Exchange{Reach: client.MaybeSent, Class: client.ClassCanceled, Err: ctx.Err()}
	}
	if status == nil {
		return succeeded(id)
	}
	return status(ctx, r.Origin, id)
}

// count is the number of status reads at an origin, "" is all.
func (s *services) count(origin string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.reads {
		if origin == "" || r.origin == origin {
			n++
		}
	}
	return n
}

func answer(status int, body string) client.Exchange {
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: status, ContentType: "application/json", Body: []byte(body)}}
}

func broken(class client.ErrorClass) client.Exchange {
	return client.Exchange{Reach: client.MaybeSent, Class: class, Err: errors.New("no answer")}
}

func succeeded(id string) client.Exchange {
	return answer(200, fmt.Sprintf(`{"request_id":%q,"status":"succeeded","resource_id":"t-%s"}`, id, id))
}

func open(id, status string) client.Exchange {
	return answer(200, fmt.Sprintf(`{"request_id":%q,"status":%q,"resource_id":null}`, id, status))
}

// host has a ledger with what hosts left.
type host struct {
	t      *testing.T
	ledger *ledgertest.Memory
	svc    *services
	client *client.Client

	mu   sync.Mutex
	done []reconcile.Done
}

func newHost(t *testing.T) *host {
	h := &host{t: t, ledger: ledgertest.NewMemory(nil), svc: newServices(t)}
	var err error
	if h.client, err = client.New(client.Config{Ledger: h.ledger, Transport: h.svc}); err != nil {
		t.Fatal(err)
	}
	return h
}

// prepare saves a request that was never sent.
func (h *host) prepare(p *agentic.Plan, scope client.Scope, id string) {
	h.t.Helper()
	c, err := h.client.In(scope)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := c.Prepare(h.t.Context(), client.Request{Plan: p, Input: []byte(`{"subject":"Printer on fire"}`), ID: id, AllowDuplicate: true}); err != nil {
		h.t.Fatal(err)
	}
}

// crash leaves a request as a host does that crashed after it took the right to
// submit.
func (h *host) crash(p *agentic.Plan, scope client.Scope, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.prepare(p, scope, id)
		hold, err := h.ledger.Take(h.t.Context(), scope, id, client.IntendSubmit, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		if err := hold.Release(); err != nil {
			h.t.Fatal(err)
		}
	}
}

func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return list
}

func (h *host) worker(change ...func(*reconcile.Config)) *reconcile.Worker {
	h.t.Helper()
	cfg := reconcile.Config{Client: h.client, Ledger: h.ledger, Scopes: []client.Scope{ann}, Observer: func(d reconcile.Done) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.done = append(h.done, d)
	}}
	for _, c := range change {
		c(&cfg)
	}
	w, err := reconcile.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// counts are of the Dones that the observer saw.
func (h *host) counts() map[reconcile.Kind]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[reconcile.Kind]int{}
	for _, d := range h.done {
		n[d.Kind]++
	}
	return n
}

// run runs a worker for so long, and drains it.
func (h *host) run(w *reconcile.Worker, d time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		h.t.Errorf("Run: %v", err)
	}
}

func (h *host) record(scope client.Scope, id string) *client.Record {
	h.t.Helper()
	r, err := h.ledger.Load(h.t.Context(), scope, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *host) outcome(scope client.Scope, id string) agentic.Outcome {
	h.t.Helper()
	if last := h.record(scope, id).Last(); last != nil {
		return last.Outcome
	}
	return ""
}

// outcomes counts the requests of a scope by the outcome of their last receipt.
func (h *host) outcomes(scope client.Scope) map[agentic.Outcome]int {
	h.t.Helper()
	list, err := h.ledger.List(h.t.Context(), client.Filter{}.In(scope))
	if err != nil {
		h.t.Fatal(err)
	}
	n := map[agentic.Outcome]int{}
	for _, s := range list {
		n[s.Outcome]++
	}
	return n
}
