package agentcall_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// house is a ticket service, a ledger, and the calls of one principal.
type house struct {
	t       testing.TB
	origin  string
	service *ticket.Service
	ledger  *sqlite.Ledger
	config  agentcall.Config
	calls   *agentcall.Calls

	hold atomic.Pointer[chan struct{}] // a submission waits for it to be closed
}

func open(t testing.TB, fault ticket.Fault, change ...func(*agentcall.Config)) *house {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, origin: "http://" + l.Addr().String()}
	if h.service, err = ticket.Open(t.Context(), ticket.Config{Origin: h.origin, Fault: fault}); err != nil {
		t.Fatal(err)
	}
	inner := h.service.Handler()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := h.hold.Load(); c != nil && r.Method == http.MethodPost {
			<-*c
		}
		inner.ServeHTTP(w, r)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close(); h.service.Close() })
	if h.ledger, err = sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.ledger.Close() })
	tr, err := transport.New(transport.Config{Origins: []string{h.origin}, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewRecorder()
	inner.ServeHTTP(served, httptest.NewRequest(http.MethodGet, h.origin+"/agentic.json", nil))
	plan, err := agentic.Load(served.Body.Bytes(), ticket.OpenAPI(h.origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	h.config = agentcall.Config{
		Engine: client.Config{Ledger: h.ledger, Transport: tr, Scope: client.Scope{Principal: "ada", Environment: "test"}},
		Plans:  []*agentic.Plan{plan},
	}
	for _, f := range change {
		f(&h.config)
	}
	h.calls = h.begin()
	return h
}

// begin makes calls over the same ledger and service, as a new process would.
func (h *house) begin() *agentcall.Calls {
	h.t.Helper()
	c, err := agentcall.New(h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.Shutdown(ctx)
	})
	return c
}

// told is a structured answer, checked against the tool's schema.
type told struct {
	strictjson.Value
	text string
}

func (a told) str(name string) string {
	m, _ := a.Member(name)
	s, _ := m.Text()
	return s
}

func (a told) state() string    { return a.str("state") }
func (a told) id() string       { return a.str("request_id") }
func (a told) is(n string) bool { m, _ := a.Member(n); return m.Truth() }

func (h *house) call(c *agentcall.Calls, call agentcall.Call) (told, error) {
	h.t.Helper()
	a, err := c.Call(h.t.Context(), call)
	if err != nil {
		return told{}, err
	}
	for _, tool := range c.Tools() {
		if tool.Name == call.Tool {
			h.valid(tool.Output, a.Structured)
		}
	}
	v, err := strictjson.Parse(a.Structured)
	if err != nil {
		h.t.Fatalf("the answer is no JSON: %v\n%s", err, a.Structured)
	}
	return told{v, a.Text}, nil
}

func (h *house) valid(schema, doc []byte) {
	h.t.Helper()
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		h.t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:schema", s); err != nil {
		h.t.Fatal(err)
	}
	compiled, err := compiler.Compile("mem:schema")
	if err != nil {
		h.t.Fatalf("%v\n%s", err, schema)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		h.t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		h.t.Errorf("the answer is not valid by the output schema: %v\n%s", err, doc)
	}
}

// must calls a tool of the first calls.
func (h *house) must(tool, args string) told {
	h.t.Helper()
	a, err := h.call(h.calls, agentcall.Call{Tool: tool, Arguments: []byte(args)})
	if err != nil {
		h.t.Fatalf("%s %s: %v", tool, args, err)
	}
	return a
}

func (h *house) state(want ticket.State) {
	h.t.Helper()
	got, err := h.service.State(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if got.Posts != want.Posts || got.Tickets != want.Tickets {
		h.t.Errorf("the service got %d POSTs and has %d tickets, want %d and %d", got.Posts, got.Tickets, want.Posts, want.Tickets)
	}
}

func refusal(t *testing.T, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*agentcall.Error](err)
	if !ok || e.Code != code || !strings.HasSuffix(e.Message, "Nothing was sent by this call.") {
		t.Errorf("got the error %v, want one of code %s that says that nothing was sent", err, code)
	}
}

const act = "create-ticket"

// TestOutcomes: one POST for each fault, and a result for each outcome.
func TestOutcomes(t *testing.T) {
	for _, f := range ticket.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			h := open(t, ticket.Fault(f.Name))
			a := h.must(act, `{"subject":"The printer is on fire"}`)
			if a.state() != string(f.Outcome) {
				t.Fatalf("got %s, want %s: %s", a.state(), f.Outcome, a.text)
			}
			again := h.must(act, `{ "subject" : "The printer is on fire" }`)
			switch {
			case f.Outcome == agentic.Failed && again.id() == a.id():
				t.Error("a request that failed answers a new one")
			case f.Outcome != agentic.Failed && (again.id() != a.id() || !again.is("repeated")):
				t.Errorf("the second call got request %s, repeated %v, want %s", again.id(), again.is("repeated"), a.id())
			}
			state, err := h.service.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := 1; f.Outcome != agentic.Failed && state.Posts != want || state.Tickets > 1 {
				t.Errorf("the service got %d POSTs and has %d tickets", state.Posts, state.Tickets)
			}
		})
	}
}

