package client

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
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

	// Window is how long the service keeps track of the request (tracking window,
	// section 3), from its creation, and Term is the longest that one execution
	// takes by the plan's own limits. Both follow from the profile: a ledger saves
	// them with a new request and does not compare them.
	Window time.Duration
	Term   time.Duration

	// Supersedes is the request of the same scope that a person has this one made
	// instead of; "" for all others. It is saved with a new request and not compared.
	Supersedes string

	// Fresh and Guard are not saved. Fresh is a hint: the ID was made for this very
	// call, so a ledger may try to bind it before it looks for it.
	Fresh bool
	Guard Guard
}

// Guard has a ledger refuse a new request whose scope, origin, action and input
// digest equal those of an earlier one: it looks like the same thing asked again
// under a new ID. The zero value refuses nothing.
type Guard struct {
	On bool // an earlier request that is open counts (Summary.Open), unless it has expired (Record.Expired); without it nothing does

	// Succeeded, above zero, makes an earlier request count too whose last receipt
	// says succeeded, or which a person attested to have (its last settling note), if
	// its SeenAt is less than so long ago. A tombstone has all of that, so a purged
	// success counts as long as one that was kept.
	Succeeded time.Duration
}

// Intent64 is a short digest of what a Guard compares, for an index. Requests with
// the same one have still to be compared.
func (b *Binding) Intent64() int64 {
	h := sha256.New()
	for _, s := range []string{b.Scope.Principal, b.Scope.Environment, b.Origin, b.ActionID, b.InputDigest} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) // a hash takes everything
		_, _ = h.Write([]byte(s))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
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
	Notes        []Note            // what people did about it, in order

	// PurgedAt is zero while everything is kept. A purged request is a tombstone:
	// it has no documents (not even their digests), input, observations, receipts or
	// notes, and never runs again.
	PurgedAt      time.Time
	Purged        agentic.Outcome // a tombstone's: of its last receipt
	PurgedSettled Verb            // a tombstone's: with which a person settled it
}

// Clone is a copy that shares the documents only, which nobody changes.
func (r *Record) Clone() *Record {
	c := *r
	c.Input = slices.Clone(r.Input)
	c.Observations = CloneObservations(r.Observations)
	c.Notes = slices.Clone(r.Notes)
	c.Receipts = slices.Clone(r.Receipts)
	for i := range c.Receipts {
		c.Receipts[i] = c.Receipts[i].Clone()
	}
	return &c
}

// Expired reports whether a prepared request may not be sent any more: its tracking
// window, which began when it was prepared, has ended, so nothing could be learned of
// it (section 6.9, D16).
func (r *Record) Expired(now time.Time) bool {
	return r.State == Prepared && !now.Before(r.CreatedAt.Add(r.Window))
}

// Settled is the note with which a person settled the request, or nil.
func (r *Record) Settled() *Note {
	for i := len(r.Notes) - 1; i >= 0; i-- {
		if r.Notes[i].Verb.Settles() {
			return &r.Notes[i]
		}
	}
	return nil
}

// Summary is the request as a listing has it.
func (r *Record) Summary() Summary {
	s := Summary{
		Scope: r.Scope, RequestID: r.RequestID, Origin: r.Origin, ActionID: r.ActionID, State: r.State, Outcome: r.Purged, Settled: r.PurgedSettled,
		CreatedAt: r.CreatedAt, SeenAt: r.SeenAt, AttemptedAt: r.AttemptedAt, WindowEnds: r.CreatedAt.Add(r.Window),
		Supersedes: r.Supersedes, PurgedAt: r.PurgedAt,
	}
	if last := r.Last(); last != nil {
		s.Outcome = last.Outcome
	}
	if n := r.Settled(); n != nil {
		s.Settled = n.Verb
	}
	return s
}

// Last is the latest receipt, or nil.
func (r *Record) Last() *agentic.Receipt {
	if len(r.Receipts) == 0 {
		return nil
	}
	return &r.Receipts[len(r.Receipts)-1]
}

// Closed reports whether the last receipt leaves the outcome unknown and was made after
// the tracking window. Nothing is read after that, so there is no second one.
func (r *Record) Closed() bool {
	last := r.Last()
	if last == nil || last.Outcome != agentic.Unknown {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, last.ObservedAt)
	return err == nil && !at.Before(r.CreatedAt.Add(r.Window))
}

// Over is the receipt that no other follows, or nil: a final one (D11), or the one that
// closed the request. A ledger leaves a request that has one as it is, and no worker
// looks at it again.
func (r *Record) Over() *agentic.Receipt {
	if last := r.Last(); last != nil && (last.Outcome.Final() || r.Closed()) {
		return last
	}
	return nil
}

