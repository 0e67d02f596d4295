package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
)

const (
	testID    = "request-0001"
	testInput = `{"subject":"Printer on fire"}`
)

// plan is the example of the draft's reading guide.
func plan(t testing.TB) *agentic.Plan {
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
	return p
}

// service is a scripted service behind a client.Transport: each list is consumed
// from the front and its last element repeats.
type service struct {
	mu       sync.Mutex
	approve  error
	submit   client.Exchange
	status   []client.Exchange
	resource []client.Exchange
	onSubmit func()
	onGet    func(n int)

	posts, gets int
	last        client.Submission
	urls        []string
}

func (s *service) Approve(string, string) error { return s.approve }

func (s *service) Submit(_ context.Context, sub client.Submission) client.Exchange {
	s.mu.Lock()
	s.posts++
	s.last = sub
	s.mu.Unlock()
	if s.onSubmit != nil {
		s.onSubmit()
	}
	return s.submit
}

func (s *service) Get(ctx context.Context, r client.Read) client.Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.onGet != nil {
		s.onGet(s.gets)
	}
	if err := ctx.Err(); err != nil {
		return client.Exchange{Reach: client.MaybeSent, Class: client.ClassCanceled, Err: err}
	}
	s.urls = append(s.urls, r.URL)
	list := &s.status
	if strings.Contains(r.URL, "/tickets/") {
		list = &s.resource
	}
	ex := (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return ex
}

func answer(status int, body string) client.Exchange {
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: status, ContentType: "application/json", Body: []byte(body)}}
}

func broken(class client.ErrorClass) client.Exchange {
	return client.Exchange{Reach: client.MaybeSent, Class: class, Err: errors.New("the connection broke")}
}

func statusOf(id, status, resource string) client.Exchange {
	if resource == "" {
		return answer(200, fmt.Sprintf(`{"request_id":%q,"status":%q,"resource_id":null}`, id, status))
	}
	return answer(200, fmt.Sprintf(`{"request_id":%q,"status":%q,"resource_id":%q}`, id, status, resource))
}

func status(word, resource string) client.Exchange { return statusOf(testID, word, resource) }

func ticket(subject, state string) client.Exchange {
	return answer(200, fmt.Sprintf(`{"id":"t-1","request_id":%q,"subject":%q,"status":%q}`, testID, subject, state))
}

// good is a service that does everything right.
func good() *service {
	return &service{
		submit:   answer(201, `{}`),
		status:   []client.Exchange{status("succeeded", "t-1")},
		resource: []client.Exchange{ticket("Printer on fire", "open")},
	}
}

type host struct {
	t      *testing.T
	ledger *ledgertest.Memory
	clock  *ledgertest.Clock
	events []string
	seen   []client.Observation
}

func newHost(t *testing.T) *host {
	clock := ledgertest.NewClock()
	return &host{t: t, clock: clock, ledger: ledgertest.NewMemory(clock.Now)}
}

