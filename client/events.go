package client

import (
	"time"

	"github.com/agentic-go/agentic"
)

// Event is something that has just happened to a request. The types are Saved,
// Submitting, Submitted, Interrupted, Checking, Checked, Verifying, Verified and
// Resulted. None holds an input or a credential, and their observations have no
// Checks, whose values come from the input and the resource; only Resulted holds
// a receipt.
type Event interface{ event() }

// EventHead is what all events share.
type EventHead struct {
	Scope     Scope
	RequestID string
	ActionID  string
	Origin    string
	At        time.Time // the ledger's clock
}

func (EventHead) event() {}

// Saved says that the request is durable and held by this execution. MaySubmit
// says that this execution, and no other ever, sends it.
type Saved struct {
	EventHead
	State     State
	MaySubmit bool
}

// Submitting says that the POST is about to be sent, for the only time.
type Submitting struct{ EventHead }

// Submitted says that an answer to the POST came back. It makes no outcome (D10).
type Submitted struct {
	EventHead
	Observation Observation
}

// Interrupted says that the POST gave no answer; whether it arrived is unknown.
type Interrupted struct {
	EventHead
	Observation Observation
}

// Checking says that status check N of M is about to be made.
type Checking struct {
	EventHead
	N, M int
}

// Checked says what status check N of M came to.
type Checked struct {
	EventHead
	N, M        int
	Observation Observation
	Reason      string
}

// Verifying says that the resource is about to be read.
type Verifying struct {
	EventHead
	ResourceID string // the service's, untrusted (D6)
}

// Verified says what the evidence check came to.
type Verified struct {
	EventHead
	OK          bool
	Observation Observation
	Reason      string
}

// Resulted says that a receipt is durable, or that a saved one is returned.
type Resulted struct {
	EventHead
	Receipt   agentic.Receipt
	FromSaved bool
}
