package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
)

func begin(t *testing.T, l *postgres.Ledger, b client.Binding) client.Hold {
	t.Helper()
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func outcome(t *testing.T, l *postgres.Ledger, b client.Binding) agentic.Outcome {
	t.Helper()
	r, err := l.Load(t.Context(), b.Scope, b.RequestID)
	if err != nil {
		t.Fatal(err)
	}
	if r.Last() == nil {
		return ""
	}
	return r.Last().Outcome
}

// lapse has every lease end now, as it ends for a host that was paused.
func (d *database) lapse(tb testing.TB) {
	tb.Helper()
	d.exec(tb, `UPDATE agentic.ledger_request SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL`)
}

// A holder that was paused past its lease changes nothing when it wakes, whether
// another has taken the request or nobody has.
func TestPausedHolderChangesNothing(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	var lost atomic.Int64
	paused := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) { c.Lost = func(n int) { lost.Add(int64(n)) } })
	other := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	for _, taken := range []bool{false, true} {
		b := bindingOf(fmt.Sprintf("request-%v", taken))
		late := begin(t, paused, b)
		if _, err := other.Begin(t.Context(), b, client.IntendSubmit, 0); !errors.As(err, new(*client.HeldError)) {
			t.Fatalf("a request that is held: %v", err)
		}
		d.lapse(t)
		var next client.Hold
		if taken {
			if next = begin(t, other, b); next.MaySubmit() {
				t.Error("two may submit")
			}
		}
		if err := late.Observe(t.Context(), exchanges); !errors.Is(err, client.ErrLost) {
			t.Errorf("Observe: %v", err)
		}
		if late.MaySubmit() {
			t.Error("a hold that is known to be lost may submit")
		}
		if err := late.Finish(t.Context(), exchanges, receiptOf(b, agentic.Succeeded)); !errors.Is(err, client.ErrLost) {
			t.Errorf("Finish: %v", err)
		}
		if err := late.Release(); err != nil {
			t.Error(err)
		}
		if taken {
			if _, err := paused.Begin(t.Context(), b, client.IntendSubmit, 0); !errors.As(err, new(*client.HeldError)) {
				t.Errorf("the release of a lost hold gave the request free: %v", err)
			}
			if err := next.Finish(t.Context(), exchanges, receiptOf(b, agentic.Unknown)); err != nil {
				t.Error(err)
			}
			_ = next.Release()
		}
		if want := map[bool]agentic.Outcome{true: agentic.Unknown}[taken]; outcome(t, other, b) != want {
			t.Errorf("the outcome is %q", outcome(t, other, b))
		}
	}
	if lost.Load() != 2 {
		t.Errorf("%d lost leases were told of", lost.Load())
	}
}

