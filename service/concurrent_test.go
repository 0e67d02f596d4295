package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/storetest"
)

// TestConcurrentRepeatsGetTheFirst: 64 callers over two trackers on one store, as
// two hosts are. One row, one 201, 64 equal bodies.
func TestConcurrentRepeatsGetTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
			time.Sleep(3 * time.Second)
			return insert(ctx, tx, r)
		}
		one := open(t, slow, nil)
		two := open(t, slow, func(c *config, _ *[]act) { c.Store = one.store })
		answers := make([]*httptest.ResponseRecorder, 64)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = []*house{one, two}[i%2].post(ticket) })
		}
		wg.Wait()
		first := 0
		for _, w := range answers {
			if w.Code == http.StatusCreated {
				first++
			} else if w.Code != http.StatusOK || w.Header().Get("Idempotency-Replayed") != "true" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if w.Body.String() != `{"id":"T-1"}` || w.Header().Get("Location") != "/ticket/T-ann" {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		}
		if rows := one.store.Rows(); first != 1 || len(rows) != 1 {
			t.Errorf("%d first answers, rows %q", first, rows)
		}
	})
}

// TestWaitEnds: a repeat waits MaxWait for the first, in this process and for
// another, and is told to try again; the first itself has no such limit.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
			time.Sleep(time.Minute)
			if err := ctx.Err(); err != nil {
				return service.Result{}, err
			}
			return insert(ctx, tx, r)
		}
		adjust := func(c *config, _ *[]act) { c.MaxWait = 5 * time.Second }
		one := open(t, slow, adjust)
		two := open(t, slow, func(c *config, as *[]act) { adjust(c, as); c.Store = one.store })
		var wg sync.WaitGroup
		wg.Go(func() { one.want(one.post(ticket), 201, "", "First") })
		synctest.Wait()
		for _, b := range []*house{one, two} {
			began := time.Now()
			w := b.post(ticket)
			if took := time.Since(began); took != 5*time.Second || w.Code != 503 || b.problem(w).Type != service.ProblemBusy || w.Header().Get("Retry-After") != "1" {
				t.Errorf("after %s: %d %v %s", took, w.Code, w.Header(), w.Body)
			}
			b.took()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			b.want(b.call(ctx, "POST", "/ticket", ticket), 503, service.ProblemBusy, "Error")
			cancel()
			if got := b.status("key-1"); got != "unknown" {
				t.Error(got)
			}
		}
		wg.Wait()
		two.want(two.post(ticket), 200, "", "Replay")
	})
}

// TestEveryWaitEnds: those for a transaction that records a refusal, and for a
// look-up.
func TestEveryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := 0
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b := open(t, script(func(service.Request) (service.Result, error) { return service.RefusedWith(422, nil), nil }), func(c *config, _ *[]act) {
			store := &foundStore{storetest.NewMemoryStore(nil), func(ctx context.Context) (*service.Record, error) { return nil, hang(ctx) }}
			c.CheckInput, c.Store = true, store
			c.Transact = func(ctx context.Context, f func(context.Context, tx) error) error {
				if turn++; turn == 2 {
					return hang(ctx)
				}
				return store.Transact(ctx, func(ctx context.Context, tx tx) error {
					had := store.find
					defer func() { store.find = had }()
					store.find = func(context.Context) (*service.Record, error) { return nil, nil }
					return f(ctx, tx)
				})
			}
		})
		for what, call := range map[string]func() *httptest.ResponseRecorder{
			"look-up of a status":      func() *httptest.ResponseRecorder { return b.call(t.Context(), "GET", "/ticket-requests/a", "") },
			"look-up of a bad input":   func() *httptest.ResponseRecorder { return b.post(`{}`) },
			"recording of the refusal": func() *httptest.ResponseRecorder { return b.post(ticket) },
		} {
			began := time.Now()
			w := call()
			if took := time.Since(began); took != service.DefaultMaxWait || w.Code != 503 || b.problem(w).Type != service.ProblemBusy {
				t.Errorf("%s: after %s, %d %s", what, took, w.Code, w.Body)
			}
		}
	})
}

