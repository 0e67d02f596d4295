package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic/service"
)

// MemoryStore is a service.Store that keeps everything in memory, for tests. It
// obeys the whole contract except that nothing outlives the process. Beside the
// records it keeps rows of a publisher, which are strings, so that a test sees
// what commits together.
type MemoryStore struct {
	clock  func() time.Time
	state  *memoryTracking
	closed atomic.Bool
}

// memoryTracking is what all handles share.
type memoryTracking struct {
	mu      sync.Mutex
	records map[service.Key]service.Record
	rows    []string
	held    map[service.Key]*MemoryTx // that changed the record, and has not ended
	fault   func(op string) error
}

// MemoryTx is a transaction on a MemoryStore: others see what it did when it is
// committed. It is used by one goroutine at a time.
type MemoryTx struct {
	store   *MemoryStore
	records map[service.Key]service.Record // as they are to be
	rows    []string
	ended   chan struct{} // closed by the end; waiters for its keys go on
	done    bool
}

// NewMemoryStore makes an empty store; a nil clock is time.Now.
func NewMemoryStore(clock func() time.Time) *MemoryStore {
	if clock == nil {
		clock = time.Now
	}
	return &MemoryStore{clock: clock, state: &memoryTracking{
		records: map[service.Key]service.Record{},
		held:    map[service.Key]*MemoryTx{},
	}}
}

// SetFault lets f decide before each step whether it fails: begin, claim, settle,
// insert, find, find in, sweep or commit. Nil takes the faults away. What f
// returns comes back wrapped with service.ErrUnavailable.
func (m *MemoryStore) SetFault(f func(op string) error) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.fault = f
}

// Handle is another handle on the same records, as another process has one.
func (m *MemoryStore) Handle() *MemoryStore { return &MemoryStore{clock: m.clock, state: m.state} }

// Close makes every later call on this handle service.ErrUnavailable.
func (m *MemoryStore) Close() { m.closed.Store(true) }

// Rows are the publisher's rows that were committed, in that order.
func (m *MemoryStore) Rows() []string {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	return slices.Clone(m.state.rows)
}

// Begin begins a transaction of the publisher's own.
func (m *MemoryStore) Begin(ctx context.Context) (*MemoryTx, error) {
	if err := m.step(ctx, nil, "begin"); err != nil {
		return nil, err
	}
	return &MemoryTx{store: m, records: map[service.Key]service.Record{}, ended: make(chan struct{})}, nil
}

// Insert adds a row of the publisher.
func (tx *MemoryTx) Insert(ctx context.Context, row string) error {
	if err := tx.store.step(ctx, tx, "insert"); err != nil {
		return err
	}
	tx.rows = append(tx.rows, row)
	return nil
}

// Commit makes what the transaction did visible, unless a claim was not settled.
func (tx *MemoryTx) Commit(ctx context.Context) error {
	if err := tx.store.step(ctx, tx, "commit"); err != nil {
		tx.Rollback()
		return err
	}
	s := tx.store.state
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range tx.records {
		if r.State == service.Claimed {
			tx.end()
			return fmt.Errorf("the claim of %s was not settled", k.Short())
		}
	}
	maps.Copy(s.records, tx.records)
	s.rows = append(s.rows, tx.rows...)
	tx.end()
	return nil
}

// Rollback forgets what the transaction did. After its end it does nothing.
func (tx *MemoryTx) Rollback() {
	s := tx.store.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if !tx.done {
		tx.end()
	}
}

// end gives the keys free. The caller has the mutex.
func (tx *MemoryTx) end() {
	held := tx.store.state.held
	maps.DeleteFunc(held, func(_ service.Key, by *MemoryTx) bool { return by == tx })
	tx.done = true
	close(tx.ended)
}

// step says why a step of tx, or of none, cannot be made.
func (m *MemoryStore) step(ctx context.Context, tx *MemoryTx, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.closed.Load() {
		return fmt.Errorf("%w: the store is closed", service.ErrUnavailable)
	}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if tx != nil && tx.done {
		return errors.New("the transaction has ended")
	}
	if m.state.fault != nil {
		if err := m.state.fault(op); err != nil {
			return fmt.Errorf("%w: %s: %w", service.ErrUnavailable, op, err)
		}
	}
	return nil
}

// now is the store's clock in UTC with microseconds.
func (m *MemoryStore) now() time.Time { return m.clock().UTC().Round(0).Truncate(time.Microsecond) }

