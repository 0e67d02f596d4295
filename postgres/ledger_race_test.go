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

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
)

// A renewal whose commit fails gives nobody the right to submit for longer: only what
// the database keeps counts.
func TestRenewalThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	d.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$`)
	d.exec(t, `CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE OF lease_until ON agentic.ledger_request
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) { c.Lease = time.Second })
	h := begin(t, l, bindingOf("request-1"))
	time.Sleep(1200 * time.Millisecond)
	var held bool
	if err := d.admin.QueryRow(t.Context(), `SELECT lease_until > clock_timestamp() FROM agentic.ledger_request`).Scan(&held); err != nil || held {
		t.Fatalf("it is held: %t, %v", held, err)
	}
	if h.MaySubmit() {
		t.Error("it may submit after its lease has ended")
	}
}

// A renewal that comes between the commit of Finish and its answer finds no lease any
// more. That is not a lease that was lost.
func TestRenewalBesideFinish(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	var lost atomic.Int64
	l := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) {
		c.Lease, c.Lost = time.Second, func(n int) { lost.Add(int64(n)) }
	})
	begin(t, l, bindingOf("request-1"))
	d.exec(t, `UPDATE agentic.ledger_request SET lease_until = NULL`) // as Finish does
	time.Sleep(time.Second)
	if n := lost.Load(); n != 0 {
		t.Errorf("%d lost leases were told of", n)
	}
	taken := begin(t, l, bindingOf("request-2"))
	d.exec(t, `UPDATE agentic.ledger_request SET fence = fence + 1, lease_until = NULL WHERE request_id = 'request-2'`) // as a purge does
	time.Sleep(time.Second)
	if n := lost.Load(); n != 1 || taken.MaySubmit() {
		t.Errorf("%d lost leases were told of, and it may submit: %t", n, taken.MaySubmit())
	}
}

// A purge that waits for a write to a request removes what that write appended, too.
func TestPurgeOfWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l := d.openLedger(t, d.newPool(t, d.config(t, 4)), nil)
	b := bindingOf("request-1")
	h := begin(t, l, b)
	if err := h.Observe(t.Context(), exchanges[:1]); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "ann", Verb: client.Abandon, Reason: "why not"}); err != nil {
		t.Fatal(err)
	}
	tx, err := d.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // after a commit it does nothing
	for _, sql := range []string{                   // as the hold writes
		`UPDATE agentic.ledger_request SET entries = entries + 1`,
		`INSERT INTO agentic.ledger_entry SELECT id, entries, holder, '[]', NULL FROM agentic.ledger_request`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var p client.Purged
	purged := make(chan error, 1)
	go func() {
		var err error
		p, err = l.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true})
		purged <- err
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		if err := d.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-purged; err != nil || p.Requests != 1 || p.Entries != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if r, err := l.Load(t.Context(), b.Scope, b.RequestID); err != nil || r.PurgedAt.IsZero() || len(r.Observations) != 0 {
		t.Errorf("the tombstone: %+v, %v", r, err)
	}
	if err := h.Finish(t.Context(), nil, receiptOf(b, agentic.Unknown)); err == nil {
		t.Error("a purged request was written to")
	}
}

// What a host holds open in the database while it is paused is given up before others
// fail for it: here between a receipt and its job.
func TestPausedInATransaction(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	inside, wake := make(chan struct{}), make(chan struct{})
	paused := d.openLedger(t, d.newPool(t, d.config(t, 2)), func(c *postgres.LedgerConfig) {
		c.Lease = time.Second
		var once sync.Once
		c.Enqueue = func(context.Context, pgx.Tx, []postgres.Due) error {
			once.Do(func() { close(inside); <-wake })
			return nil
		}
	})
	other := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	b := bindingOf("request-1")
	h := begin(t, paused, b)
	ended := make(chan error, 1)
	go func() { ended <- h.Finish(context.Background(), exchanges, receiptOf(b, agentic.Pending)) }()
	<-inside
	next, err := other.Begin(t.Context(), b, client.IntendSubmit, 9*time.Second)
	if err != nil {
		t.Errorf("what a paused host has in a transaction cannot be taken: %v", err)
	} else if next.MaySubmit() {
		t.Error("two may submit")
	} else if err := next.Release(); err != nil {
		t.Error(err)
	}
	close(wake)
	if err := <-ended; !errors.Is(err, client.ErrLost) {
		t.Errorf("the paused host's Finish: %v", err)
	}
	if got := outcome(t, other, b); got != "" {
		t.Errorf("the outcome is %q", got)
	}
}

// A purge that waits for somebody's transaction does not keep everybody else waiting
// for as long.
func TestPurgeBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	d := newLedgerDatabase(t, pgtest.Shared(t))
	l, desk := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil), d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
	b := bindingOf("request-1")
	if err := begin(t, l, b).Finish(t.Context(), exchanges, receiptOf(b, agentic.Failed)); err != nil {
		t.Fatal(err)
	}
	tx, err := d.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE agentic.ledger_request IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	purged := make(chan error, 1)
	go func() {
		_, err := desk.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true})
		purged <- err
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		if err := d.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode = 'ShareLock'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	_ = begin(t, l, bindingOf("request-2")).Release()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a new request waited %s", took)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-purged; err != nil {
		t.Errorf("Purge after the transaction has ended: %v", err)
	}
}

// silent is a connection over which nothing arrives any more, and nothing is told of it.
type silent struct {
	net.Conn
	on *atomic.Bool
}

func (c silent) Write(b []byte) (int, error) {
	if c.on.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A host whose connections were cut off without a word goes on over others, however
// long its caller would wait, and nothing is lost.
func TestCutOffWithoutAWord(t *testing.T) {
	t.Parallel()
	for _, idle := range []time.Duration{0, 1100 * time.Millisecond} { // what was idle for longer the pool asks first
		for what, do := range map[string]func(context.Context, *postgres.Ledger, client.Hold) error{
			"Load": func(ctx context.Context, l *postgres.Ledger, h client.Hold) error {
				_, err := l.Load(ctx, h.Record().Scope, h.Record().RequestID)
				return err
			},
			"Begin": func(ctx context.Context, l *postgres.Ledger, _ client.Hold) error {
				h, err := l.Begin(ctx, bindingOf("request-2"), client.IntendSubmit, 20*time.Second)
				if err == nil && !h.MaySubmit() {
					err = errors.New("it may not submit")
				}
				return err
			},
			"Finish": func(ctx context.Context, _ *postgres.Ledger, h client.Hold) error {
				return h.Finish(ctx, exchanges, receiptOf(h.Record().Binding, agentic.Succeeded))
			},
		} {
			t.Run(fmt.Sprintf("%s after %s", what, idle), func(t *testing.T) {
				t.Parallel()
				d := newLedgerDatabase(t, pgtest.Shared(t))
				var current atomic.Pointer[atomic.Bool]
				current.Store(new(atomic.Bool))
				d.wrap = func(c net.Conn) net.Conn { return silent{c, current.Load()} }
				l := d.openLedger(t, d.newPool(t, d.config(t, 2)), nil)
				h := begin(t, l, bindingOf("request-1"))
				current.Swap(new(atomic.Bool)).Store(true) // of the connections that there are
				time.Sleep(idle)
				ctx, cancel := context.WithTimeout(t.Context(), 28*time.Second)
				defer cancel()
				if err := do(ctx, l, h); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
