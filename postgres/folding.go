package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// folder makes one transaction of the writes that wait, as many at once as it has
// slots. There is no goroutine of its own: a caller leads, and when its batch is
// done one of those that came meanwhile leads the next, its own write in it. So no
// caller works for others for ever. A leader takes its connection first and the
// writes then: what comes while the pool is empty goes with it.
type folder[M any] struct {
	pool  *pgxpool.Pool
	slots int

	// write makes one transaction of a batch, whose order it may change, and leaves in
	// each member what it came to. It may run more than once for a member; the last run
	// counts.
	write func(ctx context.Context, conn *pgx.Conn, batch []*M) error

	// apart says that two members must not be in one batch. Nil is never.
	apart func(a, b *M) bool

	mu    sync.Mutex
	busy  int // who leads, or was told to
	queue []*waiter[M]
}

type waiter[M any] struct {
	member *M
	err    error
	leads  bool          // was told to lead; guarded by folder.mu
	signal chan struct{} // done, or leads
}

const (
	// maxBatch bounds a statement, and how much is made again when one member
	// spoils it.
	maxBatch = 256

	// batchTime bounds a batch, whose end no caller's context brings about: a commit
	// that is cut off is neither done nor undone to us.
	batchTime = 10 * time.Second
)

// errWithdrawn comes with the error of a context that ended before anything was
// sent.
var errWithdrawn = errors.New("nothing was written")

// submit returns when the write is durable, or has failed. When ctx ends while it
// waits, it is taken out and never runs: errWithdrawn. Once a batch has it, submit
// waits for the end of that.
func (f *folder[M]) submit(ctx context.Context, m *M) error {
	w := &waiter[M]{member: m, signal: make(chan struct{}, 1)}
	f.mu.Lock()
	f.queue = append(f.queue, w)
	if f.busy < f.slots {
		f.busy++
		w.leads = true
		w.signal <- struct{}{}
	}
	f.mu.Unlock()
	select {
	case <-w.signal:
	case <-ctx.Done():
		if f.withdraw(w) {
			return errors.Join(ctx.Err(), errWithdrawn)
		}
		<-w.signal
	}
	f.mu.Lock()
	leads := w.leads
	f.mu.Unlock()
	if leads {
		f.lead(ctx, w)
	}
	return w.err
}

// withdraw takes a write out of the queue, and passes the lead on if it had it.
func (f *folder[M]) withdraw(w *waiter[M]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.queue, w)
	if i < 0 {
		return false
	}
	f.queue = slices.Delete(f.queue, i, i+1)
	if w.leads {
		f.passOn()
	}
	return true
}

// passOn makes the first of the queue that does not lead yet a leader. The caller
// has f.mu.
func (f *folder[M]) passOn() {
	for _, w := range f.queue {
		if !w.leads {
			w.leads = true
			w.signal <- struct{}{}
			return
		}
	}
	f.busy--
}

// take takes a batch out of the queue: w, and what goes with it. Who leads another
// batch is left.
func (f *folder[M]) take(w *waiter[M]) []*waiter[M] {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := []*waiter[M]{w}
	rest := f.queue[:0]
	for _, q := range f.queue {
		switch {
		case q == w:
		case q.leads, len(batch) == maxBatch, f.apart != nil &&
			slices.ContainsFunc(batch, func(b *waiter[M]) bool { return f.apart(b.member, q.member) }):
			rest = append(rest, q)
		default:
			batch = append(batch, q)
		}
	}
	clear(f.queue[len(rest):])
	f.queue = rest
	return batch
}

// lead writes a batch in which the caller's write is, tells the others, and gives
// the lead away.
func (f *folder[M]) lead(ctx context.Context, w *waiter[M]) {
	conn, err := f.pool.Acquire(ctx)
	if err != nil && ctx.Err() != nil && f.withdraw(w) {
		w.err = errors.Join(ctx.Err(), errWithdrawn)
		return
	}
	batch := f.take(w)
	if err != nil { // nobody else would fare better
		for _, q := range batch {
			q.err = err
		}
	} else {
		f.run(conn.Conn(), batch)
		conn.Release() // the pool drops what is closed, or still in a transaction
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range batch[1:] {
		q.signal <- struct{}{}
	}
	f.passOn()
}

func (f *folder[M]) run(conn *pgx.Conn, batch []*waiter[M]) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTime)
	defer cancel()
	members := make([]*M, len(batch))
	for i, w := range batch {
		members[i] = w.member
	}
	err := wrapBroken(conn, f.write(ctx, conn, members))
	if err == nil || len(batch) == 1 || conn.IsClosed() || retryable(err) {
		for _, w := range batch {
			w.err = err
		}
		return
	}
	// One of them spoiled it for all: each for itself.
	for _, w := range batch {
		w.err = wrapBroken(conn, f.write(ctx, conn, []*M{w.member}))
	}
}

// tuned keeps the planner to indexes, in the transaction of a batch only: a plan that
// was made while the tables were nearly empty would read all of them when they are
// not. It also overrides synchronous_commit = off: a commit that was answered must
// not be lost.
const tuned = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), ` + durable

// inTx runs one statement in a transaction of its own and in one round trip, after
// what prepares it: locks, for which the statement's snapshot must not be older.
// each gets the rows of the statement; then, still before the commit and only if
// there is one, last is called, which costs further round trips.
func inTx(ctx context.Context, conn *pgx.Conn, before, statement *query, each func(pgx.Rows) error, last func(pgx.Tx) error) (err error) {
	b := &pgx.Batch{}
	b.BeginTx(txOptions)
	b.Queue(before.sql, before.args...)
	b.Queue(statement.sql, statement.args...)
	if last == nil {
		b.Queue("commit")
	}
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	defer func() {
		if err == nil || conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_, _ = conn.Exec(end, "rollback") // a connection that is still in a transaction is dropped
	}()
	err = readBatch(results, each, last == nil)
	if closing := results.Close(); err == nil {
		err = closing
	}
	if err != nil || last == nil {
		return err
	}
	if err := last(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func readBatch(results pgx.BatchResults, each func(pgx.Rows) error, commits bool) error {
	for range 2 { // BEGIN, and what comes before
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			rows.Close()
			return err
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil || !commits {
		return err
	}
	var tag pgconn.CommandTag
	if tag, err = results.Exec(); err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

// broken is an error that came with the end of its connection: what was under way
// may have happened or not.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

func wrapBroken(conn *pgx.Conn, err error) error {
	if err == nil || !conn.IsClosed() || is[unanswered](err) {
		return err
	}
	if is[pgx.ErrPreprocessingBatch](err) && strings.Contains(err.Error(), "(build)") {
		return err // an argument that cannot be encoded never can; pgx closes the connection all the same
	}
	return broken{err}
}

// retryable says that a statement may be made again, after an error that left
// nothing or an unknown state behind: the server cannot serve now, or the connection
// to it broke, or could not be made.
func retryable(err error) bool {
	if _, ok := errors.AsType[broken](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && cannotServe(said.Code)
}
