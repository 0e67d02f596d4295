package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/service"
)

const window = time.Hour

func key(id string) service.Key {
	return service.Key{Principal: "alice", Action: "create-note", RequestID: id}
}

var answer = service.Settlement{ResourceID: "1", Status: 201, Body: []byte(`{"id":1}`)}

func insertPgx(ctx context.Context, tx pgx.Tx, text string) error {
	_, err := tx.Exec(ctx, `INSERT INTO note (text) VALUES ($1)`, text)
	return err
}

func insertSQL(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO note (text) VALUES ($1)`, text)
	return err
}

// submit is a submission: a repeat of it is one that succeeds without an insert.
func submit[Tx any](ctx context.Context, s service.Store[Tx], insert func(context.Context, Tx, string) error, k service.Key, text string) error {
	return s.Transact(ctx, func(ctx context.Context, tx Tx) error {
		existing, err := s.Claim(ctx, tx, k, "fingerprint", window)
		if err != nil || existing != nil {
			return err
		}
		if err := insert(ctx, tx, text); err != nil {
			return err
		}
		return s.Settle(ctx, tx, k, service.Done, answer)
	})
}

// mute passes messages on until one was sent whose answer never comes.
type mute struct {
	net.Conn
	fault *fault
	cut   atomic.Bool
}

func (m *mute) Write(b []byte) (int, error) {
	if m.fault.now() {
		m.cut.Store(true)
	}
	return m.Conn.Write(b)
}

func (m *mute) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if m.cut.Load() {
		_ = m.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// When the answer to a message is lost, to COMMIT too, a submission is never
// reported as done; it says ErrUnavailable, and repeating it comes to one row.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		d, f := muted(t)
		testLostAnswer(t, d, f, newStore(t, d.newPool(t, d.config(t, 2))), insertPgx)
	})
	t.Run("sql", func(t *testing.T) {
		t.Parallel()
		d, f := muted(t)
		testLostAnswer(t, d, f, newSQLStore(t, d.newDB(t, d.config(t, 2))), insertSQL)
	})
}

func muted(t *testing.T) (*database, *fault) {
	d, f := newDatabase(t, pgtest.Shared(t)), &fault{}
	d.muteOn(f)
	return d, f
}

// muteOn has connections lose the answers to the messages that f chooses.
func (d *database) muteOn(f *fault) {
	d.wrap = func(c net.Conn) net.Conn { return &mute{Conn: c, fault: f} }
}

func testLostAnswer[Tx any](t *testing.T, d *database, f *fault, s service.Store[Tx], insert func(context.Context, Tx, string) error) {
	lost := 0 // commits without an answer
	for n := 1; ; n++ {
		k := key(fmt.Sprintf("request-%d", n))
		stop := f.set(n)
		err := submit(t.Context(), s, insert, k, k.RequestID)
		hit := stop()
		if err != nil {
			if !errors.Is(err, service.ErrUnavailable) {
				t.Errorf("message %d: %v", n, err)
			}
			r, err := s.Find(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if r != nil {
				lost++
			}
		}
		if err := submit(t.Context(), s, insert, k, k.RequestID); err != nil {
			t.Fatalf("message %d, the repeat: %v", n, err)
		}
		if got := len(d.rows(t)); got != n {
			t.Fatalf("message %d: %d rows", n, got)
		}
		if !hit {
			break
		}
	}
	if lost != 1 {
		t.Errorf("the answer to COMMIT was lost %d times", lost)
	}
}

// A claim that waits ends with its context, on the server too, and neither its
// connection nor the pool is worse for it.
func TestWaitEndsOnServer(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	s := newStore(t, d.newPool(t, d.config(t, 2)))
	other := newSQLStore(t, d.newDB(t, d.config(t, 2)))
	holder, err := d.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	k := key("request-1")
	if _, err := s.Claim(t.Context(), holder, k, "fingerprint", window); err != nil {
		t.Fatal(err)
	}
	for range 3 { // more than the pools have connections
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		for name, err := range map[string]error{"pgx": submit(ctx, s, insertPgx, k, "two"), "sql": submit(ctx, other, insertSQL, k, "two")} {
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, service.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		if err := d.admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d sessions still wait", waiting)
		}
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"pgx": submit(t.Context(), s, insertPgx, k, "three"), "sql": submit(t.Context(), other, insertSQL, k, "three")} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff([]string{"three"}, d.rows(t)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// A publisher's own transaction with a snapshot cannot see a record that is newer:
// it is asked to run again.
func TestSnapshotOfOwnTransaction(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		d := newDatabase(t, pgtest.Shared(t))
		s := newStore(t, d.admin)
		k := key("request-1")
		claim := func() (*service.Record, error) {
			tx, err := d.admin.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(t.Context())
			if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM note`); err != nil { // takes the snapshot
				t.Fatal(err)
			}
			if err := submit(t.Context(), s, insertPgx, k, "one"); err != nil {
				t.Fatal(err)
			}
			return s.Claim(t.Context(), tx, k, "fingerprint", window)
		}
		r, err := claim()
		var said *pgconn.PgError
		if r != nil || !errors.As(err, &said) || said.Code != "40001" || !errors.Is(err, service.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", level, r, err)
		}
		if r, err := claim(); err != nil || r == nil || r.State != service.Done {
			t.Errorf("%s, again: %+v, %v", level, r, err)
		}
	}
}