// Transact implements service.Store. Every transaction stands alone.
func (m *MemoryStore) Transact(ctx context.Context, f func(context.Context, *MemoryTx) error) error {
	tx, err := m.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// locked looks at what tx sees of a key, and lets do change it, once no other
// transaction that has not ended has changed it.
func (m *MemoryStore) locked(ctx context.Context, tx *MemoryTx, k service.Key, do func(*service.Record) (*service.Record, error)) error {
	for {
		m.state.mu.Lock()
		by := m.state.held[k]
		if by == nil || by == tx {
			defer m.state.mu.Unlock()
			r, err := do(m.get(tx, k))
			if r != nil {
				m.state.held[k] = tx
				tx.records[k] = *r
			}
			return err
		}
		m.state.mu.Unlock()
		select {
		case <-by.ended:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another transaction with the request: %w", ctx.Err())
		}
	}
}

// Claim implements service.Store.
func (m *MemoryStore) Claim(ctx context.Context, tx *MemoryTx, k service.Key, fingerprint string, window time.Duration) (existing *service.Record, err error) {
	if err := m.step(ctx, tx, "claim"); err != nil {
		return nil, err
	}
	err = m.locked(ctx, tx, k, func(r *service.Record) (*service.Record, error) {
		if existing = r; r != nil {
			return nil, nil
		}
		now := m.now()
		return &service.Record{Key: k, Fingerprint: fingerprint, State: service.Claimed, CreatedAt: now, ExpiresAt: now.Add(window)}, nil
	})
	return existing, err
}

// Settle implements service.Store.
func (m *MemoryStore) Settle(ctx context.Context, tx *MemoryTx, k service.Key, to service.State, s service.Settlement) error {
	if err := m.step(ctx, tx, "settle"); err != nil {
		return err
	}
	switch to {
	case service.Done, service.Refused, service.Pending:
	default:
		return fmt.Errorf("a request is not settled as %q", to)
	}
	return m.locked(ctx, tx, k, func(r *service.Record) (*service.Record, error) {
		if r == nil || r.State != service.Claimed && r.State != service.Pending {
			return nil, service.ErrNotPending
		}
		r.State, r.Settlement = to, s
		r.Body = slices.Clone(s.Body)
		return r, nil
	})
}

// Find implements service.Store.
func (m *MemoryStore) Find(ctx context.Context, k service.Key) (*service.Record, error) {
	if err := m.step(ctx, nil, "find"); err != nil {
		return nil, err
	}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	return m.get(nil, k), nil
}

// FindIn implements service.Store.
func (m *MemoryStore) FindIn(ctx context.Context, tx *MemoryTx, k service.Key) (*service.Record, error) {
	if err := m.step(ctx, tx, "find in"); err != nil {
		return nil, err
	}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	return m.get(tx, k), nil
}

// get copies a record as tx, or nobody's transaction, sees it. The caller has the
// mutex.
func (m *MemoryStore) get(tx *MemoryTx, k service.Key) *service.Record {
	r, ok := m.state.records[k]
	if tx != nil {
		if own, mine := tx.records[k]; mine {
			r, ok = own, true
		}
	}
	if !ok {
		return nil
	}
	if r.State != service.Claimed && !m.now().Before(r.ExpiresAt) {
		r = tombstone(r)
	}
	r.Body = slices.Clone(r.Body)
	return &r
}

func tombstone(r service.Record) service.Record {
	r.State, r.Settlement = service.Expired, service.Settlement{}
	return r
}

// Sweep implements service.Store. It leaves out what a transaction holds.
func (m *MemoryStore) Sweep(ctx context.Context, keep time.Duration, limit int) (service.Swept, error) {
	if err := m.step(ctx, nil, "sweep"); err != nil {
		return service.Swept{}, err
	}
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	now := m.now()
	var n service.Swept
	for k, r := range m.state.records {
		switch {
		case m.state.held[k] != nil:
		case r.State != service.Expired && !now.Before(r.ExpiresAt):
			if n.Expired < limit {
				m.state.records[k] = tombstone(r)
				n.Expired++
			}
		case r.State == service.Expired && keep > 0 && now.Sub(r.ExpiresAt) > max(keep, r.ExpiresAt.Sub(r.CreatedAt)):
			if n.Deleted < limit {
				delete(m.state.records, k)
				n.Deleted++
			}
		}
	}
	return n, nil
}
