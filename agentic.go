// Package agentic is the Agentic Action Profile 0.1 itself: profiles, their
// OpenAPI binding, the decisions over a service's answers, and receipts.
//
// Its job is to be pure: every function maps bytes and values to values. It has
// no clock, file, socket, database or goroutine; package client does the work
// and package transport the talking. It imports internal/strictjson, and
// golang.org/x/net/idna for hosts in punycode.
//
// The path of one action through this package: Load (ParseProfile,
// ParseOpenAPI, Bind) gives a Plan; Plan.CheckInput gives an Input; DecideStatus
// reads a status answer; Plan.DecideResource checks the evidence; Receipt is
// what remains.
package agentic

import "time"

// Version is the only supported version of the draft (section 2).
const Version = "0.1.0-draft"

// Limits of the draft, in bytes.
const (
	MaxProfileBytes  = 64 << 10  // a profile (section 2)
	MaxOpenAPIBytes  = 256 << 10 // an OpenAPI document (section 2)
	MaxInputBytes    = 16 << 10  // an input in canonical form (section 4, D18)
	MaxResponseBytes = 64 << 10  // one answer of the service (section 6.8)
	MaxIDBytes       = 1024      // an ID that goes into a URL (D14)
)

// Outcome is what is known of a request: the four words of section 6.
type Outcome string

// The outcomes. Pending and unknown are outcomes, not errors.
const (
	Succeeded Outcome = "succeeded" // verified with evidence read back
	Failed    Outcome = "failed"    // the service says the action did not complete
	Pending   Outcome = "pending"   // the service says it is not resolved yet
	Unknown   Outcome = "unknown"   // nobody may conclude anything; never a reason to send again
)

// Valid reports whether o is one of the four outcomes.
func (o Outcome) Valid() bool {
	return o == Succeeded || o == Failed || o == Pending || o == Unknown
}

// Final reports whether a saved receipt of this outcome is returned without
// another read: succeeded and failed (D11).
func (o Outcome) Final() bool { return o == Succeeded || o == Failed }

// Profile is a valid profile (section 3).
type Profile struct {
	Origin  string
	Actions []Action

	source []byte
	digest string
}

// Source is the document as it was parsed. The caller must not change it.
func (p *Profile) Source() []byte { return p.source }

// Digest is the SHA-256 of the document's canonical form, in hexadecimal: the
// snapshot that a request is bound to (section 2, D8).
func (p *Profile) Digest() string { return p.digest }

// Action returns the action of that ID.
func (p *Profile) Action(id string) (Action, bool) {
	for _, a := range p.Actions {
		if a.ID == id {
			return a, true
		}
	}
	return Action{}, false
}

// Action is one action of a profile (section 3). Its text is the publisher's and
// untrusted (D6).
type Action struct {
	ID          string
	Description string
	OpenAPI     string // root-relative URL of the OpenAPI document
	Submit      string // operation ID of the POST
	Status      string // operation ID of the request-status GET
	Verify      string // operation ID of the resource GET

	Header    string        // request.header: Idempotency-Key
	Scope     string        // request.scope: principal-action
	Retention time.Duration // request.retentionSeconds: the tracking window

	StatusRequestID  string // bindings.statusRequestId: path parameter of Status
	VerifyResourceID string // bindings.verifyResourceId: path parameter of Verify

	Evidence Evidence
	Recovery Recovery
}

// Evidence is what ties a resource to the request that made it (section 3).
type Evidence struct {
	ResourceIDPointer string
	RequestIDPointer  string
	StatePointer      string
	SuccessValues     []string
	InputBindings     []Pair
}

// Pair is an input pointer and the resource pointer whose value must be
// structurally equal (section 3, D2).
type Pair struct {
	InputPointer    string `json:"inputPointer"`
	ResourcePointer string `json:"resourcePointer"`
}

// Recovery bounds what one execution may ask of the service (section 3).
type Recovery struct {
	MaxChecks  int           // status checks of one execution, 1 to 10
	CheckDelay time.Duration // between two checks, 0 to 5 s
	Timeout    time.Duration // of each exchange: connection, headers and body (D15)
	Retry      string        // never-automatically
}

// Options loosen ParseProfile for local development. The zero value is for
// production.
type Options struct {
	// AllowLoopback accepts an http origin on localhost, 127.0.0.1 or [::1]
	// (section 2).
	AllowLoopback bool
}
