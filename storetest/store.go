package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// StoreHarness is one empty store in a publisher's database, as an implementation
// gives it to the suite. Rows are those of a table of the publisher's own, which
// holds strings.
type StoreHarness[Tx any] struct {
	// Open gives one more handle on the store, with connections of its own, as
	// another process has it.
	Open func(t *testing.T) StoreHandle[Tx]

	// Insert adds a row in tx, and Rows reads those that are committed.
	Insert func(ctx context.Context, tx Tx, row string) error
	Rows   func(t *testing.T) []string

	// Advance moves the database's clock, or makes every committed record so much
	// older, which is the same to the contract. Frozen says that nothing else
	// moves the clock: then the edges of a window are tested to the microsecond.
	Advance func(t *testing.T, d time.Duration)
	Frozen  bool

	// FailAt lets the n-th statement from now on fail, counted from 1 over every
	// handle; beginning and committing count too. stop takes the fault away and
	// says whether it came to pass. Nil leaves these tests out.
	FailAt func(t *testing.T, n int) (stop func() bool)
}

// StoreHandle is one handle on a store.
type StoreHandle[Tx any] struct {
	Store service.Store[Tx]

	// Begin begins a transaction of the publisher's own; end commits it or rolls it
	// back.
	Begin func(ctx context.Context) (tx Tx, end func(commit bool) error, err error)

	// Close closes the handle's store, or the connections under it. It is called
	// once for each handle.
	Close func() error

	// Fill takes every connection that the handle can have, until release. Nil
	// when there is no such bound.
	Fill func(t *testing.T) (release func())

	// Kill breaks every connection that the handle has now. Nil leaves these tests
	// out.
	Kill func(t *testing.T)
}

// Store runs the suite. newStore makes an empty store for every test in it.
func Store[Tx any](t *testing.T, newStore func(t *testing.T) StoreHarness[Tx]) {
	for _, group := range [][]storeTest[Tx]{
		atomicTests[Tx](), waitTests[Tx](), settleTests[Tx](), keyTests[Tx](), windowTests[Tx](), unavailableTests[Tx](),
	} {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(newStoreEnv(t, newStore(t)))
			})
		}
	}
}

type storeTest[Tx any] struct {
	name string
	run  func(e *storeEnv[Tx])
}

// storeEnv is one test: a store and a first handle on it.
type storeEnv[Tx any] struct {
	*testing.T
	StoreHarness[Tx]
	handle StoreHandle[Tx]
	store  service.Store[Tx]
	ctx    context.Context
}

func newStoreEnv[Tx any](t *testing.T, h StoreHarness[Tx]) *storeEnv[Tx] {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	e := &storeEnv[Tx]{T: t, StoreHarness: h, ctx: ctx}
	e.handle = e.open()
	e.store = e.handle.Store
	return e
}

// open gives another handle on the same store.
func (e *storeEnv[Tx]) open() StoreHandle[Tx] {
	e.Helper()
	h := e.Open(e.T)
	closeOnce := sync.OnceValue(h.Close)
	h.Close = closeOnce
	e.Cleanup(func() {
		if err := closeOnce(); err != nil {
			e.Errorf("Close: %v", err)
		}
	})
	return h
}

const window = time.Hour

// edge is the shortest time that the suite can tell from none.
func (e *storeEnv[Tx]) edge() time.Duration {
	if e.Frozen {
		return time.Microsecond
	}
	return 5 * time.Minute
}

func trackingKey(id string) service.Key {
	return service.Key{Principal: "alice", Action: "create-ticket", RequestID: id}
}

// fingerprintOf is a fingerprint: SHA-256 of some input, in hexadecimal.
func fingerprintOf(input string) string { return digest(input) }

func answerOf(row string) service.Settlement {
	return service.Settlement{ResourceID: "id of " + row, Status: 201, Body: []byte(`{"row":"` + row + `"}`)}
}

