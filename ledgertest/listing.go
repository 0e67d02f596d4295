package ledgertest

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// listTests are about List.
var listTests = []ledgerTest{
	{"a listing is newest first, filtered and bounded", func(e *ledgerEnv) {
		start := e.clock.Now()
		outcomes := []agentic.Outcome{"", agentic.Pending, agentic.Unknown, agentic.Succeeded, agentic.Failed, ""}
		var all []client.Summary // newest first
		for i, o := range outcomes {
			b := binding(fmt.Sprintf("request-%d", i))
			intent, state := client.IntendSubmit, client.Attempted
			if i == 5 {
				intent, state = client.IntendPrepare, client.Prepared
			}
			h := e.begin(b, intent)
			if o != "" {
				e.finish(h, nil, receipt(b, agentic.Pending))
			}
			e.release(h)
			if o != "" && o != agentic.Pending {
				h := e.take(b, intent)
				e.finish(h, nil, receipt(b, o)) // the last receipt counts
				e.release(h)
			}
			at := start.Add(time.Duration(i) * time.Second)
			sum := client.Summary{Scope: b.Scope, RequestID: b.RequestID, Origin: b.Origin, ActionID: b.ActionID,
				State: state, Outcome: o, CreatedAt: at, SeenAt: at, WindowEnds: at.Add(b.Window)}
			if state == client.Attempted {
				sum.AttemptedAt = at
				switch o {
				case "":
					sum.NextCheck = client.AfterAttempt(at, b.Term)
				case agentic.Pending, agentic.Unknown:
					sum.NextCheck, _ = client.NextCheck(b.RequestID, at, at, b.Window)
				}
			}
			all = append([]client.Summary{sum}, all...)
			e.clock.Advance(time.Second)
		}
		foreign := binding("request-9")
		foreign.Scope.Environment = "staging"
		e.save(foreign, agentic.Succeeded)

		pick := func(is ...int) (out []client.Summary) {
			for _, i := range is {
				out = append(out, all[len(all)-1-i])
			}
			return out
		}
		for _, tt := range []struct {
			filter client.Filter
			want   []client.Summary
		}{
			{client.Filter{}, all},
			{client.Filter{Limit: 2}, pick(5, 4)},
			{client.Filter{Limit: 100}, all},
			{client.Filter{Open: true}, pick(5, 2, 1, 0)},
			{client.Filter{Open: true, Limit: 3}, pick(5, 2, 1)},
			{client.Filter{Outcome: agentic.Succeeded}, pick(3)},
			{client.Filter{Outcome: agentic.Failed, Limit: 1}, pick(4)},
			{client.Filter{Outcome: agentic.Pending}, pick(1)},
			{client.Filter{Open: true, Outcome: agentic.Unknown}, pick(2)},
			{client.Filter{Open: true, Outcome: agentic.Succeeded}, nil},
		} {
			got, err := e.open().List(e.ctx, tt.filter.In(all[0].Scope))
			if err != nil {
				e.Fatal(err)
			}
			e.equal(fmt.Sprintf("List %+v", tt.filter), tt.want, got)
		}
	}},
	{"newest is by creation time, then by order of making", func(e *ledgerEnv) {
		for i, d := range []time.Duration{0, time.Hour, 0, -2 * time.Hour} {
			e.clock.Advance(d)
			e.release(e.begin(binding(fmt.Sprintf("request-%d", i)), client.IntendPrepare))
		}
		list, err := e.ledger.List(e.ctx, client.Filter{}.In(binding("x").Scope))
		if err != nil {
			e.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, s.RequestID)
		}
		e.equal("order", []string{"request-2", "request-1", "request-0", "request-3"}, got)
	}},
	{"a scope without requests lists nothing", func(e *ledgerEnv) {
		e.save(binding("request-1"), agentic.Succeeded)
		list, err := e.ledger.List(e.ctx, client.Filter{}.In(client.Scope{Principal: "nobody"}))
		if err != nil || len(list) != 0 {
			e.Fatalf("List: %v, %v", list, err)
		}
	}},
	{"every condition of a filter holds, alone and with others", func(e *ledgerEnv) {
		start := e.clock.Now()
		alice, none, production := "alice", "", "production"
		for i, change := range []func(b *client.Binding){
			func(*client.Binding) {},                                                            // 0
			func(b *client.Binding) { b.Scope.Principal = "" },                                  // 1
			func(b *client.Binding) { b.Scope.Environment = "" },                                // 2
			func(b *client.Binding) { b.Scope = client.Scope{} },                                // 3
			func(b *client.Binding) { b.Scope.Principal = "Alice" },                             // 4
			func(b *client.Binding) { b.Origin = "https://other.example" },                      // 5
			func(b *client.Binding) { b.ActionID = "close-ticket" },                             // 6
			func(b *client.Binding) { b.ActionID = "close-ticket"; b.Supersedes = "request-0" }, // 7
		} {
			b := binding(fmt.Sprintf("request-%d", i))
			change(&b)
			e.save(b, []agentic.Outcome{agentic.Succeeded, agentic.Pending, agentic.Unknown, agentic.Failed}[i%4])
			e.clock.Advance(time.Second)
		}
		second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
		east := time.FixedZone("east", 9*3600)
		other := e.open()
		for _, tt := range []struct {
			f    client.Filter
			want string // the last characters of the IDs
		}{
			{client.Filter{}, "76543210"},
			{client.Filter{Principal: &alice}, "76520"},
			{client.Filter{Principal: &none}, "31"},
			{client.Filter{Environment: &production}, "765410"},
			{client.Filter{Environment: &none}, "32"},
			{client.Filter{Principal: &none, Environment: &none}, "3"},
			{client.Filter{}.In(client.Scope{Principal: "Alice", Environment: "production"}), "4"},
			{client.Filter{}.In(client.Scope{Principal: "ALICE", Environment: "production"}), ""},
			{client.Filter{Origin: "https://other.example"}, "5"},
			{client.Filter{Origin: "https://OTHER.example"}, ""},
			{client.Filter{Origin: "https://%.example"}, ""},
			{client.Filter{ActionID: "close-ticket"}, "76"},
			{client.Filter{ActionID: "close"}, ""},
			{client.Filter{Outcome: agentic.Unknown}, "62"},
			{client.Filter{Outcome: agentic.Failed}, "73"},
			{client.Filter{Open: true}, "6521"},
			{client.Filter{Before: second(3)}, "210"},
			{client.Filter{Before: second(3).Add(time.Microsecond).In(east)}, "3210"},
			{client.Filter{After: second(3).In(east)}, "76543"},
			{client.Filter{After: second(3).Add(time.Microsecond)}, "7654"},
			{client.Filter{After: second(2), Before: second(5)}, "432"},
			{client.Filter{After: second(5), Before: second(2)}, ""},
			{client.Filter{Principal: &alice, Open: true, ActionID: "close-ticket"}, "6"},
			{client.Filter{Principal: &alice, Environment: &production, Open: true, Outcome: agentic.Pending, Origin: "https://other.example",
				ActionID: "create-ticket", After: second(5), Before: second(6), Limit: 1}, "5"},
			{client.Filter{Open: true, Limit: 2}, "65"},
			{client.Filter{Open: true, Limit: 4}, "6521"},
			{client.Filter{Open: true, Outcome: agentic.Succeeded}, ""},
			{client.Filter{NeedsPerson: true}, ""},
		} {
			for _, l := range []desk.Ledger{e.ledger, other} {
				list, err := l.List(e.ctx, tt.f)
				if err != nil {
					e.Fatal(err)
				}
				got := ""
				for _, s := range list {
					got += s.RequestID[len(s.RequestID)-1:]
				}
				e.equal(fmt.Sprintf("List %+v", tt.f), tt.want, got)
			}
		}
	}},
	{"a summary says what the record says", func(e *ledgerEnv) {
		all := e.leftovers()
		purged := binding("request-purged")
		purged.Supersedes = "request-older"
		e.clock.Advance(-2 * time.Hour)
		e.save(purged, agentic.Unknown)
		e.note(purged, client.AttestFailed)
		e.clock.Advance(time.Hour)
		e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true})
		all["purged"] = purged
		for name, b := range all {
			got := e.summary(b)
			want := e.load(b).Summary()
			want.NextCheck = got.NextCheck // a record does not tell it
			e.equal(name, want, got)
			e.equal(name+": supersedes", "request-older", got.Supersedes)
			e.equal(name+": window ends", got.CreatedAt.Add(b.Window), got.WindowEnds)
			e.equal(name+": attempted", got.State == client.Attempted, !got.AttemptedAt.IsZero())
			e.equal(name+": purged", name == "purged", !got.PurgedAt.IsZero())
		}
		for name, verb := range map[string]client.Verb{"abandoned": client.Abandon, "never sent": client.Abandon, "attested": client.AttestSucceeded,
			"replaced": client.Supersede, "purged": client.AttestFailed, "unknown": ""} {
			e.equal(name+": settled", verb, e.summary(all[name]).Settled)
		}
	}},
	{"urgent first: time left, then who waits for a person, then what else is open, then the rest", func(e *ledgerEnv) {
		start := e.clock.Now()
		add := func(id string, window time.Duration, save func(b client.Binding)) {
			b := binding("request-" + id)
			b.Window = window
			save(b)
			e.clock.Advance(time.Second)
		}
		pending := func(b client.Binding) { e.save(b, agentic.Pending) }
		add("purged", time.Hour, func(b client.Binding) { e.save(b, agentic.Failed) })
		e.purge(client.PurgeOptions{Before: e.clock.Now(), Apply: true})
		add("ended-long-ago", time.Minute, pending)
		add("long", 3*time.Hour, pending)
		add("prepared-old", time.Minute, func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)) })
		add("short", 2*time.Hour, func(b client.Binding) { e.save(b, agentic.Unknown) })
		add("no-window", 0, func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)) })
		add("succeeded", time.Minute, func(b client.Binding) { e.save(b, agentic.Succeeded) })
		add("left", time.Minute, func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.Abandon) })
		add("ended-between", 2*time.Minute, pending)
		add("attempted", 150*time.Minute, func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)) })
		add("prepared-young", 24*time.Hour, func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)) })
		add("rechecked", time.Minute, func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.Recheck) })
		add("never-sent", 24*time.Hour, func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)); e.note(b, client.Abandon) })
		// Equal ends of the window: the newer one first, whether it is running or not.
		for _, window := range []time.Duration{time.Hour, 90 * time.Minute} {
			ends := start.Add(window)
			for _, id := range []string{"a", "b"} {
				add(fmt.Sprintf("equal-%d-%s", window/time.Minute, id), ends.Sub(e.clock.Now()), pending)
			}
		}
		e.clock.Advance(start.Add(time.Hour).Sub(e.clock.Now())) // exactly the end of the windows of equal-60
		want := []string{
			"equal-90-b", "equal-90-a", "short", "attempted", "long",
			"equal-60-b", "equal-60-a", "ended-between", "rechecked", "ended-long-ago", "no-window",
			"prepared-young", "prepared-old",
			"never-sent", "left", "succeeded", "purged",
		}
		for i := range want {
			want[i] = "request-" + want[i]
		}
		for limit := range len(want) + 1 {
			got := ids(e.list(client.Filter{Order: client.UrgentFirst, Limit: limit}))
			if limit == 0 {
				e.equal("order", want, got)
			} else {
				e.equal(fmt.Sprintf("the first %d", limit), want[:limit], got)
			}
		}
		e.equal("open", want[:13], ids(e.list(client.Filter{Open: true, Order: client.UrgentFirst})))
		e.equal("needs a person", want[5:11], ids(e.list(client.Filter{NeedsPerson: true, Order: client.UrgentFirst})))
		e.equal("needs a person, newest first", 6, len(e.list(client.Filter{NeedsPerson: true})))
	}},
	{"who needs a person is told from the window's end on, to the microsecond", func(e *ledgerEnv) {
		for i, save := range []func(b client.Binding){
			func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)) },
			func(b client.Binding) { e.save(b, agentic.Pending) },
			func(b client.Binding) { e.save(b, agentic.Unknown) },
			// These never do.
			func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)) },
			func(b client.Binding) { e.save(b, agentic.Succeeded) },
			func(b client.Binding) { e.save(b, agentic.Failed) },
			func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.AttestFailed) },
		} {
			save(binding(fmt.Sprintf("request-%d", i)))
		}
		e.clock.Advance(24*time.Hour - time.Microsecond)
		e.equal("before the end", []string(nil), ids(e.list(client.Filter{NeedsPerson: true})))
		e.clock.Advance(time.Microsecond)
		want := []string{"request-2", "request-1", "request-0"}
		e.equal("at the end", want, ids(e.list(client.Filter{NeedsPerson: true})))
		e.equal("of a scope", want, ids(e.list(client.Filter{NeedsPerson: true}.In(binding("x").Scope))))
		e.equal("unknown ones", want[:1], ids(e.list(client.Filter{NeedsPerson: true, Outcome: agentic.Unknown})))
		e.equal("of somebody else", []string(nil), ids(e.list(client.Filter{NeedsPerson: true}.In(client.Scope{Principal: "bob"}))))
	}},
}
