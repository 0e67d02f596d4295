package ledgertest

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
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
}