// do is the work of one submission in tx: it claims the key, and then adds a row
// and settles the claim, unless there is a record already.
func (e *storeEnv[Tx]) do(ctx context.Context, s service.Store[Tx], tx Tx, k service.Key, row string) (*service.Record, error) {
	existing, err := s.Claim(ctx, tx, k, fingerprintOf(row), window)
	if err != nil || existing != nil {
		return existing, err
	}
	if err := e.Insert(ctx, tx, row); err != nil {
		return nil, err
	}
	return nil, s.Settle(ctx, tx, k, service.Done, answerOf(row))
}

// submit is do in a transaction of its own.
func (e *storeEnv[Tx]) submit(ctx context.Context, s service.Store[Tx], k service.Key, row string) (existing *service.Record, err error) {
	err = s.Transact(ctx, func(ctx context.Context, tx Tx) (err error) {
		existing, err = e.do(ctx, s, tx, k, row)
		return err
	})
	return existing, err
}

// first is a submission that must be the first with its key.
func (e *storeEnv[Tx]) first(k service.Key, row string) {
	e.Helper()
	existing, err := e.submit(e.ctx, e.store, k, row)
	if err != nil || existing != nil {
		e.Fatalf("a first submission: %+v, %v", existing, err)
	}
}

// settled claims a key and settles it.
func (e *storeEnv[Tx]) settled(k service.Key, fingerprint string, window time.Duration, to service.State, a service.Settlement) {
	e.Helper()
	err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
		existing, err := e.store.Claim(ctx, tx, k, fingerprint, window)
		if err != nil {
			return err
		}
		if existing != nil {
			return fmt.Errorf("the key has a record: %+v", existing)
		}
		return e.store.Settle(ctx, tx, k, to, a)
	})
	if err != nil {
		e.Fatalf("settle as %s: %v", to, err)
	}
}

// settle settles what is there, in a transaction of its own.
func (e *storeEnv[Tx]) settle(s service.Store[Tx], k service.Key, to service.State, a service.Settlement) error {
	return s.Transact(e.ctx, func(ctx context.Context, tx Tx) error { return s.Settle(ctx, tx, k, to, a) })
}

func (e *storeEnv[Tx]) find(k service.Key) *service.Record {
	e.Helper()
	return e.findFrom(e.store, k)
}

func (e *storeEnv[Tx]) findFrom(s service.Store[Tx], k service.Key) *service.Record {
	e.Helper()
	r, err := s.Find(e.ctx, k)
	if err != nil {
		e.Fatalf("Find %+v: %v", k, err)
	}
	return r
}

// mustFind checks what is tracked under a key, times apart.
func (e *storeEnv[Tx]) mustFind(k service.Key, fingerprint string, state service.State, a service.Settlement) *service.Record {
	e.Helper()
	r := e.find(k)
	if r == nil {
		e.Fatalf("%+v is not tracked", k)
	}
	want := &service.Record{Key: k, Fingerprint: fingerprint, State: state, Settlement: a, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
	e.equal("record", want, r)
	return r
}

// mustBeFirst checks that a submission stands as it was made.
func (e *storeEnv[Tx]) mustBeFirst(k service.Key, row string) {
	e.Helper()
	e.mustFind(k, fingerprintOf(row), service.Done, answerOf(row))
}

func (e *storeEnv[Tx]) mustNotBe(k service.Key) {
	e.Helper()
	if r := e.find(k); r != nil {
		e.Fatalf("there is a record: %+v", r)
	}
}

func (e *storeEnv[Tx]) mustHaveRows(want ...string) {
	e.Helper()
	got := e.Rows(e.T)
	slices.Sort(got)
	slices.Sort(want)
	e.equal("the publisher's rows", want, got)
}

func (e *storeEnv[Tx]) equal(what string, want, got any) {
	e.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBytes); d != "" {
		e.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// isAway says that an error is one of those for a database out of reach.
func isAway(err error) bool {
	return errors.Is(err, service.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// each runs f n times at once.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// long is a key of the greatest length, which differs in its end only.
func long(end string) string { return strings.Repeat("k", 128-len(end)) + end }
