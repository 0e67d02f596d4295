package desk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/ledgertest"
)

const (
	testID    = "request-0001"
	testInput = `{"subject":"Printer on fire"}`
)

var scope = client.Scope{Principal: "ann", Environment: "test"}

func act(id string) desk.Act {
	return desk.Act{Scope: scope, RequestID: id, By: "bob", Reason: "the customer called"}
}

// service answers as it is told to; its POSTs are counted.
type service struct {
	submit, status, resource client.Exchange
	posts                    int
}

func (s *service) Approve(string, string) error { return nil }

func (s *service) Submit(context.Context, client.Submission) client.Exchange {
	s.posts++
	return s.submit
}

func (s *service) Get(_ context.Context, r client.Read) client.Exchange {
	if strings.Contains(r.URL, "/tickets/") {
		return s.resource
	}
	return s.status
}

func answer(status int, body string) client.Exchange {
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: status, ContentType: "application/json", Body: []byte(body)}}
}

func says(word, resource string) client.Exchange {
	if resource == "" {
		return answer(200, fmt.Sprintf(`{"request_id":%q,"status":%q,"resource_id":null}`, testID, word))
	}
	return answer(200, fmt.Sprintf(`{"request_id":%q,"status":%q,"resource_id":%q}`, testID, word, resource))
}

func ticket(subject string) client.Exchange {
	return answer(200, fmt.Sprintf(`{"id":"t-1","request_id":%q,"subject":%q,"status":"open"}`, testID, subject))
}

func broken(reach client.Reach, class client.ErrorClass) client.Exchange {
	return client.Exchange{Reach: reach, Class: class, Err: errors.New("it broke")}
}

// host is a desk with its ledger, clock and service.
type host struct {
	t      *testing.T
	clock  *ledgertest.Clock
	ledger *ledgertest.Memory
	svc    *service
	client *client.Client
	desk   *desk.Desk
	kill   client.Point // where the host dies
}

type died struct{}

