package ledgertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Memory is a client.Ledger that keeps everything in memory, for tests. It obeys
// the whole contract except that nothing outlives the process.
type Memory struct {
	clock func() time.Time
	state *memoryState
}

type memoryState struct {
	mu        sync.Mutex
	requests  map[memoryKey]*memoryRequest
	order     []*memoryRequest // as they were made
	locks     map[memoryKey]chan struct{}
	snapshots map[string][]byte
}

type memoryKey struct {
	scope client.Scope
	id    string
}

type memoryRequest struct {
	record client.Record
	next   time.Time // Summary.NextCheck
	fence  int

	entries int // writes of observations and receipts
}

// NewMemory makes an empty ledger; a nil clock is time.Now.
func NewMemory(clock func() time.Time) *Memory {
	m := &Memory{state: &memoryState{
		requests:  map[memoryKey]*memoryRequest{},
		locks:     map[memoryKey]chan struct{}{},
		snapshots: map[string][]byte{},
	}}
	return m.Handle(clock)
}

// Handle is another handle on the same requests, as another process has one. A
// nil clock is time.Now.
func (m *Memory) Handle(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	return &Memory{clock: clock, state: m.state}
}

// TakeOver does what happens when a holder was believed dead and was not: its
// hold is broken, so that whatever it still wants to write is ErrLost.
func (m *Memory) TakeOver(scope client.Scope, requestID string) {
	k := memoryKey{scope, requestID}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if r := m.state.requests[k]; r != nil {
		r.fence++
	}
	delete(m.state.locks, k)
}

// Begin implements client.Ledger.
func (m *Memory) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return m.hold(ctx, memoryKey{b.Scope, b.RequestID}, &b, intent, wait)
}

// Take implements client.Ledger.
func (m *Memory) Take(ctx context.Context, scope client.Scope, requestID string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return m.hold(ctx, memoryKey{scope, requestID}, nil, intent, wait)
}

func (m *Memory) hold(ctx context.Context, k memoryKey, b *client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lock, err := m.lock(ctx, k, wait)
	if err != nil {
		return nil, err
	}
	h := &memoryHold{memory: m, key: k, lock: lock}
	if err := m.take(h, b, intent); err != nil {
		_ = h.Release() // it cannot fail
		return nil, err
	}
	return h, nil
}

// lock waits until the request is free. The channel is the lock: whoever has
// put its value in holds it.
func (m *Memory) lock(ctx context.Context, k memoryKey, wait time.Duration) (chan struct{}, error) {
	patience := time.NewTimer(max(0, wait))
	defer patience.Stop()
	for {
		m.state.mu.Lock()
		c := m.state.locks[k]
		if c == nil {
			c = make(chan struct{}, 1)
			m.state.locks[k] = c
		}
		m.state.mu.Unlock()
		select {
		case c <- struct{}{}:
		default:
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-patience.C:
				return nil, &client.HeldError{RequestID: k.id}
			}
		}
		m.state.mu.Lock()
		current := m.state.locks[k] == c
		m.state.mu.Unlock()
		if current {
			return c, nil
		}
		<-c // taken over while this one waited; the next waiter finds out too
	}
}

