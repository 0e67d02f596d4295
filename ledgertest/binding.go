package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// bindingTests are about what a request ID names, and who may submit it.
var bindingTests = []ledgerTest{
	{"a new request is bound and read back whole", func(e *ledgerEnv) {
		b := binding("request-1")
		now := e.clock.Now()
		h := e.begin(b, client.IntendPrepare)
		want := &client.Record{Binding: b, State: client.Prepared, CreatedAt: now, SeenAt: now}
		e.equal("record of the hold", want, h.Record())
		e.equal("record as loaded", want, e.load(b))
		e.equal("may submit", false, h.MaySubmit())
		e.release(h)
		e.equal("record from another handle", want, e.loadFrom(e.open(), b))
	}},
	{"intend submit attempts in the same step", func(e *ledgerEnv) {
		b := binding("request-1")
		now := e.clock.Now()
		h := e.begin(b, client.IntendSubmit)
		want := &client.Record{Binding: b, State: client.Attempted, CreatedAt: now, SeenAt: now, AttemptedAt: now}
		e.equal("record of the hold", want, h.Record())
		e.equal("record while held", want, e.loadFrom(e.open(), b))
		e.equal("may submit", true, h.MaySubmit())
		e.release(h)

		h = e.begin(b, client.IntendSubmit)
		e.equal("may submit, second hold", false, h.MaySubmit())
		e.release(h)
	}},
	{"a prepared request is attempted later, by Begin or by Take, once", func(e *ledgerEnv) {
		for i, again := range []func(client.Binding, client.Intent) client.Hold{e.begin, e.take} {
			b := binding(fmt.Sprintf("request-%d", i))
			created := e.clock.Now()
			e.release(e.begin(b, client.IntendPrepare))
			h := again(b, client.IntendPrepare)
			e.equal("prepared again, state", client.Prepared, h.Record().State)
			e.release(h)

			attempted := e.clock.Advance(time.Minute)
			h = again(b, client.IntendSubmit)
			e.equal("may submit", true, h.MaySubmit())
			e.equal("record", &client.Record{Binding: b, State: client.Attempted, CreatedAt: created,
				SeenAt: attempted, AttemptedAt: attempted}, h.Record())
			e.release(h)

			e.clock.Advance(time.Minute)
			h = again(b, client.IntendPrepare)
			e.equal("state does not go back", client.Attempted, h.Record().State)
			e.release(h)
			h = again(b, client.IntendSubmit)
			e.equal("may submit again", false, h.MaySubmit())
			e.equal("attempted at", attempted, h.Record().AttemptedAt)
			e.release(h)
		}
	}},
	{"the right to submit is not given back by a hold that did nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		e.release(e.begin(b, client.IntendSubmit))
		h := e.take(b, client.IntendSubmit)
		defer e.release(h)
		e.equal("may submit", false, h.MaySubmit())
		e.equal("state", client.Attempted, h.Record().State)
	}},
	{"a different binding is refused and changes nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		e.release(e.begin(b, client.IntendPrepare))
		before := e.load(b)
		e.clock.Advance(time.Hour)
		other := document(`{"other":1}`)
		tests := []struct {
			change func(*client.Binding)
			want   []client.Difference
		}{
			{func(b *client.Binding) { b.Origin = "https://support.example:444" },
				[]client.Difference{{Field: "origin", Saved: b.Origin, Asked: "https://support.example:444"}}},
			{func(b *client.Binding) { b.ActionID = "Create-ticket" },
				[]client.Difference{{Field: "action", Saved: b.ActionID, Asked: "Create-ticket"}}},
			{func(b *client.Binding) { b.Profile = other },
				[]client.Difference{{Field: "profile", Saved: b.Profile.Digest, Asked: other.Digest}}},
			{func(b *client.Binding) { b.OpenAPI = other },
				[]client.Difference{{Field: "openapi", Saved: b.OpenAPI.Digest, Asked: other.Digest}}},
			{func(b *client.Binding) { b.InputDigest, b.Origin = other.Digest, "https://x.example" },
				[]client.Difference{{Field: "origin", Saved: b.Origin, Asked: "https://x.example"},
					{Field: "input", Saved: b.InputDigest, Asked: other.Digest}}},
		}
		for _, tt := range tests {
			asked := b
			tt.change(&asked)
			h, err := e.ledger.Begin(e.ctx, asked, client.IntendSubmit, time.Minute)
			var be *client.BindingError
			if !errors.As(err, &be) {
				e.Fatalf("Begin of another binding: %v, %v", h, err)
			}
			e.equal("error", &client.BindingError{RequestID: b.RequestID, Differences: tt.want}, be)
		}
		e.equal("record", before, e.load(b))
		h := e.begin(b, client.IntendSubmit)
		e.equal("the refused calls left no lock and no attempt", true, h.MaySubmit())
		e.release(h)
	}},
	{"input and documents are looked at only when the request is new", func(e *ledgerEnv) {
		b := binding("request-1")
		e.release(e.begin(b, client.IntendPrepare))
		bare := b
		bare.Input, bare.Profile.Body, bare.OpenAPI.Body = nil, nil, nil
		h := e.begin(bare, client.IntendSubmit)
		defer e.release(h)
		e.equal("binding of the hold", b, h.Record().Binding)
	}},
	{"scopes are apart, byte for byte", func(e *ledgerEnv) {
		scopes := []client.Scope{
			{Principal: "alice", Environment: "production"},
			{Principal: "Alice", Environment: "production"},
			{Principal: "alice ", Environment: "production"},
			{Principal: " alice", Environment: "production"},
			{Principal: "alice\x00", Environment: "production"},
			{Principal: "alice\x00production", Environment: ""},
			{Principal: "alice", Environment: "Production"},
			{Principal: "alice", Environment: "production\n"},
			{Principal: "aliceproduction", Environment: ""},
			{Principal: "", Environment: "aliceproduction"},
			{Principal: "", Environment: ""},
			{Principal: "al\u0069\u0308ce", Environment: "production"}, // decomposed
			{Principal: "al\u00efce", Environment: "production"},       // composed
			{Principal: "\u0430lice", Environment: "production"},       // Cyrillic
			{Principal: "%", Environment: "_"},
			{Principal: "production", Environment: "alice"},
		}
		other := e.open()
		for i, s := range scopes {
			b := binding("request-1")
			b.Scope, b.Origin = s, fmt.Sprintf("https://s%d.example", i)
			if _, err := other.Load(e.ctx, s, b.RequestID); !isNotFound(err, s, b.RequestID) {
				e.Fatalf("Load in %q before it is bound: %v", s, err)
			}
			h := e.begin(b, client.IntendSubmit)
			e.equal(fmt.Sprintf("may submit in %q", s), true, h.MaySubmit())
			defer e.release(h) // all are held at once
		}
		for i, s := range scopes {
			list, err := e.ledger.List(e.ctx, client.Filter{}.In(s))
			if err != nil || len(list) != 1 || list[0].Scope != s || list[0].Origin != fmt.Sprintf("https://s%d.example", i) {
				e.Fatalf("List of %q: %v, %v", s, list, err)
			}
		}
	}},
	{"request IDs are apart, byte for byte, from 8 to 128 characters", func(e *ledgerEnv) {
		ids := []string{"abcdefgh", "Abcdefgh", "abcdefgH", "abcdefgh-", "abcdefgh_", "-bcdefgh", strings.Repeat("x", 128), strings.Repeat("x", 127)}
		for _, id := range ids {
			h := e.begin(binding(id), client.IntendSubmit)
			e.equal("may submit "+id, true, h.MaySubmit())
			defer e.release(h)
		}
		list, err := e.ledger.List(e.ctx, client.Filter{}.In(binding("x").Scope))
		if err != nil || len(list) != len(ids) {
			e.Fatalf("List: %d of %d, %v", len(list), len(ids), err)
		}
	}},
	{"big inputs and odd bytes stay as they are", func(e *ledgerEnv) {
		inputs := []string{
			`{"n":9007199254740993,"e":1e400,"f":0.10,"z":-0}`,
			`{"text":"` + strings.Repeat("é", (16<<10)/2-6) + `"}`,
			"{\"nul\":\"\\u0000\",\"raw\":\"\u2028<&>\"}",
			"\x00\xff\xfe not even text",
		}
		for i, in := range inputs {
			b := binding(fmt.Sprintf("request-%d", i))
			b.Input, b.InputDigest = []byte(in), digest(in)
			b.Profile = document(`{"description":"` + strings.Repeat("p", 60<<10) + `"}`)
			b.OpenAPI = document(`{"description":"` + strings.Repeat("o", 250<<10) + `"}`)
			e.release(e.begin(b, client.IntendSubmit))
			e.equal("binding", b, e.loadFrom(e.open(), b).Binding)
		}
	}},
	{"requests share documents and keep their own", func(e *ledgerEnv) {
		first, second, third := binding("request-1"), binding("request-2"), binding("request-3")
		third.Scope.Principal = "bob"
		third.OpenAPI = document(`{"openapi":"3.1.1"}`)
		for _, b := range []client.Binding{first, second, third} {
			e.release(e.begin(b, client.IntendSubmit))
		}
		for _, b := range []client.Binding{first, second, third} {
			e.equal("binding", b, e.load(b).Binding)
		}
	}},
	{"window, term and what it supersedes are saved and not compared; hints are not saved", func(e *ledgerEnv) {
		b := binding("request-1")
		b.Supersedes, b.Fresh, b.Guard = "request-0", true, client.Guard{On: true, Succeeded: time.Hour}
		b.Window, b.Term = 36*time.Hour+time.Microsecond, 61*time.Second+time.Microsecond
		h := e.begin(b, client.IntendPrepare)
		want := b
		want.Fresh, want.Guard = false, client.Guard{}
		e.equal("binding of the hold", want, h.Record().Binding)
		e.release(h)
		e.equal("binding", want, e.loadFrom(e.open(), b).Binding)

		again := b
		again.Window, again.Term, again.Supersedes = time.Minute, time.Second, ""
		h = e.begin(again, client.IntendSubmit)
		e.equal("binding of a second hold", want, h.Record().Binding)
		e.equal("may submit", true, h.MaySubmit())
		e.equal("next check", client.AfterAttempt(e.clock.Now(), b.Term), e.summary(b).NextCheck)
		e.finish(h, nil, receipt(b, agentic.Pending))
		e.release(h)
		e.equal("binding afterwards", want, e.load(b).Binding)
		e.equal("window ends", e.clock.Now().Add(b.Window), e.summary(b).WindowEnds)
		e.equal("supersedes", "request-0", e.summary(b).Supersedes)
	}},
	{"what is not there is not found", func(e *ledgerEnv) {
		b := binding("request-1")
		h, err := e.ledger.Take(e.ctx, b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
		if h != nil || !isNotFound(err, b.Scope, b.RequestID) {
			e.Fatalf("Take: %v, %v", h, err)
		}
		if r, err := e.ledger.Load(e.ctx, b.Scope, b.RequestID); r != nil || !isNotFound(err, b.Scope, b.RequestID) {
			e.Fatalf("Load: %v, %v", r, err)
		}
		e.release(e.begin(b, client.IntendPrepare)) // and Take left no lock
	}},
	{"exactly one of many callers may submit", func(e *ledgerEnv) {
		for _, prepared := range []bool{false, true} {
			b := binding(fmt.Sprintf("request-%v", prepared))
			if prepared {
				e.release(e.begin(b, client.IntendPrepare))
			}
			handles := []client.Ledger{e.ledger, e.open()}
			var inside, submits atomic.Int32
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					h, err := handles[i%2].Begin(e.ctx, b, client.IntendSubmit, time.Minute)
					if err != nil {
						e.Errorf("Begin: %v", err)
						return
					}
					if inside.Add(1) != 1 {
						e.Error("two holds of one request at once")
					}
					if h.MaySubmit() {
						submits.Add(1)
					}
					inside.Add(-1)
					if err := h.Release(); err != nil {
						e.Errorf("Release: %v", err)
					}
				})
			}
			wg.Wait()
			e.equal("holds that may submit", int32(1), submits.Load())
		}
	}},
	{"many requests at once keep apart", func(e *ledgerEnv) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				b := binding(fmt.Sprintf("request-%02d", i))
				b.Input = fmt.Appendf(nil, `{"subject":"%d"}`, i)
				h, err := e.ledger.Begin(e.ctx, b, client.IntendSubmit, time.Minute)
				if err != nil || !h.MaySubmit() {
					e.Errorf("Begin %s: %v", b.RequestID, err)
					return
				}
				if err := h.Finish(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 200+i)}, receipt(b, agentic.Succeeded)); err != nil {
					e.Errorf("Finish %s: %v", b.RequestID, err)
				}
				if err := h.Release(); err != nil {
					e.Errorf("Release %s: %v", b.RequestID, err)
				}
			})
		}
		wg.Wait()
		for i := range 64 {
			b := binding(fmt.Sprintf("request-%02d", i))
			b.Input = fmt.Appendf(nil, `{"subject":"%d"}`, i)
			r := e.load(b)
			e.equal("binding", b, r.Binding)
			e.equal("receipts", []agentic.Receipt{receipt(b, agentic.Succeeded)}, r.Receipts)
			e.equal("observations", []client.Observation{observation(client.ExchangeSubmit, 200+i)}, r.Observations)
		}
	}},
	{"a context that has ended begins nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		if h, err := e.ledger.Begin(ctx, b, client.IntendSubmit, time.Minute); h != nil || !errors.Is(err, context.Canceled) {
			e.Fatalf("Begin: %v, %v", h, err)
		}
		if h, err := e.ledger.Take(ctx, b.Scope, b.RequestID, client.IntendSubmit, time.Minute); h != nil || !errors.Is(err, context.Canceled) {
			e.Fatalf("Take: %v, %v", h, err)
		}
		if _, err := e.ledger.Load(e.ctx, b.Scope, b.RequestID); !isNotFound(err, b.Scope, b.RequestID) {
			e.Fatalf("Load: %v", err)
		}
		if _, err := e.ledger.Load(ctx, b.Scope, b.RequestID); !errors.Is(err, context.Canceled) {
			e.Fatalf("Load, ended: %v", err)
		}
		if _, err := e.ledger.List(ctx, client.Filter{}.In(b.Scope)); !errors.Is(err, context.Canceled) {
			e.Fatalf("List, ended: %v", err)
		}
	}},
}

func isNotFound(err error, scope client.Scope, id string) bool {
	var nf *client.NotFoundError
	return errors.As(err, &nf) && nf.Scope == scope && nf.RequestID == id
}
