package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

var annsScope = client.Scope{Principal: "ann", Environment: "test"}

// request is the example action, to be run under an ID.
func (h *host) request(id string) client.Request {
	h.t.Helper()
	return client.Request{Plan: plan(h.t), Input: []byte(testInput), ID: id}
}

// note is what a person did at the desk.
func (h *host) note(id string, v client.Verb) client.Note {
	h.t.Helper()
	n := client.Note{By: "bea", Verb: v, Reason: "Looked at it."}
	if v == client.AttestSucceeded {
		n.ResourceID = "t-1"
	}
	if err := h.ledger.AddNote(h.t.Context(), annsScope, id, n); err != nil {
		h.t.Fatal(err)
	}
	n.At = h.clock.Now()
	return n
}

func (h *host) purge() {
	h.t.Helper()
	h.clock.Advance(time.Second)
	p, err := h.ledger.Purge(h.t.Context(), client.PurgeOptions{Before: h.clock.Now(), Apply: true})
	if err != nil || p.Requests == 0 {
		h.t.Fatalf("Purge: %+v, %v", p, err)
	}
}

// The same thing asked again under a new ID is refused by Execute and by Prepare,
// before anything is saved or sent, and the error names the earlier request.
func TestDuplicateIsRefused(t *testing.T) {
	second := func(cfg *client.Config) { cfg.DuplicateWindow = time.Second }
	hour := func(cfg *client.Config) { cfg.DuplicateWindow = time.Hour }
	none := func(cfg *client.Config) { cfg.DuplicateWindow = -1 }
	zero := func(*client.Config) {}
	tests := []struct {
		name    string
		outcome agentic.Outcome // of the earlier one; "" was only prepared
		config  func(*client.Config)
		change  func(*client.Request)
		refused bool
	}{
		{"prepared", "", zero, nil, true},
		{"pending", agentic.Pending, zero, nil, true},
		{"unknown", agentic.Unknown, zero, nil, true},
		{"failed", agentic.Failed, hour, nil, false},
		{"succeeded, without a window", agentic.Succeeded, zero, nil, false},
		{"succeeded, inside", agentic.Succeeded, hour, nil, true},
		{"succeeded, outside", agentic.Succeeded, second, nil, false},
		{"no guard: pending", agentic.Pending, none, nil, false},
		{"no guard: succeeded", agentic.Succeeded, none, nil, false},
		{"meant", agentic.Pending, hour, func(r *client.Request) { r.AllowDuplicate = true }, false},
		{"supersedes", agentic.Unknown, hour, func(r *client.Request) { r.Supersedes = testID }, false},
		{"an ID that is made", agentic.Unknown, zero, func(r *client.Request) { r.ID = "" }, true},
		{"the same input written otherwise", agentic.Unknown, zero, func(r *client.Request) { r.Input = []byte(` {"subject":"Printer \u006fn fire"} `) }, true},
		{"another input", agentic.Unknown, hour, func(r *client.Request) { r.Input = []byte(`{"subject":"Printer on fire!"}`) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newHost(t), good()
				if tt.outcome == "" {
					if _, err := h.client(s).Prepare(t.Context(), h.request(testID)); err != nil {
						t.Fatal(err)
					}
				} else {
					s.status = []client.Exchange{status(string(tt.outcome), map[bool]string{true: "t-1"}[tt.outcome == agentic.Succeeded])}
					if got := h.execute(s).Receipt.Outcome; got != tt.outcome {
						t.Fatalf("the earlier one ended %s", got)
					}
				}
				h.clock.Advance(time.Minute)
				fresh := good()
				c := h.client(fresh, tt.config)
				for i, run := range []func(client.Request) (string, error){
					func(r client.Request) (string, error) {
						rec, err := c.Prepare(t.Context(), r)
						if rec == nil {
							return "", err
						}
						return rec.RequestID, err
					},
					func(r client.Request) (string, error) {
						res, err := c.Execute(t.Context(), r)
						return res.RequestID, err
					},
				} {
					req := h.request("request-000" + string(rune('2'+i)))
					if tt.change != nil {
						tt.change(&req)
					}
					if !tt.refused && i == 1 {
						req.ID = "request-0002" // what was prepared is no duplicate of itself
					}
					id, err := run(req)
					dup, isDup := errors.AsType[*client.DuplicateError](err)
					if isDup != tt.refused || !tt.refused && (err != nil || id != req.ID) {
						t.Fatalf("run %d: %q, %v; refused should be %v", i, id, err, tt.refused)
					}
					if !tt.refused {
						continue
					}
					if dup.Earlier.RequestID != testID || dup.Earlier.Outcome != tt.outcome || dup.RequestID == testID ||
						req.ID != "" && dup.RequestID != req.ID || !strings.Contains(err.Error(), testID) {
						t.Errorf("the error is %+v: %v", dup, err)
					}
					if _, err := c.Load(t.Context(), dup.RequestID); !isA[*client.NotFoundError](err) {
						t.Errorf("what was refused is saved: %v", err)
					}
				}
				if tt.refused != (fresh.posts == 0) || fresh.posts > 1 || tt.refused && fresh.gets != 0 {
					t.Errorf("%d POSTs and %d GETs", fresh.posts, fresh.gets)
				}
				// Asking for the earlier one again is always allowed.
				if _, err := c.Prepare(t.Context(), h.request(testID)); err != nil {
					t.Errorf("Prepare of the earlier one: %v", err)
				}
			})
		})
	}
}

