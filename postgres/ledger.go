package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/lease"
	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/pgmigrate"
)

// LedgerConfig says where the tables of a Ledger are, and how it holds requests.
type LedgerConfig struct {
	// Pool is of the host, who closes it after the Ledger. Any size from 2 will do,
	// any QueryExecMode, and a pooler that shares sessions between transactions.
	Pool   *pgxpool.Pool
	Schema string // of the tables; "" is "agentic"

	// Lease is the longest that a hold stands without renewal: how long others wait
	// for what a crashed host held. It is never longer than the request's Term. Zero is
	// 30 s, 1 s the least.
	Lease time.Duration

	// Enqueue, if set, is called in the transaction of every write that leaves
	// requests with a NextCheck after a receipt, before its commit. An error takes the
	// write back. If it says that the server cannot serve now, the write is made again;
	// after any other a receipt is written without a job, because it is worth more, and
	// Sweep makes the job when it is due. ctx ends after some seconds.
	Enqueue func(ctx context.Context, tx pgx.Tx, due []Due) error

	// Logger gets a few lines for operators, without input, receipt or credential. Nil
	// is silent.
	Logger *slog.Logger

	// Clock is for tests; nil is the database's own clock. Leases are always by that.
	Clock func() time.Time

	// Lost, if set, is told how many leases were found lost, on renewal or on a write.
	Lost func(n int)
}

// Due is one request that a worker has to look at.
type Due struct {
	Scope     client.Scope
	RequestID string
	Origin    string
	At        time.Time // NextCheck
	Entries   int64     // tells the state that it was queued for
}

// Ledger is a desk.Ledger on PostgreSQL, for any number of hosts. It is safe
// for concurrent use.
type Ledger struct {
	pool    *pgxpool.Pool
	sql     *ledgerSQL
	lease   time.Duration
	enqueue func(ctx context.Context, tx pgx.Tx, due []Due) error
	logger  *slog.Logger
	clock   func() time.Time
	onLost  func(n int)
	jobless atomic.Bool // no job could be made for the last receipt that needed one

	gates    lease.Gates
	inserts  pgfold.Folder[insertion]
	takes    pgfold.Folder[taking]
	appends  pgfold.Folder[appending]
	enqueues pgfold.Folder[appending] // appends that leave a NextCheck, when there is an Enqueue
	frees    pgfold.Folder[freeing]

	mu     sync.Mutex
	holds  map[*hold]struct{} // that have a lease
	closed bool

	stop    chan struct{}
	renewal sync.WaitGroup
}

var _ client.Ledger = (*Ledger)(nil)

const (
	defaultLease = 30 * time.Second
	minLease     = time.Second
)

// retryTime is how long a read, and a hold that nobody waits longer for, is tried
// while the database cannot serve.
const retryTime = 10 * time.Second

var errClosed = errors.New("the ledger is closed")

// OpenLedger makes a Ledger when the tables are as this program needs them. The
// error wraps client.ErrLedger, and ErrNotMigrated or ErrNewer when it is the tables.
func OpenLedger(ctx context.Context, c LedgerConfig) (*Ledger, error) {
	l, err := openLedger(ctx, c)
	return l, ledgerError("open", err)
}

func openLedger(ctx context.Context, c LedgerConfig) (*Ledger, error) {
	switch {
	case c.Pool == nil:
		return nil, errors.New("LedgerConfig needs a Pool")
	case c.Pool.Config().MaxConns < 2:
		return nil, errors.New("a pool of two connections at least is needed")
	case c.Lease == 0:
		c.Lease = defaultLease
	case c.Lease < minLease:
		return nil, fmt.Errorf("a lease of %s is too short to be renewed in time: %s at least", c.Lease, minLease)
	}
	schema, err := pgmigrate.CheckSchema(c.Schema)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(ctx, pgxQueries{c.Pool}, schema, ledgerTables); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Lost == nil {
		c.Lost = func(int) {}
	}
	l := &Ledger{
		pool: c.Pool, sql: newLedgerSQL(schema), lease: c.Lease, enqueue: c.Enqueue, logger: c.Logger, clock: c.Clock, onLost: c.Lost,
		holds: map[*hold]struct{}{}, stop: make(chan struct{}),
	}
	l.inserts = pgfold.Folder[insertion]{Pool: c.Pool, Write: l.writeInsertions, Apart: sameIntent}
	l.takes = pgfold.Folder[taking]{Pool: c.Pool, Write: l.writeTakings}
	l.appends = pgfold.Folder[appending]{Pool: c.Pool, Write: l.writeAppendings}
	l.enqueues = pgfold.Folder[appending]{Pool: c.Pool, Write: l.writeAndEnqueue}
	l.frees = pgfold.Folder[freeing]{Pool: c.Pool, Write: l.writeFreeings}
	l.renewal.Go(l.renewLeases)
	return l, nil
}

// Close ends renewal: what is still held is free for others when its lease ends.
// The pool stays open.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	l.renewal.Wait()
	l.mu.Lock()
	return nil
}

// usable is nil while the ledger is open and ctx has not ended.
func (l *Ledger) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	return nil
}

// now is what statements take for the time: nil is the database's own clock.
func (l *Ledger) now() *time.Time {
	if l.clock == nil {
		return nil
	}
	t := toMicros(l.clock())
	return &t
}

func toMicros(t time.Time) time.Time { return t.UTC().Round(0).Truncate(time.Microsecond) }

// keyOfRequest is the SHA-256 of the three parts, each with its length before it.
func keyOfRequest(s client.Scope, requestID string) (k lease.Key) {
	h := sha256.New()
	for _, part := range []string{s.Principal, s.Environment, requestID} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	h.Sum(k[:0])
	return k
}

// ledgerError leaves the errors of the contract as they are, and the end of a
// caller's context before anything was written; the rest becomes a
// *client.LedgerError.
func ledgerError(op string, err error) error {
	if err == nil || errors.Is(err, client.ErrLedger) || errors.Is(err, client.ErrLost) {
		return err
	}
	for _, isOurs := range []func(error) bool{
		is[*client.HeldError], is[*client.BindingError], is[*client.NotFoundError], is[*client.DuplicateError],
		is[*client.PurgedError], is[*client.NoteError],
	} {
		if isOurs(err) {
			return err
		}
	}
	return &client.LedgerError{Op: op, Err: err}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// onConn runs a read, again on another connection when that broke or the server
// cannot serve now, until ctx ends or it has tried for retryTime.
func (l *Ledger) onConn(ctx context.Context, read func(*pgx.Conn) error) error {
	var p pgfold.Pauses
	for {
		err := l.onceOnConn(ctx, read)
		if err == nil || !pgfold.Retryable(err) || p.Since() > retryTime || p.Sleep(ctx) != nil {
			return err
		}
	}
}

// ofOne runs a read of one request, as onConn does. It takes milliseconds, so a
// connection on which it takes pgfold.BatchTime was cut off without a word.
func (l *Ledger) ofOne(ctx context.Context, read func(context.Context, *pgx.Conn) error) error {
	return l.onConn(ctx, func(conn *pgx.Conn) error {
		limited, cancel := context.WithTimeout(ctx, pgfold.BatchTime)
		defer cancel()
		return read(limited, conn)
	})
}

func (l *Ledger) onceOnConn(ctx context.Context, read func(*pgx.Conn) error) error {
	conn, err := pgfold.Acquire(ctx, l.pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	return pgfold.WrapBroken(conn.Conn(), read(conn.Conn()))
}
