package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgmigrate"
	"github.com/agentic-go/agentic/service"
)

// StoreConfig says where the tables of a Store are.
type StoreConfig struct {
	Pool   *pgxpool.Pool // of the publisher, who closes it
	Schema string        // of the tables of this package; empty is "agentic"
}

// Store is a service.Store over pgx. It is safe for concurrent use, by any number
// of hosts. Claim, Settle and FindIn take any pgx.Tx of the database: that of
// Transact, or the publisher's own.
//
// Transact runs at READ COMMITTED. In a transaction of the publisher's own at
// REPEATABLE READ or SERIALIZABLE, Claim fails with SQLSTATE 40001 when another
// transaction made the record after this one's snapshot; like any other such
// failure it asks the publisher to run the transaction again.
type Store struct {
	pool     *pgxpool.Pool
	tracking *tracking
}

var _ service.Store[pgx.Tx] = (*Store)(nil)

// NewStore makes a Store when the tables are as this program needs them. The error
// wraps ErrNotMigrated, ErrNewer or service.ErrUnavailable.
func NewStore(ctx context.Context, c StoreConfig) (*Store, error) {
	if c.Pool == nil {
		return nil, errors.New("postgres: StoreConfig needs a Pool")
	}
	schema, err := pgmigrate.CheckSchema(c.Schema)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(ctx, pgxQueries{c.Pool}, schema, storeTables); err != nil {
		return nil, failure(ctx, "open", err)
	}
	return &Store{c.Pool, newTracking(schema)}, nil
}

// Transact implements service.Store. An error that wraps service.ErrUnavailable
// can also mean that the answer to the commit was lost: Find tells.
func (s *Store) Transact(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	return again(ctx, func(wary bool) (stale bool, err error) { return s.transactOnce(ctx, wary, f) })
}

func (s *Store) transactOnce(ctx context.Context, wary bool, f func(ctx context.Context, tx pgx.Tx) error) (stale bool, err error) {
	conn, err := s.acquire(ctx, wary)
	if err != nil {
		return false, failure(ctx, "begin", err)
	}
	tx := &pipelinedTx{ctx: ctx, conn: conn}
	defer tx.release() // also when f panics
	if err := f(ctx, tx); err != nil {
		return tx.stale, ofCaller(ctx, err, conn.Conn().IsClosed())
	}
	if err := ctx.Err(); err != nil {
		return false, failure(ctx, "commit", err)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return tx.stale, failure(end, "commit", tx.commit(end))
}

// acquire takes a connection from the pool, when wary one that answers.
func (s *Store) acquire(ctx context.Context, wary bool) (*pgxpool.Conn, error) {
	for left := s.pool.Stat().MaxConns(); ; left-- { // each may be broken
		conn, err := s.pool.Acquire(ctx)
		if err != nil || !wary {
			return conn, err
		}
		if err = conn.Ping(ctx); err == nil {
			return conn, nil
		}
		conn.Release() // the pool drops what is closed
		if left <= 0 {
			return nil, err
		}
	}
}

// Claim implements service.Store.
func (s *Store) Claim(ctx context.Context, tx pgx.Tx, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	if t, ok := tx.(*pipelinedTx); ok {
		return s.tracking.claimIn(ctx, claiming{t}, k, fingerprint, window)
	}
	return s.tracking.claimIn(ctx, pgxQueries{tx}, k, fingerprint, window)
}

// Settle implements service.Store.
func (s *Store) Settle(ctx context.Context, tx pgx.Tx, k service.Key, to service.State, settlement service.Settlement) error {
	if t, ok := tx.(*pipelinedTx); ok {
		return s.tracking.settleIn(ctx, settling{t}, k, to, settlement)
	}
	return s.tracking.settleIn(ctx, pgxQueries{tx}, k, to, settlement)
}

// Find implements service.Store.
func (s *Store) Find(ctx context.Context, k service.Key) (*service.Record, error) {
	r, err := s.tracking.findIn(ctx, pgxQueries{s.pool}, k)
	if err == nil || ctx.Err() != nil || !errors.Is(err, service.ErrUnavailable) {
		return r, err
	}
	conn, err := s.acquire(ctx, true) // a read may be made twice
	if err != nil {
		return nil, failure(ctx, "find", err)
	}
	defer conn.Release()
	return s.tracking.findIn(ctx, pgxQueries{conn}, k)
}

// FindIn implements service.Store.
func (s *Store) FindIn(ctx context.Context, tx pgx.Tx, k service.Key) (*service.Record, error) {
	return s.tracking.findIn(ctx, pgxQueries{tx}, k)
}

// Sweep implements service.Store. Records that a transaction holds are left for
// the next sweep.
func (s *Store) Sweep(ctx context.Context, keep time.Duration, limit int) (service.Swept, error) {
	return s.tracking.sweepIn(ctx, pgxQueries{s.pool}, keep, limit)
}

// pgxQueries runs statements in a pgx.Tx or on a pool.
type pgxQueries struct {
	on interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}
}

func (q pgxQueries) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := q.on.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (q pgxQueries) row(ctx context.Context, sql string, args ...any) scanner {
	return q.on.QueryRow(ctx, sql, args...)
}
