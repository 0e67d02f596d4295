package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/agentic-go/agentic/service"
)

// StoreConfig says where a Store keeps its records. Only DB is needed.
type StoreConfig struct {
	// DB is the publisher's own database, open with the driver "sqlite" of
	// modernc.org/sqlite, which this package registers; DSN gives the right name
	// for a file. Migrate must have been called on it. The Store never closes it.
	//
	// OpenStore refuses connections that would lose a commit at a power failure.
	// It cannot see whether transactions begin immediate: with deferred ones (no
	// _txlock=immediate) nothing is lost either, but a transaction that reads
	// before it writes fails when another one wrote meanwhile.
	DB *sql.DB

	// Clock is the database's clock; nil is time.Now. SQLite has none of its
	// own, it asks the host's in the same process.
	Clock func() time.Time
}

// Store is a service.Store in the publisher's SQLite database, for *sql.Tx. It
// keeps its records in a table of its own, agentic_request, and works in any
// transaction of the same *sql.DB. It is safe for concurrent use, also by several
// processes of one machine.
//
// SQLite has one writer at a time: a transaction that writes keeps all others
// waiting until it ends, whatever their keys are.
type Store struct {
	db    *sql.DB
	clock func() time.Time

	submissions *submissions
	stmts       statements
	toClose     []*sql.Stmt
}

var _ service.Store[*sql.Tx] = (*Store)(nil)

