package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
)

// Tests of single sentences of the draft that the tests of the engine reach only
// on the way. docs/SPEC-MAP.md names them.

var annTest = client.Scope{Principal: "ann", Environment: "test"}

// editedPlan is the example with its documents edited: what a publisher changed.
func editedPlan(t testing.TB, profile, openapi *strings.Replacer) *agentic.Plan {
	t.Helper()
	read := func(name string, r *strings.Replacer) []byte {
		b, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return b
		}
		edited := r.Replace(string(b))
		if edited == string(b) {
			t.Fatalf("%s is not changed", name)
		}
		return []byte(edited)
	}
	p, err := agentic.Load(read("profile.json", profile), read("openapi.json", openapi), "", agentic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Section 6.2 and 6.3: when the POST leaves, the ledger holds the whole
// association and the attempt, also after a request that was only prepared.
func TestSavedBeforeSent(t *testing.T) {
	for _, prepared := range []bool{false, true} {
		h, s := newHost(t), good()
		p := plan(t)
		want := client.Record{
			Binding: client.Binding{Scope: annTest, RequestID: testID, Origin: "https://support.example", ActionID: "create-ticket",
				Profile:     client.Snapshot{Digest: p.Profile.Digest(), Body: p.Profile.Source()},
				OpenAPI:     client.Snapshot{Digest: p.OpenAPI.Digest(), Body: p.OpenAPI.Source()},
				InputDigest: h.inputDigest(), Input: []byte(testInput), Window: p.Action.Retention, Term: 51*time.Second + 300*time.Millisecond},
			State: client.Attempted, CreatedAt: h.clock.Now(), SeenAt: h.clock.Now(), AttemptedAt: h.clock.Now(),
		}
		var saved *client.Record
		s.onSubmit = func() { saved = h.record() }
		if prepared {
			if _, err := h.client(s).Prepare(t.Context(), client.Request{Plan: p, Input: []byte(testInput), ID: testID}); err != nil {
				t.Fatal(err)
			}
			want.AttemptedAt = h.clock.Advance(time.Minute)
			want.SeenAt = want.AttemptedAt
		}
		h.execute(s)
		if d := cmp.Diff(&want, saved); d != "" {
			t.Errorf("prepared %v: the ledger while the POST is under way (-want +got):\n%s", prepared, d)
		}
	}
}

func (h *host) inputDigest() string {
	h.t.Helper()
	in, err := plan(h.t).CheckInput([]byte(testInput))
	if err != nil {
		h.t.Fatal(err)
	}
	return in.Digest()
}

// brokenLedger fails where a disk may: when it begins, or when it finishes.
type brokenLedger struct {
	client.Ledger
	begin, finish error
}

func (l brokenLedger) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	if l.begin != nil {
		return nil, l.begin
	}
	h, err := l.Ledger.Begin(ctx, b, intent, wait)
	return brokenHold{h, l.finish}, err
}

type brokenHold struct {
	client.Hold
	finish error
}

func (h brokenHold) Finish(context.Context, []client.Observation, agentic.Receipt) error {
	return h.finish
}

// Section 6.2, 6.3 and 6.7: what is not durable is not sent, and a receipt that is
// not durable is not returned.
func TestWithoutDurabilityNothing(t *testing.T) {
	full := &client.LedgerError{Op: "write", Err: errors.New("disk full")}
	for _, tt := range []struct {
		name   string
		ledger func(client.Ledger) client.Ledger
		posts  int
	}{
		{"nothing saved", func(l client.Ledger) client.Ledger { return brokenLedger{Ledger: l, begin: full} }, 0},
		{"receipt not saved", func(l client.Ledger) client.Ledger { return brokenLedger{Ledger: l, finish: full} }, 1},
		{"receipt not saved in time", func(l client.Ledger) client.Ledger {
			return brokenLedger{Ledger: l, finish: context.DeadlineExceeded}
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, s := newHost(t), good()
			c := h.client(s, func(cfg *client.Config) { cfg.Ledger = tt.ledger(h.ledger) })
			res, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
			if !errors.Is(err, client.ErrLedger) || s.posts != tt.posts {
				t.Errorf("%v after %d POSTs, want ErrLedger after %d", err, s.posts, tt.posts)
			}
			if d := cmp.Diff(agentic.Receipt{}, res.Receipt); d != "" || strings.Contains(strings.Join(h.events, " "), "Resulted") {
				t.Errorf("a receipt came back, events %v:\n%s", h.events, d)
			}
		})
	}
}