func (h *host) client(s *service, change ...func(*client.Config)) *client.Client {
	h.t.Helper()
	cfg := client.Config{
		Ledger: h.ledger, Transport: s, Scope: client.Scope{Principal: "ann", Environment: "test"},
		Observer: func(e client.Event) {
			h.events = append(h.events, strings.TrimPrefix(fmt.Sprintf("%T", e), "client."))
			switch e := e.(type) {
			case client.Checked:
				h.seen = append(h.seen, e.Observation)
			case client.Verified:
				h.seen = append(h.seen, e.Observation)
			}
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	c, err := client.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *host) execute(s *service, change ...func(*client.Config)) client.Result {
	h.t.Helper()
	res, err := h.client(s, change...).Execute(h.t.Context(), client.Request{Plan: plan(h.t), Input: []byte(testInput), ID: testID})
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

func (h *host) record() *client.Record {
	h.t.Helper()
	r, err := h.ledger.Load(h.t.Context(), client.Scope{Principal: "ann", Environment: "test"}, testID)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func TestVerifiedSuccess(t *testing.T) {
	h, s := newHost(t), good()
	res := h.execute(s)
	id := "t-1"
	want := agentic.Receipt{
		Agentic: agentic.Version, RequestID: testID, ActionID: "create-ticket", Origin: "https://support.example",
		Outcome: agentic.Succeeded, ObservedAt: agentic.FormatTime(h.clock.Now()), ResourceID: &id, Reason: res.Receipt.Reason,
		Evidence: &agentic.ReceiptEvidence{URL: "https://support.example/tickets/t-1", ResourceID: id, RequestID: testID, State: "open",
			Matched: []agentic.Pair{{InputPointer: "/subject", ResourcePointer: "/subject"}}},
	}
	if d := cmp.Diff(want, res.Receipt); d != "" {
		t.Errorf("receipt (-want +got):\n%s", d)
	}
	if !res.Sent || res.FromSaved || res.NeedsHandoff() {
		t.Errorf("result = %+v", res)
	}
	if s.posts != 1 || s.gets != 2 {
		t.Errorf("%d POSTs and %d GETs, want 1 and 2", s.posts, s.gets)
	}
	if s.last.Header != "Idempotency-Key" || s.last.RequestID != testID || string(s.last.Body) != testInput ||
		s.last.URL != "https://support.example/tickets" || s.last.Timeout != 3*time.Second {
		t.Errorf("submission = %+v", s.last)
	}
	for _, o := range h.seen {
		if len(o.Checks) != 0 {
			t.Errorf("an event shows values of the input or the resource: %+v", o)
		}
	}
	wantEvents := []string{"Saved", "Submitting", "Submitted", "Checking", "Checked", "Verifying", "Verified", "Resulted"}
	if d := cmp.Diff(wantEvents, h.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	rec := h.record()
	if len(rec.Receipts) != 1 || len(rec.Observations) != 3 || rec.State != client.Attempted {
		t.Errorf("record has %d receipts, %d observations, state %s", len(rec.Receipts), len(rec.Observations), rec.State)
	}
}

func TestSavedFinalReceiptIsReturnedWithoutNetwork(t *testing.T) {
	for _, outcome := range []agentic.Outcome{agentic.Succeeded, agentic.Failed} {
		h, s := newHost(t), good()
		if outcome == agentic.Failed {
			s.status = []client.Exchange{status("failed", "")}
		}
		first := h.execute(s)
		h.clock.Advance(30 * 24 * time.Hour) // long past the window
		silent := good()
		again := h.execute(silent)
		if silent.posts+silent.gets != 0 || !again.FromSaved || again.Sent {
			t.Errorf("%s: %d POSTs, %d GETs, result %+v", outcome, silent.posts, silent.gets, again)
		}
		if d := cmp.Diff(first.Receipt, again.Receipt); d != "" {
			t.Errorf("%s: receipt changed:\n%s", outcome, d)
		}
		silent.approve = &client.OriginError{Origin: "https://support.example", Reason: "not approved any more"}
		res, err := h.client(silent).Resume(t.Context(), testID)
		if err != nil || !res.FromSaved || res.Receipt.Outcome != outcome {
			t.Errorf("%s: Resume = %+v, %v", outcome, res, err)
		}
	}
}

// The answer to the submission never makes an outcome, and the last check
// decides (D10, D11, D12, D13, D14).
func TestOutcomes(t *testing.T) {
	list := func(ex ...client.Exchange) []client.Exchange { return ex }
	closed := ticket("Printer on fire", "closed")
	wrong := ticket("Something else", "open")
	tests := []struct {
		name     string
		submit   client.Exchange
		status   []client.Exchange
		resource []client.Exchange
		want     agentic.Outcome
		gets     int
		reason   string
	}{
		{"lost answer", broken(client.ClassBroken), list(status("succeeded", "t-1")), list(closed), agentic.Succeeded, 2, ""},
		{"timeout", broken(client.ClassTimeout), list(status("succeeded", "t-1")), list(closed), agentic.Succeeded, 2, ""},
		{"500 and then success", answer(500, ""), list(status("succeeded", "t-1")), list(closed), agentic.Succeeded, 2, ""},
		{"201 alone proves nothing", answer(201, `{"id":"t-1"}`), list(status("unknown", "")), nil, agentic.Unknown, 3, "does not know"},
		{"202 alone is not pending", answer(202, ""), list(broken(client.ClassConnect)), nil, agentic.Unknown, 3, "status could not be read"},
		{"status unavailable", answer(201, ""), list(answer(503, "")), nil, agentic.Unknown, 3, "503"},
		{"pending for ever", answer(202, ""), list(status("pending", "")), nil, agentic.Pending, 3, "not resolved"},
		{"late success", answer(202, ""), list(status("pending", ""), status("pending", ""), status("succeeded", "t-1")), list(closed), agentic.Succeeded, 4, ""},
		{"pending, then no answer", answer(202, ""), list(status("pending", ""), status("pending", ""), answer(503, "")), nil, agentic.Unknown, 3, "503"},
		{"no answer, then pending", answer(202, ""), list(answer(503, ""), answer(503, ""), status("pending", "")), nil, agentic.Pending, 3, "not resolved"},
		{"failed ends at once", broken(client.ClassBroken), list(status("failed", "")), nil, agentic.Failed, 1, "did not complete"},
		{"stale read", answer(201, ""), list(status("succeeded", "t-1")), list(answer(404, ""), closed), agentic.Succeeded, 4, ""},
		{"wrong evidence", answer(201, ""), list(status("succeeded", "t-1")), list(wrong), agentic.Unknown, 6, "/subject"},
		{"resource unreadable", answer(201, ""), list(status("succeeded", "t-1")), list(broken(client.ClassTimeout)), agentic.Unknown, 6, "resource could not be read"},
		{"no success state", answer(201, ""), list(status("succeeded", "t-1")), list(ticket("Printer on fire", "spam")), agentic.Unknown, 6, "state"},
		{"dot resource ID", answer(201, ""), list(status("succeeded", "..")), nil, agentic.Unknown, 3, "cannot"},
		{"status of another request", answer(201, ""), list(statusOf("request-0002", "succeeded", "t-1")), nil, agentic.Unknown, 3, "request_id"},
		{"409 and success of somebody", answer(409, ""), list(status("succeeded", "t-1")), list(closed), agentic.Unknown, 1, "409"},
		{"422 and success of somebody", answer(422, ""), list(status("succeeded", "t-1")), list(closed), agentic.Unknown, 1, "422"},
		{"422 and failed", answer(422, ""), list(status("failed", "")), nil, agentic.Failed, 1, ""},
		{"409 and pending", answer(409, ""), list(status("pending", "")), nil, agentic.Pending, 3, ""},
		{"succeeded, unverified, then failed", answer(201, ""), list(status("succeeded", "t-1"), status("failed", "")), list(wrong), agentic.Unknown, 3, "first said"},
		{"error text that is not UTF-8", answer(201, ""), list(client.Exchange{Reach: client.MaybeSent, Class: client.ClassBroken, Err: errors.New("\xff\xfe")}), nil, agentic.Unknown, 3, "broken"},
		{"redirected status", answer(201, ""), list(client.Exchange{Reach: client.Answered, Class: client.ClassRedirect, Answer: agentic.Answer{Status: 302},
			Err: errors.New("a redirect")}), nil, agentic.Unknown, 3, "redirect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				s := &service{submit: tt.submit, status: tt.status, resource: tt.resource}
				res := h.execute(s)
				if res.Receipt.Outcome != tt.want || s.gets != tt.gets || s.posts != 1 {
					t.Errorf("outcome %s after %d GETs and %d POSTs, want %s after %d; reason: %s", res.Receipt.Outcome, s.gets, s.posts, tt.want, tt.gets, res.Receipt.Reason)
				}
				if !strings.Contains(res.Receipt.Reason, tt.reason) {
					t.Errorf("reason %q does not say %q", res.Receipt.Reason, tt.reason)
				}
				if (res.Receipt.Evidence != nil) != (tt.want == agentic.Succeeded) || (res.Receipt.ResourceID != nil) != (tt.want == agentic.Succeeded) {
					t.Errorf("evidence %v and resource %v with %s", res.Receipt.Evidence, res.Receipt.ResourceID, tt.want)
				}
				if res.NeedsHandoff() != (tt.want == agentic.Unknown) {
					t.Errorf("NeedsHandoff = %v with %s", res.NeedsHandoff(), tt.want)
				}
				rec := h.record()
				if len(rec.Observations) != 1+tt.gets || len(rec.Receipts) != 1 {
					t.Errorf("%d observations and %d receipts are saved", len(rec.Observations), len(rec.Receipts))
				}
			})
		})
	}
}

// A refusal is remembered across runs: a later resume may not take an earlier
// request's success for this one's (D10).
func TestRefusalIsRememberedAfterACrash(t *testing.T) {
	h := newHost(t)
	s := good()
	s.submit = answer(409, "")
	crash := errors.New("crash")
	func() {
		defer func() {
			if recover() != crash {
				t.Fatal("no crash")
			}
		}()
		h.execute(s, func(c *client.Config) {
			c.KillPoint = func(p client.Point) {
				if p == client.AfterRefusal {
					panic(crash)
				}
			}
		})
	}()
	res, err := h.client(good()).Resume(t.Context(), testID)
	if err != nil || res.Receipt.Outcome != agentic.Unknown || !strings.Contains(res.Receipt.Reason, "409") {
		t.Errorf("Resume = %+v, %v; want unknown because of the 409", res, err)
	}
}

// The refusal is durable before anybody hears of it.
func TestRefusalSurvivesAPanickingObserver(t *testing.T) {
	h, s := newHost(t), good()
	s.submit = answer(422, "")
	func() {
		defer func() { _ = recover() }()
		h.execute(s, func(c *client.Config) {
			c.Observer = func(e client.Event) {
				if _, ok := e.(client.Submitted); ok {
					panic("observer")
				}
			}
		})
	}()
	res, err := h.client(good()).Resume(t.Context(), testID)
	if err != nil || res.Receipt.Outcome != agentic.Unknown {
		t.Errorf("Resume = %+v, %v; want unknown because of the 422", res, err)
	}
}

// Whatever happens, and wherever the process stops, there is one POST at most,
// and what is resumed ends as the service says (section 6.3, 6.4).
func TestCrashAtEveryPoint(t *testing.T) {
	for _, point := range client.Points() {
		t.Run(string(point), func(t *testing.T) {
			h, s := newHost(t), good()
			if point == client.AfterRefusal {
				s.submit = answer(422, "")
			}
			hit := false
			func() {
				defer func() { _ = recover() }()
				h.execute(s, func(c *client.Config) {
					c.KillPoint = func(p client.Point) {
						if p == point {
							hit = true
							panic("crash")
						}
					}
				})
			}()
			if !hit {
				t.Fatal("the point was never reached")
			}
			res, err := h.client(s).Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
			if err != nil {
				t.Fatal(err)
			}
			wantPosts := 1
			if point == client.BeforeSubmit {
				wantPosts = 0 // attempted, never sent, and never sent again
			}
			if s.posts != wantPosts {
				t.Errorf("%d POSTs, want %d", s.posts, wantPosts)
			}
			want := agentic.Succeeded
			if point == client.AfterRefusal {
				want = agentic.Unknown
			}
			if res.Receipt.Outcome != want {
				t.Errorf("outcome %s, want %s", res.Receipt.Outcome, want)
			}
		})
	}
}

func TestPrepareSendsNothingAndExecuteSendsOnce(t *testing.T) {
	h, s := newHost(t), good()
	c := h.client(s)
	rec, err := c.Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
	if err != nil || rec.State != client.Prepared || rec.RequestID != testID || s.posts+s.gets != 0 {
		t.Fatalf("Prepare = %+v, %v, %d POSTs, %d GETs", rec, err, s.posts, s.gets)
	}
	if _, err := c.Resume(t.Context(), testID); !isA[*client.PreparedError](err) || s.posts+s.gets != 0 {
		t.Errorf("Resume of a prepared request: %v, %d POSTs, %d GETs", err, s.posts, s.gets)
	}
	res, err := c.Execute(t.Context(), client.Request{ID: testID})
	if err != nil || res.Receipt.Outcome != agentic.Succeeded || !res.Sent || s.posts != 1 {
		t.Fatalf("Execute by ID = %+v, %v, %d POSTs", res, err, s.posts)
	}
	if string(s.last.Body) != testInput {
		t.Errorf("sent %s", s.last.Body)
	}

	if rec, err := c.Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil || rec.State != client.Attempted {
		t.Errorf("Prepare of what was attempted = %+v, %v", rec, err)
	}

	// What was approved is sent, not another spelling of it.
	h, s = newHost(t), good()
	c = h.client(s)
	first := `{"subject":"Printer on fire","n":1}`
	if _, err := c.Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(first), ID: testID}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(`{"n":1.0,"subject":"Printer on fire"}`), ID: testID}); err != nil || string(s.last.Body) != first {
		t.Errorf("sent %s, %v", s.last.Body, err)
	}
}

