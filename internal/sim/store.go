package sim

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

// never is a moment that does not come.
const never = time.Duration(math.MaxInt64)

// key names a request in a ledger.
type key struct {
	scope client.Scope
	id    string
}

// store is what is durable of a ledger: plain state that waits for nothing and has no
// clock. It is given two times: the ledger's clock, which may jump, and the true time
// of the run, by which leases end.
type store struct {
	requests  map[key]*request
	order     []*request // as they were made
	snapshots map[string][]byte
	changes   int // counts every write
}

type request struct {
	record  client.Record
	next    time.Time // Summary.NextCheck
	fence   int
	entries int
	holder  *grant // whoever has it, or had it last
}

// grant is a hold as the store knows it.
type grant struct {
	request   *request
	fence     int
	until     time.Duration // true time at which its lease ends
	maySubmit bool          // it made the mark "attempted"
	ended     bool          // nothing is appended any more
	released  bool
}

func newStore() *store {
	return &store{requests: make(map[key]*request, 4), snapshots: make(map[string][]byte, 2)}
}

// errHeld says that somebody else holds the request at this moment.
var errHeld = errors.New("held")

// errEnded refuses what would come after a receipt of a hold, or a final one (D11).
var errEnded = errors.New("the request has a final receipt, or this hold has written one; nothing is appended")

// begin is Begin, or Take when b is nil, without waiting.
func (s *store) begin(k key, b *client.Binding, intent client.Intent, now time.Time, at time.Duration) (*grant, *client.Record, error) {
	r := s.requests[k]
	expired := r != nil && r.record.Expired(now)
	switch {
	case r == nil && b == nil:
		return nil, nil, &client.NotFoundError{Scope: k.scope, RequestID: k.id}
	case r == nil:
		if earlier := s.duplicate(b, now); earlier != nil {
			return nil, nil, &client.DuplicateError{RequestID: k.id, Earlier: *earlier}
		}
		r = s.bind(k, b, now)
	case !r.record.PurgedAt.IsZero():
		return nil, nil, &client.PurgedError{RequestID: k.id, Outcome: r.record.Purged, PurgedAt: r.record.PurgedAt}
	case b != nil:
		if ds := client.Compare(&r.record.Binding, b); len(ds) > 0 {
			return nil, nil, &client.BindingError{RequestID: k.id, Differences: ds}
		}
	}
	if r.heldAt(at) {
		return nil, nil, errHeld
	}
	g := &grant{request: r, until: never}
	if final(&r.record) {
		g.fence, g.ended = r.fence, true
		return g, cloneRecord(&r.record), nil
	}
	s.changes++
	r.fence++
	r.holder, g.fence = g, r.fence
	r.see(now)
	if intent == client.IntendSubmit && r.record.State == client.Prepared && r.record.Settled() == nil && !expired {
		r.record.State = client.Attempted
		r.record.AttemptedAt = now
		g.maySubmit = true
	}
	if r.record.State == client.Attempted && r.record.Settled() == nil {
		r.next = client.AfterAttempt(r.record.SeenAt, r.record.Term)
	}
	return g, cloneRecord(&r.record), nil
}

// heldAt reports whether a hold stands.
func (r *request) heldAt(at time.Duration) bool {
	return r.holder != nil && r.holder.stands(at)
}

func (g *grant) stands(at time.Duration) bool {
	return !g.released && g.fence == g.request.fence && at < g.until
}

func (s *store) bind(k key, b *client.Binding, now time.Time) *request {
	r := &request{record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: now, SeenAt: now}}
	r.record.Fresh, r.record.Guard = false, client.Guard{}
	r.record.Input = slices.Clone(b.Input)
	r.record.Profile = s.snapshot(b.Profile)
	r.record.OpenAPI = s.snapshot(b.OpenAPI)
	s.requests[k] = r
	s.order = append(s.order, r)
	return r
}

// snapshot keeps a document once.
func (s *store) snapshot(d client.Snapshot) client.Snapshot {
	if _, ok := s.snapshots[d.Digest]; !ok {
		s.snapshots[d.Digest] = d.Body
	}
	return client.Snapshot{Digest: d.Digest, Body: s.snapshots[d.Digest]}
}

func (r *request) see(t time.Time) {
	if t.After(r.record.SeenAt) {
		r.record.SeenAt = t
	}
}

