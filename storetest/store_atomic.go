package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/agentic-go/agentic/service"
)

// atomicTests are about what commits together, and what leaves nothing.
func atomicTests[Tx any]() []storeTest[Tx] {
	return []storeTest[Tx]{
		{"a submission commits with the publisher's row", func(e *storeEnv[Tx]) {
			k, other := trackingKey("request-1"), e.open().Store
			var during *service.Record
			err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
				if existing, err := e.store.Claim(ctx, tx, k, fingerprintOf("one"), window); err != nil || existing != nil {
					return fmt.Errorf("claim: %+v, %w", existing, err)
				}
				e.mustNotBe(k) // nobody ever sees the state Claimed
				if r := e.findFrom(other, k); r != nil {
					return fmt.Errorf("another handle finds %+v", r)
				}
				var err error
				if during, err = e.store.FindIn(ctx, tx, k); err != nil {
					return err
				}
				if err := e.Insert(ctx, tx, "one"); err != nil {
					return err
				}
				if err := e.store.Settle(ctx, tx, k, service.Done, answerOf("one")); err != nil {
					return err
				}
				e.mustNotBe(k)
				e.mustHaveRows()
				return nil
			})
			if err != nil {
				e.Fatal(err)
			}
			e.mustHaveRows("one")
			r := e.mustFind(k, fingerprintOf("one"), service.Done, answerOf("one"))
			e.equal("record on another handle", r, e.findFrom(other, k))
			claimed := *r
			claimed.State, claimed.Settlement = service.Claimed, service.Settlement{}
			e.equal("record between claim and settlement", &claimed, during)
		}},
		{"a second claim in one transaction gives the first", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			var states []service.State
			err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
				states = nil
				if _, err := e.do(ctx, e.store, tx, k, "one"); err != nil {
					return err
				}
				for _, id := range []string{"request-1", "request-2", "request-2"} {
					r, err := e.store.Claim(ctx, tx, trackingKey(id), fingerprintOf("two"), window)
					if err != nil {
						return err
					}
					if r != nil {
						states = append(states, r.State)
					}
				}
				return e.store.Settle(ctx, tx, trackingKey("request-2"), service.Refused, service.Settlement{Status: 422})
			})
			if err != nil {
				e.Fatal(err)
			}
			e.equal("states", []service.State{service.Done, service.Claimed}, states)
			e.mustBeFirst(k, "one")
		}},
		{"an error rolls back and comes back as it is", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			for _, want := range []error{errors.New("no"), fmt.Errorf("no: %w", service.ErrNotPending), &service.AuthError{}} {
				err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
					if _, err := e.do(ctx, e.store, tx, k, "one"); err != nil {
						return err
					}
					return want
				})
				if err != want {
					e.Errorf("error %v, want %v itself", err, want)
				}
				e.mustNotBe(k)
			}
			e.mustHaveRows()
			e.first(k, "two")
			e.mustHaveRows("two")
		}},
		{"a panic rolls back and goes on", func(e *storeEnv[Tx]) {
			k, value := trackingKey("request-1"), &struct{ n int }{1}
			func() {
				defer func() {
					if got := recover(); got != any(value) {
						e.Errorf("recovered %v", got)
					}
				}()
				err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
					if _, err := e.do(ctx, e.store, tx, k, "one"); err != nil {
						return err
					}
					panic(value)
				})
				e.Errorf("Transact came back with %v", err)
			}()
			e.mustNotBe(k)
			e.mustHaveRows()
			e.first(k, "two")
		}},
		{"a function that ends its goroutine rolls back", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			each(1, func(int) {
				_ = e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
					if _, err := e.do(ctx, e.store, tx, k, "one"); err != nil {
						return err
					}
					runtime.Goexit()
					return nil
				})
				e.Error("Transact came back")
			})
			e.mustNotBe(k)
			e.mustHaveRows()
			e.first(k, "two")
		}},
		{"a context that ends before the commit rolls back", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			ctx, cancel := context.WithCancel(e.ctx)
			defer cancel()
			err := e.store.Transact(ctx, func(ctx context.Context, tx Tx) error {
				defer cancel()
				_, err := e.do(ctx, e.store, tx, k, "one")
				return err
			})
			if !isAway(err) {
				e.Errorf("Transact: %v", err)
			}
			e.mustNotBe(k)
			e.mustHaveRows()
			e.first(k, "two")

			ran := false
			err = e.store.Transact(ctx, func(context.Context, Tx) error { ran = true; return nil })
			if !errors.Is(err, context.Canceled) || ran {
				e.Errorf("Transact with a context that has ended: %v, ran %v", err, ran)
			}
		}},
		{"a claim that was not settled is not committed", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
				if _, err := e.store.Claim(ctx, tx, k, fingerprintOf("one"), window); err != nil {
					return err
				}
				return e.Insert(ctx, tx, "one")
			})
			if err == nil {
				e.Error("Transact committed it")
			}
			e.mustNotBe(k)
			e.mustHaveRows()
			e.first(k, "two")
		}},
		{"in a transaction of the publisher's own", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			for _, commit := range []bool{false, true} {
				tx, end, err := e.handle.Begin(e.ctx)
				if err != nil {
					e.Fatal(err)
				}
				existing, err := e.do(e.ctx, e.store, tx, k, "one")
				if err != nil || existing != nil {
					e.Errorf("submission: %+v, %v", existing, err)
				}
				e.mustNotBe(k)
				if err := end(commit); err != nil {
					e.Fatal(err)
				}
				if !commit {
					e.mustNotBe(k)
					e.mustHaveRows()
				}
			}
			e.mustBeFirst(k, "one")
			e.mustHaveRows("one")
		}},
		{"a fault at every statement leaves all or nothing", faultEverywhere[Tx]},
		{"what fails beside others takes none of them with it", failBesideOthers[Tx]},
	}
}

