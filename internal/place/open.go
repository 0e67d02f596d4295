package place

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/sqlite"
)

// Options say how a ledger is opened.
type Options struct {
	// MustExist refuses a file that is not there: a mistyped name must not look
	// like a ledger without requests. A database is never made.
	MustExist bool

	// ReadOnly opens a file for looking at. A database has no such mode: there the
	// caller only reads.
	ReadOnly bool

	// Conns is how many connections a database is used with when its URL does not
	// say (pool_max_conns). Zero is pgx's own number.
	Conns int

	// Clock is for tests: nil is the machine's clock for a file, and the server's for
	// a database.
	Clock func() time.Time

	Logger *slog.Logger // nil discards
	Lost   func(n int)  // postgres.LedgerConfig.Lost
}

// Ledger is an open ledger.
type Ledger struct {
	desk.Ledger

	// Postgres, Pool and Schema are those of a ledger in a database; nil otherwise.
	Postgres *postgres.Ledger
	Pool     *pgxpool.Pool
	Schema   string

	// Queued says that every write of this ledger also queues a job for what is
	// left open (package fleet).
	Queued bool

	place Place
}

// Close ends the ledger and its connections. What the ledger said is durable, so an
// error changes nothing.
func (l *Ledger) Close() error {
	err := l.Ledger.(interface{ Close() error }).Close()
	if l.Pool != nil {
		l.Pool.Close()
	}
	return err
}

// Open opens the ledger, and makes a file when it is not there. The error is one
// that matches client.ErrLedger or has advice, or that of ctx; Remedy knows what to
// do about it.
func (p Place) Open(ctx context.Context, o Options) (*Ledger, error) {
	if p.config != nil {
		return p.openPostgres(ctx, o)
	}
	if o.MustExist && p.absent() {
		return nil, p.noLedger()
	}
	l, err := sqlite.Open(ctx, sqlite.Config{Path: p.path, ReadOnly: o.ReadOnly, Clock: o.Clock, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &Ledger{Ledger: l, place: p}, nil
}

// absent reports whether there is nothing at all in the place of a file.
func (p Place) absent() bool {
	info, err := os.Stat(p.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func (p Place) openPostgres(ctx context.Context, o Options) (_ *Ledger, err error) {
	pool, err := p.pool(o.Conns)
	if err != nil {
		return nil, p.failure("open", err)
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	c := postgres.LedgerConfig{Pool: pool, Schema: p.schema, Clock: o.Clock, Logger: o.Logger, Lost: o.Lost}
	queued := false
	if !o.ReadOnly {
		if queued, err = fleet.Migrated(ctx, pool, p.schema); err != nil {
			return nil, p.failure("open", err)
		}
	}
	if queued {
		c.Enqueue = fleet.Enqueuer(p.schema)
	}
	l, err := postgres.OpenLedger(ctx, c)
	if err != nil {
		return nil, p.failure("open", err)
	}
	return &Ledger{Ledger: l, Postgres: l, Pool: pool, Schema: p.schema, Queued: queued, place: p}, nil
}

// failure makes the error of something that was done at this place.
func (p Place) failure(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case p.config == nil:
		return err // it has the path
	}
	if !errors.Is(err, client.ErrLedger) {
		err = &client.LedgerError{Op: op, Err: err}
	}
	return &Error{Place: p, Err: err}
}
