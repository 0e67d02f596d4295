package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
)

// When the answer to any message is lost, to COMMIT too, a request is attempted once,
// the hold that attempted it may submit, and its receipt is written once.
func TestLedgerLostAnswer(t *testing.T) {
	t.Parallel()
	d, f := mutedLedger(t)
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	for n := 1; ; n++ {
		b := bindingOf(fmt.Sprintf("request-%d", n))
		stop := f.set(n)
		h := begin(t, l, b)
		if !h.MaySubmit() {
			t.Errorf("message %d: the hold that attempted it may not submit", n)
		}
		if err := h.Observe(t.Context(), exchanges[:1]); err != nil {
			t.Errorf("message %d: Observe: %v", n, err)
		}
		if err := h.Finish(t.Context(), exchanges[1:], receiptOf(b, agentic.Succeeded)); err != nil {
			t.Errorf("message %d: Finish: %v", n, err)
		}
		if err := h.Release(); err != nil {
			t.Errorf("message %d: Release: %v", n, err)
		}
		hit := stop()
		r, err := l.Load(t.Context(), b.Scope, b.RequestID)
		if err != nil || len(r.Observations) != len(exchanges) || len(r.Receipts) != 1 {
			t.Fatalf("message %d: %+v, %v", n, r, err)
		}
		if !hit {
			break
		}
	}
}