// take binds or finds the request of a hold that has the lock.
func (m *Memory) take(h *memoryHold, b *client.Binding, intent client.Intent) error {
	now := h.Now()
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	r := m.state.requests[h.key]
	expired := r != nil && r.record.Expired(now)
	switch {
	case r == nil && b == nil:
		return &client.NotFoundError{Scope: h.key.scope, RequestID: h.key.id}
	case r != nil && !r.record.PurgedAt.IsZero():
		return &client.PurgedError{RequestID: h.key.id, Outcome: r.record.Purged, PurgedAt: r.record.PurgedAt}
	case r == nil:
		if earlier := m.state.duplicate(b, now); earlier != nil {
			return &client.DuplicateError{RequestID: h.key.id, Earlier: *earlier}
		}
		r = &memoryRequest{record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: now, SeenAt: now}}
		r.record.Fresh, r.record.Guard = false, client.Guard{}
		r.record.Input = slices.Clone(b.Input)
		r.record.Profile = m.state.snapshot(b.Profile)
		r.record.OpenAPI = m.state.snapshot(b.OpenAPI)
		m.state.requests[h.key] = r
		m.state.order = append(m.state.order, r)
	case b != nil:
		if ds := client.Compare(&r.record.Binding, b); len(ds) > 0 {
			return &client.BindingError{RequestID: h.key.id, Differences: ds}
		}
	}
	if r.record.Over() == nil {
		r.fence++
		r.see(now)
		if intent == client.IntendSubmit && r.record.State == client.Prepared && r.record.Settled() == nil && !expired {
			r.record.State = client.Attempted
			r.record.AttemptedAt = now
			h.maySubmit = true
		}
		if r.record.State == client.Attempted && r.record.Settled() == nil {
			r.next = client.AfterAttempt(r.record.SeenAt, r.record.Term)
		}
	}
	h.request, h.fence, h.record = r, r.fence, r.record.Clone()
	return nil
}

// snapshot keeps a document once.
func (s *memoryState) snapshot(d client.Snapshot) client.Snapshot {
	if _, ok := s.snapshots[d.Digest]; !ok {
		s.snapshots[d.Digest] = slices.Clone(d.Body)
	}
	return client.Snapshot{Digest: d.Digest, Body: s.snapshots[d.Digest]}
}

func (r *memoryRequest) see(t time.Time) {
	if t.After(r.record.SeenAt) {
		r.record.SeenAt = t
	}
}

// Load implements client.Ledger.
func (m *Memory) Load(ctx context.Context, scope client.Scope, requestID string) (*client.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	r := m.state.requests[memoryKey{scope, requestID}]
	if r == nil {
		return nil, &client.NotFoundError{Scope: scope, RequestID: requestID}
	}
	return r.record.Clone(), nil
}

// duplicate is the request that a guard finds for a new one, the newest first, or nil.
func (s *memoryState) duplicate(b *client.Binding, now time.Time) *client.Summary {
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

func (r *memoryRequest) summary() client.Summary {
	s := r.record.Summary()
	s.NextCheck = r.next
	return s
}

// List implements client.Ledger.
func (m *Memory) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := m.now()
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	var out []client.Summary
	for _, r := range slices.Backward(m.state.order) {
		if s := r.summary(); matches(&s, &f, now) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b client.Summary) int {
		return cmp.Or(inOrder(&a, &b, f.Order, now), b.CreatedAt.Compare(a.CreatedAt))
	})
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
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
		class := func(s *client.Summary) int {
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
		c := cmp.Compare(class(a), class(b))
		if c == 0 && class(a) == 0 {
			return a.WindowEnds.Compare(b.WindowEnds)
		} else if c == 0 && class(a) == 1 {
			return b.WindowEnds.Compare(a.WindowEnds)
		}
		return c
	case client.DueFirst:
		class := func(s *client.Summary) int {
			if s.NextCheck.IsZero() {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(class(a), class(b)), a.NextCheck.Compare(b.NextCheck))
	}
	return 0
}

// AddNote implements desk.Ledger.
func (m *Memory) AddNote(ctx context.Context, scope client.Scope, requestID string, n client.Note) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.Validate(); err != nil {
		return err
	}
	now := m.now()
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	r := m.state.requests[memoryKey{scope, requestID}]
	if r == nil {
		return &client.NotFoundError{Scope: scope, RequestID: requestID}
	}
	sum := r.summary()
	if err := sum.Admits(n.Verb); err != nil {
		return err
	}
	n.At = now
	r.record.Notes = append(slices.Clone(r.record.Notes), n)
	r.see(now)
	if n.Verb.Settles() {
		r.next = time.Time{}
	}
	return nil
}