func TestDuplicateErrorTellsWhy(t *testing.T) {
	for want, sum := range map[string]client.Summary{
		"is prepared":    {State: client.Prepared},
		"is not settled": {State: client.Attempted, Outcome: agentic.Unknown},
		"has succeeded":  {State: client.Attempted, Outcome: agentic.Succeeded},
		"was settled by a person (attest-succeeded)": {State: client.Attempted, Settled: client.AttestSucceeded},
	} {
		sum.RequestID = testID
		if got := (&client.DuplicateError{RequestID: "request-0002", Earlier: sum}).Error(); !strings.HasSuffix(got, want) || !strings.Contains(got, testID) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestSupersedesIsSaved(t *testing.T) {
	h, s := newHost(t), good()
	c := h.client(s)
	if _, err := c.Prepare(t.Context(), h.request(testID)); err != nil {
		t.Fatal(err)
	}
	req := h.request("request-0002")
	req.Supersedes = testID
	rec, err := c.Prepare(t.Context(), req)
	if err != nil || rec.Supersedes != testID || rec.State != client.Prepared || s.posts != 0 {
		t.Fatalf("Prepare: %+v, %v, %d POSTs", rec, err, s.posts)
	}
	a := plan(t).Action
	if rec.Window != a.Retention || rec.Term < a.Recovery.Timeout*time.Duration(1+2*a.Recovery.MaxChecks) || rec.Fresh || rec.Guard != (client.Guard{}) {
		t.Errorf("the binding is %+v", rec.Binding)
	}
}

// A purged request answers nothing and asks nothing, by whatever way it is named.
func TestPurgedIsNeverRun(t *testing.T) {
	for _, sent := range []bool{true, false} {
		h, s := newHost(t), good()
		outcome := agentic.Outcome("")
		if sent {
			outcome = h.execute(s).Receipt.Outcome
		} else {
			if _, err := h.client(s).Prepare(t.Context(), h.request(testID)); err != nil {
				t.Fatal(err)
			}
			h.note(testID, client.Abandon)
		}
		h.purge()
		silent := good()
		c := h.client(silent)
		other := h.request(testID)
		other.Input = []byte(`{"subject":"Another"}`)
		for name, run := range map[string]func() error{
			"Execute":                  func() error { _, err := c.Execute(t.Context(), h.request(testID)); return err },
			"Execute of another input": func() error { _, err := c.Execute(t.Context(), other); return err },
			"Execute by ID":            func() error { _, err := c.Execute(t.Context(), client.Request{ID: testID}); return err },
			"Resume":                   func() error { _, err := c.Resume(t.Context(), testID); return err },
			"Prepare":                  func() error { _, err := c.Prepare(t.Context(), h.request(testID)); return err },
		} {
			pe, ok := errors.AsType[*client.PurgedError](run())
			if !ok || pe.RequestID != testID || pe.Outcome != outcome || !pe.PurgedAt.Equal(h.clock.Now()) {
				t.Errorf("%s: %+v", name, pe)
			}
		}
		if silent.posts+silent.gets != 0 {
			t.Errorf("%d POSTs and %d GETs", silent.posts, silent.gets)
		}
	}
}

// What a person took off the desk before it was sent is never sent (D9).
func TestAbandonedBeforeItWasSent(t *testing.T) {
	for _, v := range []client.Verb{client.Abandon, client.Supersede} {
		h, s := newHost(t), good()
		c := h.client(s)
		if _, err := c.Prepare(t.Context(), h.request(testID)); err != nil {
			t.Fatal(err)
		}
		n := client.Note{By: "bea", Verb: v, Reason: "No longer wanted."}
		if v == client.Supersede {
			n.NewID = "request-0002"
		}
		if err := h.ledger.AddNote(t.Context(), annsScope, testID, n); err != nil {
			t.Fatal(err)
		}
		n.At = h.clock.Now()
		for name, run := range map[string]func() (client.Result, error){
			"Execute":       func() (client.Result, error) { return c.Execute(t.Context(), h.request(testID)) },
			"Execute by ID": func() (client.Result, error) { return c.Execute(t.Context(), client.Request{ID: testID}) },
			"Resume":        func() (client.Result, error) { return c.Resume(t.Context(), testID) },
		} {
			res, err := run()
			se, ok := errors.AsType[*client.SettledError](err)
			if !ok || se.RequestID != testID || res.Sent || res.RequestID != testID {
				t.Fatalf("%s: %+v, %v", name, res, err)
			}
			if d := cmp.Diff(n, se.Note); d != "" {
				t.Errorf("%s: note (-want +got):\n%s", name, d)
			}
		}
		if rec, err := c.Prepare(t.Context(), h.request(testID)); err != nil || rec.State != client.Prepared || len(rec.Notes) != 1 {
			t.Errorf("Prepare: %+v, %v", rec, err)
		}
		if r := h.record(); s.posts+s.gets != 0 || r.State != client.Prepared || len(r.Receipts) != 0 {
			t.Errorf("%d POSTs, %d GETs, record %+v", s.posts, s.gets, r)
		}
	}
}

// meddled is a ledger to which something happens between a look and a hold.
type meddled struct {
	client.Ledger
	between func()
}

func (l meddled) Take(ctx context.Context, scope client.Scope, id string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	l.between()
	return l.Ledger.Take(ctx, scope, id, intent, wait)
}

// What a person does between the look at a request and its hold counts.
func TestSettledBetweenLookAndHold(t *testing.T) {
	for _, purge := range []bool{false, true} {
		h, s := newHost(t), good()
		if _, err := h.client(s).Prepare(t.Context(), h.request(testID)); err != nil {
			t.Fatal(err)
		}
		c := h.client(s, func(cfg *client.Config) {
			cfg.Ledger = meddled{h.ledger, func() {
				h.note(testID, client.Abandon)
				if purge {
					h.purge()
				}
			}}
		})
		_, err := c.Execute(t.Context(), client.Request{ID: testID})
		if isA[*client.SettledError](err) == purge || isA[*client.PurgedError](err) != purge || s.posts != 0 {
			t.Errorf("%v, %d POSTs", err, s.posts)
		}
	}
}

// A person's word changes no receipt, and a request that was settled is still read
// when somebody asks.
func TestResumeOfWhatAPersonSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(t), good()
		s.status = []client.Exchange{status("unknown", "")}
		h.execute(s)
		first := h.record().Receipts
		h.note(testID, client.AttestSucceeded)
		if d := cmp.Diff(first, h.record().Receipts); d != "" {
			t.Fatalf("the note touched a receipt:\n%s", d)
		}
		res, err := h.client(s).Execute(t.Context(), h.request(testID))
		if err != nil || res.Receipt.Outcome != agentic.Unknown || res.FromSaved || res.Sent {
			t.Fatalf("Execute = %+v, %v", res, err)
		}
		res, err = h.client(good()).Resume(t.Context(), testID)
		if err != nil || res.Receipt.Outcome != agentic.Succeeded || s.posts != 1 {
			t.Fatalf("Resume = %+v, %v, %d POSTs", res, err, s.posts)
		}
		if r := h.record(); len(r.Receipts) != 3 || len(r.Notes) != 1 {
			t.Errorf("%d receipts and %d notes", len(r.Receipts), len(r.Notes))
		}
	})
}

