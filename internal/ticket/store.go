package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// schemaVersion is the user_version of the database.
const schemaVersion = 1

// A request never holds its input, only the digest: what is left of it after its
// window is a tombstone already (D23). Text compares by bytes, so keys that
// differ in case differ (D19).
const schema = `
CREATE TABLE tickets (
	id         INTEGER PRIMARY KEY,
	request_id TEXT NOT NULL,
	subject    TEXT NOT NULL,
	status     TEXT NOT NULL
) STRICT;
CREATE TABLE requests (
	id      TEXT PRIMARY KEY,
	digest  TEXT NOT NULL,
	status  TEXT NOT NULL CHECK (status IN ('succeeded', 'failed', 'pending')),
	ticket  INTEGER REFERENCES tickets (id) CHECK ((ticket IS NOT NULL) = (status = 'succeeded')),
	reason  TEXT NOT NULL,
	created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
`

// maxBatch bounds how many waiting writes share one commit.
const maxBatch = 256

var errClosed = errors.New("the service is closed")

// store keeps tickets and requests. All writes go through one goroutine and one
// connection: what waits while a commit is under way shares the next one.
type store struct {
	temp   string  // directory to remove on close, or ""
	write  *sql.DB // one connection, held by the writer
	read   *sql.DB
	status *sql.Stmt
	ticket *sql.Stmt

	jobs chan job
	quit chan struct{}
	gone chan struct{} // closed when the writer has ended
	once sync.Once
}

// job is one write: run is called inside a transaction, and again in another when
// the first was rolled back.
type job struct {
	run  func(ctx context.Context, w *writer) error
	done chan error
}

// record is a tracked request.
type record struct {
	digest  string
	status  string // succeeded, failed or pending
	ticket  int64  // with succeeded
	reason  string // with failed, for people
	created time.Time
}

// row is a ticket.
type row struct {
	requestID, subject, status string
}

func openStore(ctx context.Context, path string) (_ *store, err error) {
	// Both switches are process-wide, must agree with those of any other user of
	// the driver, and are refused only where the system lacks the call.
	_, _ = sqlite.OFDLocking(true)
	_, _ = sqlite.Fdatasync(true)

	s := &store{jobs: make(chan job), quit: make(chan struct{}), gone: make(chan struct{})}
	if path == "" {
		if s.temp, err = os.MkdirTemp("", "agentic-ticket-"); err != nil {
			return nil, err
		}
		path = filepath.Join(s.temp, "tickets.db")
	}
	var w *writer
	defer func() {
		if err != nil {
			if w != nil {
				w.close()
			}
			_ = s.release()
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	// SQLite would make the file readable for others; -wal and -shm take its mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if s.write, err = openDB(path, "_txlock=immediate", 1); err != nil {
		return nil, err
	}
	if w, err = newWriter(ctx, s.write); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if s.read, err = openDB(path, "_query_only=1", 4); err != nil {
		return nil, err
	}
	if s.status, err = s.read.PrepareContext(ctx, "SELECT digest, status, ticket, reason, created FROM requests WHERE id = ?"); err != nil {
		return nil, err
	}
	if s.ticket, err = s.read.PrepareContext(ctx, "SELECT request_id, subject, status FROM tickets WHERE id = ?"); err != nil {
		return nil, err
	}
	go s.serve(w)
	return s, nil
}

func openDB(path, params string, conns int) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: "_busy_timeout=10000&_journal_mode=WAL&_synchronous=FULL&" + params}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// close ends the writer after its current commit.
func (s *store) close() (err error) {
	s.once.Do(func() {
		close(s.quit)
		<-s.gone
		err = s.release()
	})
	return err
}

