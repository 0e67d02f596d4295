package ledgertest

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// nextCheck is what a pending or unknown receipt leaves, by the contract.
func nextCheck(b client.Binding, created, seen time.Time) time.Time {
	at, _ := client.NextCheck(b.RequestID, created, seen, b.Window)
	return at
}

// dueTests are about when a worker looks at a request.
var dueTests = []ledgerTest{
	{"the next check follows every step", func(e *ledgerEnv) {
		b := binding("request-1")
		created := e.clock.Now()
		next := func(step string, want time.Time) {
			e.Helper()
			e.equal("next check, "+step, want, e.summary(b).NextCheck)
		}
		e.release(e.begin(b, client.IntendPrepare))
		next("prepared", time.Time{})
		e.release(e.take(b, client.IntendPrepare))
		next("prepared again", time.Time{})

		at := e.clock.Advance(time.Minute)
		h := e.begin(b, client.IntendSubmit)
		next("held", client.AfterAttempt(at, b.Term))
		e.clock.Advance(time.Second)
		if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); err != nil {
			e.Fatal(err)
		}
		next("observed", client.AfterAttempt(at, b.Term))
		e.release(h)
		next("released without a receipt", client.AfterAttempt(at, b.Term))

		for _, o := range []agentic.Outcome{agentic.Pending, agentic.Unknown, agentic.Pending} {
			at = e.clock.Advance(time.Hour)
			h = e.take(b, client.IntendPrepare)
			next("held again", client.AfterAttempt(at, b.Term))
			at = e.clock.Advance(time.Second)
			e.finish(h, nil, receipt(b, o))
			next(string(o), nextCheck(b, created, at))
			e.release(h)
			next(string(o)+", released", nextCheck(b, created, at))
		}

		// It is counted from the highest time seen, not from a clock set back.
		e.clock.Advance(-30 * time.Minute)
		h = e.take(b, client.IntendSubmit)
		next("held with the clock set back", client.AfterAttempt(at, b.Term))
		e.finish(h, nil, receipt(b, agentic.Unknown))
		e.release(h)
		next("unknown with the clock set back", nextCheck(b, created, at))

		e.clock.Advance(2 * time.Hour)
		h = e.take(b, client.IntendPrepare)
		e.note(b, client.Recheck)
		next("rechecked", client.AfterAttempt(e.clock.Now(), b.Term))
		e.finish(h, nil, receipt(b, agentic.Succeeded))
		next("succeeded", time.Time{})
		e.release(h)
		e.release(e.take(b, client.IntendSubmit))
		next("held when final", time.Time{})
	}},
	{"a receipt that closed the request is followed by nothing, and nobody looks at it again", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		closing := receipt(b, agentic.Unknown)
		closing.ObservedAt = agentic.FormatTime(e.clock.Advance(b.Window))
		e.finish(h, nil, closing)
		e.release(h)
		h = e.take(b, client.IntendSubmit)
		if err := h.Finish(e.ctx, nil, receipt(b, agentic.Unknown)); err == nil {
			e.Error("a receipt after the closing one was written")
		}
		e.release(h)
		e.equal("next check", time.Time{}, e.summary(b).NextCheck)
	}},
	{"a recheck alone leaves the next check as it is", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Pending)
		want := e.summary(b).NextCheck
		e.clock.Advance(time.Second)
		e.note(b, client.Recheck)
		e.equal("next check", want, e.summary(b).NextCheck)
	}},
	{"what was lost to a takeover is looked at by the next holder's time", func(e *ledgerEnv) {
		b := binding("request-1")
		late := e.begin(b, client.IntendSubmit)
		e.store.TakeOver(e.T, b.Scope, b.RequestID)
		at := e.clock.Advance(time.Minute)
		next, err := e.open().Take(e.ctx, b.Scope, b.RequestID, client.IntendPrepare, time.Minute)
		if err != nil {
			e.Fatalf("Take after a takeover: %v", err)
		}
		e.mustBeLost(late, b)
		e.equal("next check", client.AfterAttempt(at, b.Term), e.summary(b).NextCheck)
		e.finish(next, nil, receipt(b, agentic.Failed))
		e.mustBeLost(late, b)
		e.equal("next check when final", time.Time{}, e.summary(b).NextCheck)
		e.release(late)
		e.release(next)
	}},
	{"what is due is listed from its time on, by each handle's clock", func(e *ledgerEnv) {
		b, never := binding("request-1"), binding("request-2")
		e.save(b, agentic.Pending)
		e.release(e.begin(never, client.IntendPrepare))
		at := e.summary(b).NextCheck
		e.clock.Advance(at.Sub(e.clock.Now()) - time.Microsecond)
		early := e.open()
		e.equal("due just before", []string(nil), ids(e.list(client.Filter{Due: true})))
		e.clock.Advance(time.Microsecond)
		for _, l := range []desk.Ledger{e.ledger, early} {
			for _, f := range []client.Filter{{Due: true}, client.Filter{Due: true}.In(b.Scope), {Due: true, Open: true, Order: client.DueFirst, Limit: 1}} {
				list, err := l.List(e.ctx, f)
				if err != nil {
					e.Fatal(err)
				}
				e.equal("due", []string{b.RequestID}, ids(list))
			}
		}
		e.clock.Advance(365 * 24 * time.Hour)
		e.equal("due much later", []string{b.RequestID}, ids(e.list(client.Filter{Due: true})))
		h := e.take(b, client.IntendPrepare) // whoever executes it takes it off the list
		e.equal("due while held", []string(nil), ids(e.list(client.Filter{Due: true})))
		e.finish(h, nil, receipt(b, agentic.Unknown))
		e.release(h)
		e.equal("due after the window", []string(nil), ids(e.list(client.Filter{Due: true})))
		e.equal("needs a person", []string{b.RequestID}, ids(e.list(client.Filter{NeedsPerson: true})))
	}},
	{"what a dead host attempted is due after its term, 5 s at least", func(e *ledgerEnv) {
		for i, term := range []time.Duration{0, 4 * time.Second, 90 * time.Second} {
			b := binding(fmt.Sprintf("request-%d", i))
			b.Term = term
			e.release(e.begin(b, client.IntendSubmit))
			wait := max(term, 5*time.Second)
			e.clock.Advance(wait - time.Microsecond)
			e.equal("due just before", []string(nil), ids(e.list(client.Filter{Due: true})))
			e.clock.Advance(time.Microsecond)
			e.equal("due", []string{b.RequestID}, ids(e.list(client.Filter{Due: true})))
			e.note(b, client.Abandon)
		}
	}},
	{"the last check is exactly at the window's end, and then there is none", func(e *ledgerEnv) {
		b := binding("request-1")
		b.Window = time.Minute
		h := e.begin(b, client.IntendSubmit)
		ends := e.clock.Now().Add(b.Window)
		e.clock.Advance(57 * time.Second)
		e.finish(h, nil, receipt(b, agentic.Pending))
		e.release(h)
		e.equal("next check", ends, e.summary(b).NextCheck)
		e.clock.Advance(3*time.Second - time.Microsecond)
		e.equal("needs a person before the end", false, sumNeedsPerson(e, b))
		e.equal("due before the end", 0, len(e.list(client.Filter{Due: true})))
		e.clock.Advance(time.Microsecond)
		e.equal("due at the end", 1, len(e.list(client.Filter{Due: true})))
		e.equal("needs a person at the end", true, sumNeedsPerson(e, b))
		h = e.take(b, client.IntendPrepare)
		e.finish(h, nil, receipt(b, agentic.Unknown))
		e.release(h)
		e.equal("next check after the end", time.Time{}, e.summary(b).NextCheck)
		e.clock.Advance(time.Hour)
		e.equal("due after the end", 0, len(e.list(client.Filter{Due: true})))
		e.equal("needs a person after the end", true, sumNeedsPerson(e, b))

		// A person's recheck that dies is found, and one that ends leaves it alone.
		h = e.take(b, client.IntendPrepare)
		e.equal("next check under a recheck", client.AfterAttempt(e.clock.Now(), b.Term), e.summary(b).NextCheck)
		e.finish(h, nil, receipt(b, agentic.Pending))
		e.release(h)
		e.equal("next check after a recheck", time.Time{}, e.summary(b).NextCheck)
	}},
	{"checks come ever later, and end with the window", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Pending)
		ends := e.clock.Now().Add(b.Window)
		n := 0
		for ; n < 200; n++ {
			due := e.summary(b).NextCheck
			if due.IsZero() {
				break
			}
			if now := e.clock.Now(); !due.After(now) || due.After(ends) {
				e.Fatalf("check %d is at %v; now is %v, and the window ends at %v", n, due, now, ends)
			}
			e.clock.Advance(due.Sub(e.clock.Now()))
			h := e.take(b, client.IntendPrepare)
			e.finish(h, nil, receipt(b, agentic.Pending))
			e.release(h)
		}
		e.equal("time of the last check", ends, e.clock.Now())
		if n < 20 || n > 80 {
			e.Fatalf("%d checks in a window of %v", n, b.Window)
		}
	}},
	{"due first is by the next check, then newest, and what has none comes last", func(e *ledgerEnv) {
		terms := []time.Duration{4 * time.Minute, time.Minute, 0, 3 * time.Minute, time.Minute, 0}
		for i, term := range terms {
			b := binding(fmt.Sprintf("request-%d", i))
			b.Term = term
			if term == 0 {
				e.release(e.begin(b, client.IntendPrepare))
			} else {
				e.release(e.begin(b, client.IntendSubmit))
			}
		}
		want := []string{"request-4", "request-1", "request-3", "request-0", "request-5", "request-2"}
		for limit := range len(want) + 1 {
			got := ids(e.list(client.Filter{Order: client.DueFirst, Limit: limit}))
			if limit == 0 {
				e.equal("order", want, got)
			} else {
				e.equal("order", want[:limit], got)
			}
		}
		e.clock.Advance(3 * time.Minute)
		e.equal("due", want[:3], ids(e.list(client.Filter{Due: true, Order: client.DueFirst})))
	}},
}

// sumNeedsPerson is whether a request needs a person, as a filter and as a summary
// say with one voice.
func sumNeedsPerson(e *ledgerEnv, b client.Binding) bool {
	e.Helper()
	sum := e.summary(b)
	needs := sum.NeedsPerson(e.clock.Now())
	e.equal("listed as needing a person", needs, len(e.list(client.Filter{NeedsPerson: true}.In(b.Scope))) == 1)
	return needs
}
