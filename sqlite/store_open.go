package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentic-go/agentic/service"
	msqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// DSN is the name of a file for sql.Open("sqlite", ...) as a Store needs it:
// every transaction takes the write lock when it begins and waits for it, and a
// commit is on stable storage when it returns (WAL, synchronous=FULL). A
// publisher adds its own settings with "&". The file is made when it is first
// used, with the rights that the umask leaves.
//
// It also chooses, for this process, locks that belong to an open file (OFD) and
// the sync that leaves a file's times alone, where the system has them and SQLite
// was not used before.
func DSN(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%w: no path", ErrPlace)
	}
	if path == ":memory:" || strings.HasPrefix(path, "file:") {
		return "", fmt.Errorf("%w: want the path of a file, not a name of SQLite's; a test takes one in t.TempDir()", ErrPlace)
	}
	_ = chooseSystemCalls() // it warns, and there is no log here
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return fileURI(path, url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_txlock":       {"immediate"},
	}), nil
}

//go:embed storemigrations/*.sql
var storeMigrations embed.FS

// storeSchema is that of the Store, beside the publisher's own tables.
var storeSchema = schema{files: storeMigrations, dir: "storemigrations", table: "agentic_service_migration", version: 1}

// Migrate makes the tables of a Store in the publisher's database, or brings them
// to what this program knows: the tables agentic_request and
// agentic_service_migration with their indexes and triggers, nothing else. It
// goes forward only and is ErrNewer for tables of a newer program. Several
// processes may call it at once.
func Migrate(ctx context.Context, db *sql.DB) error {
	err := storeSchema.migrate(ctx, db)
	// Another process was at it as well: it is done, or the next try sees how far.
	for wait := 10 * time.Millisecond; err != nil && !errors.Is(err, ErrNewer) && wait < time.Second; wait *= 2 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		again := storeSchema.migrate(ctx, db)
		if again == nil {
			return nil
		}
		err = again
	}
	return storeError("migrate", err)
}

// settings is what a connection does at a commit.
type settings struct {
	journal     string
	synchronous int
	busy        int
	uncommitted int
}

const settingsSQL = `
SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous),
(SELECT timeout FROM pragma_busy_timeout), (SELECT read_uncommitted FROM pragma_read_uncommitted)`

const (
	synchronousFull  = 2
	synchronousExtra = 3
)

// checkConnections refuses settings that lose commits. It looks at two
// connections at once, if there may be two: what was set by a statement and not
// in the DSN holds on one only.
func checkConnections(ctx context.Context, db *sql.DB) error {
	n := 2
	if db.Stats().MaxOpenConnections == 1 {
		n = 1
	}
	for range n {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		var s settings
		if err := c.QueryRowContext(ctx, settingsSQL).Scan(&s.journal, &s.synchronous, &s.busy, &s.uncommitted); err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("%w; open the database with sqlite.DSN", err)
		}
	}
	return nil
}

func (s settings) check() error {
	switch strings.ToLower(s.journal) {
	case "wal":
		if s.synchronous < synchronousFull {
			return fmt.Errorf("synchronous is %d: with less than FULL (2), a power failure can take back what was answered", s.synchronous)
		}
	case "delete", "truncate", "persist":
		if s.synchronous < synchronousExtra {
			return fmt.Errorf("synchronous is %d: with the journal mode %s and less than EXTRA (3), a power failure can take back what was answered", s.synchronous, s.journal)
		}
	default:
		return fmt.Errorf("the journal mode is %q: what was answered can be lost", s.journal)
	}
	if s.busy == 0 {
		return errors.New("the busy timeout is 0: every write beside another one would fail")
	}
	if s.uncommitted != 0 {
		return errors.New("read_uncommitted is on: what was never committed could be answered")
	}
	return nil
}

// storeError makes the error of an operation of a Store: service.ErrUnavailable
// when the database is out of reach or has no room. That of a context that the
// caller ended, and those of the contract, stay what they are.
func storeError(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, service.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case outOfReach(err):
		return fmt.Errorf("%w: sqlite: %s: %w", service.ErrUnavailable, op, err)
	}
	return fmt.Errorf("sqlite: %s: %w", op, err)
}

func outOfReach(err error) bool {
	var se *msqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL:
			return true
		}
		return false
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, errStoreClosed) {
		return true
	}
	// database/sql does not export these two.
	for ; err != nil; err = errors.Unwrap(err) {
		if m := err.Error(); m == "sql: database is closed" || m == "sql: statement is closed" {
			return true
		}
	}
	return false
}
