package pgfold

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Broken is an error that came with the end of its connection: what was under way
// may have happened or not.
type Broken struct{ error }

func (b Broken) Unwrap() error { return b.error }

// WrapBroken marks an error of a statement whose connection is gone.
func WrapBroken(conn *pgx.Conn, err error) error {
	if err == nil || !conn.IsClosed() || isA[Unanswered](err) {
		return err
	}
	if isA[pgx.ErrPreprocessingBatch](err) && strings.Contains(err.Error(), "(build)") {
		return err // an argument that cannot be encoded never can; pgx closes the connection all the same
	}
	return Broken{err}
}

// Retryable says that a statement may be made again, after an error that left
// nothing or an unknown state behind: the server cannot serve now, or the connection
// to it broke, or could not be made in time.
func Retryable(err error) bool {
	if isA[Broken](err) || isA[noConnection](err) || isA[*pgconn.ConnectError](err) {
		return true
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && CannotServe(said.Code)
}

// Unanswered is the failure of a commit. Nobody makes it again by himself.
type Unanswered struct{ Err error }

func (u Unanswered) Error() string {
	return "the answer to the commit was lost, so this may have been written: " + u.Err.Error()
}

// CannotServe has the SQLSTATEs that say "later": a statement that fails with one
// of them changed nothing, and may succeed when it is made again.
func CannotServe(code string) bool {
	switch {
	case strings.HasPrefix(code, "08"), // connection
		strings.HasPrefix(code, "53"),  // disk, memory, connections
		strings.HasPrefix(code, "57P"), // shutdown, crash, not started yet
		strings.HasPrefix(code, "58"):  // the server's system
		return true
	}
	switch code {
	case "57014", // statement_timeout, or a cancellation from outside
		"55P03",          // lock_timeout
		"25P03", "25P04", // timeouts of a transaction
		"25006", // a standby, or read-only for another reason
		serializationFailure, deadlock:
		return true
	}
	return false
}

const (
	serializationFailure = "40001"
	deadlock             = "40P01"
)

// WantsAnotherRun says whether the server rolled a transaction back so that it is
// run again.
func WantsAnotherRun(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == serializationFailure || said.Code == deadlock)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
