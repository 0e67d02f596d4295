package client

import (
	"context"
	"time"

	"github.com/agentic-go/agentic"
)

// Transport talks to the service. It decides where a request may go, whatever a
// profile says, adds the host's credentials, and keeps the limits of D15.
//
// No method returns an error for what happened on the network: an Exchange tells
// it, and nothing is ever repeated by a Transport.
type Transport interface {
	// Approve reports whether the host lets an action of this origin run: nil,
	// or an *OriginError. It makes no network call.
	Approve(origin, actionID string) error

	// Submit sends the POST, at most once, over a connection of its own.
	Submit(ctx context.Context, s Submission) Exchange

	// Get reads one of the two GET operations.
	Get(ctx context.Context, r Read) Exchange
}

// Submission is one POST (section 6.4). URL is absolute and below Origin.
type Submission struct {
	Origin    string
	ActionID  string
	URL       string
	Header    string // name of the header that carries the request ID
	RequestID string
	Body      []byte        // application/json
	Timeout   time.Duration // connection, headers and body
}

// Read is one GET. URL is absolute and below Origin.
type Read struct {
	Origin   string
	ActionID string
	URL      string
	Timeout  time.Duration
}

// Reach tells how far a request got. It is for people; no code sends again
// because of it.
type Reach string

// The zero Reach is not an answer of a Transport.
const (
	NotSent   Reach = "not-sent"   // no byte of the request left this process
	MaybeSent Reach = "maybe-sent" // nobody can tell
	Answered  Reach = "answered"   // an HTTP status came back
)

// ErrorClass tells why an exchange gave no usable answer. Empty means it gave one.
type ErrorClass string

// The classes. They are stable and safe to log.
const (
	ClassAddress    ErrorClass = "address"    // destination not approved, or an address the host refuses
	ClassConnect    ErrorClass = "connect"    // no connection: refused, unreachable, no such name
	ClassTLS        ErrorClass = "tls"        // the certificate or handshake was refused
	ClassTimeout    ErrorClass = "timeout"    // the exchange's own time limit (D15)
	ClassBroken     ErrorClass = "broken"     // the connection ended before the answer did
	ClassRedirect   ErrorClass = "redirect"   // a 3xx, not followed (section 2, D15)
	ClassTooLarge   ErrorClass = "too-large"  // headers or body over the limit (D15)
	ClassEncoded    ErrorClass = "encoded"    // a Content-Encoding that was not asked for (D15)
	ClassProtocol   ErrorClass = "protocol"   // not HTTP
	ClassCredential ErrorClass = "credential" // the host's credential function failed; nothing was sent
	ClassCanceled   ErrorClass = "canceled"   // the caller's context ended (D17)
)

// Exchange is what one call of a Transport came to. Answer.Status is set
// whenever a status came back, also with a Class; Answer.Body only without one.
type Exchange struct {
	Answer agentic.Answer
	Reach  Reach
	Class  ErrorClass
	Err    error // for people, nil exactly when Class is empty; holds no credential and no body
}