const (
	claimSQL = `
INSERT INTO agentic_request (request_id, principal, action, fingerprint, created_at, expires_at, state)
VALUES (?, ?, ?, ?, ?, ?, 'claimed') ON CONFLICT DO NOTHING`

	wholeSQL = `
INSERT INTO agentic_request (request_id, principal, action, fingerprint, created_at, expires_at, state, resource_id, status, body, body_omitted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	settleSQL = `
UPDATE agentic_request SET state = ?, resource_id = ?, status = ?, body = ?, body_omitted = ?
WHERE request_id = ? AND principal = ? AND action = ? AND (state = 'claimed' OR state = 'pending' AND expires_at > ?)`

	// The body of what is past its window is not read: a look-up would take longer
	// the larger it is, and tell that there was something (D24).
	findSQL = `
SELECT fingerprint, state, resource_id, status, CASE WHEN expires_at > ? THEN body END, body_omitted, created_at, expires_at
FROM agentic_request WHERE request_id = ? AND principal = ? AND action = ?`

	seenSQL = `UPDATE agentic_request SET status = status WHERE request_id = ? AND principal = ? AND action = ?`

	deleteSQL = `
DELETE FROM agentic_request WHERE id IN
(SELECT id FROM agentic_request WHERE swept = 1 AND expires_at < ?1 AND 2 * expires_at - created_at < ?2 ORDER BY expires_at LIMIT ?3)`

	expireSQL = `
UPDATE agentic_request SET state = 'expired', swept = 1, resource_id = '', status = 0, body = NULL, body_omitted = 0 WHERE id IN
(SELECT id FROM agentic_request WHERE swept = 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?)`
)

// OpenStore makes a Store. The error says which setting of the connections is
// unsafe, is ErrNewer, asks for Migrate, or wraps service.ErrUnavailable.
func OpenStore(ctx context.Context, c StoreConfig) (*Store, error) {
	if c.DB == nil {
		return nil, errors.New("sqlite: a store needs a database")
	}
	s := &Store{db: c.DB, clock: c.Clock}
	if s.clock == nil {
		s.clock = time.Now
	}
	if err := s.open(ctx); err != nil {
		_ = s.Close() // the first error counts
		return nil, storeError("open", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := checkConnections(ctx, s.db); err != nil {
		return err
	}
	switch found, err := storeSchema.found(ctx, s.db); {
	case err != nil:
		return err
	case found > storeSchema.version:
		return storeSchema.newer(found)
	case found < storeSchema.version:
		return fmt.Errorf("the schema is %d, this program needs %d: call Migrate first", found, storeSchema.version)
	}
	for query, stmt := range map[string]**sql.Stmt{
		claimSQL:              &s.stmts.claim,
		wholeSQL:              &s.stmts.whole,
		settleSQL:             &s.stmts.settle,
		findSQL:               &s.stmts.find,
		seenSQL:               &s.stmts.seen,
		"SAVEPOINT agentic":   &s.stmts.save,
		"RELEASE agentic":     &s.stmts.release,
		"ROLLBACK TO agentic": &s.stmts.undo,
		"BEGIN":               &s.stmts.begin,
		"ROLLBACK":            &s.stmts.rollback,
	} {
		made, err := s.db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		*stmt = made
		s.toClose = append(s.toClose, made)
	}
	s.submissions = &submissions{db: s.db, stmts: s.stmts, maxAge: maxBatchAge}
	return nil
}

// Close ends the use of the database and leaves it open. Every later call is
// service.ErrUnavailable.
func (s *Store) Close() error {
	if s.submissions != nil {
		s.submissions.close()
	}
	var errs []error
	for _, stmt := range s.toClose {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

// now is the store's clock in microseconds of Unix time.
func (s *Store) now() int64 { return s.clock().UnixMicro() }

// Transact implements service.Store. Submissions that wait share a commit: each
// runs in its caller's goroutine, one after the other in one transaction, and
// all wait for the commit. When it fails, or when one of them spoils the
// transaction, they run again. f must not call Transact, nor wait for one, nor
// roll back to a savepoint from before a Claim or Settle.
//
// A claim that f leaves unsettled is an error, and nothing is committed.
func (s *Store) Transact(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	return s.submissions.submit(ctx, f)
}

// Find implements service.Store.
func (s *Store) Find(ctx context.Context, k service.Key) (*service.Record, error) {
	r, err := s.read(ctx, s.stmts.find, k)
	if r != nil && r.State == service.Claimed {
		return nil, err // a transaction of the publisher's own left it so; nothing is known
	}
	return r, err
}

// FindIn implements service.Store.
func (s *Store) FindIn(ctx context.Context, tx *sql.Tx, k service.Key) (*service.Record, error) {
	if t := s.submissions.batchOf(tx); t != nil {
		return s.findInBatch(t, k)
	}
	return s.read(ctx, tx.StmtContext(ctx, s.stmts.find), k)
}

// findInBatch goes without the caller's context, like every statement in a
// transaction that others share: the end of one would take back what they did.
func (s *Store) findInBatch(t *batch, k service.Key) (*service.Record, error) {
	if c, ok := t.claimed(k); ok {
		return c.record(), nil
	}
	return s.read(context.Background(), t.stmts.find, k)
}

func (s *Store) read(ctx context.Context, find *sql.Stmt, k service.Key) (*service.Record, error) {
	r := &service.Record{Key: k}
	var created, expires int64
	now := s.now()
	err := find.QueryRowContext(ctx, now, k.RequestID, k.Principal, k.Action).
		Scan(&r.Fingerprint, &r.State, &r.ResourceID, &r.Status, &r.Body, &r.BodyOmitted, &created, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("find", err)
	}
	switch r.State {
	case service.Claimed, service.Done, service.Refused, service.Pending, service.Expired:
	default:
		return nil, storeError("find", fmt.Errorf("the request %s has the state %.20q", k.Short(), r.State))
	}
	r.CreatedAt, r.ExpiresAt = fromMicros(created), fromMicros(expires)
	if r.State != service.Claimed && expires <= now {
		r.State, r.Settlement = service.Expired, service.Settlement{}
	}
	return r, nil
}

// Sweep implements service.Store. It shares a commit with submissions.
func (s *Store) Sweep(ctx context.Context, keep time.Duration, limit int) (n service.Swept, err error) {
	if limit <= 0 {
		return n, nil // a negative LIMIT is none, to SQLite
	}
	now := s.now()
	err = s.Transact(ctx, func(_ context.Context, tx *sql.Tx) (err error) {
		n = service.Swept{}
		if keep > 0 {
			if n.Deleted, err = sweep(tx, deleteSQL, now-keep.Microseconds(), now, limit); err != nil {
				return err
			}
		}
		n.Expired, err = sweep(tx, expireSQL, now, limit)
		return err
	})
	if err != nil {
		return service.Swept{}, err
	}
	return n, nil
}

func sweep(tx *sql.Tx, query string, args ...any) (int, error) {
	res, err := tx.Exec(query, args...)
	if err != nil {
		return 0, storeError("sweep", err)
	}
	n, err := res.RowsAffected()
	return int(n), storeError("sweep", err)
}
