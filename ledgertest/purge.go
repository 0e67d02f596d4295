package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// purge is Purge that must succeed.
func (e *ledgerEnv) purge(o client.PurgeOptions) client.Purged {
	e.Helper()
	p, err := e.ledger.Purge(e.ctx, o)
	if err != nil {
		e.Fatalf("Purge: %v", err)
	}
	return p
}

// purgeTests are about what a purge removes and what it leaves.
var purgeTests = []ledgerTest{
	{"a dry run counts what a purge removes, and changes nothing", func(e *ledgerEnv) {
		all := e.leftovers()
		e.clock.Advance(time.Hour)
		before := e.list(client.Filter{})
		records := map[string]*client.Record{}
		for name, b := range all {
			records[name] = e.load(b)
		}
		o := client.PurgeOptions{Before: e.clock.Now()}
		want := client.Purged{Requests: 6, Entries: 6, Snapshots: 0, Open: 4}
		for range 2 {
			e.equal("dry run", want, e.purge(o))
		}
		e.equal("listed", before, e.list(client.Filter{}))
		for name, b := range all {
			e.equal("record", records[name], e.load(b))
		}
		o.Apply = true
		e.equal("purge", want, e.purge(o))
		o.Apply = false
		e.equal("dry run afterwards", client.Purged{Open: 4}, e.purge(o))
		for _, name := range []string{"prepared", "attempted", "pending", "unknown"} {
			e.equal("open one", records[name], e.load(all[name]))
		}
	}},
	{"a tombstone keeps what it takes to refuse its ID, and nothing else", func(e *ledgerEnv) {
		all := e.leftovers()
		for _, name := range []string{"succeeded", "failed", "abandoned", "never sent", "attested", "replaced"} {
			b := all[name]
			e.clock.Advance(time.Hour)
			before, was := e.load(b), e.summary(b)
			e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true})
			want := &client.Record{
				Binding: client.Binding{Scope: b.Scope, RequestID: b.RequestID, Origin: b.Origin, ActionID: b.ActionID,
					InputDigest: b.InputDigest, Window: b.Window, Term: b.Term, Supersedes: b.Supersedes},
				State: before.State, CreatedAt: before.CreatedAt, SeenAt: before.SeenAt, AttemptedAt: before.AttemptedAt,
				PurgedAt: e.load(b).PurgedAt, Purged: was.Outcome, PurgedSettled: was.Settled,
			}
			if want.PurgedAt.IsZero() {
				e.Fatal("it was not purged")
			}
			was.PurgedAt = want.PurgedAt
			e.equal("tombstone", want, e.load(b))
			e.equal("tombstone from another handle", want, e.loadFrom(e.open(), b))
			e.equal("listed", was, e.summary(b))
			e.equal("as the record says", e.load(b).Summary(), e.summary(b))
			e.mustBePurged(b, was.Outcome, want.PurgedAt)
			e.clock.Advance(time.Hour)
			e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true}) // once is enough
			e.equal("tombstone afterwards", want, e.load(b))
		}
	}},
	{"a purge's time is the ledger's", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Failed)
		at := e.clock.Advance(time.Hour)
		e.purge(client.PurgeOptions{Before: at, Apply: true})
		e.equal("purged at", at, e.load(b).PurgedAt)
	}},
	{"age is since anything happened, and what happened at the bound stays", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Unknown)
		seen := e.clock.Advance(time.Hour)
		e.note(b, client.Abandon)
		e.clock.Advance(time.Hour)
		for _, bound := range []time.Time{{}, seen.Add(-time.Microsecond), seen, seen.In(time.FixedZone("elsewhere", 5*3600))} {
			e.equal("purged", client.Purged{}, e.purge(client.PurgeOptions{Before: bound, Apply: true}))
		}
		bound := seen.Add(time.Microsecond).In(time.FixedZone("elsewhere", -5*3600))
		e.equal("purged", client.Purged{Requests: 1, Entries: 1, Snapshots: 2}, e.purge(client.PurgeOptions{Before: bound, Apply: true}))

		open := binding("request-2")
		seen = e.clock.Now()
		e.release(e.begin(open, client.IntendPrepare))
		e.equal("open at the bound", client.Purged{}, e.purge(client.PurgeOptions{Before: seen}))
		e.equal("open", client.Purged{Open: 1}, e.purge(client.PurgeOptions{Before: seen.Add(time.Microsecond)}))
	}},
	{"a purge keeps to its scope", func(e *ledgerEnv) {
		scopes := []client.Scope{{Principal: "alice", Environment: "production"}, {Principal: "alice"}, {Environment: "production"}, {}}
		for _, s := range scopes {
			b := binding("request-1")
			b.Scope = s
			e.save(b, agentic.Succeeded)
		}
		e.clock.Advance(time.Hour)
		alice, none := "alice", ""
		count := func(p, env *string) int {
			e.Helper()
			return e.purge(client.PurgeOptions{Before: e.clock.Now(), Principal: p, Environment: env}).Requests
		}
		e.equal("alice's", 2, count(&alice, nil))
		e.equal("nobody's", 2, count(&none, nil))
		e.equal("of no environment", 2, count(nil, &none))
		e.equal("all", 4, count(nil, nil))
		p := e.purge(client.PurgeOptions{Before: e.clock.Now(), Principal: &none, Environment: &none, Apply: true})
		e.equal("purged", client.Purged{Requests: 1, Entries: 1}, p) // the documents are needed in other scopes
		for i, s := range scopes {
			b := binding("request-1")
			b.Scope = s
			e.equal(fmt.Sprintf("purged %q", s), i == 3, !e.load(b).PurgedAt.IsZero())
		}
		e.equal("the rest", client.Purged{Requests: 3, Entries: 3, Snapshots: 2}, e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true}))
	}},
	{"a limit purges piece by piece until nothing is left", func(e *ledgerEnv) {
		for i := range 7 {
			b := binding(fmt.Sprintf("request-%d", i))
			b.OpenAPI = document(fmt.Sprintf(`{"openapi":"3.1.%d"}`, i%3))
			e.save(b, agentic.Failed)
			e.clock.Advance(time.Second)
		}
		for i := range 2 {
			e.release(e.begin(binding(fmt.Sprintf("request-open-%d", i)), client.IntendSubmit))
		}
		e.clock.Advance(time.Hour)
		o := client.PurgeOptions{Before: e.clock.Now()}
		whole := e.purge(o)
		e.equal("whole", client.Purged{Requests: 7, Entries: 7, Snapshots: 2, Open: 2}, whole) // one document is an open one's too
		o.Limit = 7
		e.equal("with a limit that is just enough", whole, e.purge(o))

		o.Limit = 3
		sum := client.Purged{Open: 2}
		for i, want := range []int{3, 3, 1} {
			o.Apply = false
			dry := e.purge(o)
			o.Apply = true
			p := e.purge(o)
			e.equal("as the dry run said", dry, p)
			e.equal("requests", want, p.Requests)
			e.equal("more", i < 2, p.More)
			e.equal("open", 2, p.Open)
			sum.Requests, sum.Entries, sum.Snapshots = sum.Requests+p.Requests, sum.Entries+p.Entries, sum.Snapshots+p.Snapshots
		}
		e.equal("in sum", whole, sum)
		e.equal("afterwards", client.Purged{Open: 2}, e.purge(o))
	}},
	{"a document stays as long as one request needs it", func(e *ledgerEnv) {
		first, second, open := binding("request-1"), binding("request-2"), binding("request-3")
		second.OpenAPI = document(`{"openapi":"3.1.1"}`)
		open.OpenAPI = second.OpenAPI
		e.save(first, agentic.Succeeded)
		e.save(second, agentic.Succeeded)
		e.save(open, agentic.Pending)
		e.clock.Advance(time.Hour)
		o := client.PurgeOptions{Before: e.clock.Now(), Apply: true}
		e.equal("purged", client.Purged{Requests: 2, Entries: 2, Snapshots: 1, Open: 1}, e.purge(o))
		e.equal("the open one's", open, e.load(open).Binding)

		again := binding("request-4") // its OpenAPI document was removed, its profile was not
		e.release(e.begin(again, client.IntendSubmit))
		e.equal("a new one's", again, e.loadFrom(e.open(), again).Binding)
		e.note(open, client.Abandon)
		e.note(again, client.Abandon)
		o.Before = e.clock.Advance(time.Hour)
		e.equal("the rest", client.Purged{Requests: 2, Entries: 1, Snapshots: 3}, e.purge(o))
		last := binding("request-5")
		h := e.begin(last, client.IntendSubmit)
		e.equal("after all documents were removed", last, h.Record().Binding)
		e.release(h)
		e.equal("as loaded", last, e.load(last).Binding)
	}},
	{"new requests that need a document while it is purged are whole", func(e *ledgerEnv) {
		other := e.open()
		for round := range 20 {
			doc := document(fmt.Sprintf(`{"round":%d}`, round))
			old, young := binding(fmt.Sprintf("request-old-%d", round)), binding(fmt.Sprintf("request-young-%d", round))
			for _, b := range []*client.Binding{&old, &young} {
				b.Profile, b.OpenAPI = doc, doc
			}
			e.save(old, agentic.Failed)
			bound := e.clock.Advance(time.Second)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := other.Purge(e.ctx, client.PurgeOptions{Before: bound, Apply: true}); err != nil {
					e.Errorf("Purge: %v", err)
				}
			})
			var h client.Hold
			var err error
			wg.Go(func() { h, err = e.ledger.Begin(e.ctx, young, client.IntendSubmit, time.Minute) })
			wg.Wait()
			if err != nil {
				e.Fatalf("Begin: %v", err)
			}
			e.equal("binding of the hold", young, h.Record().Binding)
			e.release(h)
			e.equal("binding", young, e.load(young).Binding)
			e.equal("purged", false, e.load(old).PurgedAt.IsZero())
		}
	}},
	{"a hold that lasts while its request is purged writes nothing", func(e *ledgerEnv) {
		final, settled := binding("request-final"), binding("request-settled")
		e.save(final, agentic.Succeeded)
		e.save(settled, agentic.Unknown)
		e.note(settled, client.Abandon)
		onFinal, onSettled := e.take(final, client.IntendPrepare), e.take(settled, client.IntendPrepare)
		was := e.load(final)
		waiting := e.beginLater(e.ctx, e.open(), settled)
		e.mustWait(waiting)
		bound := e.clock.Advance(time.Hour)
		p, err := e.open().Purge(e.ctx, client.PurgeOptions{Before: bound, Apply: true})
		if err != nil || p.Requests != 2 {
			e.Fatalf("Purge: %+v, %v", p, err)
		}
		e.equal("what the hold has read", was, onFinal.Record())
		tombs := []*client.Record{e.load(final), e.load(settled)}
		e.clock.Advance(time.Hour)
		e.mustBeLost(onSettled, settled)
		if err := onFinal.Observe(e.ctx, []client.Observation{observation(client.ExchangeStatus, 200)}); err == nil {
			e.Fatal("Observe of a purged request")
		}
		if err := onFinal.Finish(e.ctx, nil, receipt(final, agentic.Unknown)); err == nil {
			e.Fatal("Finish of a purged request")
		}
		e.equal("tombstones", tombs, []*client.Record{e.load(final), e.load(settled)})
		e.release(onFinal)
		e.release(onSettled)
		select {
		case got := <-waiting:
			if !isA[*client.PurgedError](got.err) {
				e.Fatalf("Begin that waited for a hold on what was purged meanwhile: %v", got.err)
			}
		case <-time.After(patience):
			e.Fatal("a waiter was not woken")
		}
	}},
	{"a purge with an ended context removes nothing", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Failed)
		before := e.load(b)
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		_, err := e.ledger.Purge(ctx, client.PurgeOptions{Before: e.clock.Advance(time.Hour), Apply: true})
		if !errors.Is(err, context.Canceled) {
			e.Fatalf("Purge: %v", err)
		}
		e.equal("record", before, e.load(b))
	}},
}

