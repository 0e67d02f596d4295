package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic/service"
)

// waitTests are about submissions at the same time.
func waitTests[Tx any]() []storeTest[Tx] {
	return []storeTest[Tx]{
		{"of 64 claims of one key one is made, and all see what it settled", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			stores := []service.Store[Tx]{e.store, e.open().Store}
			var made atomic.Int32
			records := make([]*service.Record, 64)
			each(len(records), func(i int) {
				r, err := e.submit(e.ctx, stores[i%2], k, "one")
				switch {
				case err != nil:
					e.Errorf("submission %d: %v", i, err)
				case r == nil:
					made.Add(1)
				}
				records[i] = r
			})
			e.equal("claims made", int32(1), made.Load())
			e.mustHaveRows("one")
			want := e.mustFind(k, fingerprintOf("one"), service.Done, answerOf("one"))
			for _, r := range records {
				if r != nil {
					e.equal("record of a repeat", want, r)
				}
			}
		}},
		{"when a claim is rolled back, one of those that wait makes it", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			stores := []service.Store[Tx]{e.store, e.open().Store}
			var failures, made atomic.Int32
			no := errors.New("no")
			each(32, func(i int) {
				s, row := stores[i%2], fmt.Sprintf("row %d", i)
				var existing *service.Record
				err := s.Transact(e.ctx, func(ctx context.Context, tx Tx) (err error) {
					if existing, err = e.do(ctx, s, tx, k, row); err != nil || existing != nil {
						return err
					}
					if failures.Add(1) <= 3 {
						return no
					}
					return nil
				})
				switch {
				case err != nil && err != no:
					e.Errorf("submission %d: %v", i, err)
				case err == nil && existing == nil:
					made.Add(1)
				}
			})
			e.equal("claims made", int32(1), made.Load())
			e.equal("rows", 1, len(e.Rows(e.T)))
			e.mustBeFirst(k, e.Rows(e.T)[0])
		}},
		{"many keys at once", func(e *storeEnv[Tx]) {
			stores := []service.Store[Tx]{e.store, e.open().Store}
			rows := make([]string, 96)
			for i := range rows {
				rows[i] = fmt.Sprintf("row %d", i)
			}
			each(24, func(i int) {
				for j := i; j < len(rows); j += 24 {
					if r, err := e.submit(e.ctx, stores[i%2], trackingKey(rows[j]), rows[j]); err != nil || r != nil {
						e.Errorf("submission %d: %+v, %v", j, r, err)
					}
				}
			})
			e.mustHaveRows(rows...)
			for _, row := range rows {
				e.mustBeFirst(trackingKey(row), row)
			}
		}},
		{"a wait ends with the context, or with the claim", waitForTransact[Tx]},
		{"a wait for a transaction of the publisher's own", waitForOwn[Tx]},
	}
}

// waitForTransact holds a claim in Transact while others want it.
func waitForTransact[Tx any](e *storeEnv[Tx]) {
	k := trackingKey("request-1")
	held, leave := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	first.Store(true)
	holder := make(chan error, 1)
	go func() {
		holder <- e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
			if _, err := e.do(ctx, e.store, tx, k, "one"); err != nil {
				return err
			}
			if first.Swap(false) {
				close(held)
			}
			<-leave
			return nil
		})
	}()
	<-held
	e.waiters(k, func() {
		close(leave)
		if err := <-holder; err != nil {
			e.Error(err)
		}
	})
}

// waitForOwn holds a claim in the publisher's own transaction.
func waitForOwn[Tx any](e *storeEnv[Tx]) {
	k := trackingKey("request-1")
	tx, end, err := e.handle.Begin(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	if _, err := e.do(e.ctx, e.store, tx, k, "one"); err != nil {
		e.Error(err)
	}
	e.waiters(k, func() {
		if err := end(true); err != nil {
			e.Error(err)
		}
	})
}

// waiters wants a key that is held until release, on two handles.
func (e *storeEnv[Tx]) waiters(k service.Key, release func()) {
	e.Helper()
	type result struct {
		existing *service.Record
		err      error
	}
	patient := make(chan result)
	for _, s := range []service.Store[Tx]{e.store, e.open().Store} {
		ctx, cancel := context.WithTimeout(e.ctx, brief)
		began := time.Now()
		existing, err := e.submit(ctx, s, k, "two")
		cancel()
		if !isAway(err) || existing != nil {
			e.Errorf("a claim whose context ended: %+v, %v", existing, err)
		}
		if d := time.Since(began); d > patience/4 {
			e.Errorf("a claim whose context ended after %v came back after %v", brief, d)
		}
		go func() {
			existing, err := e.submit(e.ctx, s, k, "two")
			patient <- result{existing, err}
		}()
	}
	select {
	case r := <-patient:
		e.Errorf("a claim did not wait: %+v", r)
		release()
	case <-time.After(brief):
		release()
		r := <-patient
		if r.err != nil || r.existing == nil || r.existing.State != service.Done {
			e.Errorf("a claim that waited: %+v", r)
		}
	}
	if r := <-patient; r.err != nil || r.existing == nil || r.existing.State != service.Done {
		e.Errorf("a claim that waited: %+v", r)
	}
	e.mustBeFirst(k, "one")
	e.mustHaveRows("one")
}
