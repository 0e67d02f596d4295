package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentic-go/agentic/service"
)

// statements are what a Store runs, prepared on its database or for one
// transaction.
type statements struct {
	save, release, undo, begin, rollback *sql.Stmt
	claim, settle, find, seen, whole     *sql.Stmt
}

func (s *statements) in(tx *sql.Tx) statements {
	return statements{
		save: tx.Stmt(s.save), release: tx.Stmt(s.release), undo: tx.Stmt(s.undo),
		begin: tx.Stmt(s.begin), rollback: tx.Stmt(s.rollback),
		settle: tx.Stmt(s.settle), find: tx.Stmt(s.find), seen: tx.Stmt(s.seen), whole: tx.Stmt(s.whole),
	}
}

// claim is one that is in no table yet. In a transaction of Transact the Store has
// the write lock of the database from the beginning, so that a look is enough to
// claim a key: the record is written once, after the turn that settled it.
type claim struct {
	key              service.Key
	fingerprint      string
	created, expires int64
	state            service.State // Claimed until it is settled
	answer           service.Settlement
}

// batchOf is the batch that has the transaction, or nil when it is the publisher's
// own.
func (b *submissions) batchOf(tx *sql.Tx) *batch {
	if t := b.current.Load(); t != nil && t.tx == tx {
		return t
	}
	return nil
}

// claimed gives the claim that this turn made of a key.
func (t *batch) claimed(k service.Key) (claim, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.made {
		if c.key == k {
			return c, true
		}
	}
	return claim{}, false
}

func (t *batch) add(c claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, c)
}

// settle settles a claim of this turn, and reports whether it was open.
func (t *batch) settle(k service.Key, to service.State, a service.Settlement) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.made {
		c := &t.made[i]
		if c.key == k && (c.state == service.Claimed || c.state == service.Pending) {
			c.state, c.answer = to, a
			c.answer.Body = slices.Clone(a.Body)
			return true
		}
	}
	return false
}

// unsettled refuses a claim without a settlement.
func (t *batch) unsettled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.made {
		if c.state == service.Claimed {
			return fmt.Errorf("the claim of %s was not settled", c.key.Short())
		}
	}
	return nil
}

// write makes the records of a turn. Its savepoint has just been released, so the
// transaction is still there with all that the turn wrote, and no code of the
// publisher's can run in between: SQLite takes a transaction back by itself on some
// errors, and a function that kept silent about one would have a record committed
// without its write.
func (t *batch) write() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.made {
		k, a := c.key, c.answer
		if _, err := t.stmts.whole.Exec(k.RequestID, k.Principal, k.Action, c.fingerprint, c.created, c.expires,
			string(c.state), a.ResourceID, a.Status, a.Body, a.BodyOmitted); err != nil {
			return err
		}
	}
	return nil
}

func (c claim) record() *service.Record {
	return &service.Record{Key: c.key, Fingerprint: c.fingerprint, State: c.state, Settlement: c.answer,
		CreatedAt: fromMicros(c.created), ExpiresAt: fromMicros(c.expires)}
}

// Claim implements service.Store. In a transaction of the publisher's own it
// waits for other transactions as long as the connection's busy timeout says.
func (s *Store) Claim(ctx context.Context, tx *sql.Tx, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	c := claim{key: k, fingerprint: fingerprint, created: s.now(), state: service.Claimed}
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
		err = storeError("claim", fmt.Errorf("the request %s is there and cannot be found", k.Short()))
	}
	return r, err
}

func (s *Store) claimInBatch(t *batch, c claim) (*service.Record, error) {
	if made, ok := t.claimed(c.key); ok {
		return made.record(), nil
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
		own := statements{begin: tx.StmtContext(ctx, s.stmts.begin), rollback: tx.StmtContext(ctx, s.stmts.rollback),
			settle: tx.StmtContext(ctx, s.stmts.settle)}
		return s.settle(ctx, own, k, to, a)
	}
	if _, ok := t.claimed(k); !ok {
		return s.settle(context.Background(), t.stmts, k, to, a)
	}
	if !t.settle(k, to, a) {
		return service.ErrNotPending
	}
	return nil
}

// errTakenBack is a transaction that SQLite took back by itself, on an error that
// nobody told.
var errTakenBack = errors.New("the transaction was rolled back by an error that the function did not return")

// settle changes a record that is in the table. Outside of a transaction that would
// be committed at once, without what it stands for; and that SQLite has taken the
// transaction back shows by nothing but that a new one can begin.
func (s *Store) settle(ctx context.Context, in statements, k service.Key, to service.State, a service.Settlement) error {
	switch _, err := in.begin.ExecContext(ctx); {
	case err == nil:
		_, err = in.rollback.ExecContext(ctx)
		return storeError("settle", errors.Join(errTakenBack, err))
	case !strings.Contains(err.Error(), "within a transaction"):
		return storeError("settle", err)
	}
	res, err := in.settle.ExecContext(ctx, string(to), a.ResourceID, a.Status, a.Body, a.BodyOmitted,
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
