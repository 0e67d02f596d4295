package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/postgres"
)

// queue stands for the tables of a job engine: a table in the same database.
type queue struct {
	mu    sync.Mutex
	got   []postgres.Due
	fail  error
	fails int // how often; below zero is always
}

func (q *queue) enqueue(ctx context.Context, tx pgx.Tx, due []postgres.Due) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range due {
		if _, err := tx.Exec(ctx, `INSERT INTO job (request_id, entries) VALUES ($1, $2)`, d.RequestID, d.Entries); err != nil {
			return err
		}
	}
	q.got = append(q.got, due...)
	if q.fails == 0 {
		return nil
	}
	q.fails--
	return q.fail
}

func (q *queue) take() []postgres.Due {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := q.got
	q.got = nil
	return got
}

func newQueue(t *testing.T) (*database, *queue, *ledgertest.Clock, *postgres.Ledger) {
	d := newLedgerDatabase(t, pgtest.Shared(t))
	d.exec(t, `CREATE TABLE job (request_id text, entries bigint, UNIQUE (request_id, entries))`)
	q, clock := &queue{}, ledgertest.NewClock()
	l := d.openLedger(t, d.newPool(t, d.config(t, 3)), func(c *postgres.LedgerConfig) { c.Enqueue, c.Clock = q.enqueue, clock.Now })
	return d, q, clock, l
}

