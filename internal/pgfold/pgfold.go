// Package pgfold makes writes that wait into one transaction on PostgreSQL, in one
// round trip, and knows which errors say that they may be made again.
//
// Not its job: what the statements are. It imports pgx, and nothing of this module.
package pgfold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Folder makes one transaction of the writes that wait. There is no goroutine of its
// own: a caller leads, and when its batch is done one of those that came meanwhile
// leads the next, its own write in it. So no caller works for others for ever. A
// leader takes its connection first and the writes then: what comes while the pool is
// empty goes with it.
//
// One batch at a time makes the largest batches, and so the fewest commits:
// BenchmarkLedger is the measure. But a batch that hangs, on a connection that was cut
// or behind a lock, must not hold up the rest: whoever has waited for longer than
// stuckTime leads a batch beside it, while there are fewer than maxLeaders.
type Folder[M any] struct {
	Pool *pgxpool.Pool

	// Write makes one transaction of a batch, whose order it may change, and leaves in
	// each member what it came to. It may run more than once for a member; the last run
	// counts.
	Write func(ctx context.Context, conn *pgx.Conn, batch []*M) error

	// Apart says that two members must not be in one batch. Nil is never.
	Apart func(a, b *M) bool

	mu    sync.Mutex
	busy  int // who leads, or was told to
	queue []*waiter[M]
}

type waiter[M any] struct {
	member *M
	err    error
	leads  bool          // was told to lead; guarded by Folder.mu
	signal chan struct{} // done, or leads
}

const (
	// maxBatch bounds a statement, and how much is made again when one member
	// spoils it.
	maxBatch = 256

	maxLeaders = 4
	stuckTime  = 100 * time.Millisecond

	// BatchTime bounds a batch, whose end no caller's context brings about: a commit
	// that is cut off is neither done nor undone to us.
	BatchTime = 10 * time.Second
)

// ErrWithdrawn comes with the error of a context that ended before anything was
// sent.
var ErrWithdrawn = errors.New("nothing was written")

// Submit returns when the write is durable, or has failed. When ctx ends while it
// waits, it is taken out and never runs: ErrWithdrawn. Once a batch has it, Submit
// waits for the end of that.
func (f *Folder[M]) Submit(ctx context.Context, m *M) error {
	w := &waiter[M]{member: m, signal: make(chan struct{}, 1)}
	f.mu.Lock()
	f.queue = append(f.queue, w)
	if f.busy == 0 {
		f.busy++
		w.leads = true
		w.signal <- struct{}{}
	}
	f.mu.Unlock()
	stuck := time.NewTicker(stuckTime)
	defer stuck.Stop()
	for waiting := true; waiting; {
		select {
		case <-w.signal:
			waiting = false
		case <-stuck.C:
			f.leadBeside(w)
		case <-ctx.Done():
			if f.withdraw(w) {
				return errors.Join(ctx.Err(), ErrWithdrawn)
			}
			<-w.signal
			waiting = false
		}
	}
	f.mu.Lock()
	leads := w.leads
	f.mu.Unlock()
	if leads {
		f.lead(ctx, w)
	}
	return w.err
}

// leadBeside has a write that waits too long lead a batch of its own.
func (f *Folder[M]) leadBeside(w *waiter[M]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !w.leads && f.busy < maxLeaders && slices.Contains(f.queue, w) {
		f.busy++
		w.leads = true
		w.signal <- struct{}{}
	}
}

// withdraw takes a write out of the queue, and passes the lead on if it had it.
func (f *Folder[M]) withdraw(w *waiter[M]) bool {
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

// passOn makes the first of the queue that does not lead yet a leader, unless
// somebody else leads. The caller has f.mu.
func (f *Folder[M]) passOn() {
	for _, w := range f.queue {
		if !w.leads && f.busy == 1 {
			w.leads = true
			w.signal <- struct{}{}
			return
		}
	}
	f.busy--
}

// take takes a batch out of the queue: w, and what goes with it. Who leads another
// batch is left.
func (f *Folder[M]) take(w *waiter[M]) []*waiter[M] {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := []*waiter[M]{w}
	rest := f.queue[:0]
	for _, q := range f.queue {
		switch {
		case q == w:
		case q.leads, len(batch) == maxBatch, f.Apart != nil &&
			slices.ContainsFunc(batch, func(b *waiter[M]) bool { return f.Apart(b.member, q.member) }):
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
func (f *Folder[M]) lead(ctx context.Context, w *waiter[M]) {
	conn, err := Acquire(ctx, f.Pool)
	if err != nil && ctx.Err() != nil && f.withdraw(w) {
		w.err = errors.Join(ctx.Err(), ErrWithdrawn)
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

func (f *Folder[M]) run(conn *pgx.Conn, batch []*waiter[M]) {
	ctx, cancel := context.WithTimeout(context.Background(), BatchTime)
	defer cancel()
	members := make([]*M, len(batch))
	for i, w := range batch {
		members[i] = w.member
	}
	err := WrapBroken(conn, f.Write(ctx, conn, members))
	if err == nil || len(batch) == 1 || conn.IsClosed() || Retryable(err) {
		for _, w := range batch {
			w.err = err
		}
		return
	}
	// One of them spoiled it for all: each for itself.
	for _, w := range batch {
		w.err = WrapBroken(conn, f.Write(ctx, conn, []*M{w.member}))
	}
}