// leftovers makes one request of every kind: four open ones, and six that a purge
// may take.
func (e *ledgerEnv) leftovers() map[string]client.Binding {
	all := map[string]client.Binding{}
	add := func(name string, save func(b client.Binding)) {
		b := withInput(binding("request-"+hyphens(name)), name)
		b.Supersedes = "request-older"
		save(b)
		all[name] = b
	}
	add("prepared", func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)) })
	add("attempted", func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)) })
	for _, o := range []agentic.Outcome{agentic.Pending, agentic.Unknown, agentic.Succeeded, agentic.Failed} {
		add(string(o), func(b client.Binding) {
			h := e.begin(b, client.IntendSubmit)
			e.finish(h, []client.Observation{observation(client.ExchangeStatus, 200)}, receipt(b, o))
			e.release(h)
		})
	}
	add("never sent", func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)); e.note(b, client.Abandon) })
	add("abandoned", func(b client.Binding) {
		h := e.begin(b, client.IntendSubmit)
		if err := h.Observe(e.ctx, []client.Observation{observation(client.ExchangeSubmit, 201)}); err != nil {
			e.Fatal(err)
		}
		e.finish(h, nil, receipt(b, agentic.Unknown))
		e.release(h)
		e.note(b, client.Recheck)
		e.note(b, client.Abandon)
	})
	add("attested", func(b client.Binding) { e.save(b, agentic.Pending); e.note(b, client.AttestSucceeded) })
	add("replaced", func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.Supersede) })
	return all
}

