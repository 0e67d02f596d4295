package reconcile_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/reconcile"
)

func TestCrashedAttemptBecomesVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		p := planAt(t, support)
		h.crash(p, ann, "crashed-1")
		h.prepare(p, ann, "prepared-1")
		foreign := client.Scope{Principal: "bob", Environment: "test"}
		h.crash(p, foreign, "crashed-2")
		h.run(h.worker(), 40*time.Second) // before its term is over the host may still be at it
		if n := h.svc.count(""); n != 0 {
			t.Fatalf("%d reads within the term of the attempt", n)
		}
		h.run(h.worker(), time.Minute)
		if got := h.outcome(ann, "crashed-1"); got != agentic.Succeeded {
			t.Errorf("outcome %q", got)
		}
		if h.outcome(ann, "prepared-1") != "" || h.outcome(foreign, "crashed-2") != "" || h.svc.count("") != 1 {
			t.Errorf("a worker looked at what is not its own: %d reads", h.svc.count(""))
		}
		if d := cmp.Diff(map[reconcile.Kind]int{reconcile.Verified: 1}, h.counts()); d != "" {
			t.Error(d)
		}
	})
}

// The reads of a request that is pending for six hours are few, get rarer, and end.
func TestPendingForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		ready := time.Now().Add(6 * time.Hour)
		h.svc.status = func(_ context.Context, _, id string) client.Exchange {
			if time.Now().Before(ready) {
				return open(id, "pending")
			}
			return succeeded(id)
		}
		h.crash(planAt(t, support), ann, "pending-1")
		h.run(h.worker(), 23*time.Hour)
		rec := h.record(ann, "pending-1")
		if rec.Last().Outcome != agentic.Succeeded {
			t.Fatalf("outcome %s after %d receipts", rec.Last().Outcome, len(rec.Receipts))
		}
		// A quarter of the age each time: about ln(6 h / 57 s)/ln(1.25) = 27.
		if n := len(rec.Receipts); n < 15 || n > 40 {
			t.Errorf("%d executions in six hours", n)
		}
		var gaps []time.Duration
		for i, r := range h.svc.reads[1:] {
			if gap := r.at.Sub(h.svc.reads[i].at); gap > time.Second { // not a check of the same execution
				gaps = append(gaps, gap)
			}
		}
		if first, last := gaps[0], gaps[len(gaps)-1]; first > time.Minute || last < 30*time.Minute || slices.Max(gaps) > 75*time.Minute {
			t.Errorf("the spacing goes from %v to %v", first, last)
		}
	})
}

// What stays unknown gets one receipt that closes it, at the end of its window, and
// is never read again: it needs a person (section 6.9, D16).
func TestUnknownUntilTheWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.svc.status = func(_ context.Context, _, id string) client.Exchange { return open(id, "unknown") }
		h.crash(planAt(t, support), ann, "unknown-1")
		w := h.worker(func(c *reconcile.Config) { c.Poll = 10 * time.Second })
		h.run(w, 24*time.Hour+time.Minute)
		rec := h.record(ann, "unknown-1")
		n, reads := len(rec.Receipts), h.svc.count("")
		if last := rec.Last(); last.Outcome != agentic.Unknown || !strings.Contains(last.Reason, "window") {
			t.Fatalf("last receipt: %+v", last)
		}
		if before := rec.Receipts[n-2]; strings.Contains(before.Reason, "window") {
			t.Errorf("two closing receipts: %+v", before)
		}
		if k := h.counts(); k[reconcile.ForPerson] != 1 || k[reconcile.StillUnknown] != n-1 {
			t.Errorf("%d receipts, counts %v", n, k)
		}
		h.run(w, 7*24*time.Hour)
		report, err := w.Pass(t.Context(), reconcile.PassOptions{}, nil)
		if err != nil || report.Counts[reconcile.ForPerson] != 1 {
			t.Errorf("Pass: %v, %v", report.Counts, err)
		}
		if d, err := w.One(t.Context(), ann, "unknown-1"); err != nil || d.Kind != reconcile.ForPerson {
			t.Errorf("One: %+v, %v", d, err)
		}
		if got := h.record(ann, "unknown-1"); len(got.Receipts) != n || h.svc.count("") != reads {
			t.Errorf("it was touched again: %d receipts and %d reads, then %d and %d", n, reads, len(got.Receipts), h.svc.count(""))
		}
		sum := rec.Summary()
		if !sum.NeedsPerson(time.Now()) {
			t.Error("it needs no person")
		}
	})
}

