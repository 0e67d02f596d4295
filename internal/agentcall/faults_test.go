package agentcall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/ticket"
)

// between stands between the calls and their ledger and transport.
type between struct {
	client.Ledger
	client.Transport
	begin  func()               // before a request is bound
	load   func() error         // instead of reading one
	found  func(string) string  // the ID that is read instead
	list   func()               // before a listing
	submit func()               // after a POST
	finish func() (error, bool) // instead of writing a receipt
}

func (b *between) Begin(ctx context.Context, binding client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	if b.begin != nil {
		b.begin()
	}
	h, err := b.Ledger.Begin(ctx, binding, intent, wait)
	return held{h, b}, err
}

func (b *between) Load(ctx context.Context, s client.Scope, id string) (*client.Record, error) {
	if b.load != nil {
		if err := b.load(); err != nil {
			return nil, err
		}
	}
	if b.found != nil {
		id = b.found(id)
	}
	return b.Ledger.Load(ctx, s, id)
}

func (b *between) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	if b.list != nil {
		b.list()
	}
	return b.Ledger.List(ctx, f)
}

func (b *between) Submit(ctx context.Context, s client.Submission) client.Exchange {
	ex := b.Transport.Submit(ctx, s)
	if b.submit != nil {
		b.submit()
	}
	return ex
}

type held struct {
	client.Hold
	b *between
}

func (h held) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	if h.b.finish != nil {
		if err, instead := h.b.finish(); instead {
			return err
		}
	}
	return h.Hold.Finish(ctx, obs, r)
}

// disturb has calls of a new process go through b.
func (h *house) disturb(b *between) *agentcall.Calls {
	b.Ledger, b.Transport = h.config.Engine.Ledger, h.config.Engine.Transport
	h.config.Engine.Ledger, h.config.Engine.Transport = b, b
	return h.begin()
}

// TestPreparedHideNothing: however many requests are prepared, one that was sent
// holds another input back.
func TestPreparedHideNothing(t *testing.T) {
	h := open(t, "pending")
	h.must(act, `{"subject":"one"}`)
	for i := range 102 {
		h.must("prepare_request", fmt.Sprintf(`{"tool":"create-ticket","input":{"subject":"later %d"}}`, i))
	}
	if a := h.must(act, `{"subject":"two"}`); a.state() != "held_back" {
		t.Errorf("got %s: %s", a.state(), a.text)
	}
	h.state(ticket.State{Posts: 1})
}

// TestSlowSuccess: what was made long before it succeeded has succeeded just now.
func TestSlowSuccess(t *testing.T) {
	const recent = time.Second
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Repeat, c.Recent = -1, recent })
	gate := make(chan struct{})
	h.hold.Store(&gate)
	time.AfterFunc(recent+200*time.Millisecond, func() { close(gate) })
	h.must(act, `{"subject":"one"}`)
	if a := h.must(act, `{"subject":"two"}`); a.state() != "held_back" {
		t.Errorf("got %s: %s", a.state(), a.text)
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestBusy: a call that cannot be bound because another one waits for the ledger is
// refused in time.
func TestBusy(t *testing.T) {
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.AnswerWithin = 100 * time.Millisecond })
	free := make(chan struct{})
	c := h.disturb(&between{begin: func() { <-free }})
	if a, err := h.call(c, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`)}); err != nil || a.state() != "running" {
		t.Errorf("got %s, %v", a.state(), err)
	}
	_, err := h.call(c, agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"two"}`)})
	refusal(t, err, "busy")
	close(free)
}

