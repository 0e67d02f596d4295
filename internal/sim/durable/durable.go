// Package durable is the ledger of package sim without everything that can happen to it:
// what is on its disk. It waits for nothing, has no clock, and is used by one goroutine.
// The suite of every ledger (ledgertest) is run against it.
//
// Its job is the contract of client.Ledger and client.Hold as state: what a write does,
// and to whom it is refused. Faults, waiting, leases that are renewed and hosts that die
// are package sim's. It imports agentic and client.
package durable

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Never is a moment that does not come.
const Never = time.Duration(math.MaxInt64)

// Key names a request in a ledger.
type Key struct {
	Scope client.Scope
	ID    string
}

// Ledger is what is durable of a ledger: plain state that waits for nothing and has no
// clock. It is given two times: the ledger's clock, which may jump, and the true time
// of the run, by which leases end.
type Ledger struct {
	requests  map[Key]*Request
	order     []*Request // as they were made
	snapshots map[string][]byte

	Changes int // counts every write
}

// Request is the row of one request.
type Request struct {
	Record  client.Record
	Next    time.Time // Summary.NextCheck
	Fence   int
	Entries int    // writes of observations and receipts
	Holder  *Grant // whoever has it, or had it last; nil before
}

// Grant is a hold as the ledger knows it.
type Grant struct {
	Request   *Request
	Fence     int
	Until     time.Duration // true time at which its lease ends
	MaySubmit bool          // it made the mark "attempted"
	Ended     bool          // nothing is appended any more
	Released  bool
}

// New makes an empty one.
func New() *Ledger {
	return &Ledger{requests: make(map[Key]*Request, 4), snapshots: make(map[string][]byte, 2)}
}

// ErrHeld says that somebody else holds the request at this moment.
var ErrHeld = errors.New("held")

// errEnded refuses what would come after a receipt of a hold, or a final one (D11).
var errEnded = errors.New("the request has a final receipt, or this hold has written one; nothing is appended")

// Begin is Begin of client.Ledger, or Take when b is nil, without waiting: ErrHeld while
// another hold stands.
func (s *Ledger) Begin(k Key, b *client.Binding, intent client.Intent, now time.Time, at time.Duration) (*Grant, *client.Record, error) {
	r := s.requests[k]
	expired := r != nil && r.Record.Expired(now)
	switch {
	case r == nil && b == nil:
		return nil, nil, &client.NotFoundError{Scope: k.Scope, RequestID: k.ID}
	case r == nil:
		if earlier := s.duplicate(b, now); earlier != nil {
			return nil, nil, &client.DuplicateError{RequestID: k.ID, Earlier: *earlier}
		}
		r = s.bind(k, b, now)
	case !r.Record.PurgedAt.IsZero():
		return nil, nil, &client.PurgedError{RequestID: k.ID, Outcome: r.Record.Purged, PurgedAt: r.Record.PurgedAt}
	case b != nil:
		if ds := client.Compare(&r.Record.Binding, b); len(ds) > 0 {
			return nil, nil, &client.BindingError{RequestID: k.ID, Differences: ds}
		}
	}
	if r.heldAt(at) {
		return nil, nil, ErrHeld
	}
	g := &Grant{Request: r, Until: Never}
	if r.Record.Over() != nil {
		g.Fence, g.Ended = r.Fence, true
		return g, r.Record.Clone(), nil
	}
	s.Changes++
	r.Fence++
	r.Holder, g.Fence = g, r.Fence
	r.see(now)
	if intent == client.IntendSubmit && r.Record.State == client.Prepared && r.Record.Settled() == nil && !expired {
		r.Record.State = client.Attempted
		r.Record.AttemptedAt = now
		g.MaySubmit = true
	}
	if r.Record.State == client.Attempted && r.Record.Settled() == nil {
		r.Next = client.AfterAttempt(r.Record.SeenAt, r.Record.Term)
	}
	return g, r.Record.Clone(), nil
}

// heldAt reports whether a hold stands.
func (r *Request) heldAt(at time.Duration) bool {
	return r.Holder != nil && r.Holder.Stands(at)
}

// Stands reports whether the hold is still the only one.
func (g *Grant) Stands(at time.Duration) bool {
	return !g.Released && g.Fence == g.Request.Fence && at < g.Until
}