// An origin that is down for an hour is asked a bounded number of times, and the
// requests of another go on beside it, however many wait before them.
func TestAnOriginThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down, up = "https://down.example", "https://up.example"
		h := newHost(t)
		back := time.Now().Add(time.Hour)
		h.svc.status = func(_ context.Context, origin, id string) client.Exchange {
			if origin == down && time.Now().Before(back) {
				return broken(client.ClassConnect)
			}
			return succeeded(id)
		}
		h.crash(planAt(t, down), ann, ids("down", 600)...)
		h.crash(planAt(t, up), ann, ids("up", 50)...)
		w := h.worker(func(c *reconcile.Config) { c.Poll = 5 * time.Second })
		h.run(w, 58*time.Minute)
		// Back-off 1 s doubling to 5 min: 9 steps in the first 10 min, then one in 5
		// min; up to 4 began before the first had failed. Each has 3 checks.
		if n := h.svc.count(down) / 3; n < 10 || n > 30 {
			t.Errorf("%d executions at an origin that is down for an hour", n)
		}
		if n := h.svc.count(up); n != 50 {
			t.Errorf("%d of 50 requests of the other origin are done", n)
		}
		h.run(w, 90*time.Minute)
		if got := h.outcomes(ann); got[agentic.Succeeded] != 650 {
			t.Errorf("outcomes %v", got)
		}
	})
}

func TestLimitsOfAnOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.svc.took = 2 * time.Second
		h.crash(planAt(t, support), ann, ids("request", 200)...)
		time.Sleep(time.Hour)
		w := h.worker(func(c *reconcile.Config) {
			c.Concurrency = 64
			c.Limits = reconcile.Limits{Concurrency: 10, Rate: 2, Burst: 5}
		})
		start := time.Now()
		report, err := w.Pass(t.Context(), reconcile.PassOptions{}, nil)
		if err != nil || report.Counts[reconcile.Verified] != 200 {
			t.Fatalf("%v, %v", report.Counts, err)
		}
		// 5 at once, then 2 a second.
		if took := time.Since(start); took < 97*time.Second || took > 101*time.Second {
			t.Errorf("200 executions at 2 a second took %v", took)
		}
		for i, r := range h.svc.reads {
			n := 0
			for _, other := range h.svc.reads[i:] {
				if other.at.Before(r.at.Add(10 * time.Second)) {
					n++
				}
			}
			if n > 25 {
				t.Fatalf("%d reads within 10 s", n)
			}
		}
		if h.svc.top[support] > 10 {
			t.Errorf("%d at once", h.svc.top[support])
		}

		h = newHost(t)
		h.svc.took = 2 * time.Second
		h.crash(planAt(t, support), ann, ids("request", 60)...)
		time.Sleep(time.Hour)
		w = h.worker(func(c *reconcile.Config) { c.Limits = reconcile.Limits{Concurrency: 3, Rate: 1000} })
		start = time.Now()
		if report, err := w.Pass(t.Context(), reconcile.PassOptions{DueOnly: true}, nil); err != nil || report.Counts[reconcile.Verified] != 60 {
			t.Fatalf("%v, %v", report.Counts, err)
		}
		if took := time.Since(start); took != 40*time.Second || h.svc.top[support] != 3 {
			t.Errorf("60 executions of 2 s, 3 at once: %v, at most %d at once", took, h.svc.top[support])
		}
	})
}