// TestLostAndAskedAgain: the call ends before the POST is answered; the execution
// goes on, and the next call of any process finds it.
func TestLostAndAskedAgain(t *testing.T) {
	h := open(t, ticket.Normal)
	gate := make(chan struct{})
	h.hold.Store(&gate)
	ctx, cancel := context.WithCancel(t.Context())
	steps := make(chan agentcall.Progress, 32)
	lost := make(chan *agentcall.Answer, 1)
	go func() {
		a, err := h.calls.Call(ctx, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`), Progress: func(p agentcall.Progress) { steps <- p }})
		if err != nil {
			t.Error(err)
		}
		lost <- a
	}()
	for p := range steps {
		if strings.HasPrefix(p.Text, "Sending") {
			break
		}
	}
	cancel()
	if a := <-lost; !bytes.Contains(a.Structured, []byte(`"running"`)) {
		t.Errorf("the lost call got %s", a.Structured)
	}
	other := h.must(act, `{"subject":"one, in other words"}`)
	if other.state() != "held_back" || other.id() != "" {
		t.Errorf("the reworded call is %s, want held_back: %s", other.state(), other.text)
	}
	go func() { time.Sleep(100 * time.Millisecond); close(gate) }()
	again := h.must(act, `{"subject":"one"}`)
	if again.state() != "succeeded" || !again.is("repeated") {
		t.Errorf("the repeated call is %s, repeated %v: %s", again.state(), again.is("repeated"), again.text)
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestAnswerWithin: a call does not wait for ever, and resume_request finds the rest.
func TestAnswerWithin(t *testing.T) {
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.AnswerWithin = 50 * time.Millisecond })
	gate := make(chan struct{})
	h.hold.Store(&gate)
	a := h.must(act, `{"subject":"slow"}`)
	if a.state() != "running" || a.id() == "" {
		t.Fatalf("got %s %q", a.state(), a.id())
	}
	close(gate)
	for range 100 {
		if a = h.must("resume_request", `{"request_id":"`+a.id()+`"}`); a.state() != "running" {
			break
		}
	}
	if a.state() != "succeeded" {
		t.Errorf("got %s: %s", a.state(), a.text)
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestReworded: in a new process, a success that may not have reached the agent holds
// another input back until it is named, and what is open holds it back for each call.
func TestReworded(t *testing.T) {
	h := open(t, ticket.Normal)
	first := h.must(act, `{"subject":"one"}`)
	h.calls = h.begin()
	held := h.must(act, `{"subject":"one!"}`)
	if held.state() != "held_back" || !strings.Contains(held.text, "Nothing was saved or sent") {
		t.Fatalf("got %s: %s", held.state(), held.text)
	}
	m, _ := held.Member("open_requests")
	if m.Len() != 1 || (told{Value: m.Elements()[0]}).id() != first.id() {
		t.Errorf("open_requests is %s", m.Compact())
	}
	second := h.must(act, `{"subject":"two","agentic_call":{"distinct_from":["`+first.id()+`"]}}`)
	if second.state() != "succeeded" || second.is("repeated") {
		t.Fatalf("got %s: %s", second.state(), second.text)
	}
	twin := h.must(act, `{"subject":"two","agentic_call":{"distinct_from":["`+second.id()+`"]}}`)
	if twin.state() != "succeeded" || twin.is("repeated") || twin.id() == second.id() {
		t.Errorf("a second one that is meant got %s %s", twin.state(), twin.id())
	}
	h.state(ticket.State{Posts: 3, Tickets: 3})
}

func TestOpenHoldsBack(t *testing.T) {
	h := open(t, "pending", func(c *agentcall.Config) { c.Recent = -1 })
	first := h.must(act, `{"subject":"one"}`)
	if a := h.must(act, `{"subject":"two"}`); a.state() != "held_back" {
		t.Errorf("got %s", a.state())
	}
	if a := h.must(act, `{"subject":"one","agentic_call":{"distinct_from":["`+first.id()+`"]}}`); a.id() != first.id() {
		t.Errorf("what is open was made a second time by naming it: %s", a.text)
	}
	two := h.must(act, `{"subject":"two","agentic_call":{"distinct_from":["`+first.id()+`"]}}`)
	if two.state() != "pending" || two.id() == first.id() {
		t.Errorf("got %s: %s", two.state(), two.text)
	}
	h.state(ticket.State{Posts: 2})
}

func TestGuardsOff(t *testing.T) {
	h := open(t, "pending", func(c *agentcall.Config) { c.NoSameGuard, c.NoOpenGuard = true, true })
	a, b, c := h.must(act, `{"subject":"one"}`), h.must(act, `{"subject":"one"}`), h.must(act, `{"subject":"two"}`)
	if a.id() == b.id() || b.id() == c.id() || c.state() != "pending" {
		t.Errorf("got %s, %s, %s", a.id(), b.id(), c.id())
	}
	h.state(ticket.State{Posts: 3})
}

// TestSession: who reads every answer is not asked to name what it has just read,
// unless it gave up waiting.
func TestSession(t *testing.T) {
	h := open(t, ticket.Normal)
	say := func(session, subject string) told {
		a, err := h.call(h.calls, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"` + subject + `"}`), Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, step := range []struct{ session, subject, want string }{
		{"a", "one", "succeeded"}, {"a", "two", "succeeded"}, {"b", "three", "held_back"}, {"", "three", "held_back"}, {"a", "three", "succeeded"},
	} {
		if got := say(step.session, step.subject).state(); got != step.want {
			t.Errorf("session %q, subject %s: got %s, want %s", step.session, step.subject, got, step.want)
		}
	}
	h.calls.GaveUp("a")
	if got := say("a", "four").state(); got != "held_back" {
		t.Errorf("after it gave up: got %s", got)
	}
}

// TestAtOnce: many calls with the same input at once are one request, and with
// different ones nothing is sent beside an open one.
func TestAtOnce(t *testing.T) {
	h := open(t, ticket.Normal)
	ids := make(chan string, 16)
	for range cap(ids) {
		go func() {
			a, err := h.calls.Call(t.Context(), agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`)})
			if err != nil {
				t.Error(err)
				ids <- ""
				return
			}
			v, _ := strictjson.Parse(a.Structured)
			ids <- told{Value: v}.id()
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("got request %s beside %s", id, first)
		}
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

func TestPrepareAndSubmit(t *testing.T) {
	h := open(t, ticket.Normal)
	p := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"later"}}`)
	if p.state() != "prepared" {
		t.Fatalf("got %s: %s", p.state(), p.text)
	}
	would, _ := p.Member("would_send")
	if got := (told{Value: would}).str("url"); got != h.origin+"/tickets" {
		t.Errorf("would_send.url is %q", got)
	}
	if again := h.must(act, `{"subject":"later"}`); again.state() != "prepared" || again.id() != p.id() {
		t.Errorf("the action's own tool got %s %s", again.state(), again.id())
	}
	h.state(ticket.State{})
	for range 3 {
		if a := h.must("submit_request", `{"request_id":"`+p.id()+`"}`); a.state() != "succeeded" {
			t.Errorf("got %s: %s", a.state(), a.text)
		}
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestSubmitIsGuarded: the pair is no way around the guards.
func TestSubmitIsGuarded(t *testing.T) {
	h := open(t, "pending")
	first := h.must(act, `{"subject":"one"}`)
	p := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"one!"}}`)
	if a := h.must("submit_request", `{"request_id":"`+p.id()+`"}`); a.state() != "held_back" {
		t.Errorf("got %s", a.state())
	}
	if a := h.must("submit_request", `{"request_id":"`+p.id()+`","distinct_from":["`+first.id()+`"]}`); a.state() != "pending" || a.id() != p.id() {
		t.Errorf("got %s: %s", a.state(), a.text)
	}
	h.state(ticket.State{Posts: 2})
}

// TestConfirm: nothing is sent before a person agreed, and agreeing twice is one
// request.
func TestConfirm(t *testing.T) {
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Confirm = true })
	one := agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`)}
	_, err := h.call(h.calls, one)
	ask, ok := errors.AsType[*agentcall.ConfirmError](err)
	if !ok || ask.Question.URL != h.origin+"/tickets" || string(ask.Question.Input) != `{"subject":"one"}` {
		t.Fatalf("got %v", err)
	}
	other := one
	other.Arguments, other.Agreed = []byte(`{"subject":"two"}`), &ask.Question
	if _, err := h.call(h.calls, other); !errors.As(err, &ask) {
		t.Errorf("a yes to another input sends: %v", err)
	}
	_, err = h.call(h.calls, one)
	ask, _ = errors.AsType[*agentcall.ConfirmError](err)
	one.Agreed = &ask.Question
	for range 2 {
		a, err := h.call(h.calls, one)
		if err != nil || a.state() != "succeeded" || a.id() != ask.Question.RequestID {
			t.Errorf("got %s %s, %v", a.state(), a.id(), err)
		}
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestRefused: what is refused is refused before anything is saved.
func TestRefused(t *testing.T) {
	h := open(t, ticket.Normal)
	for _, c := range []struct{ tool, args, code string }{
		{act, `{"subject":1}`, "bad-input"},
		{act, `{}`, "bad-input"},
		{act, ``, "bad-input"},
		{act, `{"subject":"a","subject":"b"}`, "bad-arguments"},
		{act, `{"subject":"a","more":1}`, "bad-input"},
		{act, `["subject"]`, "bad-arguments"},
		{act, `{"subject":"a"} x`, "bad-arguments"},
		{act, "{\"subject\":\"\xff\"}", "bad-arguments"},
		{act, `{"subject":"` + strings.Repeat("a", 201) + `"}`, "bad-input"},
		{act, `{"subject":"` + strings.Repeat("a", 200_000) + `"}`, "bad-arguments"},
		{act, `{"subject":"a","agentic_call":{"request_id":"short"}}`, "bad-arguments"},
		{act, `{"subject":"a","agentic_call":{"force":true}}`, "bad-arguments"},
		{act, `{"subject":"a","agentic_call":{"distinct_from":"x"}}`, "bad-arguments"},
		{"prepare_request", `{"tool":"list_requests","input":{}}`, "no-such-tool"},
		{"prepare_request", `{"tool":"create-ticket","input":{"subject":2}}`, "bad-input"},
		{"prepare_request", `{"tool":"create-ticket","input":{"subject":"a","agentic_call":{}}}`, "bad-input"},
		{"submit_request", `{"request_id":"no-such-request"}`, "not-found"},
		{"resume_request", `{"request_id":"no-such-request"}`, "not-found"},
		{"show_request", `{}`, "bad-arguments"},
		{"list_requests", `{"limit":0}`, "bad-arguments"},
		{"no_tool", `{}`, "no-such-tool"},
	} {
		_, err := h.call(h.calls, agentcall.Call{Tool: c.tool, Arguments: []byte(c.args)})
		t.Run(c.tool+c.args[:min(len(c.args), 40)], func(t *testing.T) { refusal(t, err, c.code) })
	}
	if list, err := h.ledger.List(t.Context(), client.Filter{}); err != nil || len(list) > 0 {
		t.Errorf("saved %d requests, %v", len(list), err)
	}
	h.state(ticket.State{})
}

// TestRequestID: an ID that the agent gives is that request for ever.
func TestRequestID(t *testing.T) {
	h := open(t, ticket.Normal)
	mine := `"agentic_call":{"request_id":"my-own-id-1"}`
	a := h.must(act, `{"subject":"one",`+mine+`}`)
	b := h.must(act, `{"subject":"one",`+mine+`}`)
	if a.id() != "my-own-id-1" || b.id() != a.id() || b.state() != "succeeded" {
		t.Errorf("got %s and %s", a.id(), b.id())
	}
	_, err := h.call(h.calls, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"two",` + mine + `}`)})
	refusal(t, err, "bound-to-another")
	if c := h.must(act, `{"subject":"one","agentic_call":{"request_id":"my-own-id-2"}}`); c.id() != a.id() {
		t.Errorf("a new ID got around the guard: %s", c.id())
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

func TestAllow(t *testing.T) {
	h := open(t, ticket.Normal)
	p := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"one"}}`)
	h.config.Allow = func(*agentic.Plan) bool { return false }
	c := h.begin()
	for _, call := range []struct{ tool, args, code string }{
		{act, `{"subject":"one"}`, "no-such-tool"},
		{"prepare_request", `{"tool":"create-ticket","input":{"subject":"one"}}`, "no-such-tool"},
		{"submit_request", `{"request_id":"` + p.id() + `"}`, "not-allowed"},
	} {
		_, err := h.call(c, agentcall.Call{Tool: call.tool, Arguments: []byte(call.args)})
		refusal(t, err, call.code)
	}
	h.state(ticket.State{})
}

// TestScopes: principals do not see each other.
func TestScopes(t *testing.T) {
	h := open(t, "pending")
	a := h.must(act, `{"subject":"one"}`)
	h.config.Engine.Scope.Principal = "bob"
	h.calls = h.begin()
	if list := h.must("list_requests", `{"open_only":false}`); strings.Contains(string(list.Compact()), a.id()) {
		t.Error("bob sees the request of ada")
	}
	for _, tool := range []string{"show_request", "resume_request", "submit_request"} {
		_, err := h.call(h.calls, agentcall.Call{Tool: tool, Arguments: []byte(`{"request_id":"` + a.id() + `"}`)})
		refusal(t, err, "not-found")
	}
	if b := h.must(act, `{"subject":"one"}`); b.id() == a.id() || b.is("repeated") {
		t.Error("bob got the result of ada")
	}
	h.state(ticket.State{Posts: 2})
}

// TestShutdown: what runs is interrupted and can be resumed by another process.
func TestShutdown(t *testing.T) {
	h := open(t, ticket.Normal)
	gate := make(chan struct{})
	h.hold.Store(&gate)
	sent := make(chan struct{}, 1)
	done := make(chan told, 1)
	go func() {
		a, err := h.call(h.calls, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`), Progress: func(p agentcall.Progress) {
			if strings.HasPrefix(p.Text, "Sending") {
				sent <- struct{}{}
			}
		}})
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	<-sent
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	h.calls.Shutdown(ctx)
	a := <-done
	if s := a.state(); s != "unknown" && s != "running" {
		t.Errorf("the interrupted call is %s: %s", s, a.text)
	}
	_, err := h.call(h.calls, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"two"}`)})
	refusal(t, err, "shutting-down")
	close(gate)
	h.calls = h.begin()
	if again := h.must(act, `{"subject":"one"}`); again.id() != a.id() || !again.is("repeated") {
		t.Errorf("the next process got %s, want %s", again.id(), a.id())
	}
	state, err := h.service.State(t.Context())
	if err != nil || state.Posts != 1 {
		t.Errorf("%d POSTs, %v", state.Posts, err)
	}
}

// TestLedgerGone: without a ledger nothing is sent, and what may have been sent is
// unknown.
func TestLedgerGone(t *testing.T) {
	h := open(t, "pending")
	a := h.must(act, `{"subject":"one"}`)
	h.ledger.Close()
	_, err := h.call(h.calls, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"two"}`)})
	refusal(t, err, "ledger")
	if b := h.must("resume_request", `{"request_id":"`+a.id()+`"}`); b.state() != "unknown" || b.id() != a.id() {
		t.Errorf("got %s", b.state())
	}
	h.state(ticket.State{Posts: 1})
}

func TestReaders(t *testing.T) {
	h := open(t, "pending")
	a := h.must(act, `{"subject":"one"}`)
	if s := h.must("show_request", `{"request_id":"`+a.id()+`"}`); s.str("outcome") != "pending" || s.str("input_text") != `{"subject":"one"}` {
		t.Errorf("got %s", s.Compact())
	}
	list := h.must("list_requests", `{"limit":1}`)
	if !strings.Contains(string(list.Compact()), a.id()) {
		t.Errorf("got %s", list.Compact())
	}
	if v := h.must("validate_profile", `{"profile":"{}"}`); v.is("valid") {
		t.Error("an empty profile is valid")
	}
	whole := `{"profile":` + string(strictjson.Quote(string(ticket.Profile("https://tickets.example")))) + `,"openapi":` + string(strictjson.Quote(string(ticket.OpenAPI("https://tickets.example")))) + `}`
	if v := h.must("validate_profile", whole); !v.is("valid") {
		t.Errorf("got %s", v.Compact())
	}
	if s := h.must("read_spec", `{"section":"6"}`); !strings.Contains(s.str("text"), "at most once per saved request ID") {
		t.Errorf("got %s", s.str("text"))
	}
	for _, section := range []string{"", "profile-schema", "receipt-schema", "codes"} {
		if s := h.must("read_spec", `{"section":"`+section+`"}`); s.str("text") == "" {
			t.Errorf("section %q has no text", section)
		}
	}
}
