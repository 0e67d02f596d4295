package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/internal/pgmigrate"
	"github.com/agentic-go/agentic/service"
)

// SQLStoreConfig says where the tables of an SQLStore are.
type SQLStoreConfig struct {
	DB     *sql.DB // with pgx's driver; of the publisher, who closes it
	Schema string  // of the tables of this package; empty is "agentic"
}

// SQLStore is a Store for publishers that use database/sql. What Store says of
// transactions holds for it too.
type SQLStore struct {
	db       *sql.DB
	tracking *tracking
}

var _ service.Store[*sql.Tx] = (*SQLStore)(nil)

// NewSQLStore makes an SQLStore when the tables are as this program needs them.
// The error wraps ErrNotMigrated, ErrNewer or service.ErrUnavailable.
func NewSQLStore(ctx context.Context, c SQLStoreConfig) (*SQLStore, error) {
	if c.DB == nil {
		return nil, errors.New("postgres: SQLStoreConfig needs a DB")
	}
	schema, err := pgmigrate.CheckSchema(c.Schema)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(ctx, sqlQueries{c.DB}, schema, storeTables); err != nil {
		return nil, failure(ctx, "open", err)
	}
	return &SQLStore{c.DB, newTracking(schema)}, nil
}

// Transact implements service.Store. An error that wraps service.ErrUnavailable
// can also mean that the answer to the commit was lost: Find tells.
func (s *SQLStore) Transact(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return again(ctx, func(wary bool) (stale bool, err error) { return s.transactOnce(ctx, wary, f) })
}

func (s *SQLStore) transactOnce(ctx context.Context, wary bool, f func(ctx context.Context, tx *sql.Tx) error) (stale bool, err error) {
	conn, err := s.acquire(ctx, wary)
	if err != nil {
		return false, failure(ctx, "begin", err)
	}
	defer conn.Close() // gives it back
	// The driver ends a transaction by the context it began with: ours, which
	// follows the caller's until the end is near.
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	letGo := context.AfterFunc(ctx, cancel)
	defer letGo()
	tx, err := conn.BeginTx(held, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return isClosed(conn), failure(ctx, "begin", err)
	}
	defer func() { // after a commit it does nothing; it also serves a panic of f
		letGo()
		late := time.AfterFunc(endTimeout, cancel)
		defer late.Stop()
		_ = tx.Rollback() // a connection that cannot roll back is closed
	}()
	if err := f(ctx, tx); err != nil {
		return false, ofCaller(ctx, err, isClosed(conn))
	}
	if !letGo() {
		return false, failure(ctx, "commit", ctx.Err())
	}
	late := time.AfterFunc(endTimeout, cancel)
	defer late.Stop()
	return false, failure(context.WithoutCancel(ctx), "commit", tx.Commit())
}

// maxBroken bounds how many broken connections of the pool are passed over.
const maxBroken = 100

// acquire takes a connection from the pool, when wary one that answers. Where the
// pool is full, database/sql hands over what another caller gives back, and tells
// of one that has broken only here: nothing was sent on it, and it is gone.
func (s *SQLStore) acquire(ctx context.Context, wary bool) (*sql.Conn, error) {
	for left := maxBroken; ; left-- {
		conn, err := s.db.Conn(ctx)
		if errors.Is(err, driver.ErrBadConn) && left > 0 {
			continue
		}
		if err != nil || !wary {
			return conn, err
		}
		if err = conn.PingContext(ctx); err == nil {
			return conn, nil
		}
		_ = conn.Close() // database/sql drops what is broken
		if left <= 0 {
			return nil, err
		}
	}
}

// isClosed looks under database/sql; a driver around pgx's may hide it.
func isClosed(conn *sql.Conn) (closed bool) {
	err := conn.Raw(func(on any) error {
		if c, ok := on.(interface{ Conn() *pgx.Conn }); ok {
			closed = c.Conn().IsClosed()
		}
		return nil
	})
	return closed || err != nil
}

// Claim implements service.Store.
func (s *SQLStore) Claim(ctx context.Context, tx *sql.Tx, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	return s.tracking.claimIn(ctx, sqlQueries{tx}, k, fingerprint, window)
}

// Settle implements service.Store.
func (s *SQLStore) Settle(ctx context.Context, tx *sql.Tx, k service.Key, to service.State, settlement service.Settlement) error {
	return s.tracking.settleIn(ctx, sqlQueries{tx}, k, to, settlement)
}

// Find implements service.Store.
func (s *SQLStore) Find(ctx context.Context, k service.Key) (*service.Record, error) {
	r, err := s.tracking.findIn(ctx, sqlQueries{s.db}, k)
	if err == nil || ctx.Err() != nil || !errors.Is(err, service.ErrUnavailable) {
		return r, err
	}
	conn, err := s.acquire(ctx, true) // a read may be made twice
	if err != nil {
		return nil, failure(ctx, "find", err)
	}
	defer conn.Close()
	return s.tracking.findIn(ctx, sqlQueries{conn}, k)
}

// FindIn implements service.Store.
func (s *SQLStore) FindIn(ctx context.Context, tx *sql.Tx, k service.Key) (*service.Record, error) {
	return s.tracking.findIn(ctx, sqlQueries{tx}, k)
}

// Sweep implements service.Store. Records that a transaction holds are left for
// the next sweep.
func (s *SQLStore) Sweep(ctx context.Context, keep time.Duration, limit int) (service.Swept, error) {
	return s.tracking.sweepIn(ctx, sqlQueries{s.db}, keep, limit)
}

// sqlQueries runs statements in a *sql.Tx, on a *sql.DB or a *sql.Conn.
type sqlQueries struct {
	on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

func (q sqlQueries) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := q.on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (q sqlQueries) row(ctx context.Context, query string, args ...any) scanner {
	return q.on.QueryRowContext(ctx, query, args...)
}
