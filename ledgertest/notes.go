package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

var verbs = []client.Verb{client.Recheck, client.AttestSucceeded, client.AttestFailed, client.Abandon, client.Supersede}

// noteTests are about what people add to a request.
var noteTests = []ledgerTest{
	{"notes are kept byte for byte and in order, with the ledger's time", func(e *ledgerEnv) {
		b := binding("request-1")
		first := e.store.Open(e.T, e.clock.Now)
		e.save(b, agentic.Unknown)
		before := e.load(b)
		hostile := []string{
			"plain", " kept \n as it \t is ", "\x1b[2J\x1b]0;title\x07", "a\x00b\x00", "\\u0000 \\x00 \\\\ %s ' \" ;--", "e\u0301 \u00e9 \u202e \U0001F600 \uFEFF\uFFFD",
			"NULL", "{\"a\":1}", strings.Repeat("é", 128),
		}
		var want []client.Note
		for i, text := range hostile {
			for _, v := range verbs {
				n := note(v)
				n.By, n.Reason = text, text+text
				if v == client.AttestSucceeded {
					n.ResourceID = text
				}
				if v == client.Supersede {
					n.NewID = fmt.Sprintf("request_New-%d", i)
				}
				n.At = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // not the caller's to say
				if err := first.AddNote(e.ctx, b.Scope, b.RequestID, n); err != nil {
					e.Fatalf("AddNote %+q: %v", n, err)
				}
				n.At = e.clock.Now()
				want = append(want, n)
				e.clock.Advance(time.Millisecond + time.Microsecond)
			}
		}
		e.equal("notes", want, e.load(b).Notes)
		e.closeLedger(first)
		after := e.loadFrom(e.open(), b)
		e.equal("notes from another handle", want, after.Notes)
		e.equal("seen", want[len(want)-1].At, after.SeenAt)
		h := e.take(b, client.IntendSubmit)
		e.equal("notes of a hold", want, h.Record().Notes)
		e.release(h)
		after.Notes, after.SeenAt = nil, before.SeenAt
		e.equal("everything else", before, after)
	}},
	{"a note's time is the clock's, and the highest time seen never goes down", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Pending)
		top := e.clock.Advance(time.Hour)
		e.note(b, client.Recheck)
		e.equal("seen", top, e.load(b).SeenAt)
		back := e.clock.Advance(-30 * time.Minute)
		e.note(b, client.Recheck)
		r := e.load(b)
		e.equal("seen after the clock went back", top, r.SeenAt)
		e.equal("times", []time.Time{top, back}, []time.Time{r.Notes[0].At, r.Notes[1].At})

		at := time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.FixedZone("elsewhere", -3*3600))
		l := e.store.Open(e.T, func() time.Time { return at })
		defer e.closeLedger(l)
		if err := l.AddNote(e.ctx, b.Scope, b.RequestID, note(client.Recheck)); err != nil {
			e.Fatal(err)
		}
		if got, want := e.load(b).Notes[2].At, time.Date(2026, 5, 6, 10, 8, 9, 123456000, time.UTC); got != want {
			e.Fatalf("At: %v, want %v", got, want)
		}
	}},
	{"a note that is not valid is refused and not written", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		before := e.load(b)
		e.clock.Advance(time.Minute)
		for name, change := range map[string]func(n *client.Note){
			"nobody":            func(n *client.Note) { n.By = "" },
			"blank":             func(n *client.Note) { n.By = " \n" },
			"no reason":         func(n *client.Note) { n.Reason = "" },
			"long by":           func(n *client.Note) { n.By = strings.Repeat("x", 257) },
			"long reason":       func(n *client.Note) { n.Reason = strings.Repeat("x", 2049) },
			"not UTF-8":         func(n *client.Note) { n.Reason = "\xff" },
			"no verb":           func(n *client.Note) { n.Verb = "" },
			"another verb":      func(n *client.Note) { n.Verb = "retry" },
			"verb in capitals":  func(n *client.Note) { n.Verb = "Abandon" },
			"needless resource": func(n *client.Note) { n.ResourceID = "T/1" },
			"needless new ID":   func(n *client.Note) { n.NewID = "request-2" },
			"no resource":       func(n *client.Note) { n.Verb = client.AttestSucceeded },
			"long resource":     func(n *client.Note) { n.Verb, n.ResourceID = client.AttestSucceeded, strings.Repeat("x", 1025) },
			"no new ID":         func(n *client.Note) { n.Verb = client.Supersede },
			"bad new ID":        func(n *client.Note) { n.Verb, n.NewID = client.Supersede, "a b" },
		} {
			n := note(client.Abandon)
			change(&n)
			if err := e.ledger.AddNote(e.ctx, b.Scope, b.RequestID, n); err == nil {
				e.Errorf("a note was taken: %s", name)
			}
		}
		e.equal("record", before, e.load(b))
	}},
	{"what a request does not admit is refused and not written", func(e *ledgerEnv) {
		purged := binding("request-purged")
		e.save(purged, agentic.Unknown)
		e.note(purged, client.Abandon)
		e.clock.Advance(time.Hour)
		e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true})
		prepared, succeeded, failed := binding("request-prepared"), binding("request-succeeded"), binding("request-failed")
		e.release(e.begin(prepared, client.IntendPrepare))
		e.save(succeeded, agentic.Succeeded)
		e.save(failed, agentic.Failed)
		for _, tt := range []struct {
			b       client.Binding
			refused []client.Verb
		}{
			{purged, verbs}, {succeeded, verbs}, {failed, verbs},
			{prepared, []client.Verb{client.Recheck, client.AttestSucceeded, client.AttestFailed}},
		} {
			before := e.load(tt.b)
			for _, l := range []desk.Ledger{e.ledger, e.open()} {
				for _, v := range tt.refused {
					sum := e.summary(tt.b)
					err := l.AddNote(e.ctx, tt.b.Scope, tt.b.RequestID, note(v))
					var ne *client.NoteError
					if !errors.As(err, &ne) {
						e.Fatalf("%s of %s: %v", v, tt.b.RequestID, err)
					}
					e.equal("error", sum.Admits(v), error(ne))
				}
			}
			e.equal("record", before, e.load(tt.b))
		}
	}},
	{"a note on what is not there is not found", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		elsewhere := client.Scope{Principal: "bob", Environment: b.Scope.Environment}
		if err := e.ledger.AddNote(e.ctx, elsewhere, b.RequestID, note(client.Abandon)); !isNotFound(err, elsewhere, b.RequestID) {
			e.Fatalf("AddNote in another scope: %v", err)
		}
		if err := e.ledger.AddNote(e.ctx, b.Scope, "request-2", note(client.Abandon)); !isNotFound(err, b.Scope, "request-2") {
			e.Fatalf("AddNote: %v", err)
		}
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		if err := e.ledger.AddNote(ctx, b.Scope, b.RequestID, note(client.Abandon)); !errors.Is(err, context.Canceled) {
			e.Fatalf("AddNote with an ended context: %v", err)
		}
		e.equal("notes", []client.Note(nil), e.load(b).Notes)
	}},
	{"a note is taken while somebody else executes, who can still finish", func(e *ledgerEnv) {
		for i, o := range []agentic.Outcome{agentic.Pending, agentic.Unknown, agentic.Succeeded, agentic.Failed} {
			for _, v := range verbs {
				b := binding(fmt.Sprintf("request-%d-%s", i, v))
				h := e.begin(b, client.IntendSubmit)
				if err := e.open().AddNote(e.ctx, b.Scope, b.RequestID, note(v)); err != nil {
					e.Fatalf("AddNote %s: %v", v, err)
				}
				e.equal("may submit", true, h.MaySubmit())
				if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); err != nil {
					e.Fatal(err)
				}
				e.finish(h, []client.Observation{observation(client.ExchangeStatus, 200)}, receipt(b, o))
				e.release(h)
				r, sum := e.load(b), e.summary(b)
				e.equal("receipts", []agentic.Receipt{receipt(b, o)}, r.Receipts)
				e.equal("observations", 2, len(r.Observations))
				e.equal("notes", 1, len(r.Notes))
				e.equal("open", !o.Final() && !v.Settles(), sum.Open())
				e.equal("has a next check", sum.Open(), !sum.NextCheck.IsZero())
			}
		}
	}},
	{"a note that settles takes the next check away for good", func(e *ledgerEnv) {
		for _, v := range verbs[1:] {
			b := binding("request-" + string(v))
			h := e.begin(b, client.IntendSubmit)
			e.note(b, v)
			e.equal("next check under the hold", time.Time{}, e.summary(b).NextCheck)
			if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); err != nil {
				e.Fatal(err)
			}
			e.finish(h, nil, receipt(b, agentic.Pending))
			e.release(h)
			e.clock.Advance(time.Second)
			h = e.take(b, client.IntendSubmit) // a person rechecks
			e.equal("may submit", false, h.MaySubmit())
			e.finish(h, nil, receipt(b, agentic.Unknown))
			e.release(h)
			e.note(b, client.Recheck) // does not unsettle it
			e.release(e.take(b, client.IntendPrepare))
			sum := e.summary(b)
			e.equal("settled", v, sum.Settled)
			e.equal("outcome", agentic.Unknown, sum.Outcome)
			e.equal("next check", time.Time{}, sum.NextCheck)
			e.equal("open", false, sum.Open())
		}
		e.equal("due", 0, len(e.list(client.Filter{Due: true})))
	}},
	{"the last note that settles counts", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		for _, v := range []client.Verb{client.Abandon, client.AttestSucceeded, client.AttestFailed, client.Supersede, client.Abandon} {
			e.note(b, v)
			e.note(b, client.Recheck)
			e.equal("settled", v, e.summary(b).Settled)
		}
		e.equal("notes", 10, len(e.load(b).Notes))
	}},
	{"a prepared request that a person settled never becomes attempted", func(e *ledgerEnv) {
		for _, v := range []client.Verb{client.Abandon, client.Supersede} {
			b := binding("request-" + string(v))
			held := e.begin(b, client.IntendPrepare)
			e.note(b, v) // also while it is held
			e.release(held)
			for _, l := range []desk.Ledger{e.ledger, e.open()} {
				for name, begin := range map[string]func() (client.Hold, error){
					"Begin": func() (client.Hold, error) { return l.Begin(e.ctx, b, client.IntendSubmit, time.Minute) },
					"Take": func() (client.Hold, error) {
						return l.Take(e.ctx, b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
					},
				} {
					e.clock.Advance(time.Second)
					h, err := begin()
					if err != nil {
						e.Fatalf("%s: %v", name, err)
					}
					e.equal(name+": may submit", false, h.MaySubmit())
					e.equal(name+": state", client.Prepared, h.Record().State)
					e.equal(name+": attempted at", time.Time{}, h.Record().AttemptedAt)
					e.equal(name+": notes", 1, len(h.Record().Notes))
					e.release(h)
				}
			}
			sum := e.summary(b)
			e.equal("state", client.Prepared, sum.State)
			e.equal("next check", time.Time{}, sum.NextCheck)
		}
	}},
	{"an attempt and a note that settles, at once, never both hold", func(e *ledgerEnv) {
		other := e.open()
		for round := range 30 {
			b := binding(fmt.Sprintf("request-%02d", round))
			e.release(e.begin(b, client.IntendPrepare))
			var h client.Hold
			var err, noteErr error
			var wg sync.WaitGroup
			wg.Go(func() { h, err = e.ledger.Begin(e.ctx, b, client.IntendSubmit, time.Minute) })
			wg.Go(func() { noteErr = other.AddNote(e.ctx, b.Scope, b.RequestID, note(client.Abandon)) })
			wg.Wait()
			if err != nil || noteErr != nil {
				e.Fatalf("round %d: %v, %v", round, err, noteErr)
			}
			r := e.load(b)
			e.equal("notes", 1, len(r.Notes))
			e.equal("may submit, of what is attempted", r.State == client.Attempted, h.MaySubmit())
			e.equal("state, as the hold saw it", r.State, h.Record().State)
			if h.MaySubmit() && len(h.Record().Notes) != 0 {
				e.Fatalf("round %d: a hold may submit what it knows to be settled", round)
			}
			e.release(h)
			e.equal("next check", time.Time{}, e.summary(b).NextCheck)
		}
	}},
	{"notes of many people at once are all kept", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		handles := []desk.Ledger{e.ledger, e.open()}
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				n := note(client.Recheck)
				n.By = fmt.Sprint(i)
				if err := handles[i%2].AddNote(e.ctx, b.Scope, b.RequestID, n); err != nil {
					e.Errorf("AddNote: %v", err)
				}
			})
		}
		wg.Wait()
		got := map[string]bool{}
		r := e.load(b)
		for _, n := range r.Notes {
			got[n.By] = true
		}
		if len(got) != 32 || len(r.Notes) != 32 {
			e.Fatalf("%d notes of %d people", len(r.Notes), len(got))
		}
		e.equal("notes from another handle", r.Notes, e.loadFrom(handles[1], b).Notes)
	}},
	{"the notes of a record are a copy", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		want := note(client.Recheck)
		want.At = e.clock.Now()
		e.note(b, client.Recheck)
		e.load(b).Notes[0].Reason = "changed"
		h := e.take(b, client.IntendPrepare)
		h.Record().Notes[0].Reason = "changed"
		e.release(h)
		e.equal("notes", []client.Note{want}, e.load(b).Notes)
	}},
}