func (s *Ledger) bind(k Key, b *client.Binding, now time.Time) *Request {
	r := &Request{Record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: now, SeenAt: now}}
	r.Record.Fresh, r.Record.Guard = false, client.Guard{}
	r.Record.Input = slices.Clone(b.Input)
	r.Record.Profile = s.snapshot(b.Profile)
	r.Record.OpenAPI = s.snapshot(b.OpenAPI)
	s.requests[k] = r
	s.order = append(s.order, r)
	return r
}

// snapshot keeps a document once.
func (s *Ledger) snapshot(d client.Snapshot) client.Snapshot {
	if _, ok := s.snapshots[d.Digest]; !ok {
		s.snapshots[d.Digest] = d.Body
	}
	return client.Snapshot{Digest: d.Digest, Body: s.snapshots[d.Digest]}
}

func (r *Request) see(t time.Time) {
	if t.After(r.Record.SeenAt) {
		r.Record.SeenAt = t
	}
}

// duplicate is the request that a guard finds for a new one, the newest first, or nil.
func (s *Ledger) duplicate(b *client.Binding, now time.Time) *client.Summary {
	for _, r := range slices.Backward(s.order) {
		rec := &r.Record
		if !b.Guard.On || rec.Scope != b.Scope || rec.Origin != b.Origin || rec.ActionID != b.ActionID || rec.InputDigest != b.InputDigest {
			continue
		}
		sum := r.Summary()
		succeeded := sum.Outcome == agentic.Succeeded || sum.Settled == client.AttestSucceeded
		if sum.Open() && !rec.Expired(now) || succeeded && b.Guard.Succeeded > 0 && now.Sub(sum.SeenAt) < b.Guard.Succeeded {
			return &sum
		}
	}
	return nil
}

// Append writes for a hold: observations, and a receipt or nil. highest is the highest
// time that the hold saw, and seen what the ledger believes of it.
func (s *Ledger) Append(g *Grant, obs []client.Observation, r *agentic.Receipt, highest, seen time.Time, at time.Duration) error {
	rec := &g.Request.Record
	switch {
	case g.Released:
		return client.ErrLost
	case g.Ended:
		return errEnded
	case !g.Stands(at):
		return client.ErrLost
	}
	if r != nil {
		if r.RequestID != rec.RequestID || r.ActionID != rec.ActionID || r.Origin != rec.Origin {
			return fmt.Errorf("a receipt of another request: %s", r.RequestID)
		}
		if err := r.Validate().Err(); err != nil {
			return err
		}
	}
	s.Changes++
	g.Request.see(seen)
	if len(obs) > 0 || r != nil {
		g.Request.Entries++
	}
	rec.Observations = append(rec.Observations, client.CloneObservations(obs)...)
	if r == nil {
		return nil
	}
	rec.Receipts = append(rec.Receipts, r.Clone())
	g.Ended = true
	g.Request.Next = time.Time{}
	if at, ok := client.NextCheck(rec.RequestID, rec.CreatedAt, Later(highest, rec.SeenAt), rec.Window); ok && !r.Outcome.Final() && rec.Settled() == nil {
		g.Request.Next = at
	}
	return nil
}

// Get is the row of a request, or nil.
func (s *Ledger) Get(k Key) *Request { return s.requests[k] }

// Load gives a copy of the record of a request.
func (s *Ledger) Load(k Key) (*client.Record, error) {
	r := s.requests[k]
	if r == nil {
		return nil, &client.NotFoundError{Scope: k.Scope, RequestID: k.ID}
	}
	return r.Record.Clone(), nil
}

// Summary is the request as a listing has it.
func (r *Request) Summary() client.Summary {
	s := r.Record.Summary()
	s.NextCheck = r.Next
	return s
}

// List gives summaries, filtered and in order.
func (s *Ledger) List(f client.Filter, now time.Time) (out []client.Summary) {
	for _, r := range slices.Backward(s.order) {
		if sum := r.Summary(); matches(&sum, &f, now) {
			out = append(out, sum)
		}
	}
	slices.SortStableFunc(out, func(a, b client.Summary) int {
		return cmp.Or(inOrder(&a, &b, f.Order, now), b.CreatedAt.Compare(a.CreatedAt))
	})
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out
}

