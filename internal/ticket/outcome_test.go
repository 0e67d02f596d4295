package ticket

import (
	"context"
	"net/http"
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/transport"
)

// The product's own client, over real HTTP, ends every fault in the outcome that
// FaultInfo promises, with one POST; asked again it sends none.
func TestOutcomeOfEveryFault(t *testing.T) {
	for _, f := range Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Config{Fault: Fault(f.Name)})
			plan, err := agentic.Load([]byte(s.get("/agentic.json").body), []byte(s.get("/openapi.json").body), "", agentic.Options{AllowLoopback: true})
			if err != nil {
				t.Fatal(err)
			}
			tr, err := transport.New(transport.Config{Origins: []string{s.origin}, AllowLoopback: true})
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.New(client.Config{Ledger: ledgertest.NewMemory(nil), Transport: tr, Scope: client.Scope{Principal: "p", Environment: "e"}})
			if err != nil {
				t.Fatal(err)
			}
			req := client.Request{Plan: plan, Input: []byte(subject), ID: "request-0001"}
			for range 2 {
				result, err := c.Execute(t.Context(), req)
				equal(t, "error", err, nil)
				equal(t, "outcome", result.Receipt.Outcome, f.Outcome)
			}
			tickets := 1
			if f.Outcome == agentic.Pending || f.Outcome == agentic.Failed {
				tickets = 0
			}
			state, err := s.svc.State(context.Background())
			equal(t, "error", err, nil)
			equal(t, "POSTs, tickets and requests", []int{state.Posts, state.Tickets, state.Requests}, []int{1, tickets, 1})
		})
	}
}

// A key that is bound to another input is refused, and what its status says then
// proves nothing about this submission (D10).
func TestConflictNeverSucceeds(t *testing.T) {
	s := start(t, Config{})
	equal(t, "somebody else", s.post("request-0001", `{"subject":"another"}`).code, http.StatusCreated)
	plan, err := agentic.Load(Profile(s.origin), OpenAPI(s.origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := transport.New(transport.Config{Origins: []string{s.origin}, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Ledger: ledgertest.NewMemory(nil), Transport: tr, Scope: client.Scope{Principal: "p", Environment: "e"}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Execute(t.Context(), client.Request{Plan: plan, Input: []byte(subject), ID: "request-0001"})
	equal(t, "error", err, nil)
	equal(t, "outcome", result.Receipt.Outcome, agentic.Unknown)
	s.wantState(State{Posts: 2, Tickets: 1, Requests: 1, Reads: 1})
}
