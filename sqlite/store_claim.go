package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/agentic-go/agentic/service"
)

// statements are what a Store runs, prepared on its database or for one
// transaction.
type statements struct {
	save, release, undo              *sql.Stmt
	claim, settle, find, seen, whole *sql.Stmt
}

func (s *statements) in(tx *sql.Tx) statements {
	return statements{
		save: tx.Stmt(s.save), release: tx.Stmt(s.release), undo: tx.Stmt(s.undo),
		settle: tx.Stmt(s.settle), find: tx.Stmt(s.find), seen: tx.Stmt(s.seen), whole: tx.Stmt(s.whole),
	}
}

// claim is one that is in no table yet. In a transaction of Transact the Store has
// the write lock of the database from the beginning, so that a look is enough to
// claim a key: the record is written once, when it is settled.
type claim struct {
	key              service.Key
	fingerprint      string
	created, expires int64
}

// batchOf is the batch that has the transaction, or nil when it is the publisher's
// own.
func (b *submissions) batchOf(tx *sql.Tx) *batch {
	if t := b.current.Load(); t != nil && t.tx == tx {
		return t
	}
	return nil
}

// claimed gives the open claim of a key.
func (t *batch) claimed(k service.Key) (claim, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.open {
		if c.key == k {
			return c, true
		}
	}
	return claim{}, false
}

func (t *batch) add(c claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, c)
}

func (t *batch) remove(k service.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = slices.DeleteFunc(t.open, func(c claim) bool { return c.key == k })
}

// unsettled refuses a claim without a settlement.
func (t *batch) unsettled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		return nil
	}
	return fmt.Errorf("the claim of %.140q was not settled", t.open[0].key.RequestID)
}

func (c claim) record() *service.Record {
	return &service.Record{Key: c.key, Fingerprint: c.fingerprint, State: service.Claimed,
		CreatedAt: fromMicros(c.created), ExpiresAt: fromMicros(c.expires)}
}

// Claim implements service.Store. In a transaction of the publisher's own it
// waits for other transactions as long as the connection's busy timeout says.
func (s *Store) Claim(ctx context.Context, tx *sql.Tx, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	c := claim{key: k, fingerprint: fingerprint, created: s.now()}
	c.expires = c.created + window.Microseconds()
	if t := s.submissions.batchOf(tx); t != nil {
		return s.claimInBatch(t, c)
	}
	res, err := tx.StmtContext(ctx, s.stmts.claim).ExecContext(ctx, k.RequestID, k.Principal, k.Action, c.fingerprint, c.created, c.expires)
	switch made, err := changed(res, err); {
	case err != nil:
		return nil, storeError("claim", err)
	case made:
		return nil, nil
	}
	r, err := s.FindIn(ctx, tx, k)
	if err == nil && r == nil {
		err = storeError("claim", fmt.Errorf("the request %.140q is there and cannot be found", k.RequestID))
	}
	return r, err
}

func (s *Store) claimInBatch(t *batch, c claim) (*service.Record, error) {
	if open, ok := t.claimed(c.key); ok {
		return open.record(), nil
	}
	// An update that changes nothing tells by its count whether the row is there. A
	// query would start a goroutine in database/sql: that is 3 of 100 submissions at
	// 64 callers (BenchmarkServiceTracking).
	res, err := t.stmts.seen.Exec(c.key.RequestID, c.key.Principal, c.key.Action)
	switch there, err := changed(res, err); {
	case err != nil:
		return nil, storeError("claim", err)
	case there:
		return s.read(context.Background(), t.stmts.find, c.key)
	}
	t.add(c)
	return nil, nil
}

// Settle implements service.Store.
func (s *Store) Settle(ctx context.Context, tx *sql.Tx, k service.Key, to service.State, a service.Settlement) error {
	switch to {
	case service.Done, service.Refused, service.Pending:
	default:
		return fmt.Errorf("a request is not settled as %q", to)
	}
	t := s.submissions.batchOf(tx)
	if t == nil {
		return s.settle(ctx, tx.StmtContext(ctx, s.stmts.settle), k, to, a)
	}
	c, ok := t.claimed(k)
	if !ok {
		return s.settle(context.Background(), t.stmts.settle, k, to, a)
	}
	_, err := t.stmts.whole.Exec(k.RequestID, k.Principal, k.Action, c.fingerprint, c.created, c.expires,
		string(to), a.ResourceID, a.Status, a.Body, a.BodyOmitted)
	if err != nil {
		return storeError("settle", err)
	}
	t.remove(k)
	return nil
}

// settle changes a record that is in the table.
func (s *Store) settle(ctx context.Context, settle *sql.Stmt, k service.Key, to service.State, a service.Settlement) error {
	res, err := settle.ExecContext(ctx, string(to), a.ResourceID, a.Status, a.Body, a.BodyOmitted,
		k.RequestID, k.Principal, k.Action, s.now())
	done, err := changed(res, err)
	if err == nil && !done {
		return service.ErrNotPending
	}
	return storeError("settle", err)
}

// changed says whether a statement changed a row.
func changed(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