// Section 6.7: a receipt is in the ledger before anybody is told of it. Section 7:
// the receipt of every outcome is one that the schema accepts.
func TestReceiptIsSavedFirst(t *testing.T) {
	for word, resource := range map[string]string{"succeeded": "t-1", "failed": "", "pending": "", "unknown": ""} {
		synctest.Test(t, func(t *testing.T) {
			h, s := newHost(t), good()
			s.status = []client.Exchange{status(word, resource)}
			told := false
			res := h.execute(s, func(cfg *client.Config) {
				cfg.Observer = func(e client.Event) {
					r, ok := e.(client.Resulted)
					if !ok {
						return
					}
					told = true
					if d := cmp.Diff(&r.Receipt, h.record().Last()); d != "" {
						t.Errorf("%s: the ledger when the result was told (-told +saved):\n%s", word, d)
					}
				}
			})
			r, ds := agentic.ParseReceipt(res.Receipt.Encode())
			if !told || r == nil || string(r.Outcome) != word {
				t.Errorf("%s: told %v, receipt %s, %v", word, told, res.Receipt.Encode(), ds)
			}
		})
	}
}

// Section 2: a request stays with the documents it was saved with. Other ones
// under its ID are refused without a network call, and what is resumed reads
// where the saved ones say.
func TestSnapshotStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(t), good()
		s.status = []client.Exchange{status("pending", "")}
		h.execute(s)
		for field, changed := range map[string]*agentic.Plan{
			"profile": editedPlan(t, strings.NewReplacer(`"closed"`, `"closed", "merged"`), nil),
			"openapi": editedPlan(t, nil, strings.NewReplacer("/requests/{requestId}", "/moved/{requestId}")),
		} {
			silent := good()
			_, err := h.client(silent).Execute(t.Context(), client.Request{Plan: changed, Input: []byte(testInput), ID: testID})
			e, ok := errors.AsType[*client.BindingError](err)
			if !ok || len(e.Differences) != 1 || e.Differences[0].Field != field || silent.posts+silent.gets != 0 {
				t.Errorf("another %s: %v after %d POSTs and %d GETs", field, err, silent.posts, silent.gets)
			}
		}
		after := good()
		res, err := h.client(after).Resume(t.Context(), testID)
		want := []string{"https://support.example/requests/" + testID, "https://support.example/tickets/t-1"}
		if d := cmp.Diff(want, after.urls); d != "" || err != nil || res.Receipt.Outcome != agentic.Succeeded {
			t.Errorf("Resume = %+v, %v; read (-want +got):\n%s", res, err, d)
		}
	})
}

// timed records when each read was made, and its time limit.
type timed struct {
	*service
	reads []timedRead
}

type timedRead struct {
	After, Timeout time.Duration
}

func (s *timed) Get(ctx context.Context, r client.Read) client.Exchange {
	s.reads = append(s.reads, timedRead{time.Duration(time.Now().UnixNano()), r.Timeout})
	return s.service.Get(ctx, r)
}

