package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/groupcommit"
)

// testTable adds a table to the file, and gives an insert on the writing connection.
func testTable(t *testing.T, l *Ledger) *sql.Stmt {
	t.Helper()
	if _, err := l.conn.ExecContext(t.Context(), `CREATE TABLE test (n INTEGER PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	insert, err := l.conn.PrepareContext(t.Context(), `INSERT INTO test (n) VALUES (?)`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = insert.Close() })
	return insert
}

// stuck is a committer whose leader stands in its transaction until leave is closed.
type stuck struct {
	*groupcommit.Committer
	leave  chan struct{}
	leader chan error
}

func newStuck(c *groupcommit.Committer) *stuck {
	s := &stuck{Committer: c, leave: make(chan struct{}), leader: make(chan error, 1)}
	in := make(chan struct{})
	go func() {
		s.leader <- s.Submit(context.Background(), func() error {
			close(in)
			<-s.leave
			return nil
		})
	}()
	<-in
	return s
}

// waitFor waits until so many writes are queued.
func (s *stuck) waitFor(t *testing.T, n int) {
	t.Helper()
	for range 5000 {
		if s.Waiting() == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the queue does not get to %d", n)
}

// A write that fails in a batch leaves nothing, and the others stand.
func TestBatchWithFailures(t *testing.T) {
	l := openTest(t, Config{})
	insert := testTable(t, l)

	s := newStuck(l.commits)
	const n = 40
	failure := errors.New("spoiled")
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = l.commits.Submit(context.Background(), func() error {
				if _, err := insert.Exec(i); err != nil {
					return err
				}
				switch {
				case i%8 == 3:
					return failure // after it wrote
				case i%8 == 5:
					_, err := insert.Exec(i) // SQLite's own refusal
					return err
				}
				return nil
			})
		})
	}
	s.waitFor(t, n)
	close(s.leave)
	wg.Wait()
	if err := <-s.leader; err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		var found int
		if err := l.readers.QueryRow(`SELECT count(*) FROM test WHERE n = ?`, i).Scan(&found); err != nil {
			t.Fatal(err)
		}
		spoiled := i%8 == 3 || i%8 == 5
		if spoiled != (err != nil) || spoiled != (found == 0) {
			t.Errorf("write %d: error %v, %d rows", i, err, found)
		}
	}
}

// While a leader waits, its own write stays whatever becomes of its context, and a
// write behind it is withdrawn or done.
func TestWithdrawWhileGathering(t *testing.T) {
	l := openTest(t, Config{})
	insert := testTable(t, l)
	entered := make(chan struct{})
	l.commits.InFlight = sync.OnceValue(func() int { close(entered); return groupcommit.GatherFrom })
	ctx, cancel := context.WithCancel(t.Context())
	led, behind := make(chan error, 1), make(chan error, 1)
	go func() {
		led <- l.commits.Submit(ctx, func() error { _, err := insert.Exec(1); return err })
	}()
	<-entered
	go func() {
		behind <- l.commits.Submit(ctx, func() error { _, err := insert.Exec(2); return err })
	}()
	cancel()
	if err := <-led; err != nil {
		t.Errorf("the leader's write: %v", err)
	}
	err := <-behind
	var found int
	if err := l.readers.QueryRow(`SELECT count(*) FROM test`).Scan(&found); err != nil {
		t.Fatal(err)
	}
	if canceled := errors.Is(err, context.Canceled); !canceled && err != nil || canceled && found != 1 || !canceled && found != 2 {
		t.Errorf("behind it: %v, %d rows", err, found)
	}
}

// An ID that is said to be fresh and is not is found all the same.
func TestFreshButKnown(t *testing.T) {
	l := openTest(t, Config{})
	b := bindingOf("request-1")
	b.Fresh = true
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil || !h.MaySubmit() || h.Record().Fresh {
		t.Fatalf("Begin: %v", err)
	}
	if err := errors.Join(h.Finish(t.Context(), nil, pendingOf(b)), h.Release()); err != nil {
		t.Fatal(err)
	}
	again, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil || again.MaySubmit() || len(again.Record().Receipts) != 1 {
		t.Fatalf("Begin again: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
	b.InputDigest = "other"
	var bound *client.BindingError
	if _, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute); !errors.As(err, &bound) {
		t.Errorf("Begin with another input: %v", err)
	}
}

// A document that is not in the file any more, or only one of the two, is saved
// again with the next request that names it.
func TestSnapshotPurged(t *testing.T) {
	l := openTest(t, Config{})
	if _, err := l.conn.ExecContext(t.Context(), `DROP TRIGGER ledger_request_stays`); err != nil {
		t.Fatal(err)
	}
	for i, purge := range []string{
		`DELETE FROM ledger_snapshot WHERE digest <> ''`,
		`DELETE FROM ledger_snapshot WHERE digest = ?1`,
		`DELETE FROM ledger_snapshot WHERE digest = ?2`,
	} {
		for j, id := range []string{"before", "after"} {
			b := bindingOf(fmt.Sprintf("request-%s-%d", id, i))
			h, err := l.Begin(t.Context(), b, client.IntendPrepare, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(); err != nil {
				t.Fatal(err)
			}
			r, err := l.Load(t.Context(), b.Scope, b.RequestID)
			if err != nil || !bytes.Equal(r.Profile.Body, b.Profile.Body) || !bytes.Equal(r.OpenAPI.Body, b.OpenAPI.Body) {
				t.Fatalf("Load: %v", err)
			}
			if j == 0 {
				if _, err := l.conn.ExecContext(t.Context(), `DELETE FROM ledger_request`); err != nil {
					t.Fatal(err)
				}
				if _, err := l.conn.ExecContext(t.Context(), purge, b.Profile.Digest, b.OpenAPI.Digest); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A Begin that is cancelled in the queue has bound nothing and holds nothing, and a
// Finish that is cancelled there has appended nothing.
func TestBeginWithdrawn(t *testing.T) {
	l := openTest(t, Config{})
	old, fresh := bindingOf("request-1"), bindingOf("request-2")
	h, err := l.Begin(t.Context(), old, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	s := newStuck(l.commits)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() { _, err := l.Begin(ctx, fresh, client.IntendSubmit, time.Minute); errs <- err }()
	s.waitFor(t, 1)
	go func() { errs <- h.Finish(ctx, nil, pendingOf(old)) }()
	s.waitFor(t, 2)
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrLedger) {
			t.Errorf("cancelled in the queue: %v", err)
		}
	}
	close(s.leave)
	if err := <-s.leader; err != nil {
		t.Fatal(err)
	}
	var missing *client.NotFoundError
	if _, err := l.Load(t.Context(), fresh.Scope, fresh.RequestID); !errors.As(err, &missing) {
		t.Errorf("Load of what was not bound: %v", err)
	}
	if r, err := l.Load(t.Context(), old.Scope, old.RequestID); err != nil || len(r.Receipts) != 0 {
		t.Errorf("Load: %v, %v", r, err)
	}
	again, err := l.Begin(t.Context(), fresh, client.IntendSubmit, time.Minute)
	if err != nil || !again.MaySubmit() {
		t.Fatalf("Begin again: %v", err)
	}
	if err := errors.Join(again.Release(), h.Finish(t.Context(), nil, pendingOf(old))); err != nil {
		t.Fatal(err)
	}
}

// Whatever the moment at which a context ends: an error of the context means that
// nothing was written, and no error that it was.
func TestCancelStorm(t *testing.T) {
	l := openTest(t, Config{})
	insert := testTable(t, l)
	const n = 400
	errs := make([]error, n)
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := worker; i < n; i += 16 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*7%40)*100*time.Microsecond)
				errs[i] = l.commits.Submit(ctx, func() error { _, err := insert.Exec(i); return err })
				cancel()
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		var found int
		if err := l.readers.QueryRow(`SELECT count(*) FROM test WHERE n = ?`, i).Scan(&found); err != nil {
			t.Fatal(err)
		}
		if (err == nil) != (found == 1) {
			t.Errorf("write %d: %v, %d rows", i, err, found)
		}
	}
}
