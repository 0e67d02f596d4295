package ledgertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// LedgerStore is one empty place where requests are kept, as an implementation
// gives it to the suite.
type LedgerStore struct {
	// Open gives one more handle on the store, with a connection of its own if
	// there is such a thing. A handle that implements io.Closer is closed by the
	// suite.
	Open func(t *testing.T, clock func() time.Time) desk.Ledger

	// TakeOver breaks the hold on a request as it is broken when the holder is
	// believed dead and is not.
	TakeOver func(t *testing.T, scope client.Scope, requestID string)
}

// Ledger runs the suite. newStore makes an empty store for every test in it.
func Ledger(t *testing.T, newStore func(t *testing.T) LedgerStore) {
	for _, group := range [][]ledgerTest{bindingTests, holdTests, recordTests, listTests,
		guardTests, noteTests, dueTests, purgeTests} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(newLedgerEnv(t, newStore(t)))
			})
		}
	}
}

type ledgerTest struct {
	name string
	run  func(e *ledgerEnv)
}

// patience bounds every wait that must come to an end, and brief is how long the
// suite looks at a wait that must not.
const (
	patience = 20 * time.Second
	brief    = 50 * time.Millisecond
)

// ledgerEnv is one test: a store, a first handle on it, and a clock that only
// the test moves.
type ledgerEnv struct {
	*testing.T
	store  LedgerStore
	clock  *Clock
	ledger desk.Ledger
	ctx    context.Context
}

func newLedgerEnv(t *testing.T, s LedgerStore) *ledgerEnv {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	e := &ledgerEnv{T: t, store: s, clock: NewClock(), ctx: ctx}
	e.ledger = e.open()
	return e
}

// open gives another handle on the same store.
func (e *ledgerEnv) open() desk.Ledger {
	e.Helper()
	l := e.store.Open(e.T, e.clock.Now)
	e.Cleanup(func() { e.closeLedger(l) })
	return l
}

func (e *ledgerEnv) closeLedger(l client.Ledger) {
	e.Helper()
	if c, ok := l.(io.Closer); ok {
		if err := c.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	}
}

// begin is Begin that must succeed.
func (e *ledgerEnv) begin(b client.Binding, intent client.Intent) client.Hold {
	e.Helper()
	h, err := e.ledger.Begin(e.ctx, b, intent, time.Minute)
	if err != nil {
		e.Fatalf("Begin: %v", err)
	}
	return h
}

func (e *ledgerEnv) take(b client.Binding, intent client.Intent) client.Hold {
	e.Helper()
	h, err := e.ledger.Take(e.ctx, b.Scope, b.RequestID, intent, time.Minute)
	if err != nil {
		e.Fatalf("Take: %v", err)
	}
	return h
}

func (e *ledgerEnv) finish(h client.Hold, obs []client.Observation, r agentic.Receipt) {
	e.Helper()
	if err := h.Finish(e.ctx, obs, r); err != nil {
		e.Fatalf("Finish: %v", err)
	}
}

func (e *ledgerEnv) release(h client.Hold) {
	e.Helper()
	if err := h.Release(); err != nil {
		e.Fatalf("Release: %v", err)
	}
}

// save makes a request that is attempted, with one receipt, and free.
func (e *ledgerEnv) save(b client.Binding, o agentic.Outcome) {
	e.Helper()
	h := e.begin(b, client.IntendSubmit)
	e.finish(h, nil, receipt(b, o))
	e.release(h)
}

func (e *ledgerEnv) load(b client.Binding) *client.Record {
	e.Helper()
	return e.loadFrom(e.ledger, b)
}

func (e *ledgerEnv) loadFrom(l client.Ledger, b client.Binding) *client.Record {
	e.Helper()
	r, err := l.Load(e.ctx, b.Scope, b.RequestID)
	if err != nil {
		e.Fatalf("Load: %v", err)
	}
	return r
}

