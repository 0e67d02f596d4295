package desk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

func names(c desk.Case) string {
	var list []string
	for _, choice := range c.Choices {
		list = append(list, choice.Name)
	}
	return strings.Join(list, ", ")
}

const (
	running = "recheck, attest succeeded, attest failed, abandon, supersede"
	ended   = "attest succeeded, attest failed, abandon, supersede"
)

// Every way in which a request can be left over, made by the engine itself.
func TestCaseOf(t *testing.T) {
	const window = 24 * time.Hour
	if got := plan(t).Action.Retention; got != window {
		t.Fatalf("the example's window is %s", got)
	}
	for name, tt := range map[string]struct {
		make    func(*host)
		kind    desk.Kind
		open    bool
		person  bool
		why     string
		post    string
		choices string
	}{
		"prepared":           {func(h *host) { h.prepare(testID) }, desk.Unsent, true, false, "provably never sent", "", "send, abandon, supersede"},
		"prepared, long ago": {func(h *host) { h.prepare(testID); h.clock.Advance(2 * window) }, desk.Unsent, true, false, "is not sent any more", "", "abandon, supersede"},
		"prepared, abandoned": {func(h *host) { h.prepare(testID); h.must(h.desk.Abandon(h.t.Context(), act(testID))) },
			desk.Settled, false, false, "never sent", "", "supersede"},
		"verified": {func(h *host) {
			h.svc.status, h.svc.resource = says("succeeded", "t-1"), ticket("Printer on fire")
			h.send()
		}, desk.Final, false, false, "says succeeded", "", ""},
		"failed":   {func(h *host) { h.svc.status = says("failed", ""); h.send() }, desk.Final, false, false, "says failed", "", ""},
		"just now": {func(h *host) { h.die(client.BeforeSubmit, 0) }, desk.Running, true, false, "may still be running", "Nothing is saved about it yet", running},
		"died before the POST": {func(h *host) { h.die(client.BeforeSubmit, time.Hour) }, desk.NoTrace, true, false,
			"before it saved anything", "nobody can tell them apart", running},
		"died after the POST": {func(h *host) { h.die(client.AfterSubmit, time.Hour) }, desk.NoTrace, true, false,
			"before it saved anything", "nobody can tell them apart", running},
		"died, and the window ended": {func(h *host) { h.die(client.BeforeSubmit, window) }, desk.NoTrace, true, true,
			"window has ended", "nobody can tell them apart", running},
		"refused, then died": {func(h *host) { h.svc.submit = answer(409, ""); h.die(client.BeforeStatus, time.Hour) }, desk.Interrupted, true, false,
			"before it had read a status", "HTTP status 409", running},
		"pending": {func(h *host) { h.send() }, desk.Pending, true, false, "not resolved yet", "HTTP status 201", running},
		"pending until the window ended": {func(h *host) { h.send(); h.clock.Advance(window) }, desk.Pending, true, true,
			"window has ended", "", ended},
		"pending, window ended and written down": {func(h *host) { h.send(); h.clock.Advance(window); h.resume() }, desk.Pending, true, true,
			"not resolved yet", "", ended},
		"died, window ended and written down": {func(h *host) { h.die(client.BeforeSubmit, window); h.resume() }, desk.NoTrace, true, true,
			"window has ended", "nobody can tell them apart", running},
		"unknown": {func(h *host) { h.svc.status = says("unknown", ""); h.send() }, desk.Forgotten, true, false,
			"never got the request, or has forgotten it", "HTTP status 201", running},
		"forgotten": {func(h *host) { h.send(); h.svc.status = says("unknown", ""); h.resume() }, desk.Forgotten, true, false,
			"earlier it said pending", "", running},
		"POST lost": {func(h *host) {
			h.svc.submit, h.svc.status = broken(client.MaybeSent, client.ClassBroken), says("unknown", "")
			h.send()
		}, desk.Forgotten, true, false, "", "no answer (broken)", running},
		"POST did not leave": {func(h *host) {
			h.svc.submit, h.svc.status = broken(client.NotSent, client.ClassConnect), broken(client.NotSent, client.ClassConnect)
			h.send()
		}, desk.Unreadable, true, false, "status could not be read (connect)", "did not leave this host (connect)", running},
		"status unusable": {func(h *host) { h.svc.status = answer(503, "{}"); h.send() }, desk.Unreadable, true, false, "does not count", "", running},
		"evidence": {func(h *host) { h.svc.status, h.svc.resource = says("succeeded", "t-1"), ticket("Another"); h.send() }, desk.Mismatch, true, false,
			"1 of 7 checks failed", "", running},
		"resource unreadable": {func(h *host) {
			h.svc.status, h.svc.resource = says("succeeded", "t-1"), broken(client.MaybeSent, client.ClassTimeout)
			h.send()
		}, desk.Unreadable, true, false, "resource could not be read (timeout)", "", running},
		"resource that no URL carries": {func(h *host) { h.svc.status = says("succeeded", ".."); h.send() }, desk.Mismatch, true, false,
			"its resource was not read", "", running},
		"refused": {func(h *host) { h.svc.submit, h.svc.status = answer(409, ""), says("succeeded", "t-1"); h.send() }, desk.Refused, true, false,
			"HTTP status 409, so the success", "", running},
		"clock back": {func(h *host) { h.send(); h.clock.Advance(-time.Hour); h.resume(); h.clock.Advance(2 * time.Hour) }, desk.ClockBack, true, false,
			"clock moved backwards", "", running},
		"clock back before the POST": {func(h *host) {
			h.prepare(testID)
			h.clock.Advance(-time.Hour)
			h.send()
			h.clock.Advance(2 * time.Hour)
		},
			desk.NothingSent, true, false, "stopped it before the POST", "It was not made.", running},
		"settled": {func(h *host) { h.send(); h.must(h.desk.Attest(h.t.Context(), act(testID), client.AttestFailed, "")) },
			desk.Settled, false, false, "A person settled it. Before that: At ", "", running},
		"found done": {func(h *host) {
			h.send()
			h.must(h.desk.Attest(h.t.Context(), act(testID), client.AttestSucceeded, "T-9"))
		},
			desk.Settled, false, false, "A person settled it.", "", "recheck, attest succeeded, attest failed, abandon"},
		"abandoned": {func(h *host) { h.send(); h.must(h.desk.Abandon(h.t.Context(), act(testID))) },
			desk.Settled, false, false, "A person settled it.", "", "recheck, attest succeeded, attest failed, supersede"},
		"superseded": {func(h *host) { h.send(); h.supersede() },
			desk.Settled, false, false, "A person settled it.", "", "recheck, attest succeeded, attest failed"},
		"superseded, never sent": {func(h *host) { h.prepare(testID); h.supersede() }, desk.Settled, false, false, "never sent", "", ""},
		"purged": {func(h *host) {
			h.send()
			h.must(h.desk.Abandon(h.t.Context(), act(testID)))
			_, err := h.desk.Purge(h.t.Context(), client.PurgeOptions{Before: h.clock.Now().Add(1), Apply: true}, nil)
			h.must(err)
		}, desk.Purged, false, false, "purged", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			tt.make(h)
			rec := h.load(testID)
			got := desk.CaseOf(rec, h.clock.Now())
			if got.Kind != tt.kind || got.Open != tt.open || got.NeedsPerson != tt.person {
				t.Errorf("kind %s, open %t, needs a person %t; want %s, %t, %t\n%s", got.Kind, got.Open, got.NeedsPerson, tt.kind, tt.open, tt.person, got.Why)
			}
			if !strings.Contains(got.Why, tt.why) || !strings.Contains(got.Post, tt.post) || (tt.post == "") != (got.Post == "") && tt.post != "" {
				t.Errorf("why %q, post %q; want %q, %q", got.Why, got.Post, tt.why, tt.post)
			}
			if names(got) != tt.choices {
				t.Errorf("choices %q, want %q", names(got), tt.choices)
			}
			if want := max(0, rec.CreatedAt.Add(window).Sub(h.clock.Now())); got.Left != want {
				t.Errorf("left %s, want %s", got.Left, want)
			}
			if (len(got.Look) > 0) != (got.Open && rec.State == client.Attempted) {
				t.Errorf("look %q", got.Look)
			}
			// What is offered is what a ledger takes, and what can make it happen twice
			// is never done unoffered.
			if offers := strings.Contains(names(got), "supersede"); offers != (desk.Admits(rec, client.Supersede) == nil) {
				t.Errorf("offered %t, and %v", offers, desk.Admits(rec, client.Supersede))
			}
			verbs := map[string]client.Verb{"recheck": client.Recheck, "attest succeeded": client.AttestSucceeded,
				"attest failed": client.AttestFailed, "abandon": client.Abandon, "supersede": client.Supersede}
			for _, c := range got.Choices {
				sum := rec.Summary()
				if v := verbs[c.Name]; v != "" && (sum.Admits(v) != nil || desk.Admits(rec, v) != nil) || c.Does == "" || c.Risk == "" {
					t.Errorf("choice %+v: %v", c, sum.Admits(v))
				}
			}
		})
	}
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) supersede() {
	h.t.Helper()
	_, err := h.desk.Supersede(h.t.Context(), act(testID), desk.SupersedeOptions{})
	h.must(err)
}