func (s *store) release() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// do hands run to the writer and waits until its transaction has ended. The
// context ends the wait for the writer only: what it has taken is finished.
func (s *store) do(ctx context.Context, run func(context.Context, *writer) error) error {
	j := job{run: run, done: make(chan error, 1)}
	select {
	case s.jobs <- j:
	case <-s.quit:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-j.done
}

func (s *store) serve(w *writer) {
	defer close(s.gone)
	defer w.close()
	batch := make([]job, 0, maxBatch)
	for {
		select {
		case <-s.quit:
			return
		case j := <-s.jobs:
			batch = append(batch[:0], j)
		}
		for waiting := true; waiting && len(batch) < maxBatch; {
			select {
			case j := <-s.jobs:
				batch = append(batch, j)
			default:
				waiting = false
			}
		}
		w.commit(batch)
		clear(batch)
	}
}

// writer owns the one connection that writes.
type writer struct {
	conn *sql.Conn

	begin, end, rollback, find, addTicket, addRequest, settle *sql.Stmt
}

func newWriter(ctx context.Context, db *sql.DB) (_ *writer, err error) {
	w := &writer{}
	if w.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := migrate(ctx, w.conn); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		stmt  **sql.Stmt
		query string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.end, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.find, "SELECT digest, status, ticket, reason, created FROM requests WHERE id = ?"},
		{&w.addTicket, "INSERT INTO tickets (request_id, subject, status) VALUES (?, ?, 'open')"},
		{&w.addRequest, "INSERT INTO requests (id, digest, status, ticket, reason, created) VALUES (?, ?, ?, ?, ?, ?)"},
		{&w.settle, "UPDATE requests SET status = 'succeeded', ticket = ? WHERE id = ?"},
	} {
		if *p.stmt, err = w.conn.PrepareContext(ctx, p.query); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// migrate makes the tables in an empty database and refuses one that is not ours.
func migrate(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var version, tables int
	err = tx.QueryRowContext(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version").Scan(&version, &tables)
	if err != nil {
		return err
	}
	switch {
	case version == 0 && tables == 0:
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		return tx.Commit()
	case version == schemaVersion:
		return nil
	}
	return fmt.Errorf("not a ticket database of version %d (version %d, %d tables and indexes)", schemaVersion, version, tables)
}

func (w *writer) close() { _ = w.conn.Close() }

// commit runs the jobs in one transaction. When one of them fails, all is rolled
// back and each runs alone, so that none suffers from another.
func (w *writer) commit(batch []job) {
	err := w.transact(batch)
	if err != nil && len(batch) > 1 {
		for i := range batch {
			batch[i].done <- w.transact(batch[i : i+1])
		}
		return
	}
	for _, j := range batch {
		j.done <- err
	}
}

func (w *writer) transact(batch []job) (err error) {
	ctx := context.Background() // a commit is not abandoned half-way
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The error is that of a transaction which SQLite has ended already.
			_, _ = w.rollback.ExecContext(ctx)
		}
	}()
	for _, j := range batch {
		if err := j.run(ctx, w); err != nil {
			return err
		}
	}
	_, err = w.end.ExecContext(ctx)
	return err
}

// submit records what was decided for a key that is new, ticket and request
// together; of a known key it returns the record (first is false). It is the one
// place where a ticket and its request are made.
func (s *store) submit(ctx context.Context, key, digest string, d decision, now time.Time) (rec record, first bool, err error) {
	err = s.do(ctx, func(ctx context.Context, w *writer) error {
		known, found, err := scanRecord(w.find.QueryRowContext(ctx, key))
		if rec, first = known, !found; err != nil || found {
			return err
		}
		rec = record{digest: digest, status: d.status, reason: d.reason, created: now}
		var ticket sql.NullInt64
		if d.status == statusSucceeded {
			if ticket.Int64, err = w.insertTicket(ctx, key, d.subject); err != nil {
				return err
			}
			ticket.Valid, rec.ticket = true, ticket.Int64
		}
		_, err = w.addRequest.ExecContext(ctx, key, digest, d.status, ticket, d.reason, now.UnixMilli())
		return err
	})
	return rec, first, err
}

// complete makes the ticket of a pending request, both together; it does nothing
// when the request is not pending.
func (s *store) complete(ctx context.Context, key, subject string) error {
	return s.do(ctx, func(ctx context.Context, w *writer) error {
		rec, found, err := scanRecord(w.find.QueryRowContext(ctx, key))
		if err != nil || !found || rec.status != statusPending {
			return err
		}
		id, err := w.insertTicket(ctx, key, subject)
		if err != nil {
			return err
		}
		_, err = w.settle.ExecContext(ctx, id, key)
		return err
	})
}

func (w *writer) insertTicket(ctx context.Context, key, subject string) (int64, error) {
	res, err := w.addTicket.ExecContext(ctx, key, subject)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// request finds what is tracked under a key.
func (s *store) request(ctx context.Context, key string) (record, bool, error) {
	return scanRecord(s.status.QueryRowContext(ctx, key))
}

func scanRecord(r *sql.Row) (rec record, found bool, err error) {
	var ticket sql.NullInt64
	var created int64
	err = r.Scan(&rec.digest, &rec.status, &ticket, &rec.reason, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, false, nil
	}
	rec.ticket, rec.created = ticket.Int64, time.UnixMilli(created)
	return rec, err == nil, err
}

// find finds a ticket.
func (s *store) find(ctx context.Context, id int64) (t row, found bool, err error) {
	err = s.ticket.QueryRowContext(ctx, id).Scan(&t.requestID, &t.subject, &t.status)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, false, nil
	}
	return t, err == nil, err
}

func (s *store) count(ctx context.Context) (tickets, requests int, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM tickets), (SELECT count(*) FROM requests)").Scan(&tickets, &requests)
	return tickets, requests, err
}

func (s *store) ping(ctx context.Context) error {
	var one int
	return s.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}