func newHost(t *testing.T) *host {
	h := &host{t: t, clock: ledgertest.NewClock(), svc: &service{submit: answer(201, `{}`), status: says("pending", "")}}
	h.ledger = ledgertest.NewMemory(h.clock.Now)
	var err error
	h.client, err = client.New(client.Config{Ledger: h.ledger, Transport: h.svc, Scope: scope, Wait: -1, KillPoint: func(p client.Point) {
		if p == h.kill {
			panic(died{})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if h.desk, err = desk.New(desk.Config{Ledger: h.ledger, Client: h.client}); err != nil {
		t.Fatal(err)
	}
	return h
}

func plan(t *testing.T) *agentic.Plan {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	p, err := agentic.Load(read("profile.json"), read("openapi.json"), "", agentic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Action.Recovery.MaxChecks, p.Action.Recovery.CheckDelay = 1, 0
	return p
}

func (h *host) prepare(id string) {
	h.t.Helper()
	if _, err := h.client.Prepare(h.t.Context(), client.Request{Plan: plan(h.t), Input: []byte(testInput), ID: id, AllowDuplicate: true}); err != nil {
		h.t.Fatal(err)
	}
}

// send executes the request until its receipt, or until the host dies.
func (h *host) send() {
	h.t.Helper()
	defer func() {
		if r := recover(); r != nil && r != (died{}) {
			panic(r)
		} else if r != nil {
			h.ledger.TakeOver(scope, testID) // as the lock of a dead process is gone
			h.kill = ""
		}
	}()
	if _, err := h.client.Execute(h.t.Context(), client.Request{Plan: plan(h.t), Input: []byte(testInput), ID: testID}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) load(id string) *client.Record {
	h.t.Helper()
	rec, err := h.ledger.Load(h.t.Context(), scope, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return rec
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*client.NoteError](err); !ok {
		t.Errorf("%s: error %v, want a NoteError", what, err)
	}
}

// A recheck notes who and why, reads, and never sends.
func TestRecheck(t *testing.T) {
	h := newHost(t)
	h.send()
	h.svc.status, h.svc.resource = says("succeeded", "t-1"), ticket("Printer on fire")
	res, err := h.desk.Recheck(t.Context(), act(testID))
	if err != nil || res.Receipt.Outcome != agentic.Succeeded || res.Sent || h.svc.posts != 1 {
		t.Errorf("recheck gives %+v, %v; %d POSTs", res, err, h.svc.posts)
	}
	want := []client.Note{{At: h.clock.Now(), By: "bob", Verb: client.Recheck, Reason: "the customer called"}}
	if d := cmp.Diff(want, h.load(testID).Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	_, err = h.desk.Recheck(t.Context(), act(testID))
	refused(t, "a final request", err)
	h.prepare("request-0002")
	_, err = h.desk.Recheck(t.Context(), act("request-0002"))
	refused(t, "a prepared request", err)
	if _, err = h.desk.Recheck(t.Context(), act("request-none")); !isMissing(err) {
		t.Errorf("an unknown request: %v", err)
	}
}

func isMissing(err error) bool {
	_, ok := errors.AsType[*client.NotFoundError](err)
	return ok
}

// Attesting and abandoning settle, and leave the receipts alone.
func TestSettle(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*desk.Desk, context.Context) error
		want client.Note
	}{
		"succeeded": {func(d *desk.Desk, ctx context.Context) error {
			return d.Attest(ctx, act(testID), client.AttestSucceeded, "t-9")
		}, client.Note{Verb: client.AttestSucceeded, ResourceID: "t-9"}},
		"failed": {func(d *desk.Desk, ctx context.Context) error {
			return d.Attest(ctx, act(testID), client.AttestFailed, "")
		}, client.Note{Verb: client.AttestFailed}},
		"abandoned": {func(d *desk.Desk, ctx context.Context) error { return d.Abandon(ctx, act(testID)) },
			client.Note{Verb: client.Abandon}},
	} {
		h := newHost(t)
		h.send()
		before := h.load(testID)
		if err := tt.do(h.desk, t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		after, sum, err := h.desk.Show(t.Context(), scope, testID)
		if err != nil {
			t.Fatal(err)
		}
		tt.want.At, tt.want.By, tt.want.Reason = h.clock.Now(), "bob", "the customer called"
		if d := cmp.Diff([]client.Note{tt.want}, after.Notes); d != "" {
			t.Errorf("%s: notes (-want +got):\n%s", name, d)
		}
		if sum.Open() || !sum.NextCheck.IsZero() || cmp.Diff(before.Receipts, after.Receipts) != "" {
			t.Errorf("%s: summary %+v", name, sum)
		}
	}
	h := newHost(t)
	h.send()
	if err := h.desk.Attest(t.Context(), act(testID), client.AttestSucceeded, ""); err == nil {
		t.Error("a success without a resource ID was attested")
	}
	refused(t, "attesting an abandonment", h.desk.Attest(t.Context(), act(testID), client.Abandon, ""))
	if notes := h.load(testID).Notes; len(notes) != 0 {
		t.Errorf("a refused note was written: %+v", notes)
	}
}

// Show tells when a worker looks next, which a record does not have.
func TestShowNextCheck(t *testing.T) {
	h := newHost(t)
	h.prepare("request-0002") // made in the same microsecond
	if err := h.desk.Abandon(t.Context(), act("request-0002")); err != nil {
		t.Fatal(err)
	}
	h.send()
	_, sum, err := h.desk.Show(t.Context(), scope, testID)
	want, ok := client.NextCheck(testID, sum.CreatedAt, sum.SeenAt, sum.WindowEnds.Sub(sum.CreatedAt))
	if err != nil || !ok || !sum.NextCheck.Equal(want) {
		t.Errorf("next check %s, want %s (%v)", sum.NextCheck, want, err)
	}
	if _, _, err := h.desk.Show(t.Context(), scope, "request-none"); !isMissing(err) {
		t.Errorf("an unknown request: %v", err)
	}
}

// A purge goes in steps, and counts first what it would do.
func TestPurge(t *testing.T) {
	h := newHost(t)
	for i := range 5 {
		id := fmt.Sprintf("request-%04d", i)
		h.prepare(id)
		if err := h.desk.Abandon(t.Context(), act(id)); err != nil {
			t.Fatal(err)
		}
	}
	h.prepare("request-open")
	h.clock.Advance(time.Hour)
	o := client.PurgeOptions{Before: h.clock.Now(), Limit: 2}
	would, err := h.desk.Purge(t.Context(), o, nil)
	if err != nil || would.Requests != 5 || would.Open != 1 || would.More {
		t.Errorf("dry run: %+v, %v", would, err)
	}
	var steps []int
	o.Apply = true
	did, err := h.desk.Purge(t.Context(), o, func(p client.Purged) { steps = append(steps, p.Requests) })
	if d := cmp.Diff(would, did); d != "" || err != nil {
		t.Errorf("purged (-dry run +got):\n%s%v", d, err)
	}
	if d := cmp.Diff([]int{2, 4, 5}, steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	var exported []string
	err = h.desk.Export(t.Context(), client.Filter{}.In(scope), func(r *client.Record) error {
		exported = append(exported, fmt.Sprintf("%s %t", r.RequestID, r.PurgedAt.IsZero()))
		return nil
	})
	if err != nil || len(exported) != 6 || exported[0] != "request-open true" || exported[1] != "request-0004 false" {
		t.Errorf("exported %v, %v", exported, err)
	}
	stop := errors.New("full")
	if err := h.desk.Export(t.Context(), client.Filter{}, func(*client.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the writer: %v", err)
	}
}

// parts is a ledger that gives one answer after another to Purge, and then an error
// beside the last one.
type parts struct {
	desk.Ledger
	answers []client.Purged
	err     error
}

func (l *parts) Purge(context.Context, client.PurgeOptions) (client.Purged, error) {
	p := l.answers[0]
	if l.answers = l.answers[1:]; len(l.answers) == 0 {
		return p, l.err
	}
	return p, nil
}

// A purge that fails tells all that was removed before, also in the step that failed.
func TestPurgeInPart(t *testing.T) {
	gone := errors.New("gone")
	d, err := desk.New(desk.Config{Ledger: &parts{answers: []client.Purged{{Requests: 3, Entries: 7, More: true}, {Requests: 2, Entries: 1}}, err: gone}})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := d.Purge(t.Context(), client.PurgeOptions{Apply: true}, nil)
	if sum.Requests != 5 || sum.Entries != 8 || !errors.Is(err, gone) {
		t.Errorf("%+v, %v", sum, err)
	}
}

// Without a client nothing is read and nothing is made.
func TestWithoutClient(t *testing.T) {
	h := newHost(t)
	h.send()
	d, err := desk.New(desk.Config{Ledger: h.ledger})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Recheck(t.Context(), act(testID)); err == nil {
		t.Error("rechecked without a client")
	}
	if _, err := d.Supersede(t.Context(), act(testID), desk.SupersedeOptions{}); err == nil {
		t.Error("superseded without a client")
	}
	if notes := h.load(testID).Notes; len(notes) != 0 {
		t.Errorf("notes %+v", notes)
	}
	if _, err := desk.New(desk.Config{}); err == nil {
		t.Error("a desk without a ledger")
	}
}