// paused is a ledger whose holds are lost at a time that a test chooses.
type paused struct {
	client.Ledger
	lost *bool
}

func (l paused) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	h, err := l.Ledger.Begin(ctx, b, intent, wait)
	if err != nil {
		return nil, err
	}
	return pausedHold{h, l.lost}, nil
}

type pausedHold struct {
	client.Hold
	lost *bool
}

func (h pausedHold) MaySubmit() bool { return !*h.lost && h.Hold.MaySubmit() }

// A host that was paused between its right to submit and the POST, and lost its
// hold meanwhile, sends nothing (section 6.4).
func TestHoldLostBeforeThePost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, lost := newHost(t), good(), false
		c := h.client(s, func(cfg *client.Config) {
			cfg.Ledger = paused{h.ledger, &lost}
			cfg.KillPoint = func(p client.Point) { lost = lost || p == client.BeforeSubmit }
		})
		res, err := c.Execute(t.Context(), h.request(testID))
		if !errors.Is(err, client.ErrLost) || res.Sent || res.RequestID != testID || s.posts+s.gets != 0 {
			t.Fatalf("%+v, %v after %d POSTs and %d GETs", res, err, s.posts, s.gets)
		}
		for _, e := range h.events {
			if e == "Submitting" || e == "Resulted" {
				t.Errorf("events %v", h.events)
			}
		}
		// The right is used up: whoever comes next reads, and never sends.
		s.status = []client.Exchange{status("unknown", "")}
		r := h.record()
		if r.State != client.Attempted || len(r.Receipts) != 0 {
			t.Fatalf("record %+v", r)
		}
		res, err = h.client(s).Execute(t.Context(), h.request(testID))
		if err != nil || res.Sent || s.posts != 0 || res.Receipt.Outcome != agentic.Unknown {
			t.Errorf("%+v, %v after %d POSTs", res, err, s.posts)
		}
	})
}