// faultEverywhere lets every statement of a submission fail once.
func faultEverywhere[Tx any](e *storeEnv[Tx]) {
	if e.FailAt == nil {
		return
	}
	var rows []string
	for n := 1; ; n++ {
		row := fmt.Sprintf("row %d", n)
		k := trackingKey(row)
		stop := e.FailAt(e.T, n)
		existing, err := e.submit(e.ctx, e.store, k, row)
		hit := stop()
		switch {
		case existing != nil:
			e.Fatalf("statement %d: a record: %+v", n, existing)
		case err == nil:
			rows = append(rows, row)
			e.mustBeFirst(k, row)
			e.mustHaveRows(rows...)
		case !hit:
			e.Fatalf("without a fault: %v", err)
		default:
			e.mustNotBe(k)
			e.mustHaveRows(rows...)
			e.first(k, row) // nothing is broken for the next one
			rows = append(rows, row)
			e.mustHaveRows(rows...)
		}
		if !hit {
			if n < 4 {
				e.Fatalf("a submission has %d statements: the fault does not work", n-1)
			}
			return
		}
	}
}

// failBesideOthers runs many submissions at once, of which some go wrong.
func failBesideOthers[Tx any](e *storeEnv[Tx]) {
	const n = 48
	refused := errors.New("refused")
	var rows []string
	var mu sync.Mutex
	var started atomic.Int32
	each(n, func(i int) {
		row := fmt.Sprintf("row %d", i)
		k := trackingKey(row)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		wrong := true
		defer func() {
			if got := recover(); (got != nil) != (i%6 == 2) {
				e.Errorf("submission %d: recovered %v", i, got)
			}
			mu.Lock()
			defer mu.Unlock()
			if !wrong {
				rows = append(rows, row)
			}
		}()
		started.Add(1)
		for started.Load() < n {
			runtime.Gosched()
		}
		err := e.store.Transact(ctx, func(ctx context.Context, tx Tx) error {
			if _, err := e.do(ctx, e.store, tx, k, row); err != nil {
				return err
			}
			switch i % 6 {
			case 1:
				return refused
			case 2:
				panic("no")
			case 3:
				cancel()
			}
			return nil
		})
		switch i % 6 {
		case 1:
			if err != refused {
				e.Errorf("a refusal: %v", err)
			}
		case 3:
			if !isAway(err) {
				e.Errorf("a cancelled submission: %v", err)
			}
		default:
			wrong = err != nil
			if wrong {
				e.Errorf("a good submission: %v", err)
			}
		}
	})
	if want := n / 6 * 3; len(rows) != want {
		e.Errorf("%d submissions succeeded, want %d", len(rows), want)
	}
	e.mustHaveRows(rows...)
	for i := range n {
		row := fmt.Sprintf("row %d", i)
		switch i % 6 {
		case 1, 2, 3:
			e.mustNotBe(trackingKey(row))
		default:
			e.mustBeFirst(trackingKey(row), row)
		}
	}
}