// Summary is one line of a listing.
type Summary struct {
	Scope       Scope
	RequestID   string
	Origin      string
	ActionID    string
	State       State
	Outcome     agentic.Outcome // of the last receipt, "" when there is none
	Settled     Verb            // with which a person settled it, "" when nobody did
	Supersedes  string          // Binding.Supersedes
	CreatedAt   time.Time
	SeenAt      time.Time
	AttemptedAt time.Time // zero while prepared
	WindowEnds  time.Time // CreatedAt plus Window
	NextCheck   time.Time // when a worker reads its status next; zero is never. A Record does not tell it
	PurgedAt    time.Time // zero while everything is kept
}

// Open reports whether the request still waits for something: it has no final
// receipt, no person has settled it, and it is not purged.
func (s *Summary) Open() bool {
	return !s.Outcome.Final() && s.Settled == "" && s.PurgedAt.IsZero()
}

// NeedsPerson reports whether nothing but a person can settle the request: it is
// open, it may have been sent, and its tracking window has ended (section 6.9).
func (s *Summary) NeedsPerson(now time.Time) bool {
	return s.Open() && s.State == Attempted && !now.Before(s.WindowEnds)
}

// Filter chooses what List gives, by all of its conditions. The zero value is
// everything there is.
type Filter struct {
	Principal   *string // of the scope; nil is any
	Environment *string
	Origin      string
	ActionID    string
	Outcome     agentic.Outcome // of the last receipt; "" is any
	Open        bool            // only what is open (Summary.Open)
	NeedsPerson bool            // only what needs a person, by the ledger's clock
	Due         bool            // only what has a NextCheck that has come, by the ledger's clock
	Before      time.Time       // created before; zero is no bound
	After       time.Time       // created at or after; zero is no bound
	Order       Order
	Limit       int // at most so many; 0 is no limit
}

// In gives the filter for one scope.
func (f Filter) In(s Scope) Filter {
	f.Principal, f.Environment = &s.Principal, &s.Environment
	return f
}

// Order is the order of a listing.
type Order int

// NewestFirst is by creation time, and by order of making among equals.
//
// UrgentFirst has the requests first whose window is running, with the least time
// left first: open, attempted, window not ended. Then those that need a person, with
// the window that ended last first; then what else is open; then the rest.
//
// DueFirst is by NextCheck, the earliest first; what has none comes last.
//
// In every order equals are newest first.
const (
	NewestFirst Order = iota
	UrgentFirst
	DueFirst
)

// Ledger is the durable memory of an agent host (section 6). Every method that
// writes returns only after the write is durable. A ledger that cannot answer
// returns an error that wraps ErrLedger; the outcomes of requests are never
// errors here.
//
// Implementations must pass ledgertest.Ledger.
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
	// new. A new request that b.Guard refuses is a *DuplicateError that names the
	// newest earlier one; it does not wait for whoever holds that. A purged one is a
	// *PurgedError, whatever the binding. Either way nothing was written. A prepared
	// request that a person has settled, or that has expired by the ledger's clock
	// (Record.Expired), stays prepared. What is over (Record.Over) is left as it is, and
	// its Hold writes nothing. The caller must Release the Hold.
	Begin(ctx context.Context, b Binding, intent Intent, wait time.Duration) (Hold, error)

	// Take holds a saved request by its ID alone, waiting as Begin does; with
	// IntendSubmit a prepared request becomes attempted as in Begin. An unknown
	// ID is a *NotFoundError, a purged one a *PurgedError.
	Take(ctx context.Context, scope Scope, requestID string, intent Intent, wait time.Duration) (Hold, error)

	// Load reads a request without holding it.
	Load(ctx context.Context, scope Scope, requestID string) (*Record, error)

	// List gives summaries, filtered and in order.
	List(ctx context.Context, f Filter) ([]Summary, error)
}

// Hold is the exclusive execution of one request. It is used by one goroutine.
type Hold interface {
	// Record is the request as it was when the hold began, with all its
	// observations and receipts. The caller must not change it.
	Record() *Record

	// MaySubmit is true when this very hold made the request attempted, and is
	// still certain to be the only one; a released hold is not. Only then, and only
	// once, may the caller send it, and it asks directly before.
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
	//
	// It is the last write of a hold: after it every write fails, and a ledger may
	// have given the request free in the same commit.
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

// CloneObservations is a copy that shares nothing with obs.
func CloneObservations(obs []Observation) []Observation {
	obs = slices.Clone(obs)
	for i := range obs {
		obs[i].Checks = slices.Clone(obs[i].Checks)
	}
	return obs
}

// withoutChecks is what others than the ledger may see.
func (o Observation) withoutChecks() Observation {
	o.Checks = nil
	return o
}