// matches says whether a request has what a filter asks for.
func matches(s *client.Summary, f *client.Filter, now time.Time) bool {
	return (f.Principal == nil || *f.Principal == s.Scope.Principal) &&
		(f.Environment == nil || *f.Environment == s.Scope.Environment) &&
		(f.Origin == "" || f.Origin == s.Origin) &&
		(f.ActionID == "" || f.ActionID == s.ActionID) &&
		(f.Outcome == "" || f.Outcome == s.Outcome) &&
		(!f.Open || s.Open()) &&
		(!f.NeedsPerson || s.NeedsPerson(now)) &&
		(!f.Due || !s.NextCheck.IsZero() && !now.Before(s.NextCheck)) &&
		(f.Before.IsZero() || s.CreatedAt.Before(f.Before)) &&
		(f.After.IsZero() || !s.CreatedAt.Before(f.After))
}

// inOrder compares by what an order puts before the time of creation.
func inOrder(a, b *client.Summary, o client.Order, now time.Time) int {
	switch o {
	case client.UrgentFirst:
		x, y := urgency(a, now), urgency(b, now)
		switch {
		case x == y && x == 0:
			return a.WindowEnds.Compare(b.WindowEnds)
		case x == y && x == 1:
			return b.WindowEnds.Compare(a.WindowEnds)
		}
		return cmp.Compare(x, y)
	case client.DueFirst:
		if a.NextCheck.IsZero() != b.NextCheck.IsZero() {
			return b.NextCheck.Compare(a.NextCheck)
		}
		return a.NextCheck.Compare(b.NextCheck)
	}
	return 0
}

func urgency(s *client.Summary, now time.Time) int {
	switch {
	case s.Open() && s.State == client.Attempted && now.Before(s.WindowEnds):
		return 0
	case s.NeedsPerson(now):
		return 1
	case s.Open():
		return 2
	}
	return 3
}

// Note appends what a person did, whoever holds the request.
func (s *Ledger) Note(k Key, n client.Note, now time.Time) error {
	if err := n.Validate(); err != nil {
		return err
	}
	r := s.requests[k]
	if r == nil {
		return &client.NotFoundError{Scope: k.Scope, RequestID: k.ID}
	}
	sum := r.Summary()
	if err := sum.Admits(n.Verb); err != nil {
		return err
	}
	s.Changes++
	n.At = now
	r.Record.Notes = append(slices.Clone(r.Record.Notes), n)
	r.see(now)
	if n.Verb.Settles() {
		r.Next = time.Time{}
	}
	return nil
}

// Purge is that of desk.Ledger.
func (s *Ledger) Purge(o client.PurgeOptions, now time.Time) (p client.Purged) {
	needed := map[string]bool{}
	f := client.Filter{Principal: o.Principal, Environment: o.Environment}
	for _, r := range s.order { // oldest first
		sum := r.Summary()
		switch old := matches(&sum, &f, now) && sum.SeenAt.Before(o.Before) && sum.PurgedAt.IsZero(); {
		case old && sum.Open():
			p.Open++
		case old && o.Limit > 0 && p.Requests == o.Limit:
			p.More = true
		case old:
			p.Requests++
			p.Entries += r.Entries
			if o.Apply {
				s.bury(r, now)
			}
			continue
		}
		needed[r.Record.Profile.Digest], needed[r.Record.OpenAPI.Digest] = true, true
	}
	for digest := range s.snapshots { // in any order, which nobody sees
		if !needed[digest] {
			p.Snapshots++
			if o.Apply {
				delete(s.snapshots, digest)
			}
		}
	}
	return p
}

// bury leaves the tombstone of a request.
func (s *Ledger) bury(r *Request, now time.Time) {
	s.Changes++
	rec, sum := &r.Record, r.Summary()
	rec.Profile, rec.OpenAPI, rec.Input = client.Snapshot{}, client.Snapshot{}, nil
	rec.Observations, rec.Receipts, rec.Notes = nil, nil, nil
	rec.PurgedAt, rec.Purged, rec.PurgedSettled = now, sum.Outcome, sum.Settled
	r.Next, r.Entries = time.Time{}, 0
	r.Fence++
}

// Final reports whether the last receipt ends the request (D11).
func Final(r *client.Record) bool { return r.Last() != nil && r.Last().Outcome.Final() }

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