// Purge implements desk.Ledger.
func (m *Memory) Purge(ctx context.Context, o client.PurgeOptions) (client.Purged, error) {
	var p client.Purged
	if err := ctx.Err(); err != nil {
		return p, err
	}
	now := m.now()
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	needed := map[string]bool{}
	for _, r := range m.state.order { // oldest first
		rec, sum := &r.record, r.summary()
		f := client.Filter{Principal: o.Principal, Environment: o.Environment}
		switch old := matches(&sum, &f, now) && sum.SeenAt.Before(o.Before) && sum.PurgedAt.IsZero(); {
		case old && sum.Open():
			p.Open++
		case old && o.Limit > 0 && p.Requests == o.Limit:
			p.More = true
		case old:
			p.Requests++
			p.Entries += r.entries
			if o.Apply {
				m.state.bury(r, now)
			}
			continue
		}
		needed[rec.Profile.Digest], needed[rec.OpenAPI.Digest] = true, true
	}
	for digest := range m.state.snapshots {
		if !needed[digest] {
			p.Snapshots++
			if o.Apply {
				delete(m.state.snapshots, digest)
			}
		}
	}
	return p, nil
}

// bury leaves the tombstone of a request.
func (s *memoryState) bury(r *memoryRequest, now time.Time) {
	rec, sum := &r.record, r.summary()
	rec.Profile, rec.OpenAPI, rec.Input = client.Snapshot{}, client.Snapshot{}, nil
	rec.Observations, rec.Receipts, rec.Notes = nil, nil, nil
	rec.PurgedAt, rec.Purged, rec.PurgedSettled = now, sum.Outcome, sum.Settled
	r.next = time.Time{}
	r.entries = 0
	r.fence++
}

// memoryHold is one exclusive execution.
type memoryHold struct {
	memory    *Memory
	key       memoryKey
	lock      chan struct{} // nil once released
	request   *memoryRequest
	fence     int
	record    *client.Record
	maySubmit bool
	ended     bool      // by Finish
	seen      time.Time // the highest time that this hold saw
}

func (h *memoryHold) Record() *client.Record { return h.record }

func (h *memoryHold) MaySubmit() bool {
	h.memory.state.mu.Lock()
	defer h.memory.state.mu.Unlock()
	return h.maySubmit && h.lock != nil && !h.ended && h.fence == h.request.fence
}

func (m *Memory) now() time.Time { return m.clock().UTC().Round(0).Truncate(time.Microsecond) }

func (h *memoryHold) Now() time.Time {
	t := h.memory.now()
	if t.After(h.seen) {
		h.seen = t
	}
	return t
}

func (h *memoryHold) Observe(ctx context.Context, obs []client.Observation) error {
	return h.append(ctx, obs, nil)
}

func (h *memoryHold) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	b := &h.record.Binding
	if r.RequestID != b.RequestID || r.ActionID != b.ActionID || r.Origin != b.Origin {
		return fmt.Errorf("a receipt of another request: %s", r.RequestID)
	}
	if err := r.Validate().Err(); err != nil {
		return err
	}
	return h.append(ctx, obs, &r)
}

func (h *memoryHold) append(ctx context.Context, obs []client.Observation, r *agentic.Receipt) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.Now()
	h.memory.state.mu.Lock()
	defer h.memory.state.mu.Unlock()
	if h.lock == nil || h.fence != h.request.fence {
		return client.ErrLost
	}
	rec := &h.request.record
	if h.ended || rec.Over() != nil {
		return errors.New("the request has a receipt that no other follows; or this hold has written one; nothing is appended")
	}
	h.request.see(h.seen)
	if len(obs) > 0 || r != nil {
		h.request.entries++
	}
	rec.Observations = append(rec.Observations, client.CloneObservations(obs)...)
	if r != nil {
		rec.Receipts = append(rec.Receipts, r.Clone())
		h.ended = true
		h.request.next = time.Time{}
		if at, ok := client.NextCheck(rec.RequestID, rec.CreatedAt, rec.SeenAt, rec.Window); ok && !r.Outcome.Final() && rec.Settled() == nil {
			h.request.next = at
		}
	}
	return nil
}

func (h *memoryHold) Release() error {
	if h.lock != nil {
		<-h.lock
		h.lock = nil
	}
	return nil
}
