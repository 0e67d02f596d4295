package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/reconcile"
)

func TestOneTellsWhatItCameTo(t *testing.T) {
	const id = "request-1"
	status := func(word string) func(*host) {
		return func(h *host) {
			h.svc.status = func(_ context.Context, _, id string) client.Exchange { return open(id, word) }
		}
	}
	note := func(v client.Verb) func(*host) {
		return func(h *host) {
			n := client.Note{By: "eve", Verb: v, Reason: "seen"}
			if err := h.ledger.AddNote(h.t.Context(), ann, id, n); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		setup func(*host)
		want  reconcile.Kind
		after agentic.Outcome
		reads int
		later time.Duration // about
		fails bool
	}{
		{"verified", func(*host) {}, reconcile.Verified, agentic.Succeeded, 1, 0, false},
		{"failed", status("failed"), reconcile.Failed, agentic.Failed, 1, 0, false},
		{"pending", status("pending"), reconcile.StillPending, agentic.Pending, 3, 0, false},
		{"unknown", status("unknown"), reconcile.StillUnknown, agentic.Unknown, 3, 0, false},
		{"the window has ended", func(*host) { time.Sleep(25 * time.Hour) }, reconcile.ForPerson, agentic.Unknown, 0, 0, false},
		{"settled by a person", note(client.AttestFailed), reconcile.Nothing, "", 0, 0, false},
		{"a person had it checked", note(client.Recheck), reconcile.Verified, agentic.Succeeded, 1, 0, false},
		{"final already", func(h *host) {
			if d, err := h.worker().One(h.t.Context(), ann, id); err != nil || d.Kind != reconcile.Verified {
				h.t.Fatal(d, err)
			}
			h.svc.reads = nil
		}, reconcile.Nothing, agentic.Succeeded, 0, 0, false},
		{"held by another execution", func(h *host) {
			if _, err := h.ledger.Take(h.t.Context(), ann, id, client.IntendPrepare, 0); err != nil {
				h.t.Fatal(err)
			}
		}, reconcile.Held, "", 0, 5 * time.Second, false},
		{"lost to another execution", func(h *host) {
			h.svc.status = func(_ context.Context, _, id string) client.Exchange {
				h.ledger.TakeOver(ann, id)
				return open(id, "pending")
			}
		}, reconcile.Held, "", 3, 5 * time.Second, false},
		{"not approved", func(h *host) {
			h.svc.approve = func(origin string) error { return &client.OriginError{Origin: origin, Reason: "no"} }
		}, reconcile.NotApproved, "", 0, time.Minute, false},
		{"an answer about another request", func(h *host) {
			h.svc.status = func(context.Context, string, string) client.Exchange {
				return open("another-request", "unknown")
			}
		}, reconcile.StillUnknown, agentic.Unknown, 3, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.crash(planAt(t, support), ann, id)
				tt.setup(h)
				h.done = nil
				d, err := h.worker().One(t.Context(), ann, id)
				if d.Kind != tt.want || d.After != tt.after || (err != nil) != tt.fails {
					t.Errorf("%+v, %v", d, err)
				}
				if d.Later < tt.later*4/5 || d.Later > tt.later*6/5 {
					t.Errorf("later %v, want about %v", d.Later, tt.later)
				}
				if n := h.svc.count(""); n != tt.reads {
					t.Errorf("%d reads, want %d", n, tt.reads)
				}
				if len(h.done) != 1 || h.done[0].Kind != tt.want || d.Origin != support || d.ActionID != "create-ticket" {
					t.Errorf("observed %+v of %+v", h.done, d)
				}
			})
		})
	}
}

func TestOneOfWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.prepare(planAt(t, support), ann, "prepared-1")
		w := h.worker()
		for _, id := range []string{"prepared-1", "nobody-knows"} {
			if d, err := w.One(t.Context(), ann, id); err != nil || d.Kind != reconcile.Nothing {
				t.Errorf("%s: %+v, %v", id, d, err)
			}
		}
		h.crash(planAt(t, support), ann, "request-1")
		h.svc.took = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		d, err := w.One(ctx, ann, "request-1")
		if d.Kind != reconcile.Stopped || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("interrupted: %+v, %v", d, err)
		}
		w = h.worker(func(c *reconcile.Config) { c.Ledger = &failing{Ledger: h.ledger} })
		if d, err := w.One(t.Context(), ann, "damaged-1"); d.Kind != reconcile.Broken || !errors.Is(err, client.ErrLedger) {
			t.Errorf("a ledger that fails: %+v, %v", d, err)
		}
	})
}

// One never waits for a limit; what it refuses is told times apart, and when it
// comes back then, it is done. So a job queue can hold thousands.
func TestOneSpreadsWhatItRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		list := ids("request", 1000)
		h.crash(planAt(t, support), ann, list...)
		w := h.worker()
		type job struct {
			id string
			at time.Time
		}
		var jobs []job
		for _, id := range list {
			jobs = append(jobs, job{id, time.Now()})
		}
		start, calls := time.Now(), 0
		for len(jobs) > 0 {
			slices.SortFunc(jobs, func(a, b job) int { return a.at.Compare(b.at) })
			j := jobs[0]
			jobs = jobs[1:]
			time.Sleep(time.Until(j.at))
			d, err := w.One(t.Context(), ann, j.id)
			calls++
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == reconcile.NotNow {
				if d.Later <= 0 {
					t.Fatalf("%+v", d)
				}
				jobs = append(jobs, job{j.id, time.Now().Add(d.Later)})
			}
		}
		if took := time.Since(start); took < 99*time.Second || took > 110*time.Second {
			t.Errorf("1,000 at 10 a second took %v", took)
		}
		if calls > 3000 {
			t.Errorf("%d calls for 1,000 executions", calls)
		}
		if n := h.outcomes(ann)[agentic.Succeeded]; n != 1000 {
			t.Errorf("%d verified", n)
		}
	})
}

func TestNotApprovedIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.crash(planAt(t, support), ann, ids("request", 5)...)
		h.svc.approve = func(origin string) error { return &client.OriginError{Origin: origin, Reason: "no"} }
		var log strings.Builder
		w := h.worker(func(c *reconcile.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		h.run(w, 10*time.Minute)
		if n := strings.Count(log.String(), "not approved"); n != 1 {
			t.Errorf("it was said %d times:\n%s", n, &log)
		}
		if n := h.counts()[reconcile.NotApproved]; n < 35 || n > 60 {
			t.Errorf("%d looks at 5 requests in 9 minutes", n)
		}
	})
}

func TestPassReportsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		const down = "https://down.example"
		h.svc.took = time.Second
		h.svc.status = func(_ context.Context, origin, id string) client.Exchange {
			switch {
			case origin == down:
				return broken(client.ClassConnect)
			case strings.HasPrefix(id, "pending"):
				return open(id, "pending")
			case strings.HasPrefix(id, "failed"):
				return open(id, "failed")
			}
			return succeeded(id)
		}
		p := planAt(t, support)
		h.prepare(p, ann, "prepared-1")
		h.crash(p, ann, ids("old", 3)...)
		time.Sleep(23 * time.Hour)
		h.crash(p, ann, ids("pending", 4)...)
		h.crash(p, ann, ids("failed", 5)...)
		h.crash(p, ann, ids("done", 6)...)
		h.crash(planAt(t, down), ann, ids("down", 30)...)
		bob := client.Scope{Principal: "bob", Environment: "test"}
		h.crash(p, bob, ids("bob", 2)...)
		h.crash(p, client.Scope{Principal: "bob", Environment: "live"}, ids("foreign", 2)...)
		time.Sleep(2 * time.Hour) // the window of the old ones ends
		if _, err := h.ledger.Take(t.Context(), ann, "done-00000", client.IntendPrepare, 0); err != nil {
			t.Fatal(err)
		}
		w := h.worker(func(c *reconcile.Config) { c.Scopes = []client.Scope{ann, bob, ann} })
		last := 0
		progress := func(done, total int) {
			if done != last+1 || total != 50 {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		}
		report, err := w.Pass(t.Context(), reconcile.PassOptions{}, progress)
		if err != nil {
			t.Fatal(err)
		}
		want := map[reconcile.Kind]int{reconcile.ForPerson: 3, reconcile.StillPending: 4, reconcile.Failed: 5, reconcile.Verified: 7,
			reconcile.Held: 1, reconcile.StillUnknown: 4, reconcile.NotNow: 26}
		if d := cmp.Diff(want, report.Counts); d != "" {
			t.Error(d)
		}
		if len(report.Done) != 50 || last != 50 || report.Took <= 0 {
			t.Errorf("%d Dones, progress to %d, took %v", len(report.Done), last, report.Took)
		}
		for _, d := range report.Done {
			if d.RequestID == "" || d.Origin == "" || d.ActionID == "" || d.Kind == reconcile.NotNow && d.Later <= 0 {
				t.Errorf("%+v", d)
			}
		}

		report, err = w.Pass(t.Context(), reconcile.PassOptions{Filter: client.Filter{Origin: support}.In(bob)}, nil)
		if err != nil || len(report.Done) != 0 {
			t.Errorf("what is done is done again: %+v, %v", report, err)
		}
	})
}

func TestPassEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.svc.took = time.Hour
		h.crash(planAt(t, support), ann, ids("request", 20)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		report, err := h.worker().Pass(ctx, reconcile.PassOptions{}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || report.Counts[reconcile.Stopped] != 4 || len(report.Done) != 4 {
			t.Errorf("%v, %v", report.Counts, err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		f := &failing{Ledger: h.ledger, until: time.Now().Add(time.Hour)}
		_, err = h.worker(func(c *reconcile.Config) { c.Ledger = f }).Pass(t.Context(), reconcile.PassOptions{}, nil)
		if !errors.Is(err, client.ErrLedger) {
			t.Errorf("a ledger that fails: %v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	h := newHost(t)
	for name, cfg := range map[string]reconcile.Config{
		"no client": {Ledger: h.ledger, Scopes: []client.Scope{ann}},
		"no ledger": {Client: h.client, Scopes: []client.Scope{ann}},
		"no scope":  {Client: h.client, Ledger: h.ledger},
		"bad scope": {Client: h.client, Ledger: h.ledger, Scopes: []client.Scope{{Principal: "\xff"}}},
	} {
		if _, err := reconcile.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(slices.Compact(reconcile.Kinds())) != 11 {
		t.Error(fmt.Sprint("kinds: ", reconcile.Kinds()))
	}
}