// The same for a request that was prepared before, which is taken.
func TestLedgerLostAnswerToTake(t *testing.T) {
	t.Parallel()
	d, f := mutedLedger(t)
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	for n := 1; ; n++ {
		b := bindingOf(fmt.Sprintf("request-%d", n))
		h, err := l.Begin(t.Context(), b, client.IntendPrepare, time.Minute)
		if err != nil || h.Release() != nil {
			t.Fatal(err)
		}
		stop := f.set(n)
		h, err = l.Take(t.Context(), b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
		if err != nil || !h.MaySubmit() || h.Record().State != client.Attempted {
			t.Fatalf("message %d: %v", n, err)
		}
		if err := h.Release(); err != nil {
			t.Errorf("message %d: Release: %v", n, err)
		}
		if h, err = l.Take(t.Context(), b.Scope, b.RequestID, client.IntendSubmit, time.Minute); err != nil || h.MaySubmit() {
			t.Errorf("message %d: the next hold: %v", n, err)
		}
		if !stop() {
			break
		}
	}
}

func mutedLedger(t *testing.T) (*database, *fault) {
	d, f := newLedgerDatabase(t, pgtest.Shared(t)), &fault{}
	d.muteOn(f)
	return d, f
}

// A server that is stopped and started under load, and sessions that are ended: each
// request is attempted once among two hosts, and nearly nobody notices.
func TestLedgerOverRestarts(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	d := newLedgerDatabase(t, cluster)
	hosts := []*postgres.Ledger{d.openLedger(t, d.newPool(t, d.config(t, 8)), nil), d.openLedger(t, d.newPool(t, d.config(t, 8)), nil)}
	var stop atomic.Bool
	var failed, verified atomic.Int64
	var attempts sync.Map // of each request
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				b := bindingOf(fmt.Sprintf("request-%d-%d", w/2, i)) // two at a time, one on each host
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				h, err := hosts[w%2].Begin(ctx, b, client.IntendSubmit, 20*time.Second)
				if err == nil {
					n, _ := attempts.LoadOrStore(b.RequestID, new(atomic.Int64))
					if h.MaySubmit() {
						n.(*atomic.Int64).Add(1)
					}
					if r := h.Record(); r.Last() == nil {
						err = h.Finish(ctx, exchanges, receiptOf(b, agentic.Succeeded))
					}
					_ = h.Release()
				}
				cancel()
				switch {
				case err == nil:
					verified.Add(1)
				case errors.Is(err, client.ErrLedger), errors.Is(err, client.ErrLost):
					failed.Add(1)
				default:
					t.Errorf("%s: %v", b.RequestID, err)
				}
			}
		})
	}
	pause := func() { time.Sleep(200 * time.Millisecond) }
	for _, m := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate, pgtest.Fast, pgtest.Immediate} {
		pause()
		cluster.Stop(t, m)
		pause()
		cluster.Start(t)
		pause()
		cluster.TerminateAll(t, d.url)
	}
	pause()
	stop.Store(true)
	wg.Wait()
	d.admin.Reset()
	requests := 0
	attempts.Range(func(id, n any) bool {
		requests++
		if n.(*atomic.Int64).Load() > 1 {
			t.Errorf("%s was attempted %d times", id, n.(*atomic.Int64).Load())
		}
		return true
	})
	rows, err := d.admin.Query(t.Context(), `SELECT r.request_id FROM agentic.ledger_request r LEFT JOIN agentic.ledger_entry e ON e.request = r.id
		GROUP BY r.request_id, r.attempted_at HAVING count(e.receipt) > 1 OR r.attempted_at IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	if wrong, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(wrong) > 0 {
		t.Errorf("not attempted, or with two receipts: %v, %v", wrong, err)
	}
	if verified.Load() == 0 || failed.Load()*20 > verified.Load() {
		t.Errorf("%d of %d failed", failed.Load(), verified.Load()+failed.Load())
	}
	t.Logf("%d requests, %d executions, %d failed", requests, verified.Load(), failed.Load())
}

// A member that cannot be written does not keep the others of its batch from it.
func TestOneOfABatchFails(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			b := bindingOf(fmt.Sprintf("request-%d", i))
			bad := i%8 == 0
			if bad {
				b.ActionID = "no text has a \x00"
			}
			h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
			if (err != nil) != bad || err != nil && !errors.Is(err, client.ErrLedger) {
				t.Errorf("%s: %v", b.RequestID, err)
			}
			if err == nil {
				_ = h.Release()
			}
		})
	}
	wg.Wait()
}

// A context that ends while the pool is empty writes nothing, at once.
func TestWaitingWritesAreWithdrawn(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	pool := d.newPool(t, d.config(t, 2))
	l := d.openLedger(t, pool, nil)
	for range 2 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := l.Begin(ctx, bindingOf(fmt.Sprintf("request-%d", i)), client.IntendSubmit, time.Minute)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("they waited %s", took)
	}
	var n int
	if err := d.admin.QueryRow(t.Context(), `SELECT count(*) FROM agentic.ledger_request`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d requests, %v", n, err)
	}
}

// Rows that cannot be right are told as that.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	for i, damage := range []string{
		`UPDATE agentic.ledger_snapshot SET body = '' WHERE digest = 'p'`,
		`DELETE FROM agentic.ledger_snapshot WHERE digest = 'o'`,
		`UPDATE agentic.ledger_request SET outcome = 'failed'`,
		`UPDATE agentic.ledger_request SET outcome = 'done'`,
		`UPDATE agentic.ledger_request SET settled = 'abandon'`,
		`UPDATE agentic.ledger_request SET entries = 2`,
		`UPDATE agentic.ledger_request SET notes = 1`,
		`UPDATE agentic.ledger_request SET seen_at = 'infinity'`,
		`DELETE FROM agentic.ledger_entry`,
		`SET LOCAL session_replication_role = replica; UPDATE agentic.ledger_request SET input = 'x'`,
		`SET LOCAL session_replication_role = replica; UPDATE agentic.ledger_request SET principal = 'bob'`,
		`SET LOCAL session_replication_role = replica; UPDATE agentic.ledger_entry SET observations = '{}'`,
		`SET LOCAL session_replication_role = replica; UPDATE agentic.ledger_entry SET receipt = '{}'`,
		`SET LOCAL session_replication_role = replica; UPDATE agentic.ledger_entry SET seq = 3`,
	} {
		d.exec(t, `TRUNCATE agentic.ledger_request, agentic.ledger_entry, agentic.ledger_note, agentic.ledger_snapshot`)
		b := bindingOf(fmt.Sprintf("request-%d", i))
		h := begin(t, l, b)
		if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Unknown)); err != nil {
			t.Fatal(err)
		}
		_ = h.Release()
		d.exec(t, damage)
		for name, f := range map[string]func() error{
			"Load": func() error { _, err := l.Load(t.Context(), b.Scope, b.RequestID); return err },
			"Take": func() error {
				_, err := l.Take(t.Context(), b.Scope, b.RequestID, client.IntendPrepare, 0)
				return err
			},
			"Begin": func() error { _, err := l.Begin(t.Context(), b, client.IntendSubmit, 0); return err },
		} {
			var told *client.LedgerError
			if err := f(); !errors.As(err, &told) {
				t.Errorf("%s after %s: %v", name, damage, err)
			}
		}
	}
}

// What must never happen is refused by the tables, whoever asks.
func TestTablesRefuse(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	b := bindingOf("request-1")
	h := begin(t, l, b)
	if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Unknown)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "ann", Verb: client.Recheck, Reason: "why not"}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE agentic.ledger_request SET input = 'x'`,
		`UPDATE agentic.ledger_request SET origin = 'https://other.example'`,
		`UPDATE agentic.ledger_request SET purged_at = now()`,
		`UPDATE agentic.ledger_request SET purged_at = now(), input = NULL, input_sum = NULL, profile_digest = NULL, openapi_digest = NULL`, // it is open
		`UPDATE agentic.ledger_request SET attempted_at = NULL`,
		`UPDATE agentic.ledger_request SET attempted_by = 1`,
		`DELETE FROM agentic.ledger_request`,
		`UPDATE agentic.ledger_entry SET receipt = NULL`,
		`UPDATE agentic.ledger_note SET note = '[]'`,
	} {
		if _, err := d.admin.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s was done", sql)
		}
	}
}
