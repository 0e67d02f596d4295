package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
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

	Logger *slog.Logger // nil discards
	Lost   func(n int)  // postgres.LedgerConfig.Lost
}

// Ledger is an open ledger.
type Ledger struct {
	client.Ledger
}

// Close ends the ledger and its connections. What the ledger said is durable, so an
// error changes nothing.
func (l *Ledger) Close() error {
	err := l.Ledger.(interface{ Close() error }).Close()
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
		return nil, advice.New("ledger", fmt.Errorf("there is no ledger at %s", p.path),
			"Give its place with --ledger or AGENTIC_LEDGER; 'agentic run' makes one.")
	}
	l, err := sqlite.Open(ctx, sqlite.Config{Path: p.path, ReadOnly: o.ReadOnly, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &Ledger{Ledger: l}, nil
}

// absent reports whether there is nothing at all in the place of a file.
func (p Place) absent() bool {
	info, err := os.Stat(p.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func (p Place) openPostgres(context.Context, Options) (*Ledger, error) {
	return nil, p.failure("open", errors.New("PostgreSQL is not wired yet"))
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
