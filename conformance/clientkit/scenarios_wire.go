package clientkit

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
)

// wireScenarios look closer at what is sent.
func wireScenarios() []scenario {
	const group = "What is sent"
	return []scenario{
		{Info: must("wire/credentials", group, "no request carries a credential that nobody gave", "6",
			"A publisher's fields do not authorize the forwarding of credentials."),
			run: observed("normal", agentic.Succeeded, noCredentials)},
		{Info: must("wire/delay", group, "checkDelayMs lie between two status checks", "3 6.8",
			"Checks are apart by the profile's delay."),
			run: observed("status-unavailable", agentic.Unknown, delays)},
		{Info: reading("wire/check-broken", group, "the connection ends under the second status check and all later ones: no more than maxChecks arrive", "3 6.8 D15",
			"maxChecks bounds what arrives, what an HTTP library repeats by itself included; that a GET may be repeated is HTTP's rule."),
			hint: "The HTTP library may repeat a GET by itself when a kept connection ends: give it a connection of its own, or switch that off.",
			run:  brokenChecks},
		{Info: reading("wire/order", group, "nothing is read before the POST", "6.4 6.5",
			"The submission comes first, the status after it."),
			run: observed("normal", agentic.Succeeded, postFirst)},
		{Info: reading("wire/reads", group, "each read of the resource follows a status check of its own", "6.5 6.6 D11",
			"The resource is retrieved on a status of succeeded; another try begins with the status."),
			run: observed("stale-read", agentic.Succeeded, readsFollow)},
		{Info: reading("wire/compression", group, "no request asks for a compressed answer", "6.8 D15",
			"What is bounded is what comes over the wire and what becomes of it alike, so no compression is asked for."),
			run: observed("normal", agentic.Succeeded, noCompression)},
		{Info: reading("wire/cookies", group, "the service sets a cookie with each answer: no request carries it", "6",
			"State that a service hands out is not part of the binding and does not identify anybody."),
			run: cookies},
	}
}

// observed is oneCall with one more look at the record.
func observed(fault string, want agentic.Outcome, look func(*trial, []arrival)) func(context.Context, *trial) error {
	call := oneCall(fault, want, 1)
	return func(ctx context.Context, t *trial) error {
		err := call(ctx, t)
		if err == nil {
			look(t, t.judge.record())
		}
		return err
	}
}

// none takes down that no request has one of the headers.
func (t *trial) none(record []arrival, names ...string) {
	for _, a := range record {
		for _, name := range names {
			found := ""
			if len(a.header.Values(name)) > 0 {
				found = "it is there" // its value may be secret
			}
			t.expect(fmt.Sprintf("%s of %s %s", name, a.method, a.path), found == "", "none", found)
		}
	}
}

func noCredentials(t *trial, record []arrival) {
	t.none(record, "Authorization", "Proxy-Authorization", "Cookie")
}

func delays(t *trial, record []arrival) {
	const exact = 10 * time.Millisecond // between two clocks' readings
	least := t.plan.Action.Recovery.CheckDelay
	var last time.Time
	for _, a := range record {
		if a.op != status {
			continue
		}
		if !last.IsZero() {
			gap := a.at.Sub(last)
			t.Expect("time between two status checks", gap >= least-exact, "at least "+least.String(), gap.Round(time.Millisecond).String())
		}
		last = a.at
	}
}

func postFirst(t *trial, record []arrival) {
	for _, a := range record {
		if a.op == other {
			continue
		}
		t.Expect("first request", a.op == submit, "POST "+t.judge.paths.submit, a.method+" "+a.path)
		return
	}
}

func readsFollow(t *trial, record []arrival) {
	named := map[string]int{}
	for _, a := range record {
		switch a.op {
		case status:
			if d := agentic.DecideStatus(t.requestID, a.answer.asAnswer()); d.Usable && d.Outcome == agentic.Succeeded {
				named[d.ResourceID]++
			}
		case resource:
			t.expect("status check before GET "+a.path, named[a.id] > 0, "one for each read", "none since the last read")
			named[a.id]--
		}
	}
}

func noCompression(t *trial, record []arrival) {
	for _, a := range record {
		coding := strings.Join(a.header.Values("Accept-Encoding"), ", ")
		t.expect("Accept-Encoding of "+a.method+" "+a.path, coding == "" || coding == "identity", "none, or identity", coding)
	}
}

func cookies(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	set := func(n int, w http.ResponseWriter, _ *http.Request) bool {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprint(n), Path: "/"})
		return false
	}
	t.script(script{submit: set, status: set, resource: set})
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return err
	}
	t.finished(rep, agentic.Succeeded)
	t.none(t.judge.record(), "Cookie")
	return nil
}

func brokenChecks(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "pending"); err != nil {
		return err
	}
	t.script(script{status: func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			panic(http.ErrAbortHandler) // nothing of an answer was sent
		}
		return false
	}})
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return err
	}
	t.finished(rep, agentic.Unknown)
	checks, most := 0, t.plan.Action.Recovery.MaxChecks
	for _, a := range t.judge.record() {
		if a.op == status {
			checks++
		}
	}
	t.Expect("status checks that arrived", checks <= most, fmt.Sprint("at most ", most), fmt.Sprint(checks))
	return nil
}
