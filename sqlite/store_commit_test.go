package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/google/go-cmp/cmp"
)

// openTestStore makes a store beside a table of the publisher's, in which 0 may
// stand until the commit only.
func openTestStore(t *testing.T, more string) (*Store, *sql.DB) {
	t.Helper()
	dsn, err := DSN(filepath.Join(t.TempDir(), "publisher.db"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn+"&_foreign_keys=1"+more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const tables = `
CREATE TABLE parents (id INTEGER PRIMARY KEY);
CREATE TABLE rows (n INTEGER NOT NULL UNIQUE, parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`
	if _, err := db.Exec(tables); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(t.Context(), StoreConfig{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, db
}

// together runs n submissions in one batch, behind a first one that waits until
// all are there; i is from 1. It gives their errors, with the first one's at 0.
func together(t *testing.T, s *Store, n int, f func(i int, tx *sql.Tx) error) []error {
	t.Helper()
	s.submissions.maxAge = time.Minute // on a slow machine too, they run in one batch
	errs := make([]error, n+1)
	in, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		errs[0] = s.Transact(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
			once.Do(func() { close(in) })
			<-leave
			return addRow(tx, 0)
		})
	})
	<-in
	for i := 1; i <= n; i++ {
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					errs[i] = errLeft
				}
			}()
			errs[i] = errLeft
			errs[i] = s.Transact(context.Background(), func(ctx context.Context, tx *sql.Tx) error { return f(i, tx) })
		})
		for waiting := 0; waiting < i; time.Sleep(100 * time.Microsecond) { // they keep their order
			s.submissions.mu.Lock()
			waiting = len(s.submissions.queue)
			s.submissions.mu.Unlock()
		}
	}
	close(leave)
	wg.Wait()
	return errs
}

func addRow(tx *sql.Tx, i int) error {
	_, err := tx.Exec(`INSERT INTO rows (n) VALUES (?)`, i)
	return err
}

