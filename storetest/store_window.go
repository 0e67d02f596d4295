package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentic-go/agentic/service"
)

// windowTests are about the end of the window, and what is left then (D23).
func windowTests[Tx any]() []storeTest[Tx] {
	done := service.Settlement{ResourceID: "T1", Status: 201, Body: []byte(`{"id":"T1"}`)}
	return []storeTest[Tx]{
		{"a record expires at the end of its window and not before", func(e *storeEnv[Tx]) {
			for state, w := range map[service.State]time.Duration{
				service.Done: window, service.Refused: 604800 * time.Second, service.Pending: 10 * time.Minute,
			} {
				k := trackingKey("request-" + string(state))
				e.settled(k, fingerprintOf("one"), w, state, done)
				e.Advance(e.T, w-e.edge())
				r := e.mustFind(k, fingerprintOf("one"), state, done)
				e.Advance(e.T, e.edge())
				tombstone := *r
				tombstone.State, tombstone.Settlement = service.Expired, service.Settlement{}
				e.mustBeTombstone(k, &tombstone)
				if state == service.Pending {
					e.notPending(e.settle(e.store, k, service.Done, done))
					e.mustBeTombstone(k, &tombstone)
				}
				n, err := e.store.Sweep(e.ctx, 0, 100)
				e.equal("error", nil, err)
				e.equal("swept", service.Swept{Expired: 1}, n)
				e.mustBeTombstone(k, &tombstone)
			}
		}},
		{"what is pending is settled up to the end of its window", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			e.settled(k, fingerprintOf("one"), window, service.Pending, service.Settlement{Status: 202})
			e.Advance(e.T, window-e.edge())
			if err := e.settle(e.store, k, service.Done, done); err != nil {
				e.Error(err)
			}
			e.mustFind(k, fingerprintOf("one"), service.Done, done)
		}},
		{"a sweep is as large as its limit", func(e *storeEnv[Tx]) {
			for i := range 5 {
				e.settled(trackingKey(fmt.Sprintf("old-%d", i)), fingerprintOf("one"), window, service.Done, done)
			}
			e.Advance(e.T, window)
			e.settled(trackingKey("new"), fingerprintOf("one"), window, service.Done, done)
			e.settled(trackingKey("pending"), fingerprintOf("one"), 3*window, service.Pending, service.Settlement{Status: 202})
			for _, s := range []struct{ limit, expired int }{{0, 0}, {-1, 0}, {2, 2}, {2, 2}, {2, 1}, {2, 0}, {0, 0}} {
				n, err := e.store.Sweep(e.ctx, 0, s.limit)
				e.equal("error", nil, err)
				e.equal("swept", service.Swept{Expired: s.expired}, n)
			}
			e.mustFind(trackingKey("new"), fingerprintOf("one"), service.Done, done)
			e.mustFind(trackingKey("pending"), fingerprintOf("one"), service.Pending, service.Settlement{Status: 202})
		}},
		{"tombstones are kept as long as they are to be", func(e *storeEnv[Tx]) {
			const keep = 3 * time.Hour
			var keys []service.Key
			for i := range 3 {
				keys = append(keys, trackingKey(fmt.Sprintf("request-%d", i)))
				e.settled(keys[i], fingerprintOf("one"), window, service.Done, done)
			}
			e.Advance(e.T, window)
			e.sweepAll(keep, service.Swept{Expired: 3})
			e.Advance(e.T, keep-e.edge())
			e.sweepAll(keep, service.Swept{})
			if e.Frozen {
				e.Advance(e.T, e.edge()) // keep ago is not more than keep ago
				e.sweepAll(keep, service.Swept{})
				e.Advance(e.T, e.edge())
			} else {
				e.Advance(e.T, 2*e.edge())
			}
			e.sweepAll(0, service.Swept{})
			for _, k := range keys {
				if r := e.find(k); r == nil || r.State != service.Expired {
					e.Fatalf("record %+v, want a tombstone", r)
				}
			}
			for _, want := range []service.Swept{{Deleted: 2}, {Deleted: 1}, {}} {
				n, err := e.store.Sweep(e.ctx, keep, 2)
				e.equal("error", nil, err)
				e.equal("swept", want, n)
			}
			e.mustHaveRows()
			for i, k := range keys {
				e.mustNotBe(k)
				e.first(k, fmt.Sprintf("row %d", i)) // and the key begins anew
			}
		}},
		{"no tombstone goes before its own window has passed once more", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			e.settled(k, fingerprintOf("one"), window, service.Done, done)
			e.Advance(e.T, window)
			e.sweepAll(time.Minute, service.Swept{Expired: 1})
			e.Advance(e.T, window-time.Minute)
			e.sweepAll(time.Minute, service.Swept{})
			e.Advance(e.T, 2*time.Minute)
			e.sweepAll(time.Minute, service.Swept{Deleted: 1})
		}},
		{"records that nobody swept in time go the same way", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			e.settled(k, fingerprintOf("one"), window, service.Done, done)
			e.Advance(e.T, 1000*window)
			if r := e.find(k); r == nil || r.State != service.Expired {
				e.Fatalf("record %+v, want a tombstone", r)
			}
			e.sweepAll(window, service.Swept{Expired: 1, Deleted: 1})
			e.mustNotBe(k)
		}},
		{"sweeps at once, beside submissions", sweepAtOnce[Tx]},
	}
}