func (h *host) resume() {
	h.t.Helper()
	_, err := h.client.Resume(h.t.Context(), testID)
	h.must(err)
}

// die has the host die at a point, and lets time pass.
func (h *host) die(p client.Point, later time.Duration) {
	h.t.Helper()
	h.kill = p
	h.send()
	if h.kill != "" {
		h.t.Fatalf("the host did not die at %s", p)
	}
	h.clock.Advance(later)
}

// A service that contradicts itself needs two status checks in one execution.
func TestCaseContradicted(t *testing.T) {
	at := time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)
	rec := &client.Record{Binding: client.Binding{RequestID: testID, Window: time.Hour}, State: client.Attempted, CreatedAt: at, SeenAt: at, AttemptedAt: at,
		Observations: []client.Observation{{Kind: client.ExchangeStatus, At: at, Outcome: agentic.Succeeded}, {Kind: client.ExchangeStatus, At: at, Outcome: agentic.Failed}},
		Receipts:     []agentic.Receipt{{Outcome: agentic.Unknown, Reason: "x"}}}
	if got := desk.CaseOf(rec, at); got.Kind != desk.Contradicted {
		t.Errorf("case %+v", got)
	}
}

// No text of a publisher, a service or a person gets into the words of a case, but
// for the names of checks.
func TestCaseIsOurs(t *testing.T) {
	const hostile = "\x1b[31mhostile"
	at := time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)
	for _, kind := range []client.ExchangeKind{client.ExchangeStatus, client.ExchangeVerify, client.ExchangeSubmit} {
		for _, outcome := range []agentic.Outcome{agentic.Pending, agentic.Unknown, agentic.Succeeded, agentic.Failed} {
			for _, wrong := range []bool{false, true} {
				o := client.Observation{Kind: kind, At: at, Outcome: outcome, Detail: hostile,
					Checks: []agentic.Check{{Name: hostile, OK: !wrong, Expected: hostile, Found: hostile}}}
				rec := &client.Record{Binding: client.Binding{RequestID: hostile, ActionID: hostile, Origin: hostile, Input: []byte(hostile)},
					State: client.Attempted, CreatedAt: at, SeenAt: at, AttemptedAt: at, Observations: []client.Observation{o},
					Receipts: []agentic.Receipt{{Outcome: agentic.Unknown, Reason: hostile}},
					Notes:    []client.Note{{By: hostile, Verb: client.Abandon, Reason: hostile}}}
				c := desk.CaseOf(rec, at)
				if wrong && kind != client.ExchangeSubmit {
					if d := cmp.Diff([]string{hostile}, c.Wrong); d != "" {
						t.Errorf("%s %s: wrong (-want +got):\n%s", kind, outcome, d)
					}
				}
				text := c.Why + c.Post + strings.Join(c.Look, "")
				for _, choice := range c.Choices {
					text += choice.Name + choice.Does + choice.Risk
				}
				if strings.Contains(text, "hostile") {
					t.Errorf("%s %s: hostile text in %q", kind, outcome, text)
				}
			}
		}
	}
}
