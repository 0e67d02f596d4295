package render

import (
	"bytes"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Sending is what a person is asked about before it is sent.
type Sending struct {
	Plan       *agentic.Plan
	Input      agentic.Input
	Scope      client.Scope
	RequestID  string          // "" when it is not chosen yet
	Supersedes *client.Summary // the request of client.Binding.Supersedes, or nil
}

// Text is the question's subject, with the whole input.
func (s Sending) Text() []byte {
	var b bytes.Buffer
	b.WriteString("This would be sent, once:\n")
	Field(&b, "  origin", s.Plan.Origin)
	Field(&b, "  action", s.Plan.Action.ID)
	Field(&b, "  described", s.Plan.Action.Description+"  (the publisher's words)")
	Field(&b, "  sends", "POST "+s.Plan.SubmitURL())
	Field(&b, "  principal", s.Scope.Principal)
	Field(&b, "  environment", s.Scope.Environment)
	if s.RequestID != "" {
		Field(&b, "  request ID", s.RequestID)
	}
	if s.Supersedes != nil {
		Field(&b, "  supersedes", s.Supersedes.RequestID)
	}
	Block(&b, "  input", s.Input.Body())
	if s.Supersedes != nil {
		b.WriteString("The request that it supersedes " + became(s.Supersedes) + "\n")
	}
	return b.Bytes()
}

// became is what is known of a request that was superseded, to be said before its
// successor is sent.
func became(old *client.Summary) string {
	switch {
	case old.Outcome == agentic.Succeeded:
		return "HAS SUCCEEDED, with evidence: this does it a second time."
	case old.Outcome == agentic.Failed:
		return "has failed, by its receipt."
	case old.Settled == client.AttestSucceeded:
		return "was found done by a person: this does it a second time."
	case old.State == client.Prepared:
		return "was never sent."
	}
	return "may have happened; then this does it a second time."
}
