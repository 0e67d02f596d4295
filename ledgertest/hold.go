package ledgertest

import (
	"context"
	"errors"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// begun is what a Begin or Take in another goroutine came to.
type begun struct {
	hold client.Hold
	err  error
}

// beginLater runs Begin in another goroutine.
func (e *ledgerEnv) beginLater(ctx context.Context, l client.Ledger, b client.Binding) <-chan begun {
	c := make(chan begun, 1)
	go func() {
		h, err := l.Begin(ctx, b, client.IntendSubmit, time.Minute)
		c <- begun{h, err}
	}()
	return c
}

// mustWait fails when the call comes back while it has to wait.
func (e *ledgerEnv) mustWait(c <-chan begun) {
	e.Helper()
	select {
	case b := <-c:
		e.Fatalf("a second hold was given while the first lasts: %v, %v", b.hold, b.err)
	case <-time.After(brief):
	}
}

func (e *ledgerEnv) mustCome(c <-chan begun) client.Hold {
	e.Helper()
	select {
	case b := <-c:
		if b.err != nil {
			e.Fatalf("Begin that waited: %v", b.err)
		}
		return b.hold
	case <-time.After(patience):
		e.Fatal("a waiter was not woken")
		return nil
	}
}

// holdTests are about exclusion, waiting, and a hold that was lost.
var holdTests = []ledgerTest{
	{"a second hold waits for the first, on the same handle and on another", func(e *ledgerEnv) {
		for name, l := range map[string]client.Ledger{"request-same": e.ledger, "request-other": e.open()} {
			b := binding(name)
			h := e.begin(b, client.IntendSubmit)
			waiting := e.beginLater(e.ctx, l, b)
			e.mustWait(waiting)
			e.finish(h, nil, receipt(b, agentic.Pending)) // which may give it free
			e.release(h)
			second := e.mustCome(waiting)
			e.equal("may submit", false, second.MaySubmit())
			e.equal("receipts", []agentic.Receipt{receipt(b, agentic.Pending)}, second.Record().Receipts)
			e.release(second)
		}
	}},
	{"waiting ends with its time or its context, and says which", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		for _, l := range []client.Ledger{e.ledger, e.open()} {
			for _, wait := range []time.Duration{-1, 0, brief} {
				_, err := l.Begin(e.ctx, b, client.IntendSubmit, wait)
				var held *client.HeldError
				if !errors.As(err, &held) || held.RequestID != b.RequestID {
					e.Fatalf("Begin that waits %v: %v", wait, err)
				}
			}
			ctx, cancel := context.WithCancel(e.ctx)
			time.AfterFunc(brief, cancel)
			_, err := l.Take(ctx, b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
			var held *client.HeldError
			if errors.As(err, &held) || !errors.Is(err, context.Canceled) {
				e.Fatalf("Take that was cancelled: %v", err)
			}
		}
		e.finish(h, nil, receipt(b, agentic.Pending)) // the waiters took nothing away
		e.release(h)
		e.release(e.take(b, client.IntendPrepare)) // and left no lock
	}},
	{"without a wait, what nobody holds is held", func(e *ledgerEnv) {
		b := binding("request-1")
		for range 2 { // new, and found
			h, err := e.ledger.Begin(e.ctx, b, client.IntendSubmit, 0)
			if err != nil {
				e.Fatal(err)
			}
			e.release(h)
		}
		h, err := e.open().Take(e.ctx, b.Scope, b.RequestID, client.IntendSubmit, 0)
		if err != nil {
			e.Fatal(err)
		}
		e.release(h)
	}},
	{"a waiter that gave up does not swallow the wake-up", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		ctx, cancel := context.WithCancel(e.ctx)
		gone := e.beginLater(ctx, e.ledger, b)
		e.mustWait(gone)
		waiting := e.beginLater(e.ctx, e.ledger, b)
		e.mustWait(waiting)
		cancel()
		e.release(h)
		e.release(e.mustCome(waiting))
		if g := <-gone; g.err == nil {
			e.release(g.hold)
		}
	}},
	{"holding one request does not hold another, nor a reader", func(e *ledgerEnv) {
		first := e.begin(binding("request-1"), client.IntendSubmit)
		defer e.release(first)
		second := e.begin(binding("request-2"), client.IntendSubmit)
		defer e.release(second)
		e.equal("loaded while held", first.Record(), e.load(binding("request-1")))
		list, err := e.ledger.List(e.ctx, client.Filter{}.In(binding("x").Scope))
		if err != nil || len(list) != 2 {
			e.Fatalf("List: %v, %v", list, err)
		}
	}},
	{"release twice is safe, also when somebody else holds", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		e.release(h)
		e.release(h)
		second := e.take(b, client.IntendPrepare)
		e.release(h)
		waiting := e.beginLater(e.ctx, e.ledger, b)
		e.mustWait(waiting)
		e.release(second)
		e.release(e.mustCome(waiting))
	}},
	{"a released hold writes nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		e.release(h)
		e.equal("may submit", false, h.MaySubmit())
		before := e.load(b)
		e.clock.Advance(time.Hour)
		e.mustBeLost(h, b)
		e.equal("record", before, e.load(b))
	}},
	{"a hold that was taken over writes nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		late := e.begin(b, client.IntendSubmit)
		e.store.TakeOver(e.T, b.Scope, b.RequestID)
		next, err := e.open().Take(e.ctx, b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
		if err != nil {
			e.Fatalf("Take after a takeover: %v", err)
		}
		e.equal("may submit after a takeover", false, next.MaySubmit())
		before := e.load(b)
		e.mustBeLost(late, b)
		e.equal("record after the late writes", before, e.load(b))
		e.finish(next, nil, receipt(b, agentic.Succeeded))
		e.mustBeLost(late, b)
		e.release(late)
		e.release(next)
		e.equal("receipts", []agentic.Receipt{receipt(b, agentic.Succeeded)}, e.load(b).Receipts)
	}},
	{"a hold with an ended context writes nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		defer e.release(h)
		before := e.load(b)
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		if err := h.Observe(ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); !errors.Is(err, context.Canceled) {
			e.Fatalf("Observe: %v", err)
		}
		if err := h.Finish(ctx, nil, receipt(b, agentic.Pending)); !errors.Is(err, context.Canceled) {
			e.Fatalf("Finish: %v", err)
		}
		e.equal("record", before, e.load(b))
		e.finish(h, nil, receipt(b, agentic.Pending)) // and the hold still works
	}},
	{"what was prepared too long ago stays prepared", func(e *ledgerEnv) {
		for _, by := range []string{"begin", "take"} {
			b := binding("request-" + by)
			e.release(e.begin(b, client.IntendPrepare))
			e.clock.Advance(b.Window)
			h := e.hold(by, b)
			e.equal("may submit", false, h.MaySubmit())
			e.equal("state", client.Prepared, h.Record().State)
			e.release(h)
			e.equal("saved state", client.Prepared, e.load(b).State)
		}
		b := binding("request-in-time")
		e.release(e.begin(b, client.IntendPrepare))
		e.clock.Advance(b.Window - time.Microsecond)
		h := e.hold("take", b)
		e.equal("may submit", true, h.MaySubmit())
		e.release(h)
	}},
	{"a receipt ends the writes of its hold", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		e.finish(h, nil, receipt(b, agentic.Pending))
		before := e.load(b)
		if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}); err == nil {
			e.Fatal("Observe after Finish")
		}
		if err := h.Finish(e.ctx, nil, receipt(b, agentic.Succeeded)); err == nil {
			e.Fatal("a second Finish")
		}
		e.release(h)
		e.equal("record", before, e.load(b))
		e.release(e.take(b, client.IntendSubmit))
	}},
	{"now is the clock in UTC with microseconds, also when it goes back", func(e *ledgerEnv) {
		zone := time.FixedZone("elsewhere", -3*3600)
		var at time.Time
		l := e.store.Open(e.T, func() time.Time { return at })
		defer e.closeLedger(l)
		at = time.Date(2026, 5, 6, 7, 8, 9, 123456789, zone)
		h, err := l.Begin(e.ctx, binding("request-1"), client.IntendPrepare, time.Minute)
		if err != nil {
			e.Fatal(err)
		}
		defer e.release(h)
		want := time.Date(2026, 5, 6, 10, 8, 9, 123456000, time.UTC)
		if got := h.Now(); got != want { // not Equal: the location counts
			e.Fatalf("Now: %v, want %v", got, want)
		}
		e.equal("created", want, h.Record().CreatedAt)
		at = at.Add(-time.Hour)
		if got := h.Now(); got != want.Add(-time.Hour) {
			e.Fatalf("Now after the clock went back: %v", got)
		}
	}},
}

// mustBeLost checks that neither write of a lost hold is taken.
func (e *ledgerEnv) mustBeLost(h client.Hold, b client.Binding) {
	e.Helper()
	if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}); !errors.Is(err, client.ErrLost) {
		e.Fatalf("Observe of a lost hold: %v", err)
	}
	if err := h.Finish(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}, receipt(b, agentic.Pending)); !errors.Is(err, client.ErrLost) {
		e.Fatalf("Finish of a lost hold: %v", err)
	}
}

// hold is Begin or Take of what is there, to submit it.
func (e *ledgerEnv) hold(by string, b client.Binding) client.Hold {
	e.Helper()
	if by == "begin" {
		return e.begin(b, client.IntendSubmit)
	}
	return e.take(b, client.IntendSubmit)
}
