package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agentic-go/agentic/internal/filelock"
	"github.com/agentic-go/agentic/internal/groupcommit"
	"github.com/agentic-go/agentic/internal/privatefile"
	msqlite "modernc.org/sqlite"
)

// Config says where a ledger is. Only Path is needed.
type Config struct {
	// Path is the file. It is made with mode 0600, and its directory with 0700,
	// when they are not there. An existing directory stays as it is; the rights of
	// others on an existing ledger are taken away. A file that holds something else
	// is refused and left as it is.
	Path string

	// ReadOnly opens a ledger that is there for Load and List, and changes nothing;
	// Begin and Take are refused with ErrReadOnly.
	ReadOnly bool

	Clock  func() time.Time // nil is time.Now
	Logger *slog.Logger     // nil discards

	// KillPoint is called between two effects, for tests that end the process
	// there. It must not panic, and is called from several goroutines:
	//
	//	sqlite/locked     the lock of a request is taken, nothing is written
	//	sqlite/commit     a transaction is filled and not committed
	//	sqlite/committed  it is durable, and nobody was told
	//	sqlite/released   the lock of a request is given free
	KillPoint func(name string)
}

// Ledger is a client.Ledger in a SQLite file. It is safe for concurrent use, and
// any number of handles and processes may have the same file open.
type Ledger struct {
	clock     func() time.Time
	logger    *slog.Logger
	killPoint func(string)
	path      string

	locks   *filelock.Table
	readers *sql.DB
	load    *sql.Stmt // on readers
	writer  *sql.DB   // one connection
	conn    *sql.Conn // that connection
	commits *groupcommit.Committer
	insert  insertStatements
	update  updateStatements
	note    noteStatements
	toClose []io.Closer // statements on conn

	mu      sync.Mutex
	closing bool
	calls   sync.WaitGroup // that use the connections
}

// busyTimeout bounds the wait for the write lock of SQLite, which another process
// keeps for one commit only.
const busyTimeout = 10 * time.Second

// openWait bounds the wait for another process that makes or migrates the file.
const openWait = time.Minute

// readConnections bounds the connections for Load, List and the first look of Begin.
const readConnections = 4

// Open opens the ledger, making and migrating the file when it has to. The error
// is a *client.LedgerError with the reason (ErrNewer and the others of this
// package), or that of ctx.
func Open(ctx context.Context, c Config) (*Ledger, error) {
	l := &Ledger{clock: c.Clock, logger: c.Logger, killPoint: c.KillPoint}
	if l.clock == nil {
		l.clock = time.Now
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.killPoint == nil {
		l.killPoint = func(string) {}
	}
	if err := chooseSystemCalls(); err != nil {
		l.logger.WarnContext(ctx, "SQLite was used before in this process, so its locks fall when any descriptor of the file is closed", "error", err)
	}
	open := l.open
	if c.ReadOnly {
		open = l.openReadOnly
	}
	if err := open(ctx, c.Path); err != nil {
		_ = l.closeFiles() // the first error counts
		return nil, ledgerError("open", fmt.Errorf("%s: %w", c.Path, err))
	}
	l.logger.DebugContext(ctx, "ledger opened", "path", l.path)
	return l, nil
}

func (l *Ledger) open(ctx context.Context, path string) error {
	if dir := filepath.Dir(path); path != "" {
		if err := privatefile.MakeDir(dir); err != nil {
			return fmt.Errorf("%w: %w", ErrPlace, err)
		}
	}
	path, err := privatefile.Place(path)
	if err != nil {
		return err
	}
	l.path = path
	if _, err := inspect(ctx, path); err != nil {
		return err
	}
	if l.locks, err = filelock.Open(path); err != nil {
		return err
	}
	if err := l.locks.Acquire(ctx, filelock.Place, openWait); err == filelock.ErrHeld {
		return ErrBusy
	} else if err != nil {
		return err
	}
	defer l.locks.Release(filelock.Place)
	if err := privatefile.Make(path, "-wal", "-shm"); err != nil {
		return err
	}
	return l.connect(ctx)
}

// openReadOnly opens what is there for looking at.
func (l *Ledger) openReadOnly(ctx context.Context, path string) error {
	path, err := privatefile.Place(path)
	if err != nil {
		return err
	}
	l.path = path
	if _, err := os.Stat(path); err != nil {
		return err
	}
	version, err := inspect(ctx, path)
	if err == nil && version < schemaVersion {
		err = fmt.Errorf("%w: its schema is %d and this program's is %d", ErrOlder, version, schemaVersion)
	}
	if err != nil {
		return err
	}
	if l.readers, _, err = look(ctx, path); err != nil {
		return err
	}
	var old bool
	if err := l.readers.QueryRowContext(ctx, unfilledSQL).Scan(&old); err != nil {
		return err
	}
	if old {
		return fmt.Errorf("%w: it has requests of schema 1", ErrOlder)
	}
	return l.prepareReaders(ctx)
}

func (l *Ledger) prepareReaders(ctx context.Context) (err error) {
	l.readers.SetMaxOpenConns(readConnections)
	l.readers.SetMaxIdleConns(readConnections)
	l.load, err = l.readers.PrepareContext(ctx, loadSQL)
	return err
}

// connect opens the connections. The caller has filelock.Place.
func (l *Ledger) connect(ctx context.Context) error {
	var err error
	if l.writer, err = sql.Open("sqlite", dsn(l.path, writes)); err != nil {
		return err
	}
	l.writer.SetMaxOpenConns(1)
	if err := ledgerSchema.migrate(ctx, l.writer); err != nil {
		return err
	}
	if l.conn, err = l.writer.Conn(ctx); err != nil {
		return err
	}
	p := preparer{ctx: ctx, on: l.conn}
	defer func() { l.toClose = p.made }()
	begin, commit, rollback := p.prepare("BEGIN IMMEDIATE"), p.prepare("COMMIT"), p.prepare("ROLLBACK")
	l.insert, l.update, l.note = prepareInsert(&p), prepareUpdate(&p), prepareNote(&p)
	if p.err != nil {
		return p.err
	}
	// Contexts do not reach SQLite here: an interrupt could come between a commit
	// and its answer.
	run := func(s *sql.Stmt) error { _, err := s.Exec(); return err }
	l.commits = &groupcommit.Committer{
		Begin:    func() error { return run(begin) },
		Rollback: func() error { return run(rollback) },
		Commit: func() error {
			l.killPoint("sqlite/commit")
			err := run(commit)
			if err == nil {
				l.killPoint("sqlite/committed")
			}
			return err
		},
		InFlight: l.locks.InFlight,
	}
	// A file that may only be read says so now, not when an action is about to run.
	if err := l.commits.Begin(); err != nil {
		return err
	}
	if err := l.commits.Rollback(); err != nil {
		return err
	}
	if err := l.fillIn(ctx); err != nil {
		return err
	}
	if l.readers, err = sql.Open("sqlite", dsn(l.path, reads)); err != nil {
		return err
	}
	return l.prepareReaders(ctx)
}

// Close waits for the calls that are writing and ends those that wait for a
// request. A Hold that was not released loses its lock and writes nothing more.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return nil
	}
	l.closing = true
	if l.locks != nil {
		l.locks.Stop()
	}
	l.mu.Unlock()
	l.calls.Wait()
	return ledgerError("close", l.closeFiles())
}