// duplicate is the request that a guard finds for a new one, the newest first, or nil.
func (s *store) duplicate(b *client.Binding, now time.Time) *client.Summary {
	for _, r := range slices.Backward(s.order) {
		rec := &r.record
		if !b.Guard.On || rec.Scope != b.Scope || rec.Origin != b.Origin || rec.ActionID != b.ActionID || rec.InputDigest != b.InputDigest {
			continue
		}
		sum := r.summary()
		succeeded := sum.Outcome == agentic.Succeeded || sum.Settled == client.AttestSucceeded
		if sum.Open() && !rec.Expired(now) || succeeded && b.Guard.Succeeded > 0 && now.Sub(sum.SeenAt) < b.Guard.Succeeded {
			return &sum
		}
	}
	return nil
}

// append writes for a hold: observations, and a receipt or nil. highest is the highest
// time that the hold saw, and seen what the ledger believes of it.
func (s *store) append(g *grant, obs []client.Observation, r *agentic.Receipt, highest, seen time.Time, at time.Duration) error {
	rec := &g.request.record
	switch {
	case g.released:
		return client.ErrLost
	case g.ended:
		return errEnded
	case !g.stands(at):
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
	s.changes++
	g.request.see(seen)
	if len(obs) > 0 || r != nil {
		g.request.entries++
	}
	rec.Observations = append(rec.Observations, cloneObservations(obs)...)
	if r == nil {
		return nil
	}
	rec.Receipts = append(rec.Receipts, cloneReceipt(*r))
	g.ended = true
	g.request.next = time.Time{}
	if at, ok := client.NextCheck(rec.RequestID, rec.CreatedAt, maxTime(highest, rec.SeenAt), rec.Window); ok && !r.Outcome.Final() && rec.Settled() == nil {
		g.request.next = at
	}
	return nil
}

func (s *store) load(k key) (*client.Record, error) {
	r := s.requests[k]
	if r == nil {
		return nil, &client.NotFoundError{Scope: k.scope, RequestID: k.id}
	}
	return cloneRecord(&r.record), nil
}

func (r *request) summary() client.Summary {
	s := r.record.Summary()
	s.NextCheck = r.next
	return s
}

func (s *store) list(f client.Filter, now time.Time) (out []client.Summary) {
	for _, r := range slices.Backward(s.order) {
		if sum := r.summary(); matches(&sum, &f, now) {
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

// note appends what a person did, whoever holds the request.
func (s *store) note(k key, n client.Note, now time.Time) error {
	if err := n.Validate(); err != nil {
		return err
	}
	r := s.requests[k]
	if r == nil {
		return &client.NotFoundError{Scope: k.scope, RequestID: k.id}
	}
	sum := r.summary()
	if err := sum.Admits(n.Verb); err != nil {
		return err
	}
	s.changes++
	n.At = now
	r.record.Notes = append(slices.Clone(r.record.Notes), n)
	r.see(now)
	if n.Verb.Settles() {
		r.next = time.Time{}
	}
	return nil
}

// bury leaves the tombstone of a request.
func (s *store) bury(r *request, now time.Time) {
	s.changes++
	rec, sum := &r.record, r.summary()
	rec.Profile, rec.OpenAPI, rec.Input = client.Snapshot{}, client.Snapshot{}, nil
	rec.Observations, rec.Receipts, rec.Notes = nil, nil, nil
	rec.PurgedAt, rec.Purged, rec.PurgedSettled = now, sum.Outcome, sum.Settled
	r.next, r.entries = time.Time{}, 0
	r.fence++
}

func final(r *client.Record) bool { return r.Last() != nil && r.Last().Outcome.Final() }

// cloneRecord shares the documents only, which nobody changes.
func cloneRecord(r *client.Record) *client.Record {
	c := *r
	c.Input = slices.Clone(r.Input)
	c.Observations = cloneObservations(r.Observations)
	c.Notes = slices.Clone(r.Notes)
	c.Receipts = slices.Clone(r.Receipts)
	for i := range c.Receipts {
		c.Receipts[i] = cloneReceipt(c.Receipts[i])
	}
	return &c
}

func cloneObservations(obs []client.Observation) []client.Observation {
	obs = slices.Clone(obs)
	for i := range obs {
		obs[i].Checks = slices.Clone(obs[i].Checks)
	}
	return obs
}

func cloneReceipt(r agentic.Receipt) agentic.Receipt {
	if r.ResourceID != nil {
		id := *r.ResourceID
		r.ResourceID = &id
	}
	if r.Evidence != nil {
		e := *r.Evidence
		e.Matched = slices.Clone(e.Matched)
		r.Evidence = &e
	}
	return r
}
