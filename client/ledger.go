package client

import (
	"context"
	"time"

	"github.com/agentic-go/agentic"
)

// Scope isolates requests: a ledger keeps every principal and environment apart
// (section 6, D8).
type Scope struct {
	Principal   string
	Environment string
}

// Snapshot is one of the publisher's documents as it was when the request was
// bound. Digest is the SHA-256 of the canonical form and addresses the content:
// a ledger keeps a document once, however many requests name it.
type Snapshot struct {
	Digest string
	Body   []byte
}

// Binding is what a request ID names for ever inside its scope (section 6.2, D8).
type Binding struct {
	Scope       Scope
	RequestID   string
	Origin      string
	ActionID    string
	Profile     Snapshot
	OpenAPI     Snapshot
	InputDigest string
	Input       []byte // as it is sent

	// Fresh is a hint and not bound: the ID was made for this very call, so a
	// ledger may try to bind it before it looks for it.
	Fresh bool
}

// State tells whether a request may still be sent.
type State string

// A request goes from prepared to attempted once, and never back (D9).
const (
	Prepared  State = "prepared"  // provably never sent
	Attempted State = "attempted" // may have been sent; never sent again
)

// Intent is what a caller of Ledger.Begin wants to do.
type Intent int

// IntendPrepare binds the request only; IntendSubmit also takes the right to
// submit it, if nobody has taken it yet.
const (
	IntendPrepare Intent = iota
	IntendSubmit
)

// Record is what a ledger holds of one request. Times are the ledger's, in UTC,
// with microseconds.
type Record struct {
	Binding
	State        State
	CreatedAt    time.Time
	SeenAt       time.Time // the highest time that any write of this request saw (D16)
	AttemptedAt  time.Time // zero while prepared
	Observations []Observation
	Receipts     []agentic.Receipt // in the order they were made; the last one counts
}

// Last is the latest receipt, or nil.
func (r *Record) Last() *agentic.Receipt {
	if len(r.Receipts) == 0 {
		return nil
	}
	return &r.Receipts[len(r.Receipts)-1]
}

// final is the receipt that ends the request (D11), or nil.
func (r *Record) final() *agentic.Receipt {
	if last := r.Last(); last != nil && last.Outcome.Final() {
		return last
	}
	return nil
}

// Summary is one line of a listing.
type Summary struct {
	Scope     Scope
	RequestID string
	Origin    string
	ActionID  string
	State     State
	Outcome   agentic.Outcome // of the last receipt, "" when there is none
	CreatedAt time.Time
	SeenAt    time.Time
}

// Filter chooses what List gives. The zero value is everything of the scope.
type Filter struct {
	Open    bool            // no final receipt yet: prepared, attempted, pending or unknown
	Outcome agentic.Outcome // of the last receipt; "" is any
	Limit   int             // at most so many, newest first; 0 is no limit
}

// Ledger is the durable memory of an agent host (section 6). Every method that
// writes returns only after the write is durable. A ledger that cannot answer
// returns an error that wraps ErrLedger; the outcomes of requests are never
// errors here.
//
// Implementations must pass storetest.Ledger.
type Ledger interface {
	// Begin binds a request, or finds it bound, and holds it exclusively
	// against every other Hold anywhere that shares the ledger. For another
	// holder it waits so long at most, then returns a *HeldError; with no wait
	// it tries once. When ctx ends first, its error is returned and nothing was
	// written. A different binding is refused with a *BindingError, and nothing
	// changes.
	//
	// With IntendSubmit, a request that is new or prepared becomes attempted in
	// the same durable commit, and exactly one Hold in the request's whole life
	// has MaySubmit (section 6.3 and 6.4, D9).
	//
	// Begin looks at b.Input and the snapshots' bodies only when the request is
	// new. The caller must Release the Hold.
	Begin(ctx context.Context, b Binding, intent Intent, wait time.Duration) (Hold, error)

	// Take holds a saved request by its ID alone, waiting as Begin does; with
	// IntendSubmit a prepared request becomes attempted as in Begin. An unknown
	// ID is a *NotFoundError.
	Take(ctx context.Context, scope Scope, requestID string, intent Intent, wait time.Duration) (Hold, error)

	// Load reads a request without holding it.
	Load(ctx context.Context, scope Scope, requestID string) (*Record, error)

	// List gives the requests of a scope, newest first.
	List(ctx context.Context, scope Scope, f Filter) ([]Summary, error)
}

// Hold is the exclusive execution of one request. It is used by one goroutine.
type Hold interface {
	// Record is the request as it was when the hold began, with all its
	// observations and receipts. The caller must not change it.
	Record() *Record

	// MaySubmit is true when this very hold made the request attempted. Only
	// then, and only once, may the caller send it.
	MaySubmit() bool

	// Now is the ledger's clock in UTC with microseconds (D16). It is not
	// adjusted: a clock that was set back shows.
	Now() time.Time

	// Observe appends observations durably and without a receipt. It fails
	// with ErrLost when the hold was taken over.
	Observe(ctx context.Context, obs []Observation) error

	// Finish appends observations and one receipt in one durable commit
	// (section 6.7). Nothing is ever overwritten. It fails with ErrLost when
	// the hold was taken over, and with another error for a receipt that is
	// invalid or another request's; then nothing was written.
	Finish(ctx context.Context, obs []Observation, r agentic.Receipt) error

	// Release gives the request free. It is safe to call twice.
	Release() error
}

// ExchangeKind names which of the three operations an exchange was.
type ExchangeKind string

// The three exchanges of the binding (section 4).
const (
	ExchangeSubmit ExchangeKind = "submit"
	ExchangeStatus ExchangeKind = "status"
	ExchangeVerify ExchangeKind = "verify"
)

// Observation is the memory of one exchange: never a body, never a credential.
// Found values of Checks can be sensitive and belong in the ledger only.
type Observation struct {
	Kind     ExchangeKind    `json:"kind"`
	At       time.Time       `json:"at"`                // when the exchange began
	Duration time.Duration   `json:"duration"`          // nanoseconds
	Reach    Reach           `json:"reach"`             // how far the request got
	Status   int             `json:"status"`            // HTTP status, 0 without an answer
	Class    ErrorClass      `json:"class,omitempty"`   // why there is no usable answer
	Detail   string          `json:"detail,omitempty"`  // one bounded sentence about Class
	Outcome  agentic.Outcome `json:"outcome,omitempty"` // what a status answer established
	Checks   []agentic.Check `json:"checks,omitempty"`
}

// withoutChecks is what others than the ledger may see.
func (o Observation) withoutChecks() Observation {
	o.Checks = nil
	return o
}