// TestFault: a panic ends neither the server nor the promise.
func TestFault(t *testing.T) {
	h := open(t, ticket.Normal)
	b := &between{submit: func() { panic(`{"subject":"secret"}`) }}
	log := &strings.Builder{}
	h.config.Engine.Logger = slog.New(slog.NewTextHandler(log, nil))
	c := h.disturb(b)
	one := agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`)}
	a, err := h.call(c, one)
	if err != nil || a.state() != "unknown" && a.state() != "running" {
		t.Fatalf("got %s, %v", a.state(), err)
	}
	if again, err := h.call(c, one); err != nil || again.id() != a.id() || again.state() != "succeeded" {
		t.Errorf("got %s %s, %v", again.state(), again.id(), err)
	}
	b.list = func() { panic("secret") }
	two := agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"two","agentic_call":{"distinct_from":["` + a.id() + `"]}}`)}
	if _, err := h.call(c, two); err != agentcall.ErrFault {
		t.Errorf("got %v", err)
	}
	b.list, b.submit = nil, nil
	if a, err := h.call(c, two); err != nil || a.state() != "succeeded" {
		t.Errorf("after a fault: got %s, %v", a.state(), err)
	}
	if !strings.Contains(log.String(), "Submit") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log has %s", log)
	}
	h.state(ticket.State{Posts: 2, Tickets: 2})
}

// TestAnotherMaySubmit: when another process had the right to send, a ledger that
// fails is no proof that nothing was sent.
func TestAnotherMaySubmit(t *testing.T) {
	h := open(t, "pending")
	call := agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one","agentic_call":{"request_id":"my-own-id-1"}}`)}
	if _, err := h.call(h.calls, call); err != nil {
		t.Fatal(err)
	}
	first := true
	c := h.disturb(&between{
		load: func() error { // as if the other one bound it a moment later
			defer func() { first = false }()
			if first {
				return &client.NotFoundError{RequestID: "my-own-id-1"}
			}
			return nil
		},
		finish: func() (error, bool) { return &client.LedgerError{Op: "finish", Err: errors.New("disk full")}, true },
	})
	a, err := h.call(c, call)
	if err != nil || a.id() != "my-own-id-1" || a.state() != "pending" {
		t.Errorf("got %s %s, %v", a.id(), a.state(), err)
	}
	h.state(ticket.State{Posts: 1})
}