func isA[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

func TestRefusals(t *testing.T) {
	ctx := t.Context()
	p := plan(t)
	h, s := newHost(t), good()
	c := h.client(s)
	execute := func(r client.Request) error { _, err := c.Execute(ctx, r); return err }

	if err := execute(client.Request{Plan: p, Input: []byte(`{"topic":1}`)}); !isA[*agentic.InputError](err) {
		t.Errorf("input evidence missing: %v", err)
	}
	for _, id := range []string{"short", strings.Repeat("x", 129), "with space", "with/slash", "umlaut-ü-x"} {
		if err := execute(client.Request{Plan: p, Input: []byte(testInput), ID: id}); !isA[*client.RequestIDError](err) {
			t.Errorf("request ID %q: %v", id, err)
		}
	}
	s.approve = &client.OriginError{Origin: p.Origin, Reason: "not approved"}
	if err := execute(client.Request{Plan: p, Input: []byte(testInput)}); !isA[*client.OriginError](err) {
		t.Errorf("origin: %v", err)
	}
	s.approve = nil
	refuse := errors.New("refused by the host")
	strict := h.client(s, func(cfg *client.Config) {
		cfg.CheckInput = func(*agentic.Plan, agentic.Input) error { return refuse }
	})
	if _, err := strict.Execute(ctx, client.Request{Plan: p, Input: []byte(testInput)}); !errors.Is(err, refuse) {
		t.Errorf("CheckInput: %v", err)
	}
	for _, r := range []client.Request{{}, {Input: []byte(testInput), ID: testID}, {Input: []byte(testInput)}} {
		if err := execute(r); err == nil || isA[*client.NotFoundError](err) {
			t.Errorf("a request without a plan: %v", err)
		}
	}
	if _, err := c.Resume(ctx, "nobody-knows-it"); !isA[*client.NotFoundError](err) {
		t.Errorf("Resume of nothing: %v", err)
	}
	if l, err := h.ledger.List(ctx, client.Filter{}.In(client.Scope{Principal: "ann", Environment: "test"})); err != nil || len(l) != 0 || s.posts != 0 {
		t.Errorf("refusals left %d requests and %d POSTs, %v", len(l), s.posts, err)
	}

	h.execute(s)
	err := execute(client.Request{Plan: p, Input: []byte(`{"subject":"Another"}`), ID: testID})
	be, ok := errors.AsType[*client.BindingError](err)
	if !ok || len(be.Differences) != 1 || be.Differences[0].Field != "input" || s.posts != 1 {
		t.Errorf("other input: %v, %d POSTs", err, s.posts)
	}
	if err := execute(client.Request{Plan: p, Input: []byte(` { "subject" : "Printer on \u0066ire" } `), ID: testID}); err != nil {
		t.Errorf("a structurally equal input is the same input: %v", err)
	}
}

// Another principal's or environment's request of the same ID is another request
// (section 6, D8).
func TestScopes(t *testing.T) {
	h := newHost(t)
	for i, scope := range []client.Scope{{"ann", "test"}, {"bob", "test"}, {"ann", "live"}, {"", ""}} {
		s := good()
		c := h.client(s, func(cfg *client.Config) { cfg.Scope = scope })
		if _, err := c.Resume(t.Context(), testID); !isA[*client.NotFoundError](err) {
			t.Errorf("%d: %v sees a request that is not its own: %v", i, scope, err)
		}
		if res, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil || !res.Sent {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
	}
	for _, scope := range []client.Scope{{Principal: "\xff"}, {Environment: strings.Repeat("x", 257)}} {
		if _, err := client.New(client.Config{Ledger: h.ledger, Transport: good(), Scope: scope}); err == nil {
			t.Errorf("scope %q was accepted", scope)
		}
	}
}

// Receipts are appended, never overwritten (D11).
func TestResumeAppendsReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(t), good()
		s.status = []client.Exchange{status("pending", ""), status("pending", ""), status("pending", ""),
			status("unknown", ""), status("unknown", ""), status("unknown", ""), status("succeeded", "t-1")}
		h.execute(s)
		for _, want := range []agentic.Outcome{agentic.Unknown, agentic.Succeeded} {
			if res, err := h.client(s).Resume(t.Context(), testID); err != nil || res.Receipt.Outcome != want || res.Sent {
				t.Fatalf("Resume = %+v, %v, want %s", res, err, want)
			}
		}
		var got []agentic.Outcome
		for _, r := range h.record().Receipts {
			got = append(got, r.Outcome)
		}
		if d := cmp.Diff([]agentic.Outcome{agentic.Pending, agentic.Unknown, agentic.Succeeded}, got); d != "" || s.posts != 1 {
			t.Errorf("receipts, after %d POSTs (-want +got):\n%s", s.posts, d)
		}
	})
}

func TestNothingConfidentialIsLogged(t *testing.T) {
	var log strings.Builder
	h, s := newHost(t), good()
	s.status = []client.Exchange{answer(200, "not JSON"), status("succeeded", "t-1")}
	h.execute(s, func(cfg *client.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if out := log.String(); !strings.Contains(out, "receipt saved") || strings.Contains(out, "Printer") || strings.Contains(out, "t-1") {
		t.Errorf("log:\n%s", out)
	}
}