// note adds a valid note that must be admitted.
func (e *ledgerEnv) note(b client.Binding, v client.Verb) {
	e.Helper()
	if err := e.ledger.AddNote(e.ctx, b.Scope, b.RequestID, note(v)); err != nil {
		e.Fatalf("AddNote %s: %v", v, err)
	}
}

func (e *ledgerEnv) list(f client.Filter) []client.Summary {
	e.Helper()
	l, err := e.ledger.List(e.ctx, f)
	if err != nil {
		e.Fatalf("List: %v", err)
	}
	return l
}

// summary is what a listing says of one request.
func (e *ledgerEnv) summary(b client.Binding) client.Summary {
	e.Helper()
	for _, s := range e.list(client.Filter{}.In(b.Scope)) {
		if s.RequestID == b.RequestID {
			return s
		}
	}
	e.Fatalf("no request %s is listed", b.RequestID)
	return client.Summary{}
}

func (e *ledgerEnv) equal(what string, want, got any) {
	e.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBytes); d != "" {
		e.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// wholeBytes compares long documents in one step; an empty one is EquateEmpty's.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

// Clock is a clock that only its owner moves. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock gives a clock that stands at a fixed time, with microseconds.
func NewClock() *Clock {
	return &Clock{t: time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)}
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock, back as well, and gives what it shows then.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	return c.t
}

// binding is a request of alice in production.
func binding(id string) client.Binding {
	return client.Binding{
		Scope:       client.Scope{Principal: "alice", Environment: "production"},
		RequestID:   id,
		Origin:      "https://support.example",
		ActionID:    "create-ticket",
		Profile:     document(`{"agentic":"0.1.0-draft"}`),
		OpenAPI:     document(`{"openapi":"3.1.0"}`),
		InputDigest: digest(`{"subject":"printer"}`),
		Input:       []byte(`{"subject":"printer"}`),
		Window:      24 * time.Hour,
		Term:        time.Minute,
	}
}

func document(body string) client.Snapshot {
	return client.Snapshot{Digest: digest(body), Body: []byte(body)}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// note is a valid note.
func note(v client.Verb) client.Note {
	n := client.Note{By: "ann@desk", Verb: v, Reason: "Looked at it."}
	switch v {
	case client.AttestSucceeded:
		n.ResourceID = "T/1"
	case client.Supersede:
		n.NewID = "request-new"
	}
	return n
}

// ids are the request IDs of a listing, in its order.
func ids(l []client.Summary) (out []string) {
	for _, s := range l {
		out = append(out, s.RequestID)
	}
	return out
}

// receipt is a valid receipt of a binding.
func receipt(b client.Binding, o agentic.Outcome) agentic.Receipt {
	r := agentic.Receipt{
		Agentic:    agentic.Version,
		RequestID:  b.RequestID,
		ActionID:   b.ActionID,
		Origin:     b.Origin,
		Outcome:    o,
		ObservedAt: "2026-03-01T12:30:16.000001Z",
		Reason:     "The service said so: <&> \u2028 \"é\".",
	}
	if o == agentic.Succeeded {
		id := "T/1"
		r.ResourceID = &id
		r.Evidence = &agentic.ReceiptEvidence{
			URL:        b.Origin + "/tickets/T%2F1",
			ResourceID: id,
			RequestID:  b.RequestID,
			State:      "open",
			Matched:    []agentic.Pair{{InputPointer: "/subject", ResourcePointer: "/subject"}},
		}
	}
	return r
}

func observation(kind client.ExchangeKind, status int) client.Observation {
	return client.Observation{
		Kind:     kind,
		At:       time.Date(2026, 3, 1, 12, 30, 15, 654321000, time.UTC),
		Duration: 1234567 * time.Nanosecond,
		Reach:    client.Answered,
		Status:   status,
		Outcome:  agentic.Pending,
		Checks:   []agentic.Check{{Name: "status", OK: true, Expected: "200", Found: "200 <\x1b[31m>"}},
	}
}
