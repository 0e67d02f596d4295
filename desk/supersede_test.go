package desk_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// A successor has the same documents and input, is prepared and not sent, and both
// know each other.
func TestSupersede(t *testing.T) {
	h := newHost(t)
	h.send()
	done, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	if err != nil || done.Already {
		t.Fatalf("%+v, %v", done, err)
	}
	next := done.New
	if !client.ValidRequestID(next.RequestID) || next.RequestID != desk.SuccessorID(scope, testID) || next.State != client.Prepared || next.Supersedes != testID || h.svc.posts != 1 {
		t.Errorf("successor %+v; %d POSTs", next, h.svc.posts)
	}
	old := h.load(testID)
	if string(next.Input) != string(old.Input) || next.Profile.Digest != old.Profile.Digest || next.OpenAPI.Digest != old.OpenAPI.Digest {
		t.Error("the successor is of something else")
	}
	want := []client.Note{{At: h.clock.Now(), By: "bob", Verb: client.Supersede, Reason: "the customer called", NewID: next.RequestID}}
	if d := cmp.Diff(want, old.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	// Again, it is the same one; another one is refused.
	for _, o := range []desk.SupersedeOptions{{}, {NewID: next.RequestID}} {
		again, err := h.desk.Supersede(t.Context(), act(testID), o)
		if err != nil || !again.Already || again.New.RequestID != next.RequestID {
			t.Errorf("again with %+v: %+v, %v", o, again, err)
		}
	}
	_, err = h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{NewID: "request-0009"})
	refused(t, "a second successor", err)
	if n := len(h.load(testID).Notes); n != 1 {
		t.Errorf("%d notes", n)
	}
	// It is sent on demand, once.
	if _, err := h.client.Execute(t.Context(), client.Request{ID: next.RequestID}); err != nil || h.svc.posts != 2 {
		t.Errorf("sending the successor: %v, %d POSTs", err, h.svc.posts)
	}
}

// What people note in between, and who is faster, makes no second successor: the
// first one may have been sent.
func TestSupersedeOneSuccessor(t *testing.T) {
	h := newHost(t)
	h.send()
	first, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.desk.Attest(t.Context(), act(testID), client.AttestFailed, ""); err != nil {
		t.Fatal(err)
	}
	_, err = h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{NewID: "request-0009"})
	refused(t, "a second successor after a note", err)
	again, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	if err != nil || !again.Already || again.New.RequestID != first.New.RequestID {
		t.Errorf("again: %+v, %v", again, err)
	}
	if list, err := h.ledger.List(t.Context(), client.Filter{}); err != nil || len(list) != 2 {
		t.Errorf("%d requests, want the old one and its successor (%v)", len(list), err)
	}

	h = newHost(t)
	h.send()
	faster := func() error {
		_, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{NewID: "request-faster"})
		return err
	}
	d, err := desk.New(desk.Config{Ledger: &cut{h.ledger, faster}, Client: h.client})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Supersede(t.Context(), act(testID), desk.SupersedeOptions{NewID: "request-slower"})
	refused(t, "a second successor at once", err)
	if n := h.load("request-slower").Settled(); n == nil || n.Verb != client.Abandon {
		t.Errorf("the second successor can be sent: %+v", n)
	}
	if n := h.load("request-faster").Settled(); n != nil {
		t.Errorf("the successor is withdrawn: %+v", n)
	}
	if got := desk.Successor(h.load(testID)); got != "request-faster" {
		t.Errorf("successor %q", got)
	}
}

func TestSupersedeRefused(t *testing.T) {
	h := newHost(t)
	h.send()
	h.prepare("request-0002-abandoned")
	for name, tt := range map[string]struct {
		act   desk.Act
		newID string
	}{
		"itself":              {act(testID), testID},
		"an ID in use":        {act(testID), "request-0002-abandoned"},
		"an ID that is none":  {act(testID), "short"},
		"without a reason":    {desk.Act{Scope: scope, RequestID: testID, By: "bob"}, "request-0003"},
		"an unknown request":  {act("request-none"), "request-0003"},
		"in another's ledger": {desk.Act{RequestID: testID, By: "bob", Reason: "x"}, "request-0003"},
	} {
		if done, err := h.desk.Supersede(t.Context(), tt.act, desk.SupersedeOptions{NewID: tt.newID}); err == nil {
			t.Errorf("%s: %+v", name, done)
		}
	}
	// An ID in use may have had its times touched; nothing was made or noted.
	list, err := h.ledger.List(t.Context(), client.Filter{})
	if err != nil || len(list) != 2 || len(h.load(testID).Notes) != 0 {
		t.Errorf("%d requests, notes %+v, %v", len(list), h.load(testID).Notes, err)
	}
	h.svc.status = says("failed", "")
	if _, err := h.client.Resume(t.Context(), testID); err != nil {
		t.Fatal(err)
	}
	_, err = h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	refused(t, "a final request", err)
	if list, err := h.ledger.List(t.Context(), client.Filter{}); err != nil || len(list) != 2 {
		t.Errorf("a successor of a final request was made: %v, %v", list, err)
	}
}

