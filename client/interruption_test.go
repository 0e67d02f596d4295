package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// D16: no network call with a clock that moved back or past the window, and it
// is looked at before every check.
func TestClock(t *testing.T) {
	attempted := func(t *testing.T) *host {
		h := newHost(t)
		s := good()
		s.status = []client.Exchange{status("pending", "")}
		s.submit = answer(202, "")
		if res := h.execute(s); res.Receipt.Outcome != agentic.Pending {
			t.Fatalf("setup: %+v", res)
		}
		return h
	}
	t.Run("moved back", func(t *testing.T) {
		h, s := attempted(t), good()
		h.clock.Advance(-time.Microsecond)
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 0 || !strings.Contains(res.Receipt.Reason, "backwards") {
			t.Errorf("%+v after %d GETs", res, s.gets)
		}
	})
	t.Run("last moment of the window", func(t *testing.T) {
		h, s := attempted(t), good()
		h.clock.Advance(h.record().CreatedAt.Add(24*time.Hour - time.Microsecond).Sub(h.clock.Now()))
		if res := h.execute(s); res.Receipt.Outcome != agentic.Succeeded {
			t.Errorf("%+v", res)
		}
	})
	t.Run("window ended", func(t *testing.T) {
		h, s := attempted(t), good()
		h.clock.Advance(h.record().CreatedAt.Add(24 * time.Hour).Sub(h.clock.Now()))
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 0 || !strings.Contains(res.Receipt.Reason, "window") {
			t.Errorf("%+v after %d GETs", res, s.gets)
		}
	})
	t.Run("window ended, asked again", func(t *testing.T) {
		h, s := attempted(t), good()
		h.clock.Advance(h.record().CreatedAt.Add(24 * time.Hour).Sub(h.clock.Now()))
		first := h.execute(s)
		if !first.WindowEnded || first.FromSaved {
			t.Errorf("the first time: %+v", first)
		}
		for _, step := range []time.Duration{time.Hour, -48 * time.Hour} {
			h.clock.Advance(step)
			res, err := h.client(s).Resume(t.Context(), testID)
			if err != nil || !res.FromSaved || !res.WindowEnded || res.Receipt != first.Receipt {
				t.Errorf("again: %+v, %v", res, err)
			}
			if res := h.execute(s); !res.FromSaved || !res.WindowEnded || res.Receipt != first.Receipt {
				t.Errorf("executed again: %+v", res)
			}
		}
		if rec := h.record(); len(rec.Receipts) != 2 || s.gets != 0 {
			t.Errorf("%d receipts after %d GETs", len(rec.Receipts), s.gets)
		}
	})
	t.Run("a pending receipt of the window's end", func(t *testing.T) {
		h, s := attempted(t), good()
		s.status = []client.Exchange{status("pending", "")}
		s.onGet = func(n int) {
			if n == plan(t).Action.Recovery.MaxChecks {
				h.clock.Advance(24 * time.Hour)
			}
		}
		if res := h.execute(s); res.Receipt.Outcome != agentic.Pending || !res.WindowEnded {
			t.Errorf("%+v after %d GETs", res, s.gets)
		}
		res, err := h.client(s).Resume(t.Context(), testID)
		if err != nil || res.Receipt.Outcome != agentic.Unknown || res.FromSaved || len(h.record().Receipts) != 3 {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("window ends between two checks", func(t *testing.T) {
		h, s := attempted(t), good()
		s.status = []client.Exchange{status("pending", "")}
		s.onGet = func(int) { h.clock.Advance(13 * time.Hour) }
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 2 {
			t.Errorf("%+v after %d GETs, want unknown after 2", res, s.gets)
		}
	})
	t.Run("moves back between two checks", func(t *testing.T) {
		h, s := attempted(t), good()
		s.status = []client.Exchange{status("pending", "")}
		s.onGet = func(int) { h.clock.Advance(-time.Second) }
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 1 {
			t.Errorf("%+v after %d GETs, want unknown after 1", res, s.gets)
		}
	})
	for name, step := range map[string]time.Duration{"moved back": -48 * time.Hour, "window ended": 24 * time.Hour} {
		t.Run(name+" before the resource is read", func(t *testing.T) {
			h, s := newHost(t), good()
			s.onGet = func(int) { h.clock.Advance(step) }
			if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 1 {
				t.Errorf("%+v after %d GETs, want unknown after 1", res, s.gets)
			}
		})
	}
	// Nothing is between the look at the clock and the exchange, not even what waits for a
	// process that is paused: found by internal/sim.
	for _, at := range []client.Point{client.BeforeSubmit, client.BeforeStatus, client.BeforeVerify} {
		for name, step := range map[string]time.Duration{"moved back": -time.Second, "window ended": 24 * time.Hour} {
			t.Run(name+", "+string(at), func(t *testing.T) {
				h, s := newHost(t), good()
				before := -1
				res := h.execute(s, func(c *client.Config) {
					c.KillPoint = func(p client.Point) {
						if p == at {
							h.clock.Advance(step)
							before = s.posts + s.gets
						}
					}
				})
				if res.Receipt.Outcome != agentic.Unknown || s.posts+s.gets != before || res.Sent != (at != client.BeforeSubmit) {
					t.Errorf("%+v after %d POSTs and %d GETs, %d of them before", res, s.posts, s.gets, before)
				}
			})
		}
	}
	t.Run("a step back is seen wherever it shows", func(t *testing.T) {
		h, s := newHost(t), good()
		s.onSubmit = func() { h.clock.Advance(time.Hour) }
		s.onGet = func(n int) {
			if n == 1 {
				h.clock.Advance(-30 * time.Minute) // still after the creation
			}
		}
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || !strings.Contains(res.Receipt.Reason, "backwards") {
			t.Errorf("%+v", res)
		}
	})
	t.Run("a step back during the last read", func(t *testing.T) {
		h, s := newHost(t), good()
		s.onGet = func(n int) {
			if n == 2 {
				h.clock.Advance(-time.Second)
			}
		}
		if res := h.execute(s); res.Receipt.Outcome != agentic.Unknown || s.gets != 2 {
			t.Errorf("%+v after %d GETs", res, s.gets)
		}
	})
	t.Run("prepared too long ago", func(t *testing.T) {
		h, s := newHost(t), good()
		if _, err := h.client(s).Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(24 * time.Hour)
		for _, req := range []client.Request{{ID: testID}, {Plan: plan(t), Input: []byte(testInput), ID: testID}} {
			res, err := h.client(s).Execute(t.Context(), req)
			if e, ok := errors.AsType[*client.ExpiredError](err); !ok || e.RequestID != testID || !e.WindowEnded.Equal(h.clock.Now()) {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if rec := h.record(); s.posts+s.gets != 0 || rec.State != client.Prepared || len(rec.Receipts) != 0 {
			t.Errorf("%s with %d receipts after %d POSTs", rec.State, len(rec.Receipts), s.posts)
		}
		// What was never sent and never will be is no reason to refuse the same again.
		if res, err := h.client(s).Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput)}); err != nil || !res.Sent {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// D17: a cancelled context is an error, writes no receipt, loses no observation,
// and leaves the request resumable.
func TestCancelledContext(t *testing.T) {
	cancelAt := map[string]func(*service, context.CancelFunc){
		"while submitting": func(s *service, cancel context.CancelFunc) {
			s.onSubmit = cancel
			s.submit = broken(client.ClassCanceled)
		},
		"while checking": func(s *service, cancel context.CancelFunc) { s.onGet = func(int) { cancel() } },
		"while waiting": func(s *service, cancel context.CancelFunc) {
			s.status = []client.Exchange{status("pending", "")}
			s.onGet = func(int) { time.AfterFunc(50*time.Millisecond, cancel) }
		},
		"while verifying": func(s *service, cancel context.CancelFunc) {
			s.onGet = func(n int) {
				if n == 2 {
					cancel()
				}
			}
		},
	}
	for name, arrange := range cancelAt {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h, s := newHost(t), good()
				arrange(s, cancel)
				res, err := h.client(s).Execute(ctx, client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
				ie, ok := errors.AsType[*client.InterruptedError](err)
				if !ok || !ie.Saved || !errors.Is(err, context.Canceled) || res.RequestID != testID {
					t.Fatalf("Execute = %+v, %v", res, err)
				}
				rec := h.record()
				if len(rec.Receipts) != 0 || len(rec.Observations) == 0 {
					t.Errorf("%d receipts and %d observations are saved", len(rec.Receipts), len(rec.Observations))
				}
				after := good()
				res, err = h.client(after).Resume(t.Context(), testID)
				if err != nil || res.Receipt.Outcome != agentic.Succeeded || after.posts != 0 || s.posts != 1 {
					t.Errorf("Resume = %+v, %v after %d POSTs", res, err, after.posts)
				}
			})
		})
	}
	t.Run("seen by the transport before the context", func(t *testing.T) {
		h, s := newHost(t), good()
		s.status = []client.Exchange{{Reach: client.MaybeSent, Class: client.ClassCanceled, Err: errors.New("the deadline passed")}}
		_, err := h.client(s).Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
		if ie, ok := errors.AsType[*client.InterruptedError](err); !ok || !ie.Saved || len(h.record().Receipts) != 0 {
			t.Errorf("%v, %d receipts", err, len(h.record().Receipts))
		}
	})
	t.Run("resumed with an ended context", func(t *testing.T) {
		h := newHost(t)
		h.execute(good())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.client(good()).Resume(ctx, testID); !isA[*client.InterruptedError](err) {
			t.Error(err)
		}
	})
	t.Run("before anything", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h, s := newHost(t), good()
		_, err := h.client(s).Execute(ctx, client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
		if ie, ok := errors.AsType[*client.InterruptedError](err); !ok || ie.Saved || s.posts != 0 {
			t.Errorf("%v after %d POSTs", err, s.posts)
		}
	})
}

func TestConcurrentExecutionsSendOnce(t *testing.T) {
	h, s := newHost(t), good()
	s.onSubmit = func() { time.Sleep(20 * time.Millisecond) }
	c := h.client(s, func(cfg *client.Config) { cfg.Observer = nil })
	p := plan(t)
	var wg sync.WaitGroup
	var sent, saved sync.Map
	for i := range 64 {
		wg.Go(func() {
			res, err := c.Execute(t.Context(), client.Request{Plan: p, Input: []byte(testInput), ID: testID})
			if err != nil || res.Receipt.Outcome != agentic.Succeeded {
				t.Errorf("%+v, %v", res, err)
			}
			if res.Sent {
				sent.Store(i, true)
			}
			saved.Store(res.Receipt.ObservedAt, true)
		})
	}
	wg.Wait()
	count := func(m *sync.Map) (n int) { m.Range(func(any, any) bool { n++; return true }); return n }
	if s.posts != 1 || count(&sent) != 1 || count(&saved) != 1 {
		t.Errorf("%d POSTs, %d senders, %d receipts", s.posts, count(&sent), count(&saved))
	}
}

func TestHeldElsewhere(t *testing.T) {
	h, s := newHost(t), good()
	entered, leave := make(chan struct{}), make(chan struct{})
	s.onSubmit = func() { close(entered); <-leave }
	done := make(chan struct{})
	go func() { defer close(done); h.execute(s) }()
	<-entered
	impatient := h.client(good(), func(cfg *client.Config) { cfg.Wait = -1; cfg.Observer = nil })
	_, err := impatient.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
	if !isA[*client.HeldError](err) {
		t.Errorf("Execute beside another: %v", err)
	}
	close(leave)
	<-done
}

// A holder that was taken over writes nothing and returns no receipt.
func TestTakenOver(t *testing.T) {
	h, s := newHost(t), good()
	s.onGet = func(int) { h.ledger.TakeOver(client.Scope{Principal: "ann", Environment: "test"}, testID) }
	res, err := h.client(s).Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
	if !errors.Is(err, client.ErrLost) || res.Receipt.Outcome != "" || len(h.record().Receipts) != 0 {
		t.Errorf("%+v, %v, %d receipts", res, err, len(h.record().Receipts))
	}
}