func rowNumbers(t *testing.T, db *sql.DB) []int {
	t.Helper()
	rows, err := db.Query(`SELECT n FROM rows ORDER BY n`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := []int{}
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Whatever one submission does to the transaction that it shares, the others stand,
// each once, and nobody is told of a commit that was none.
func TestSpoiledBatch(t *testing.T) {
	refused := errors.New("refused")
	for name, spoil := range map[string]func(tx *sql.Tx) error{
		"refuses":                       func(*sql.Tx) error { return refused },
		"panics":                        func(*sql.Tx) error { panic("no") },
		"ends its goroutine":            func(*sql.Tx) error { runtime.Goexit(); return nil },
		"breaks a constraint":           func(tx *sql.Tx) error { return addRow(tx, 0) },
		"breaks it at the commit":       func(tx *sql.Tx) error { _, err := tx.Exec(`INSERT INTO rows VALUES (-1, 7)`); return err },
		"rolls back, and says nothing":  func(tx *sql.Tx) error { _, err := tx.Exec(`ROLLBACK`); return err },
		"rolls back, and refuses":       func(tx *sql.Tx) error { _, err := tx.Exec(`ROLLBACK`); return errors.Join(err, refused) },
		"rolls back, and panics":        func(tx *sql.Tx) error { _, _ = tx.Exec(`ROLLBACK`); panic("no") },
		"leaves a claim unsettled":      func(tx *sql.Tx) error { return nil }, // see below
		"releases the savepoint itself": func(tx *sql.Tx) error { _, err := tx.Exec(`RELEASE agentic`); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s, db := openTestStore(t, "")
			const n, bad = 9, 5
			errs := together(t, s, n, func(i int, tx *sql.Tx) error {
				if err := addRow(tx, i); err != nil {
					return err
				}
				if i != bad {
					return nil
				}
				if name == "leaves a claim unsettled" {
					_, err := s.Claim(t.Context(), tx, testKey("request-1"), "f", time.Hour)
					return err
				}
				return spoil(tx)
			})
			var want []int
			for i, err := range errs {
				if (err != nil) != (i == bad) {
					t.Errorf("submission %d: %v", i, err)
				}
				if i != bad {
					want = append(want, i)
				}
			}
			if d := cmp.Diff(want, rowNumbers(t, db)); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			if err := s.Transact(t.Context(), func(_ context.Context, tx *sql.Tx) error { return addRow(tx, 100) }); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// SQLite takes a transaction back by itself when it has no room, for one. Whoever
// keeps silent about it commits nothing, and nobody commits twice.
func TestSilentRollback(t *testing.T) {
	s, db := openTestStore(t, "")
	in := make(chan struct{})
	var once sync.Once
	errs := make(chan error)
	go func() {
		errs <- s.Transact(t.Context(), func(_ context.Context, tx *sql.Tx) error {
			once.Do(func() { close(in); time.Sleep(20 * time.Millisecond) })
			_, err := tx.Exec(`ROLLBACK`)
			return err
		})
	}()
	<-in
	err := s.Transact(t.Context(), func(_ context.Context, tx *sql.Tx) error { return addRow(tx, 1) })
	if err != nil {
		t.Errorf("the one behind it: %v", err)
	}
	if err := <-errs; err == nil {
		t.Error("a rolled back transaction was committed")
	}
	if d := cmp.Diff([]int{1}, rowNumbers(t, db)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// When a function ends the shared transaction through database/sql, nobody can
// tell what was committed: those before it are told so and do not run again.
func TestEndedBatch(t *testing.T) {
	for name, end := range map[string]func(*sql.Tx) error{"commits": (*sql.Tx).Commit, "rolls back": (*sql.Tx).Rollback} {
		t.Run(name, func(t *testing.T) {
			s, db := openTestStore(t, "")
			const n, bad = 6, 3
			runs := make([]int, n+1)
			errs := together(t, s, n, func(i int, tx *sql.Tx) error {
				runs[i]++
				if err := addRow(tx, i); err != nil || i != bad {
					return err
				}
				return end(tx)
			})
			for i, err := range errs {
				if i < bad && !errors.Is(err, service.ErrUnavailable) || i == bad && (err == nil || errors.Is(err, service.ErrUnavailable)) || i > bad && err != nil {
					t.Errorf("submission %d: %v", i, err)
				}
				if i > 0 && i != bad && runs[i] != 1 {
					t.Errorf("submission %d ran %d times", i, runs[i])
				}
			}
			found := rowNumbers(t, db)
			for i := bad + 1; i <= n; i++ {
				if !slices.Contains(found, i) {
					t.Errorf("row %d is not there", i)
				}
			}
			err := s.Transact(t.Context(), func(_ context.Context, tx *sql.Tx) error { return end(tx) })
			if !errors.Is(err, errEnded) || errors.Is(err, service.ErrUnavailable) {
				t.Errorf("alone: %v", err) // trying again would write again
			}
		})
	}
}

// What rests on a record of the same batch is not answered before the commit, and
// runs again when that fails.
func TestBatchAnswersAfterCommit(t *testing.T) {
	s, _ := openTestStore(t, "")
	repeat := errors.New("a repeat")
	var seen []*service.Record
	errs := together(t, s, 3, func(i int, tx *sql.Tx) error {
		r, err := s.Claim(t.Context(), tx, testKey("request-1"), fmt.Sprint(i), time.Hour)
		switch {
		case err != nil:
			return err
		case r != nil:
			seen = append(seen, r)
			return repeat
		case i == 1:
			// Only the commit finds out.
			if _, err := tx.Exec(`INSERT INTO rows VALUES (-1, 7)`); err != nil {
				return err
			}
		}
		return s.Settle(t.Context(), tx, testKey("request-1"), service.Done, service.Settlement{ResourceID: fmt.Sprint(i)})
	})
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || errs[3] != repeat {
		t.Errorf("errors %v", errs)
	}
	if last := seen[len(seen)-1]; last.ResourceID != "2" || last.Fingerprint != "2" {
		t.Errorf("the repeat saw %+v", last)
	}
}

// What is cancelled while it waits behind another one comes back at once and never runs.
func TestBatchWithdrawn(t *testing.T) {
	s, db := openTestStore(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	errs := together(t, s, 1, func(int, *sql.Tx) error { return nil })
	in, leave := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Transact(context.Background(), func(context.Context, *sql.Tx) error { close(in); <-leave; return nil })
	}()
	<-in
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			err := s.Transact(ctx, func(_ context.Context, tx *sql.Tx) error { return addRow(tx, 50) })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a submission that was withdrawn: %v", err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	cancel()
	wg.Wait() // while the first still runs
	close(leave)
	if err := errors.Join(append(errs, <-first)...); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]int{0}, rowNumbers(t, db)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// A database without room is unavailable, and takes what fits.
func TestStoreFull(t *testing.T) {
	s, _ := openTestStore(t, "&_pragma=max_page_count(60)")
	large := make([]byte, 16<<10)
	submit := func(id string) error {
		return s.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			if _, err := s.Claim(ctx, tx, testKey(id), "f", time.Hour); err != nil {
				return err
			}
			return s.Settle(ctx, tx, testKey(id), service.Done, service.Settlement{Body: large})
		})
	}
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = submit(fmt.Sprint(n))
	}
	if !errors.Is(err, service.ErrUnavailable) {
		t.Fatalf("after %d: %v", n, err)
	}
	if r, err := s.Find(t.Context(), testKey(fmt.Sprint(n-1))); r != nil || err != nil {
		t.Errorf("the one that did not fit: %+v, %v", r, err)
	}
	if r, err := s.Find(t.Context(), testKey("0")); r == nil || err != nil {
		t.Errorf("one that fits: %+v, %v", r, err)
	}
}

// A transaction of the publisher's own can commit a claim that it never settled:
// nobody sees it, its key is not free, and it ends with its window.
func TestCommittedClaim(t *testing.T) {
	s, db := openTestStore(t, "")
	now := time.Now()
	s.clock = func() time.Time { return now }
	k := testKey("request-1")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), tx, k, "f", time.Hour); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Find(t.Context(), k); r != nil || err != nil {
		t.Errorf("Find: %+v, %v", r, err)
	}
	err = s.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		r, err := s.Claim(ctx, tx, k, "f", time.Hour)
		if err == nil && (r == nil || r.State != service.Claimed) {
			t.Errorf("Claim: %+v", r)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	now = now.Add(time.Hour)
	if n, err := s.Sweep(t.Context(), 0, 10); n.Expired != 1 || err != nil {
		t.Errorf("Sweep: %+v, %v", n, err)
	}
	if r, err := s.Find(t.Context(), k); r == nil || r.State != service.Expired || err != nil {
		t.Errorf("Find after the window: %+v, %v", r, err)
	}
}

func testKey(id string) service.Key {
	return service.Key{Principal: "alice", Action: "create-ticket", RequestID: id}
}