// mustBeTombstone checks what every way to read an expired record gives.
func (e *storeEnv[Tx]) mustBeTombstone(k service.Key, want *service.Record) {
	e.Helper()
	if !e.Frozen { // then Advance may be one that makes records older
		r := *want
		found := e.find(k)
		r.CreatedAt, r.ExpiresAt = found.CreatedAt, found.ExpiresAt
		e.equal("window", want.ExpiresAt.Sub(want.CreatedAt), r.ExpiresAt.Sub(r.CreatedAt))
		want = &r
	}
	e.equal("tombstone", want, e.find(k))
	var claimed, found *service.Record
	err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) (err error) {
		if found, err = e.store.FindIn(ctx, tx, k); err != nil {
			return err
		}
		claimed, err = e.store.Claim(ctx, tx, k, fingerprintOf("two"), window)
		return err
	})
	if err != nil {
		e.Fatal(err)
	}
	e.equal("tombstone in a transaction", want, found)
	e.equal("tombstone of a claim", want, claimed)
}

// sweepAll sweeps until there is nothing to do.
func (e *storeEnv[Tx]) sweepAll(keep time.Duration, want service.Swept) {
	e.Helper()
	var total service.Swept
	for {
		n, err := e.store.Sweep(e.ctx, keep, 100)
		if err != nil {
			e.Fatalf("Sweep: %v", err)
		}
		if n == (service.Swept{}) {
			break
		}
		total.Expired += n.Expired
		total.Deleted += n.Deleted
	}
	e.equal("swept", want, total)
}

// sweepAtOnce sweeps on two handles while new submissions come.
func sweepAtOnce[Tx any](e *storeEnv[Tx]) {
	const old = 60
	for i := range old {
		e.settled(trackingKey(fmt.Sprintf("old-%d", i)), fingerprintOf("one"), window, service.Done,
			service.Settlement{ResourceID: "T1", Status: 201})
	}
	e.Advance(e.T, window)
	stores := []service.Store[Tx]{e.store, e.open().Store}
	var mu sync.Mutex
	var total service.Swept
	each(8, func(i int) {
		s := stores[i%2]
		if i >= 4 {
			for j := range 8 {
				row := fmt.Sprintf("row %d of %d", j, i)
				if r, err := e.submit(e.ctx, s, trackingKey(row), row); err != nil || r != nil {
					e.Errorf("submission: %+v, %v", r, err)
				}
			}
			return
		}
		for {
			n, err := s.Sweep(e.ctx, 0, 7)
			if err != nil {
				e.Errorf("Sweep: %v", err)
			}
			mu.Lock()
			total.Expired += n.Expired
			total.Deleted += n.Deleted
			ready := err != nil || total.Expired >= old
			mu.Unlock()
			if ready {
				return
			}
		}
	})
	e.sweepAll(0, service.Swept{})
	e.equal("swept", service.Swept{Expired: old}, total)
	e.equal("rows", 32, len(e.Rows(e.T)))
}

// unavailableTests are about a database that cannot be used.
func unavailableTests[Tx any]() []storeTest[Tx] {
	return []storeTest[Tx]{
		{"a store that is closed is unavailable", func(e *storeEnv[Tx]) {
			e.first(trackingKey("request-1"), "one")
			h := e.open()
			if err := h.Close(); err != nil {
				e.Fatal(err)
			}
			ran := false
			err := h.Store.Transact(e.ctx, func(context.Context, Tx) error { ran = true; return nil })
			_, findErr := h.Store.Find(e.ctx, trackingKey("request-1"))
			_, sweepErr := h.Store.Sweep(e.ctx, 0, 100)
			for what, err := range map[string]error{"Transact": err, "Find": findErr, "Sweep": sweepErr} {
				if !errors.Is(err, service.ErrUnavailable) {
					e.Errorf("%s: %v", what, err)
				}
			}
			if ran {
				e.Error("Transact ran the function")
			}
			e.mustBeFirst(trackingKey("request-1"), "one") // on the other handle
		}},
		{"without a connection a call ends with its context", func(e *storeEnv[Tx]) {
			if e.handle.Fill == nil {
				return
			}
			k := trackingKey("request-1")
			release := e.handle.Fill(e.T)
			ctx, cancel := context.WithTimeout(e.ctx, brief)
			defer cancel()
			existing, err := e.submit(ctx, e.store, k, "one")
			_, findErr := e.store.Find(ctx, k)
			_, sweepErr := e.store.Sweep(ctx, 0, 100)
			release()
			for what, err := range map[string]error{"Transact": err, "Find": findErr, "Sweep": sweepErr} {
				if !isAway(err) {
					e.Errorf("%s: %v", what, err)
				}
			}
			if existing != nil {
				e.Errorf("a record: %+v", existing)
			}
			e.mustNotBe(k)
			e.mustHaveRows()
			e.first(k, "two")
		}},
		{"a killed connection leaves all or nothing", func(e *storeEnv[Tx]) {
			if e.handle.Kill == nil {
				return
			}
			var rows []string
			for i := range 4 { // before the claim, the row, the settlement and the commit
				row := fmt.Sprintf("row %d", i)
				k := trackingKey(row)
				killed := false
				kill := func(at int) {
					if at == i && !killed {
						killed = true
						e.handle.Kill(e.T)
					}
				}
				err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
					kill(0)
					if _, err := e.store.Claim(ctx, tx, k, fingerprintOf(row), window); err != nil {
						return err
					}
					kill(1)
					if err := e.Insert(ctx, tx, row); err != nil {
						return fmt.Errorf("%w: %w", service.ErrUnavailable, err)
					}
					kill(2)
					if err := e.store.Settle(ctx, tx, k, service.Done, answerOf(row)); err != nil {
						return err
					}
					kill(3)
					return nil
				})
				if err != nil {
					if !errors.Is(err, service.ErrUnavailable) {
						e.Errorf("kill %d: %v", i, err)
					}
					e.mustNotBe(k)
					e.mustHaveRows(rows...)
					e.first(k, row)
				}
				rows = append(rows, row)
				e.mustBeFirst(k, row)
				e.mustHaveRows(rows...)
			}
		}},
	}
}