func (l *Ledger) closeFiles() error {
	var errs []error
	if l.readers != nil {
		errs = append(errs, l.readers.Close())
	}
	// SQLite ends a connection, and writes the WAL back, only without statements.
	for _, s := range l.toClose {
		errs = append(errs, s.Close())
	}
	if l.conn != nil {
		errs = append(errs, l.conn.Close())
	}
	if l.writer != nil {
		errs = append(errs, l.writer.Close())
	}
	if l.locks != nil {
		errs = append(errs, l.locks.Close())
	}
	return errors.Join(errs...)
}

// enter begins a call that uses the connections, unless the ledger is closed.
func (l *Ledger) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return ErrClosed
	}
	l.calls.Add(1)
	return nil
}

// now is the ledger's clock in UTC with microseconds, without a monotonic part.
func (l *Ledger) now() time.Time { return l.clock().UTC().Round(0).Truncate(time.Microsecond) }

// chooseSystemCalls asks for locks that another descriptor's end does not drop,
// and for the sync that leaves a file's times alone. Where the system has neither
// it goes on without; the error says that SQLite was used before in this process
// in a way that cannot be changed any more.
var chooseSystemCalls = sync.OnceValue(func() error {
	_, _ = msqlite.Fdatasync(true)
	if _, err := msqlite.OFDLocking(true); !errors.Is(err, msqlite.ErrOFDLockingUnavailable) {
		return err
	}
	return nil
})

// access is what a connection is for.
type access int

const (
	writes      access = iota
	unchecked          // writes what foreign keys need not look at
	reads              // beside a connection that writes
	standsStill        // nobody writes, and there is no place for files of readers
	onlyLook           // nothing of the file may change, not even its journal mode
)

// dsn is the file as a URI, so that no character of its path is an option, with
// what has to hold on every connection: the busy timeout goes first.
func dsn(path string, how access) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"1"},
		"_dqs":          {"0"},
		"_txlock":       {"immediate"},
		"_pragma":       {"secure_delete(1)"}, // what is purged is overwritten
	}
	if how == unchecked {
		q.Set("_foreign_keys", "0")
	} else if how != writes {
		q.Set("_txlock", "deferred")
		q.Set("_query_only", "1")
	}
	if how == standsStill {
		q.Set("immutable", "1")
	}
	if how == onlyLook || how == standsStill {
		q.Del("_journal_mode")
		q.Del("_synchronous")
		q.Set("mode", "ro")
	}
	return fileURI(path, q)
}

// fileURI names a file by its absolute path, with settings of the connection.
func fileURI(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive of Windows
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// preparer makes statements on a connection and keeps the first error.
type preparer struct {
	ctx  context.Context
	on   *sql.Conn
	made []io.Closer
	err  error
}

func (p *preparer) prepare(query string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	s, err := p.on.PrepareContext(p.ctx, query)
	if err != nil {
		p.err = err
		return nil
	}
	p.made = append(p.made, s)
	return s
}

// close ends the statements, of which nothing can be lost.
func (p *preparer) close() {
	for _, s := range p.made {
		_ = s.Close()
	}
}
