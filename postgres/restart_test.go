package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/service"
)

// A server that is stopped and started under load, as an operator does it and as a
// crash does, and sessions that are ended: submissions fail with ErrUnavailable
// and nothing else, what was answered is there, and repeating comes to one row each.
func TestServerRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	d := newDatabase(t, cluster)
	a := newStore(t, d.newPool(t, d.config(t, 8)))
	b := newSQLStore(t, d.newDB(t, d.config(t, 8)))
	submitters := []func(context.Context, service.Key) error{
		func(ctx context.Context, k service.Key) error { return submit(ctx, a, insertPgx, k, k.RequestID) },
		func(ctx context.Context, k service.Key) error { return submit(ctx, b, insertSQL, k, k.RequestID) },
	}
	var stop atomic.Bool
	var failed atomic.Int64
	var mu sync.Mutex
	var done []string
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				// Two submitters at a time have the same key, one over each store.
				k := key(fmt.Sprintf("request-%d-%d", w/2, i))
				for {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					err := submitters[w%2](ctx, k)
					cancel()
					if err == nil {
						break
					}
					if !errors.Is(err, service.ErrUnavailable) {
						t.Errorf("%s: %v", k.RequestID, err)
						return
					}
					failed.Add(1)
					time.Sleep(time.Millisecond)
				}
				mu.Lock()
				done = append(done, k.RequestID)
				mu.Unlock()
			}
		})
	}
	pause := func() { time.Sleep(150 * time.Millisecond) }
	for _, m := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate, pgtest.Fast, pgtest.Immediate} {
		pause()
		cluster.Stop(t, m)
		pause()
		cluster.Start(t)
		pause()
		cluster.TerminateAll(t, d.url)
	}
	pause()
	stop.Store(true)
	wg.Wait()
	if failed.Load() == 0 || len(done) == 0 {
		t.Errorf("%d failures, %d submissions: the test shows nothing", failed.Load(), len(done))
	}
	d.admin.Reset()
	slices.Sort(done)
	want := slices.Compact(done)
	got := d.rows(t)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d rows of %d requests, or others", len(got), len(want))
	}
	for _, id := range want {
		if r, err := a.Find(t.Context(), key(id)); err != nil || r == nil || r.State != service.Done {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	t.Logf("%d requests, %d answers of 503", len(want), failed.Load())
}