// What a person found done is not made anew, unless somebody takes that back; and
// what was superseded is in the hands of its successor.
func TestSupersedeAfterNotes(t *testing.T) {
	h := newHost(t)
	h.send()
	h.must(h.desk.Attest(t.Context(), act(testID), client.AttestSucceeded, "T-9"))
	_, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	refused(t, "superseding what was found done", err)
	if !strings.Contains(err.Error(), "attest first that it failed") {
		t.Error(err)
	}
	h.must(h.desk.Attest(t.Context(), act(testID), client.AttestFailed, ""))
	done, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = h.desk.Abandon(t.Context(), act(testID))
	refused(t, "abandoning what was superseded", err)
	if !strings.Contains(err.Error(), done.New.RequestID+"; abandon that one") || len(h.load(testID).Notes) != 3 {
		t.Errorf("%v, notes %+v", err, h.load(testID).Notes)
	}
	h.must(h.desk.Abandon(t.Context(), act(done.New.RequestID)))
	h.must(h.desk.Attest(t.Context(), act(testID), client.AttestSucceeded, "T-9"))
	_, err = h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	refused(t, "asking for the successor of what was found done", err)
}

// cut is a ledger that does something else instead of, or before, the next note.
type cut struct {
	desk.Ledger
	before func() error
}

func (c *cut) AddNote(ctx context.Context, s client.Scope, id string, n client.Note) error {
	if f := c.before; f != nil {
		c.before = nil
		if err := f(); err != nil {
			return err
		}
	}
	return c.Ledger.AddNote(ctx, s, id, n)
}

// Who dies between the new request and the note finds both when he asks again.
func TestSupersedeInterrupted(t *testing.T) {
	h := newHost(t)
	h.send()
	dead := errors.New("the process died")
	d, err := desk.New(desk.Config{Ledger: &cut{h.ledger, func() error { return dead }}, Client: h.client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Supersede(t.Context(), act(testID), desk.SupersedeOptions{}); !errors.Is(err, dead) {
		t.Fatalf("error %v", err)
	}
	id := desk.SuccessorID(scope, testID)
	if next, old := h.load(id), h.load(testID); next.Supersedes != testID || next.Settled() != nil || len(old.Notes) != 0 {
		t.Errorf("left behind: %+v, notes %+v", next, old.Notes)
	}
	done, err := h.desk.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	if err != nil || done.New.RequestID != id || h.load(testID).Settled() == nil {
		t.Errorf("again: %+v, %v", done, err)
	}
	if list, err := h.ledger.List(t.Context(), client.Filter{}); err != nil || len(list) != 2 {
		t.Errorf("%d requests, %v", len(list), err)
	}
}

// A receipt that becomes final in between wins, and the new request is never sent.
func TestSupersedeOvertaken(t *testing.T) {
	h := newHost(t)
	h.send()
	final := func() error {
		h.svc.status = says("failed", "")
		_, err := h.client.Resume(t.Context(), testID)
		return err
	}
	d, err := desk.New(desk.Config{Ledger: &cut{h.ledger, final}, Client: h.client})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Supersede(t.Context(), act(testID), desk.SupersedeOptions{})
	refused(t, "overtaken", err)
	next := h.load(desk.SuccessorID(scope, testID))
	if n := next.Settled(); n == nil || n.Verb != client.Abandon || !strings.Contains(n.Reason, testID) {
		t.Errorf("the successor stays: %+v", next)
	}
	if _, err := h.client.Execute(t.Context(), client.Request{ID: next.RequestID}); err == nil || h.svc.posts != 1 {
		t.Errorf("the successor was sent: %v, %d POSTs", err, h.svc.posts)
	}
}

// Two people at once get one successor.
func TestSupersedeTogether(t *testing.T) {
	h := newHost(t)
	h.send()
	patient, err := client.New(client.Config{Ledger: h.ledger, Transport: h.svc})
	if err != nil {
		t.Fatal(err)
	}
	d, err := desk.New(desk.Config{Ledger: h.ledger, Client: patient})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := d.Supersede(t.Context(), act(testID), desk.SupersedeOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := h.ledger.List(t.Context(), client.Filter{})
	if err != nil || len(list) != 2 {
		t.Errorf("%d requests, want the old one and its successor (%v)", len(list), err)
	}
}