func (d *database) jobs(t *testing.T) (n int) {
	t.Helper()
	if err := d.admin.QueryRow(t.Context(), `SELECT count(*) FROM job`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A job is made in the transaction of the receipt that needs one.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	d, q, clock, l := newQueue(t)
	b := bindingOf("request-1")
	now := clock.Now()
	h := begin(t, l, b)
	if err := h.Observe(t.Context(), exchanges[:1]); err != nil {
		t.Fatal(err)
	}
	// The server cannot serve now: that takes the receipt back, and both are made again.
	q.fail, q.fails = &pgconn.PgError{Code: "53100"}, 2
	if err := h.Finish(t.Context(), exchanges[1:], receiptOf(b, agentic.Pending)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	at, _ := client.NextCheck(b.RequestID, now, now, b.Window)
	want := []postgres.Due{{Scope: b.Scope, RequestID: b.RequestID, Origin: b.Origin, At: at, Entries: 2}}
	got := q.take()
	if diff := cmp.Diff(want, got[len(got)-1:]); diff != "" || d.jobs(t) != 1 || len(got) != 3 {
		t.Errorf("%d calls, %d jobs (-want +got):\n%s", len(got), d.jobs(t), diff)
	}

	// A receipt that ends the request makes no job, nor one that a person overtook.
	h = begin(t, l, b)
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "ann", Verb: client.Abandon, Reason: "too old"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Finish(t.Context(), nil, receiptOf(b, agentic.Unknown)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	c := bindingOf("request-2")
	h = begin(t, l, c)
	if err := h.Finish(t.Context(), nil, receiptOf(c, agentic.Succeeded)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	if got := q.take(); len(got) != 0 {
		t.Errorf("jobs for nothing: %+v", got)
	}
}

// A job that cannot be made costs no receipt: it is saved without one, an operator is
// told once, and a sweep makes the job when it is due.
func TestReceiptWithoutAJob(t *testing.T) {
	t.Parallel()
	d, q, clock, _ := newQueue(t)
	var log strings.Builder
	l := d.openLedger(t, d.newPool(t, d.config(t, 3)), func(c *postgres.LedgerConfig) {
		c.Enqueue, c.Clock, c.Logger = q.enqueue, clock.Now, slog.New(slog.NewTextHandler(&log, nil))
	})
	q.fail, q.fails = &pgconn.PgError{Code: "42501", Message: "permission denied for sequence"}, -1
	for _, id := range []string{"request-1", "request-2"} {
		b := bindingOf(id)
		h := begin(t, l, b)
		if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Pending)); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		if got := outcome(t, l, b); got != agentic.Pending {
			t.Errorf("%s: outcome %q", id, got)
		}
	}
	if n := strings.Count(log.String(), "without a job"); n != 1 || d.jobs(t) != 0 {
		t.Errorf("told %d times, %d jobs: %s", n, d.jobs(t), &log)
	}
	q.fails = 0
	clock.Advance(time.Hour)
	if n, err := l.Sweep(t.Context(), []client.Scope{bindingOf("request-1").Scope}, 10); n != 2 || err != nil || d.jobs(t) != 2 {
		t.Errorf("swept %d, %v; %d jobs", n, err, d.jobs(t))
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	d, q, clock, l := newQueue(t)
	b := bindingOf("request-1")
	scopes := []client.Scope{{Principal: "nobody"}, b.Scope}
	sweep := func(want ...postgres.Due) {
		t.Helper()
		n, err := l.Sweep(t.Context(), scopes, 10)
		if diff := cmp.Diff(want, q.take()); err != nil || n != len(want) || diff != "" {
			t.Errorf("Sweep: %d, %v (-want +got):\n%s", n, err, diff)
		}
	}
	due := func(at time.Time, entries int64) postgres.Due {
		return postgres.Due{Scope: b.Scope, RequestID: b.RequestID, Origin: b.Origin, At: at, Entries: entries}
	}
	at := client.AfterAttempt(clock.Now(), b.Term)
	h := begin(t, l, b)
	sweep()
	clock.Advance(10 * time.Minute)
	sweep() // due, and held
	d.lapse(t)
	if n, err := l.Sweep(t.Context(), scopes[:1], 10); n != 0 || err != nil {
		t.Errorf("Sweep of other scopes: %d, %v", n, err)
	}
	q.fail, q.fails = errors.New("the queue is closed"), -1
	if n, err := l.Sweep(t.Context(), scopes, 10); n != 0 || !errors.Is(err, q.fail) || !errors.Is(err, client.ErrLedger) {
		t.Errorf("Sweep without a job: %d, %v", n, err)
	}
	q.fails = 0
	q.take()
	sweep(due(at, 0)) // of a host that crashed; an error before has marked nothing
	_ = h.Release()

	// Its job is lost: overdue by 15 minutes, it gets another, and a new time.
	lose := func(from time.Time) {
		t.Helper()
		sweep()
		clock.Advance(from.Add(15*time.Minute - time.Microsecond).Sub(clock.Now()))
		sweep()
		d.exec(t, `TRUNCATE job`)
		sweep(due(clock.Advance(time.Microsecond), 0))
	}
	lose(at)
	lose(clock.Now())

	// A receipt queues by itself, so that a sweep finds nothing.
	h = begin(t, l, b)
	if err := h.Finish(t.Context(), nil, receiptOf(b, agentic.Pending)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	if got := q.take(); len(got) != 1 || got[0].Entries != 1 {
		t.Errorf("queued by the receipt: %+v", got)
	}
	clock.Advance(14 * time.Minute)
	sweep()

	plain := d.openLedger(t, d.admin, nil)
	if _, err := plain.Sweep(t.Context(), scopes, 10); !errors.Is(err, client.ErrLedger) {
		t.Errorf("Sweep of a ledger without Enqueue: %v", err)
	}
}

// What a host without Enqueue leaves is found by the sweep of one that has it.
func TestSweepFindsWhatWasNeverQueued(t *testing.T) {
	t.Parallel()
	d, q, clock, l := newQueue(t)
	plain := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) { c.Clock = clock.Now })
	b := bindingOf("request-1")
	h := begin(t, plain, b)
	if err := h.Finish(t.Context(), nil, receiptOf(b, agentic.Unknown)); err != nil {
		t.Fatal(err)
	}
	_ = h.Release()
	clock.Advance(time.Hour)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		wg.Go(func() {
			n, err := l.Sweep(t.Context(), []client.Scope{b.Scope}, 10)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	wg.Wait()
	if total != 1 || len(q.take()) != 1 {
		t.Errorf("%d jobs", total)
	}
}
