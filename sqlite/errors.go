package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/privatefile"
	msqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be the matter with a ledger. Every error of this package is a
// *client.LedgerError, and wraps one of these when the reason is known.
var (
	ErrNewer    = errors.New("the file was written by a newer version of this program")
	ErrOlder    = errors.New("the file was written by an older version of this program, and has to be opened for writing once")
	ErrCorrupt  = errors.New("the file is damaged or is not a ledger")
	ErrFull     = errors.New("there is no space left to write to")
	ErrReadOnly = errors.New("the place cannot be written to")
	ErrPlace    = privatefile.ErrPlace // there can be no file at this place
	ErrBusy     = errors.New("another program kept the file locked for too long")
	ErrClosed   = errors.New("the ledger is closed")
)

// ledgerError makes the error of an operation. The error of a context that the
// caller ended stays what it is, and so do the errors of the contract.
func ledgerError(op string, err error) error {
	var already *client.LedgerError
	switch err.(type) {
	case *client.HeldError, *client.BindingError, *client.NotFoundError, *client.DuplicateError, *client.PurgedError, *client.NoteError:
		return err
	}
	switch {
	case err == nil, errors.As(err, &already), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if reason := reasonOf(err); reason != nil && !errors.Is(err, reason) {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	return &client.LedgerError{Op: op, Err: err}
}

// reasonOf names the matter behind an error of SQLite or of the system, or nil.
func reasonOf(err error) error {
	var se *msqlite.Error
	if errors.As(err, &se) {
		if se.Code() == sqlite3.SQLITE_IOERR_SHMSIZE { // the -shm cannot grow
			return ErrFull
		}
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH:
			return ErrCorrupt
		case sqlite3.SQLITE_FULL:
			return ErrFull
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
			return ErrReadOnly
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return ErrBusy
		}
		return nil
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return ErrReadOnly
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrNotExist):
		return ErrPlace
	}
	return nil
}

// damaged says what in a row cannot be right.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// isForeignKey reports whether a row was refused because one that it names is not
// there.
func isForeignKey(err error) bool {
	var e *msqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
}