// A host whose renewals stop has no right to submit before its lease has ended, by
// its own clocks alone.
func TestRightEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) { c.Lease = time.Second })
	h := begin(t, l, bindingOf("request-1"))
	if !h.MaySubmit() {
		t.Fatal("it may not submit")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for h.MaySubmit() {
		time.Sleep(time.Millisecond)
	}
	var left time.Duration
	if err := d.admin.QueryRow(t.Context(), `SELECT lease_until - clock_timestamp() FROM agentic.ledger_request`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left < -500*time.Millisecond { // on a slow machine this may come late
		t.Errorf("it could submit until %s after its lease", -left)
	}
}

// A long hold is renewed, but not beyond its term.
func TestRenewal(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	short := func(c *postgres.LedgerConfig) { c.Lease = time.Second }
	l, other := d.openLedger(t, d.newPool(t, d.config(t, 2)), short), d.openLedger(t, d.newPool(t, d.config(t, 2)), short)
	long, bounded := bindingOf("request-long"), bindingOf("request-bounded")
	bounded.Term = time.Microsecond // counts as 5 s
	start := time.Now()
	h, past := begin(t, l, long), begin(t, l, bounded)
	for _, b := range []client.Binding{long, bounded} {
		if _, err := other.Begin(t.Context(), b, client.IntendSubmit, 1500*time.Millisecond); !errors.As(err, new(*client.HeldError)) {
			t.Fatalf("%s is not held any more after %s: %v", b.RequestID, time.Since(start), err)
		}
		if b.RequestID == long.RequestID && !h.MaySubmit() {
			t.Error("a renewed hold may not submit")
		}
	}
	next := begin(t, other, bounded)
	if took := time.Since(start); took < 4500*time.Millisecond {
		t.Errorf("its lease ended after %s", took)
	}
	if past.MaySubmit() || next.MaySubmit() {
		t.Error("it may submit")
	}
	if err := past.Finish(t.Context(), nil, receiptOf(bounded, agentic.Succeeded)); !errors.Is(err, client.ErrLost) {
		t.Errorf("Finish past the term: %v", err)
	}
	if err := h.Finish(t.Context(), exchanges, receiptOf(long, agentic.Succeeded)); err != nil {
		t.Errorf("Finish of the long hold: %v", err)
	}
}

// Thousands of requests are in flight over a small pool: no connection is kept for
// one of them.
func TestManyInFlightOverASmallPool(t *testing.T) {
	t.Parallel()
	const many = 5000
	d := newLedgerDatabase(t, pgtest.Shared(t))
	pool := d.newPool(t, d.config(t, 20))
	l := d.openLedger(t, pool, nil)
	var inFlight, all sync.WaitGroup
	inFlight.Add(many)
	for i := range many {
		all.Go(func() {
			b := bindingOf(fmt.Sprintf("request-%d", i))
			h, err := l.Begin(context.Background(), b, client.IntendSubmit, time.Minute)
			inFlight.Done()
			if err != nil {
				t.Error(err)
				return
			}
			inFlight.Wait() // all of them at once
			if !h.MaySubmit() {
				t.Errorf("%s may not be sent", b.RequestID)
			}
			if err := h.Finish(context.Background(), exchanges, receiptOf(b, agentic.Succeeded)); err != nil {
				t.Error(err)
			}
			if err := h.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var verified, held int
	if err := d.admin.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE outcome = 'succeeded'), count(lease_until) FROM agentic.ledger_request`).Scan(&verified, &held); err != nil {
		t.Fatal(err)
	}
	if verified != many || held != 0 || pool.Stat().MaxConns() != 20 {
		t.Errorf("%d verified, %d held", verified, held)
	}
}

// Of many hosts that ask the same thing at once under new IDs, one is let through.
func TestGuardIsExactAcrossHosts(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	handles := []*postgres.Ledger{d.openLedger(t, d.newPool(t, d.config(t, 4)), nil), d.openLedger(t, d.newPool(t, d.config(t, 4)), nil)}
	for round := range 20 {
		var bound, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				b := bindingOf(fmt.Sprintf("request-%d-%d", round, i))
				b.InputDigest = fmt.Sprintf("%064d", round)
				h, err := handles[i%2].Begin(t.Context(), b, client.IntendSubmit, time.Minute)
				var duplicate *client.DuplicateError
				switch {
				case err == nil:
					bound.Add(1)
					_ = h.Release()
				case errors.As(err, &duplicate) && duplicate.RequestID == b.RequestID && duplicate.Earlier.RequestID != b.RequestID:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if bound.Load() != 1 || refused.Load() != 31 {
			t.Fatalf("round %d: %d bound, %d refused", round, bound.Load(), refused.Load())
		}
	}
}

// A purge that removes documents never takes them from a request that is being bound.
func TestPurgeLeavesDocumentsThatAreBeingBound(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l, desk := d.openLedger(t, d.newPool(t, d.config(t, 4)), nil), d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 50 {
				b := bindingOf(fmt.Sprintf("request-%d-%d", worker, i))
				b.Profile.Digest = fmt.Sprintf("p%d", worker) // which nothing else needs
				h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := l.Load(t.Context(), b.Scope, b.RequestID); err != nil {
					t.Errorf("Load after a purge: %v", err)
				}
				if err := h.Finish(t.Context(), nil, receiptOf(b, agentic.Failed)); err != nil {
					t.Error(err)
				}
				_ = h.Release()
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	removed := 0
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		p, err := desk.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true})
		if err != nil {
			t.Error(err)
		}
		removed += p.Snapshots
	}
	if removed == 0 {
		t.Errorf("only %d documents were removed meanwhile", removed)
	}
}

// counted counts what is sent.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// A new request that is verified costs two round trips, guarded and released too.
func TestTwoRoundTrips(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	var sent atomic.Int64
	d.wrap = func(c net.Conn) net.Conn { return counted{c, &sent} }
	pool := d.newPool(t, d.config(t, 2))
	l := d.openLedger(t, pool, nil)
	for i := range 5 {
		b := bindingOf(fmt.Sprintf("request-%d", i))
		before := sent.Load()
		h := begin(t, l, b)
		if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Succeeded)); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		if n := sent.Load() - before; i == 4 && n != 2 { // by then both connections know the statements
			t.Errorf("%d round trips", n)
		}
	}
}

// Without a Clock every time is the database's, and a hold is never ahead of it.
func TestDatabaseClock(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	clock := func() (now time.Time) {
		t.Helper()
		if err := d.admin.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	b := bindingOf("request-1")
	before := clock()
	h := begin(t, l, b)
	now := h.Now()
	after := clock()
	if r := h.Record(); r.CreatedAt.Before(before) || now.Before(r.CreatedAt) || after.Before(now) || now.Location() != time.UTC {
		t.Errorf("before %s, created %s, now %s, after %s", before, r.CreatedAt, now, after)
	}
	if err := h.Finish(t.Context(), exchanges, receiptOf(b, agentic.Pending)); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "ann", Verb: client.Recheck, Reason: "why not"}); err != nil {
		t.Fatal(err)
	}
	r, err := l.Load(t.Context(), b.Scope, b.RequestID)
	if err != nil || r.SeenAt.Before(now) || clock().Before(r.SeenAt) || !r.Notes[0].At.Equal(r.SeenAt) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, f := range []client.Filter{{}, {Limit: 1}, {Open: true, Order: client.UrgentFirst}, {Order: client.DueFirst}, {After: before, Before: clock()}} {
		if list, err := l.List(t.Context(), f); err != nil || len(list) != 1 || list[0].NextCheck.Before(r.SeenAt.Add(-time.Second)) {
			t.Errorf("%+v: %+v, %v", f, list, err)
		}
	}
	for _, f := range []client.Filter{{Due: true}, {NeedsPerson: true, Order: client.UrgentFirst}} {
		if list, err := l.List(t.Context(), f); err != nil || len(list) != 0 {
			t.Errorf("%+v: %+v, %v", f, list, err)
		}
	}
}