// When its context ends a worker begins nothing and finishes what runs; what does
// not end within the grace period stays open, and the next worker goes on.
func TestDrainLosesNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		took    time.Duration
		grace   time.Duration
		stopped int
		within  time.Duration
	}{
		{"all of it ends", 2 * time.Second, 0, 0, 2 * time.Second},
		{"the grace period ends", time.Hour, 10 * time.Second, 8, 10 * time.Second},
		{"the grace period is the term", time.Hour, 0, 8, 51300 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.svc.took = tt.took
				h.crash(planAt(t, support), ann, ids("request", 1000)...)
				time.Sleep(time.Hour)
				unbounded := reconcile.Limits{Concurrency: 100, Rate: 1e6}
				w := h.worker(func(c *reconcile.Config) { c.Limits, c.Grace = unbounded, tt.grace })
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- w.Run(ctx) }()
				time.Sleep(time.Second)
				cancel()
				at := time.Now()
				if err := <-ended; err != nil {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(at); took > tt.within || h.svc.count("") != 8 {
					t.Errorf("drained in %v; %d reads", took, h.svc.count(""))
				}
				want := map[reconcile.Kind]int{reconcile.Stopped: tt.stopped, reconcile.Verified: 8 - tt.stopped}
				maps.DeleteFunc(want, func(_ reconcile.Kind, n int) bool { return n == 0 })
				if d := cmp.Diff(want, h.counts()); d != "" {
					t.Error(d)
				}
				h.svc.took = 0
				h.run(h.worker(func(c *reconcile.Config) { c.Limits = unbounded }), 2*time.Minute)
				if got := h.outcomes(ann); got[agentic.Succeeded] != 1000 {
					t.Errorf("outcomes %v", got)
				}
			})
		})
	}
}

// Two workers with handles of their own share a thousand requests; each is executed
// without overlap and read no more often than one worker would have.
func TestTwoWorkersShareALedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.svc.took = 100 * time.Millisecond
		h.crash(planAt(t, support), ann, ids("request", 1000)...)
		var at [2]int32
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		ended := make(chan error)
		for i := range at {
			w := h.worker(func(c *reconcile.Config) {
				c.Limits = reconcile.Limits{Rate: 1e6}
				first := c.Observer
				c.Observer = func(d reconcile.Done) {
					if first(d); d.Kind == reconcile.Verified {
						atomic.AddInt32(&at[i], 1)
					}
				}
			})
			go func() { ended <- w.Run(ctx) }()
		}
		for range at {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if got := h.outcomes(ann); got[agentic.Succeeded] != 1000 || h.svc.count("") != 1000 {
			t.Errorf("outcomes %v, %d reads", got, h.svc.count(""))
		}
		if at[0] < 100 || at[1] < 100 {
			t.Errorf("the work was not shared: %v", at)
		}
	})
}

// failing is a ledger that cannot answer for a while.
type failing struct {
	client.Ledger
	until time.Time
	lists atomic.Int32
}

func (f *failing) List(ctx context.Context, filter client.Filter) ([]client.Summary, error) {
	f.lists.Add(1)
	if time.Now().Before(f.until) {
		return nil, &client.LedgerError{Op: "list", Err: errors.New("gone")}
	}
	return f.Ledger.List(ctx, filter)
}

func (f *failing) Load(ctx context.Context, scope client.Scope, id string) (*client.Record, error) {
	if id == "damaged-1" {
		return nil, &client.LedgerError{Op: "load", Err: errors.New("damaged")}
	}
	return f.Ledger.Load(ctx, scope, id)
}

// A ledger that is away is asked less and less often, and work goes on by itself; a
// request that cannot be read does not keep the others.
func TestLedgerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.crash(planAt(t, support), ann, append([]string{"damaged-1"}, ids("request", 20)...)...)
		f := &failing{Ledger: h.ledger, until: time.Now().Add(time.Hour)}
		w := h.worker(func(c *reconcile.Config) { c.Ledger = f })
		h.run(w, time.Hour-time.Second)
		if n := f.lists.Load(); n < 100 || n > 200 {
			t.Errorf("%d listings in an hour without a ledger", n)
		}
		h.run(w, time.Hour)
		if got := h.outcomes(ann); got[agentic.Succeeded] != 20 {
			t.Errorf("outcomes %v", got)
		}
		if n := h.counts()[reconcile.Broken]; n < 10 || n > 40 {
			t.Errorf("the damaged request was tried %d times in an hour", n)
		}
	})
}

// hanging is a ledger whose first listing never answers.
type hanging struct {
	client.Ledger
	hung atomic.Bool
}

func (l *hanging) List(ctx context.Context, filter client.Filter) ([]client.Summary, error) {
	if l.hung.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Ledger.List(ctx, filter)
}

// A listing that never answers, as over a connection that was cut off without a word,
// is given up.
func TestListingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.crash(planAt(t, support), ann, "request-1")
		h.run(h.worker(func(c *reconcile.Config) { c.Ledger = &hanging{Ledger: h.ledger} }), 5*time.Minute)
		if got := h.outcomes(ann); got[agentic.Succeeded] != 1 {
			t.Errorf("outcomes %v", got)
		}
	})
}