func TestServerWantsAnotherRun(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	s, other := newStore(t, d.admin), newSQLStore(t, d.newDB(t, d.config(t, 2)))
	const fail = `DO $$ BEGIN RAISE EXCEPTION 'for another' USING ERRCODE = '40P01'; END $$`
	for _, test := range []struct {
		failures, runs int
		err            error
	}{{0, 1, nil}, {2, 3, nil}, {4, 5, nil}, {5, 5, service.ErrUnavailable}} {
		k := key(fmt.Sprintf("request-%d", test.failures))
		runs := 0
		err := s.Transact(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			runs++
			existing, err := s.Claim(ctx, tx, k, "fingerprint", window)
			if err != nil || existing != nil {
				return fmt.Errorf("%+v, %w", existing, err)
			}
			if runs <= test.failures {
				_, err := tx.Exec(ctx, fail)
				return fmt.Errorf("in a publisher's words: %w", err)
			}
			return s.Settle(ctx, tx, k, service.Done, answer)
		})
		if runs != test.runs || !errors.Is(err, test.err) {
			t.Errorf("%d failures over pgx: %d runs, %v", test.failures, runs, err)
		}
		runs = 0
		err = other.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			if runs++; runs <= test.failures {
				_, err := tx.ExecContext(ctx, fail)
				return err
			}
			return nil
		})
		if runs != test.runs || !errors.Is(err, test.err) {
			t.Errorf("%d failures over database/sql: %d runs, %v", test.failures, runs, err)
		}
	}
}

// The publisher's and the server's settings do not make tracking less durable, and
// its times are those of the call and not of a long transaction's beginning.
func TestOwnTransactionIsDurableAndOnTime(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	c := d.config(t, 2)
	c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	pool := d.newPool(t, c)
	s := newStore(t, pool)
	if err := s.Transact(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := s.Claim(ctx, tx, key("pending"), "fingerprint", window); err != nil {
			return err
		}
		return s.Settle(ctx, tx, key("pending"), service.Pending, service.Settlement{Status: 202})
	}); err != nil {
		t.Fatal(err)
	}
	for name, track := range map[string]func(tx pgx.Tx) error{
		"claim": func(tx pgx.Tx) error {
			_, err := s.Claim(t.Context(), tx, key("request-1"), "fingerprint", window)
			return err
		},
		"settle": func(tx pgx.Tx) error {
			return s.Settle(t.Context(), tx, key("pending"), service.Done, answer)
		},
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		setting := func() (v string) {
			if err := tx.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		before := setting()
		if err := track(tx); err != nil {
			t.Fatal(err)
		}
		if after := setting(); before != "off" || after != "on" {
			t.Errorf("%s: synchronous_commit was %s and is %s", name, before, after)
		}
		if name == "claim" {
			var late bool
			if err := tx.QueryRow(t.Context(), `SELECT created_at > now() AND expires_at - created_at = interval '1 hour' FROM agentic.tracked_request WHERE state = 'claimed'`).Scan(&late); err != nil || !late {
				t.Errorf("the claim has the time of the transaction: %v", err)
			}
			var said *pgconn.PgError
			if err := tx.Commit(t.Context()); !errors.As(err, &said) || said.ConstraintName != "claim_is_settled" {
				t.Errorf("a claim that is not settled was committed: %v", err)
			}
		}
		_ = tx.Rollback(t.Context())
	}
}