// Section 3 and 6.8: maxChecks, checkDelayMs and timeoutMs are what the profile
// says, at the ends of their ranges too.
func TestRecoveryBounds(t *testing.T) {
	for _, tt := range []struct{ checks, delayMs, timeoutMs int }{{1, 0, 100}, {3, 100, 3000}, {2, 5000, 10000}, {10, 1, 101}} {
		synctest.Test(t, func(t *testing.T) {
			p := editedPlan(t, strings.NewReplacer(`"maxChecks": 3`, fmt.Sprintf(`"maxChecks": %d, "retry": "never-automatically"`, tt.checks),
				`"checkDelayMs": 100,`, fmt.Sprintf(`"checkDelayMs": %d,`, tt.delayMs), `"timeoutMs": 3000,`, fmt.Sprintf(`"timeoutMs": %d`, tt.timeoutMs),
				`"retry": "never-automatically"`, ""), nil)
			h, s := newHost(t), &timed{service: good()}
			s.status = []client.Exchange{status("pending", "")}
			c := h.client(s.service, func(cfg *client.Config) { cfg.Transport = s })
			if _, err := c.Execute(t.Context(), client.Request{Plan: p, Input: []byte(testInput), ID: testID}); err != nil {
				t.Fatal(err)
			}
			var want []timedRead
			for i := range tt.checks {
				want = append(want, timedRead{time.Duration(i*tt.delayMs) * time.Millisecond, time.Duration(tt.timeoutMs) * time.Millisecond})
			}
			for i := len(s.reads) - 1; i >= 0; i-- {
				s.reads[i].After -= s.reads[0].After
			}
			if d := cmp.Diff(want, s.reads); d != "" || s.last.Timeout != time.Duration(tt.timeoutMs)*time.Millisecond {
				t.Errorf("%+v: the POST had %v, status checks (-want +got):\n%s", tt, s.last.Timeout, d)
			}
		})
	}
}

// Section 4 and 6.5: no answer to the POST, and no silence, is success or failure;
// every check asks for the same ID.
func TestAnswerOfThePostProvesNothing(t *testing.T) {
	posts := map[string]client.Exchange{}
	for _, code := range []int{200, 201, 202, 204, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503} {
		posts[http.StatusText(code)] = answer(code, `{"request_id":"request-0001","status":"succeeded","resource_id":"t-1","id":"t-1"}`)
	}
	for _, class := range []client.ErrorClass{client.ClassAddress, client.ClassConnect, client.ClassTLS, client.ClassTimeout, client.ClassBroken,
		client.ClassRedirect, client.ClassTooLarge, client.ClassEncoded, client.ClassProtocol, client.ClassCredential} {
		posts[string(class)] = broken(class)
	}
	for name, post := range posts {
		for state, checked := range map[agentic.Outcome]client.Exchange{
			agentic.Unknown: broken(client.ClassTimeout),
			agentic.Pending: status("pending", ""),
		} {
			synctest.Test(t, func(t *testing.T) {
				h, s := newHost(t), good()
				s.submit, s.status = post, []client.Exchange{checked}
				res := h.execute(s)
				if res.Receipt.Outcome != state || s.posts != 1 {
					t.Errorf("%s, then %s: outcome %s after %d POSTs", name, state, res.Receipt.Outcome, s.posts)
				}
				u := "https://support.example/requests/" + testID
				if d := cmp.Diff([]string{u, u, u}, s.urls); d != "" {
					t.Errorf("%s: read (-want +got):\n%s", name, d)
				}
			})
		}
	}
}

// D7: a host that names no request gets a UUIDv7, a new one each time; what its
// own function makes is held to the same rule as what it gives.
func TestMadeRequestIDs(t *testing.T) {
	h := newHost(t)
	seen := map[string]bool{}
	for range 3 {
		s := good()
		s.status = []client.Exchange{status("unknown", "")}
		rec, err := h.client(s).Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), AllowDuplicate: true})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := uuid.Parse(rec.RequestID); err != nil || id.Version() != 7 || seen[rec.RequestID] {
			t.Errorf("request ID %q: %v", rec.RequestID, err)
		}
		seen[rec.RequestID] = true
	}
	for id, ok := range map[string]bool{"1234567": false, "12345678": true, "A-z_0-9x": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "1234567.": false, "1234567/": false, "1234567\n": false, "ééééé": false} {
		for how, req := range map[string]client.Request{"given": {ID: id}, "made": {}} {
			c := h.client(good(), func(cfg *client.Config) {
				cfg.Ledger, cfg.NewRequestID = ledgertest.NewMemory(nil), func() string { return id }
			})
			req.Plan, req.Input = plan(t), []byte(testInput)
			if _, err := c.Prepare(t.Context(), req); (err == nil) != ok || err != nil && !isA[*client.RequestIDError](err) {
				t.Errorf("%s ID %.20q: %v", how, id, err)
			}
		}
	}
}
