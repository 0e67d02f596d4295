package ledgertest

import (
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// recordTests are about what is appended, and that it stays.
var recordTests = []ledgerTest{
	{"observations and receipts are appended in order", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		at := h.Record().SeenAt
		failed := client.Observation{Kind: client.ExchangeSubmit, At: at, Reach: client.MaybeSent,
			Class: client.ClassBroken, Detail: "the connection ended \u2014 \"early\""}
		if err := h.Observe(e.ctx, []client.Observation{failed}); err != nil {
			e.Fatal(err)
		}
		one, two, three := observation(client.ExchangeStatus, 1), observation(client.ExchangeStatus, 2), observation(client.ExchangeVerify, 3)
		e.finish(h, []client.Observation{one, two}, receipt(b, agentic.Unknown))
		e.release(h)
		h = e.take(b, client.IntendSubmit)
		e.finish(h, nil, receipt(b, agentic.Pending))
		e.release(h)

		h = e.take(b, client.IntendSubmit)
		e.equal("observations of the hold", []client.Observation{failed, one, two}, h.Record().Observations)
		e.equal("receipts of the hold", []agentic.Receipt{receipt(b, agentic.Unknown), receipt(b, agentic.Pending)}, h.Record().Receipts)
		e.finish(h, []client.Observation{three}, receipt(b, agentic.Succeeded))
		e.release(h)

		r := e.loadFrom(e.open(), b)
		e.equal("observations", []client.Observation{failed, one, two, three}, r.Observations)
		e.equal("receipts", []agentic.Receipt{receipt(b, agentic.Unknown), receipt(b, agentic.Pending), receipt(b, agentic.Succeeded)}, r.Receipts)
		e.equal("last", agentic.Succeeded, r.Last().Outcome)
		e.equal("seen", at, r.SeenAt)
	}},
	{"an empty observation appends nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		defer e.release(h)
		if err := h.Observe(e.ctx, nil); err != nil {
			e.Fatal(err)
		}
		e.equal("observations", []client.Observation(nil), e.load(b).Observations)
	}},
	{"a final receipt is returned and nothing is written any more", func(e *ledgerEnv) {
		for _, o := range []agentic.Outcome{agentic.Succeeded, agentic.Failed} {
			b := binding("request-" + string(o))
			e.save(b, o)
			before := e.load(b)
			e.clock.Advance(time.Hour)
			for range 2 {
				h := e.begin(b, client.IntendSubmit)
				e.equal("may submit", false, h.MaySubmit())
				e.equal("record", before, h.Record())
				e.clock.Advance(time.Minute)
				if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}); err == nil {
					e.Fatal("Observe after a final receipt")
				}
				if err := h.Finish(e.ctx, nil, receipt(b, agentic.Unknown)); err == nil {
					e.Fatal("Finish after a final receipt")
				}
				e.release(h)
				e.equal("record as loaded", before, e.load(b))
			}
		}
	}},
	{"the hold that made a final receipt adds nothing to it", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		e.finish(h, nil, receipt(b, agentic.Failed))
		before := e.load(b)
		e.clock.Advance(time.Minute)
		if err := h.Finish(e.ctx, nil, receipt(b, agentic.Succeeded)); err == nil {
			e.Fatal("a second final receipt")
		}
		e.release(h)
		e.equal("record", before, e.load(b))
	}},
	{"a receipt of another request, or an invalid one, is refused", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		defer e.release(h)
		for name, change := range map[string]func(*agentic.Receipt){
			"request":  func(r *agentic.Receipt) { r.RequestID = "request-2" },
			"action":   func(r *agentic.Receipt) { r.ActionID = "close-ticket" },
			"origin":   func(r *agentic.Receipt) { r.Origin = "https://other.example" },
			"outcome":  func(r *agentic.Receipt) { r.Outcome = "done" },
			"evidence": func(r *agentic.Receipt) { r.Evidence = nil },
			"reason":   func(r *agentic.Receipt) { r.Reason = "" },
		} {
			r := receipt(b, agentic.Succeeded)
			change(&r)
			if err := h.Finish(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}, r); err == nil {
				e.Errorf("Finish took a receipt with another %s", name)
			}
		}
		rec := e.load(b)
		e.equal("receipts", []agentic.Receipt(nil), rec.Receipts)
		e.equal("observations", []client.Observation(nil), rec.Observations)
	}},
	{"the record of a hold is a copy", func(e *ledgerEnv) {
		b := binding("request-1")
		h := e.begin(b, client.IntendSubmit)
		obs := []client.Observation{observation(client.ExchangeStatus, 200)}
		r := receipt(b, agentic.Succeeded)
		e.finish(h, obs, r)
		e.release(h)
		before := e.load(b)
		obs[0].Checks[0].Name, *r.ResourceID, r.Evidence.Matched[0].InputPointer = "changed", "changed", "/changed"
		mine := e.load(b)
		mine.Receipts[0].Reason, mine.Input[0], mine.Observations[0].Status = "changed", 'X', 9
		e.equal("record", before, e.load(b))
	}},
	{"the highest time seen never goes down", func(e *ledgerEnv) {
		b := binding("request-1")
		start := e.clock.Now()
		seen := func(want time.Time) {
			e.Helper()
			r := e.load(b)
			e.equal("created", start, r.CreatedAt)
			e.equal("seen", want, r.SeenAt)
		}
		h := e.begin(b, client.IntendSubmit)
		seen(start)
		top := e.clock.Advance(time.Minute)
		if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); err != nil {
			e.Fatal(err)
		}
		seen(top)
		e.clock.Advance(-time.Hour)
		if err := h.Observe(e.ctx, nil); err != nil {
			e.Fatal(err)
		}
		seen(top)

		// What the hold saw between two writes counts with the next one.
		top = e.clock.Advance(2 * time.Hour)
		h.Now()
		e.clock.Advance(-2 * time.Hour)
		e.finish(h, nil, receipt(b, agentic.Unknown))
		seen(top)
		e.release(h)

		h = e.take(b, client.IntendSubmit)
		e.equal("seen by the next hold", top, h.Record().SeenAt)
		e.release(h)

		// A hold that begins with a clock set back sees the top in the record only.
		e.clock.Advance(-time.Hour)
		h = e.take(b, client.IntendSubmit)
		seen(top)
		e.finish(h, nil, receipt(b, agentic.Unknown))
		e.release(h)
		seen(top)
		top = e.clock.Advance(6 * time.Hour)
		e.release(e.take(b, client.IntendSubmit))
		seen(top)
	}},
	{"everything outlives its handle", func(e *ledgerEnv) {
		b := binding("request-1")
		first := e.store.Open(e.T, e.clock.Now)
		h, err := first.Begin(e.ctx, b, client.IntendSubmit, time.Minute)
		if err != nil {
			e.Fatal(err)
		}
		e.finish(h, []client.Observation{observation(client.ExchangeSubmit, 201)}, receipt(b, agentic.Pending))
		e.release(h)
		before := e.loadFrom(first, b)
		e.closeLedger(first)

		e.ledger = e.open()
		e.equal("record", before, e.load(b))
		h = e.begin(b, client.IntendSubmit)
		e.equal("may submit", false, h.MaySubmit())
		e.release(h)
	}},
}
