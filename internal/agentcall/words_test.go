package agentcall_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/internal/ticket"
)

// unplugged is a transport whose submissions do not leave the host.
type unplugged struct{ client.Transport }

func (unplugged) Submit(context.Context, client.Submission) client.Exchange {
	return client.Exchange{Reach: client.NotSent, Class: client.ClassConnect, Err: errors.New("connection refused")}
}

func says(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if not, ok := strings.CutPrefix(want, "!"); ok == strings.Contains(text, strings.TrimPrefix(want, "!")) {
			t.Errorf("%s has, or lacks, %q (%s): %s", what, want, not, text)
		}
	}
}

// requests are the entries of an answer of list_requests, by their request IDs.
func (a told) requests() map[string]told {
	out := map[string]told{}
	list, _ := a.Member("requests")
	for _, r := range list.Elements() {
		out[told{Value: r}.id()] = told{Value: r}
	}
	return out
}

// TestListShowsWhatIsDone: who asks what was done is never told that there is nothing
// when something was done.
func TestListShowsWhatIsDone(t *testing.T) {
	h := open(t, ticket.Normal)
	says(t, "an empty list", h.must("list_requests", `{}`).text, "no saved request")
	says(t, "an empty list", h.must("list_requests", `{"open_only":true}`).text, "no saved request")
	a := h.must(act, `{"subject":"one"}`)
	list := h.must("list_requests", `{}`)
	if r := list.requests()[a.id()]; r.str("outcome") != "succeeded" || r.str("input_text") != `{"subject":"one"}` {
		t.Errorf("got %s", list.Compact())
	}
	says(t, "the list", list.text, "1 saved request(s)", "0 are not settled", "input_text")
	none := h.must("list_requests", `{"open_only":true}`)
	says(t, "what is open", none.text, "no open request", "1 are finished: call it with open_only false")
	if len(none.requests()) != 0 {
		t.Errorf("got %s", none.Compact())
	}
	says(t, "what is older", h.must("list_requests", `{"before":"2001-01-01T00:00:00Z"}`).text, "made before that time")
	long := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"`+strings.Repeat("\\u202e", 150)+`"}}`)
	open := h.must("list_requests", `{"open_only":true}`).requests()
	if text := open[long.id()].str("input_text"); len(open) != 1 || len([]rune(text)) > 2001 || strings.Contains(text, "\u202e") {
		t.Errorf("input_text is %q", text)
	}
}

// TestNeverArrived: what provably did not leave this host, and the service does not
// know, is for a person at once. It is never sent again; the agent may make another
// request only by naming this one.
func TestNeverArrived(t *testing.T) {
	h := open(t, ticket.Normal)
	plugged := h.config.Engine.Transport
	h.config.Engine.Transport = unplugged{plugged}
	h.calls = h.begin()
	a := h.must(act, `{"subject":"one"}`)
	if next, _ := a.Member("next"); a.state() != "unknown" || !a.is("needs_person") || next.Kind() != strictjson.Null {
		t.Errorf("got %s", a.Compact())
	}
	says(t, "the result", a.text, "no byte of it was sent", "never sent again", "Tell the user", "agentic requests abandon", "agentic_call.distinct_from", "!may be done already")
	h.config.Engine.Transport = plugged
	h.calls = h.begin()
	if again := h.must(act, `{"subject":"one"}`); again.id() != a.id() || again.state() != "unknown" || !again.is("needs_person") {
		t.Errorf("got %s", again.Compact())
	}
	if !h.must("list_requests", `{}`).requests()[a.id()].is("needs_person") || !h.must("show_request", `{"request_id":"`+a.id()+`"}`).is("needs_person") {
		t.Error("the list and the request do not say that it needs a person")
	}
	h.state(ticket.State{})
	meant := `{"subject":"one","agentic_call":{"distinct_from":["` + a.id() + `"]}}`
	b := h.must(act, meant)
	if b.state() != "succeeded" || b.id() == a.id() {
		t.Errorf("got %s %s: %s", b.state(), b.id(), b.text)
	}
	if twice := h.must(act, meant); twice.id() != b.id() || !twice.is("repeated") {
		t.Errorf("naming it again makes a third one: %s", twice.text)
	}
	h.state(ticket.State{Posts: 1, Tickets: 1})
}

// TestNotSentAndNotRead: as long as the service has not said that it does not know the
// request, the agent reads first.
func TestNotSentAndNotRead(t *testing.T) {
	h := open(t, ticket.Normal)
	h.config.Engine.Transport = deaf{unplugged{h.config.Engine.Transport}}
	h.calls = h.begin()
	a := h.must(act, `{"subject":"one"}`)
	if a.state() != "unknown" || a.is("needs_person") {
		t.Errorf("got %s", a.Compact())
	}
	says(t, "the result", a.text, "no byte of it was sent", "never sent again", "read its status first", "Next: resume_request")
	if b := h.must(act, `{"subject":"one","agentic_call":{"distinct_from":["`+a.id()+`"]}}`); b.id() != a.id() {
		t.Errorf("got another request: %s", b.text)
	}
}

// deaf is a transport that reads no status.
type deaf struct{ client.Transport }

func (deaf) Get(context.Context, client.Read) client.Exchange {
	return client.Exchange{Reach: client.NotSent, Class: client.ClassConnect, Err: errors.New("connection refused")}
}

// TestMadeUp: an ID that names nothing is no reason to go on.
func TestMadeUp(t *testing.T) {
	h := open(t, "pending")
	a := h.must(act, `{"subject":"one"}`)
	p := h.must("prepare_request", `{"tool":"create-ticket","input":{"subject":"two"}}`)
	for tool, args := range map[string]string{
		act:              `{"subject":"three","agentic_call":{"distinct_from":["made-up-1"]}}`,
		"submit_request": `{"request_id":"` + p.id() + `","distinct_from":["made-up-1"]}`,
	} {
		_, err := h.call(h.calls, agentcall.Call{Tool: tool, Arguments: []byte(args)})
		refusal(t, err, "not-found")
		says(t, tool, err.Error(), "made-up-1", "These are open: ", a.id())
	}
	h.state(ticket.State{Posts: 1})
}

// TestExactWords: what an agent is told is said once, with units and names.
func TestExactWords(t *testing.T) {
	h := open(t, "pending")
	a := h.must(act, `{"subject":"one"}`)
	shown := h.must("show_request", `{"request_id":"`+a.id()+`"}`)
	says(t, "the request", string(shown.Compact()), `"duration_ms":`, `!"duration":`)
	for args, want := range map[string]string{
		`{}`: "The sections of the Agentic", `{"section":"6"}`: "Section 6 of the Agentic", `{"section":"codes"}`: "The diagnostic codes of",
		`{"section":"profile-schema"}`: "The JSON Schema of profiles", `{"section":"receipt-schema"}`: "The JSON Schema of receipts",
	} {
		says(t, args, h.must("read_spec", args).text, want)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"list_requests", `{"opne":1}`, `"opne" that is not known here; there can be: open_only, limit, before.`},
		{act, `{"subject":"two","agentic_call":{"distinct":[]}}`, "there can be: request_id, distinct_from."},
		{act, `{"subject":"` + strings.Repeat("a", 201) + `"}`, "maxLength of the request schema, which is 200"},
		{act, `{"subject":2}`, "as the inputSchema of the tool create-ticket describes it"},
	} {
		_, err := h.call(h.calls, agentcall.Call{Tool: c.tool, Arguments: []byte(c.args)})
		if err == nil {
			t.Fatalf("%s %s is taken", c.tool, c.args)
		}
		says(t, c.args, err.Error(), c.want, "!OpenAPI document")
	}
	note := client.Note{By: "eve", Verb: client.AttestFailed, Reason: "I looked"}
	if err := h.ledger.AddNote(t.Context(), h.config.Engine.Scope, a.id(), note); err != nil {
		t.Fatal(err)
	}
	settled := h.must("resume_request", `{"request_id":"`+a.id()+`"}`).text
	if strings.Count(settled, "A person settled it") != 1 {
		t.Errorf("got %s", settled)
	}
}
