package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/pgmigrate"
	"github.com/agentic-go/agentic/service"
)

// What can be the matter with the tables.
var (
	ErrNotMigrated = pgmigrate.ErrNotMigrated
	ErrNewer       = pgmigrate.ErrNewer
)

// failure makes the error of a statement of ours. It wraps the driver's error,
// that of ctx when it has ended, and service.ErrUnavailable when the database
// did not answer or said that it cannot serve now. After a commit that means
// that nobody knows whether it happened.
func failure(ctx context.Context, op string, err error) error {
	if err == nil || errors.Is(err, service.ErrUnavailable) {
		return err
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if unavailable(ctx, err) {
		return fmt.Errorf("postgres: %s: %w: %w", op, service.ErrUnavailable, err)
	}
	return fmt.Errorf("postgres: %s: %w", op, err)
}

// unavailable says whether an error of a statement of ours is the database's
// state and not a fault of the statement. What the server did not say itself
// came from the connection to it.
func unavailable(ctx context.Context, err error) bool {
	switch ctx.Err() {
	case context.Canceled:
		return false // the caller wants no answer
	case context.DeadlineExceeded:
		return true // the pool was full, another claim took long, the server hangs
	}
	for _, ours := range []error{ErrNotMigrated, ErrNewer, errNotYours, pgx.ErrTxClosed, pgx.ErrTxCommitRollback, sql.ErrTxDone} {
		if errors.Is(err, ours) {
			return false
		}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true // whatever it said: a server that lets nobody in, or not yet
	}
	var said *pgconn.PgError
	return !errors.As(err, &said) || pgfold.CannotServe(said.Code)
}

// ofCaller leaves the error of a caller's function as it is, and adds
// service.ErrUnavailable when it is the database's: a publisher's own statement
// fails in the same ways as one of ours.
func ofCaller(ctx context.Context, err error, broken bool) error {
	var said *pgconn.PgError
	switch {
	case errors.Is(err, service.ErrUnavailable), ctx.Err() == context.Canceled:
		return err
	case broken, errors.As(err, &said) && pgfold.CannotServe(said.Code):
		return fmt.Errorf("%w: %w", service.ErrUnavailable, err)
	}
	return err
}
