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
	RequestID  string // "" when it is not chosen yet
	Supersedes string // client.Binding.Supersedes
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
	if s.Supersedes != "" {
		Field(&b, "  supersedes", s.Supersedes)
	}
	Block(&b, "  input", s.Input.Body())
	if s.Supersedes != "" {
		b.WriteString("The request that it supersedes may have happened; then this does it a second time.\n")
	}
	return b.Bytes()
}