// mustBePurged checks that nobody can use the ID of a tombstone.
func (e *ledgerEnv) mustBePurged(b client.Binding, o agentic.Outcome, at time.Time) {
	e.Helper()
	want := &client.PurgedError{RequestID: b.RequestID, Outcome: o, PurgedAt: at}
	other := withInput(b, "something else")
	other.Origin, other.Profile = "https://other.example", document(`{"other":1}`)
	for _, l := range []desk.Ledger{e.ledger, e.open()} {
		for _, intent := range []client.Intent{client.IntendPrepare, client.IntendSubmit} {
			for _, asked := range []client.Binding{b, other} {
				asked.Fresh = intent == client.IntendSubmit
				asked.Guard = client.Guard{On: asked.Fresh, Succeeded: 1000 * time.Hour}
				h, err := l.Begin(e.ctx, asked, intent, 0)
				e.isPurged("Begin", want, h, err)
			}
			h, err := l.Take(e.ctx, b.Scope, b.RequestID, intent, 0)
			e.isPurged("Take", want, h, err)
		}
	}
}

func (e *ledgerEnv) isPurged(what string, want *client.PurgedError, h client.Hold, err error) {
	e.Helper()
	var pe *client.PurgedError
	if h != nil || !errors.As(err, &pe) {
		e.Fatalf("%s of what was purged: %v, %v", what, h, err)
	}
	e.equal("error", want, pe)
}