// TestRemembered: an agent that names more than can be remembered is held back again,
// and costs no more memory.
func TestRemembered(t *testing.T) {
	h := open(t, ticket.Normal)
	first := h.must(act, `{"subject":"one"}`)
	h.calls = h.disturb(&between{found: func(id string) string { // as if there were so many requests
		if strings.HasPrefix(id, "one-of-many") {
			return first.id()
		}
		return id
	}})
	h.must("show_request", `{"request_id":"`+first.id()+`"}`)
	for n := range 101 {
		var ids []string
		for i := range 100 {
			ids = append(ids, fmt.Sprintf(`"one-of-many-%d-%d"`, n, i))
		}
		h.must(act, `{"subject":"one","agentic_call":{"distinct_from":[`+strings.Join(ids, ",")+`]}}`)
	}
	if a := h.must(act, `{"subject":"two"}`); a.state() != "held_back" {
		t.Errorf("got %s", a.state())
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestStuckClient: a client that does not read keeps neither an execution nor the end
// of the server.
func TestStuckClient(t *testing.T) {
	h := open(t, ticket.Normal)
	stuck, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	go h.calls.Call(context.WithoutCancel(t.Context()), agentcall.Call{Tool: act, Arguments: []byte(`{"subject":"one"}`), Progress: func(agentcall.Progress) {
		select {
		case stuck <- struct{}{}:
		default:
		}
		<-free
	}})
	<-stuck
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if a := h.must(act, `{"subject":"one"}`); a.state() != "succeeded" {
		t.Errorf("got %s", a.state())
	}
	cancel()
	done := make(chan struct{})
	go func() { h.calls.Shutdown(ctx); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("Shutdown waits for a client that does not read")
	}
}

// TestPages: every request can be reached by listing.
func TestPages(t *testing.T) {
	h := open(t, ticket.Normal)
	for i := range 5 {
		h.must("prepare_request", fmt.Sprintf(`{"tool":"create-ticket","input":{"subject":"%d"}}`, i))
	}
	seen, before := map[string]bool{}, ""
	for more := true; more; {
		page := h.must("list_requests", `{"limit":2`+before+`}`)
		more = page.is("more")
		requests, _ := page.Member("requests")
		for _, r := range requests.Elements() {
			seen[told{Value: r}.id()] = true
			before = `,"before":"` + told{Value: r}.str("created_at") + `"`
		}
		if requests.Len() == 0 {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("saw %d requests, want 5", len(seen))
	}
	_, err := h.call(h.calls, agentcall.Call{Tool: "list_requests", Arguments: []byte(`{"before":"yesterday"}`)})
	refusal(t, err, "bad-arguments")
}

// TestPreparedByOtherDocuments: what a person is shown of a prepared request is what
// its own documents say, also when the server has newer ones.
func TestPreparedByOtherDocuments(t *testing.T) {
	h := open(t, ticket.Normal)
	p := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"one"}}`)
	newer := bytes.ReplaceAll(ticket.OpenAPI(h.origin), []byte(`"/tickets"`), []byte(`"/v2/tickets"`))
	plan, err := agentic.Load(ticket.Profile(h.origin), newer, "", agentic.Options{AllowLoopback: true})
	if err != nil || plan.SubmitURL() != h.origin+"/v2/tickets" {
		t.Fatal(plan.SubmitURL(), err)
	}
	h.config.Plans, h.config.Confirm = []*agentic.Plan{plan}, true
	c := h.begin()
	_, err = h.call(c, agentcall.Call{Tool: "submit_request", Arguments: []byte(`{"request_id":"` + p.id() + `"}`)})
	ask, ok := errors.AsType[*agentcall.ConfirmError](err)
	if !ok || ask.Question.URL != h.origin+"/tickets" {
		t.Errorf("got %v, %+v", err, ask)
	}
	again, err := h.call(c, agentcall.Call{Tool: "prepare_request", Arguments: []byte(`{"tool":"create-ticket","input":{"subject":"one"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	would, _ := again.Member("would_send")
	if got := (told{Value: would}).str("url"); got != h.origin+"/tickets" {
		t.Errorf("would_send.url is %s", got)
	}
	h.state(ticket.State{})
}

// TestSettledByAPerson: what a person left as it is may have been done, so neither the
// same call nor a reworded one sends; naming it does.
func TestSettledByAPerson(t *testing.T) {
	settle := func(h *house, id string, verb client.Verb) {
		n := client.Note{By: "bea", Verb: verb, Reason: "I looked"}
		if verb == client.AttestSucceeded {
			n.ResourceID = "t-1"
		}
		if err := h.ledger.AddNote(t.Context(), h.config.Engine.Scope, id, n); err != nil {
			t.Fatal(err)
		}
	}
	for verb, want := range map[client.Verb]struct {
		same, other string
		posts       int
	}{
		client.Abandon:         {"pending", "held_back", 1},
		client.AttestSucceeded: {"pending", "held_back", 1},
		client.AttestFailed:    {"pending", "held_back", 2}, // a new request, and that is open
	} {
		t.Run(string(verb), func(t *testing.T) {
			h := open(t, "pending")
			first := h.must(act, `{"subject":"one"}`)
			settle(h, first.id(), verb)
			same := h.must(act, `{"subject":"one"}`)
			if same.state() != want.same || (same.id() == first.id()) != (want.posts == 1) {
				t.Errorf("the same call got %s of %s: %s", same.state(), same.id(), same.text)
			}
			if other := h.must(act, `{"subject":"One."}`); other.state() != want.other {
				t.Errorf("a reworded call got %s: %s", other.state(), other.text)
			}
			h.state(ticket.State{Posts: want.posts})
			meant := h.must(act, `{"subject":"one","agentic_call":{"distinct_from":["`+same.id()+`"]}}`)
			if (meant.id() != same.id()) != (want.posts == 1) {
				t.Errorf("one that is meant got %s: %s", meant.id(), meant.text)
			}
			h.state(ticket.State{Posts: 2})
		})
	}
}
