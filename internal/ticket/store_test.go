package ticket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func open(t testing.TB, path string) *store {
	t.Helper()
	s, err := openStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

var made = decision{status: statusSucceeded, subject: "s"}

func TestDurability(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
		err := s.do(t.Context(), func(ctx context.Context, w *writer) error {
			var have string
			if err := w.conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&have); err != nil {
				return err
			}
			equal(t, pragma, have, want)
			return nil
		})
		equal(t, pragma, err, nil)
	}
	if _, err := s.read.ExecContext(t.Context(), "DELETE FROM requests"); err == nil {
		t.Error("a reader wrote")
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "mode of t.db"+suffix, info.Mode().Perm(), os.FileMode(0o600))
	}
}

func TestTemporaryDatabaseIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := open(t, "")
	if _, err := os.Stat(s.temp); err != nil {
		t.Fatal(err)
	}
	equal(t, "first close", s.close(), nil)
	equal(t, "second close", s.close(), nil)
	if _, err := os.Stat(s.temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// A write that fails takes neither its neighbours in the batch nor half of itself
// with it.
func TestFailedWriteFailsAlone(t *testing.T) {
	s := open(t, "")
	poison := errors.New("poison")
	var started, wg sync.WaitGroup
	blocked := make(chan struct{})
	started.Add(1)
	wg.Go(func() {
		_ = s.do(t.Context(), func(context.Context, *writer) error { started.Done(); <-blocked; return nil })
	})
	started.Wait() // everything below shares the next commit
	for i := range 20 {
		wg.Go(func() {
			if _, first, err := s.submit(t.Context(), fmt.Sprint("k", i), "d", made, time.Now()); err != nil || !first {
				t.Errorf("submit %d: %v %v", i, first, err)
			}
		})
	}
	wg.Go(func() {
		err := s.do(t.Context(), func(ctx context.Context, w *writer) error {
			if _, err := w.insertTicket(ctx, "poison", "p"); err != nil {
				return err
			}
			return poison
		})
		equal(t, "poison", errors.Is(err, poison), true)
	})
	time.Sleep(20 * time.Millisecond)
	close(blocked)
	wg.Wait()
	tickets, requests, err := s.count(t.Context())
	equal(t, "rows", []any{tickets, requests, err}, []any{20, 20, nil})
}

func TestSubmitAfterTheCallerHasGone(t *testing.T) {
	s := open(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var busy sync.WaitGroup
	started, release := make(chan struct{}), make(chan struct{})
	busy.Go(func() {
		_ = s.do(t.Context(), func(context.Context, *writer) error { close(started); <-release; return nil })
	})
	<-started
	_, _, err := s.submit(ctx, "k", "d", made, time.Now())
	equal(t, "error", errors.Is(err, context.Canceled), true)
	close(release)
	busy.Wait()
	_, found, err := s.request(t.Context(), "k")
	equal(t, "nothing was written", []any{found, err}, []any{false, nil})
}

func TestCloseWhileSubmitting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	s := open(t, path)
	var wg sync.WaitGroup
	var kept atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				switch _, _, err := s.submit(t.Context(), fmt.Sprint(i, "-", n), "d", made, time.Now()); {
				case err == nil:
					kept.Add(1)
				case errors.Is(err, errClosed):
					return
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	equal(t, "close", s.close(), nil)
	wg.Wait()
	tickets, requests, err := open(t, path).count(t.Context())
	equal(t, "rows", []any{int64(tickets), int64(requests), err}, []any{kept.Load(), kept.Load(), nil})
}

// Two services on one file still make one ticket for one key.
func TestTwoServicesOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	stores := []*store{open(t, path), open(t, path)}
	var wg sync.WaitGroup
	var firsts atomic.Int64
	for i := range 40 {
		wg.Go(func() {
			_, first, err := stores[i%2].submit(t.Context(), fmt.Sprint("k", i/4), "d", made, time.Now())
			if err != nil {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	wg.Wait()
	equal(t, "firsts", firsts.Load(), int64(10))
	tickets, requests, err := stores[0].count(t.Context())
	equal(t, "rows", []any{tickets, requests, err}, []any{10, 10, nil})
}

// BenchmarkSubmit is POST /tickets over loopback keep-alive connections, each with
// a key of its own, every ticket durable before its answer.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := start(b, Config{Path: filepath.Join(b.TempDir(), "t.db")})
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						g, err := s.try(http.MethodPost, "/tickets", subject, fmt.Sprintf("Idempotency-Key: 01890a5d-ac96-774b-bcce-b302099a%04d-%d", n%10000, n))
						if err != nil || g.code != 201 {
							b.Errorf("%d %v", g.code, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
		})
	}
}