// TestClientThatGoesAway: the handler's context ends, and nothing is recorded.
func TestClientThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
			if err := tx.Insert(ctx, "row"); err != nil {
				return service.Result{}, err
			}
			<-ctx.Done()
			return service.DoneWith("T-1", nil), nil
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		b.want(b.call(ctx, "POST", "/ticket", ticket), 503, service.ProblemUnavailable, "Error")
		if got := b.status("key-1"); got != "unknown" || len(b.store.Rows()) != 0 {
			t.Errorf("status %s, rows %q", got, b.store.Rows())
		}
	})
}

// TestWaiterGoesOnAfterAFailure: when the first fails, one of those that wait does
// the action.
func TestWaiterGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		runs := 0
		b := open(t, func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
			mu.Lock()
			runs++
			fails := runs == 1
			mu.Unlock()
			time.Sleep(time.Second)
			if fails {
				panic("first")
			}
			return insert(ctx, tx, r)
		}, nil)
		var wg sync.WaitGroup
		codes := make([]int, 8)
		for i := range codes {
			wg.Go(func() { codes[i] = b.post(ticket).Code })
		}
		wg.Wait()
		slices.Sort(codes)
		if want := []int{200, 200, 200, 200, 200, 200, 201, 500}; !slices.Equal(codes, want) || runs != 2 {
			t.Errorf("%d runs, codes %v, want %v", runs, codes, want)
		}
	})
}

// TestRefusalThatLostTheKey: between the transaction that was rolled back and the
// one that records the refusal, another host did the action. What stands is
// answered.
func TestRefusalThatLostTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		other   string
		code    int
		problem string
		events  string
	}{
		"same input":  {ticket, 200, "", "Replay"},
		"other input": {`{"subject":"other"}`, 409, service.ProblemConflict, "Conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			two := open(t, insert, nil)
			turn := 0
			one := open(t, script(func(service.Request) (service.Result, error) { return service.RefusedWith(422, nil), nil }), func(cfg *config, _ *[]act) {
				cfg.Store = two.store
				cfg.Transact = func(ctx context.Context, f func(context.Context, tx) error) error {
					if turn++; turn == 2 {
						two.want(two.post(c.other), 201, "", "First")
					}
					return two.store.Transact(ctx, f)
				}
			})
			one.want(one.post(ticket), c.code, c.problem, c.events)
		})
	}
}

// TestOneOutcomeForEver runs random handlers under load on three hosts over one
// store. Whatever was answered first is what everybody is told afterwards, a key has
// at most one row, and a refused one has none.
func TestOneOutcomeForEver(t *testing.T) {
	const hosts, callers, keys, rounds = 3, 12, 40, 60
	flaky := func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
		if err := tx.Insert(ctx, r.Key.RequestID); err != nil {
			return service.Result{}, err
		}
		switch rand.IntN(5) {
		case 0:
			return service.Result{}, errors.New("no")
		case 1:
			panic("no")
		case 2, 3:
			return service.RefusedWith(422, fmt.Appendf(nil, `{"title":"no %d"}`, rand.Int64())), nil
		}
		return service.DoneWith(fmt.Sprint("T-", rand.Int64()), nil), nil
	}
	house0 := open(t, flaky, nil)
	all := []*house{house0}
	for range hosts - 1 {
		all = append(all, open(t, flaky, func(c *config, _ *[]act) { c.Store = house0.store }))
	}
	var mu sync.Mutex
	said := map[string]map[string]bool{} // definite answers by key
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for range rounds {
				key := fmt.Sprintf("key-%d", rand.IntN(keys))
				w := all[caller%hosts].post(ticket, "Idempotency-Key", key)
				if w.Code == 500 {
					continue
				}
				mu.Lock()
				if said[key] == nil {
					said[key] = map[string]bool{}
				}
				said[key][w.Body.String()] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	rows := map[string]int{}
	for _, r := range house0.store.Rows() {
		rows[r]++
	}
	for key, answers := range said {
		word, _, _ := strings.Cut(house0.status(key), " ")
		if len(answers) != 1 || rows[key] > 1 || (word == "succeeded") != (rows[key] == 1) || word == "unknown" {
			t.Errorf("%s: %d rows, status %s, answers %v", key, rows[key], word, answers)
		}
	}
	for key, n := range rows {
		if n > 1 || said[key] == nil {
			t.Errorf("%s has %d rows, and answers %v", key, n, said[key])
		}
	}
}