// A hold that another took over between save and POST sends nothing either.
func TestTakenOverBeforeThePost(t *testing.T) {
	h, s := newHost(t), good()
	res, err := h.client(s, func(cfg *client.Config) {
		cfg.KillPoint = func(p client.Point) {
			if p == client.BeforeSubmit {
				h.ledger.TakeOver(annsScope, testID)
			}
		}
	}).Execute(t.Context(), h.request(testID))
	if !errors.Is(err, client.ErrLost) || res.Sent || s.posts+s.gets != 0 {
		t.Errorf("%+v, %v after %d POSTs", res, err, s.posts)
	}
}

// A worker's client serves each scope apart (D8).
func TestIn(t *testing.T) {
	h, s := newHost(t), good()
	anns := h.client(s, func(cfg *client.Config) { cfg.DuplicateWindow = time.Hour })
	if _, err := anns.Execute(t.Context(), h.request(testID)); err != nil {
		t.Fatal(err)
	}
	bobs, err := anns.In(client.Scope{Principal: "bob", Environment: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bobs.Resume(t.Context(), testID); !isA[*client.NotFoundError](err) {
		t.Errorf("bob sees ann's request: %v", err)
	}
	if res, err := bobs.Execute(t.Context(), h.request(testID)); err != nil || !res.Sent {
		t.Errorf("bob's own: %+v, %v", res, err)
	}
	if _, err := bobs.Execute(t.Context(), h.request("request-0002")); !isA[*client.DuplicateError](err) {
		t.Errorf("the rest of the configuration is not the same: %v", err)
	}
	if res, err := anns.Resume(t.Context(), testID); err != nil || !res.FromSaved {
		t.Errorf("ann's client changed: %+v, %v", res, err)
	}
	again, err := bobs.In(annsScope)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := again.Resume(t.Context(), testID); err != nil || !res.FromSaved || s.posts != 2 {
		t.Errorf("back in ann's scope: %+v, %v, %d POSTs", res, err, s.posts)
	}
	for _, scope := range []client.Scope{{Principal: "\xff"}, {Environment: strings.Repeat("x", 257)}} {
		if c, err := anns.In(scope); err == nil || c != nil {
			t.Errorf("scope %q was accepted", scope)
		}
	}
}
