// Package groupcommit folds writes that wait into one commit.
//
// Not its job: what a transaction is and where. It imports nothing of this module.
package groupcommit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Committer folds the writes that wait into one commit. There is no goroutine of
// its own: the first caller leads, and when it is done one of those that came
// meanwhile leads the next batch, its own write in it. So no caller works for
// others for ever.
//
// A commit costs its pages and its sync however few writes are in it, and is over
// before many can gather. So when many requests are in flight a leader waits for
// others a moment; when few are, a write is committed by its caller at once.
type Committer struct {
	// Of the one connection that writes. An error of Commit, or of a write, is
	// followed by Rollback; that one's own error is passed over, since a database may
	// have rolled back by itself.
	Begin, Commit, Rollback func() error

	InFlight func() int // those who may write soon

	mu     sync.Mutex
	busy   bool          // somebody leads, or was told to
	queue  []*write      // empty unless busy
	want   int           // length of queue that a leader waits for
	enough chan struct{} // closed when queue gets there, nil when no leader waits
}

// GatherFrom and gatherTime: when GatherFrom requests are in flight, a leader waits until each of them has a
// write in the queue, and at most gatherTime: some of them only sleep between two
// checks. BenchmarkExecute of internal/proof is the measure. At 64 callers a commit
// takes 24 writes instead of 3 and an action a quarter less processor time, at 8
// callers a fifth; below that it gains nothing.
const (
	GatherFrom = 8
	gatherTime = 2 * time.Millisecond
)

// write is one caller's part of a batch. do may run more than once; the last run
// counts. An error of do means that the database failed, not that the write was refused:
// a refusal must leave nothing behind and is kept by the caller's closure.
type write struct {
	do     func() error
	err    error
	leads  bool          // was told to lead; guarded by Committer.mu
	signal chan struct{} // done, or leads
}

// maxBatch bounds how much is undone when one write of a batch fails.
const maxBatch = 256

// Submit returns when the write is durable, or has failed and left nothing. When
// ctx ends while the write waits in the queue, it is taken out and never runs;
// once it leads or a batch has it, Submit waits for the end, which gatherTime and
// the database's own time limits bound, so that nobody is told of a cancellation that was a commit.
func (c *Committer) Submit(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{do: do, signal: make(chan struct{}, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, w)
	if !c.busy {
		c.busy = true
		c.passOn()
	} else if c.enough != nil && len(c.queue) >= c.want {
		close(c.enough)
		c.enough = nil
	}
	c.mu.Unlock()

	select {
	case <-w.signal:
	case <-ctx.Done():
		if c.withdraw(w) {
			return ctx.Err()
		}
		<-w.signal
	}
	c.mu.Lock()
	if !w.leads {
		c.mu.Unlock()
		return w.err
	}
	c.gather()
	n := min(len(c.queue), maxBatch)
	batch := slices.Clone(c.queue[:n]) // w is its first
	c.queue = slices.Delete(c.queue, 0, n)
	c.mu.Unlock()
	c.lead(batch)
	return w.err
}

// gather waits for more writes. The caller leads and has c.mu, which is free while
// it waits.
func (c *Committer) gather() {
	n := c.InFlight()
	c.want = min(n, maxBatch)
	if n < GatherFrom || len(c.queue) >= c.want {
		return
	}
	enough := make(chan struct{})
	c.enough = enough
	c.mu.Unlock()
	select {
	case <-enough:
	case <-time.After(gatherTime):
	}
	c.mu.Lock()
	c.enough = nil
}

// withdraw takes a write out of the queue, and passes the lead on if it had it.
func (c *Committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, w)
	if i < 0 {
		return false
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	if w.leads {
		c.passOn()
	}
	return true
}

// passOn makes the first of the queue the leader. The caller has c.mu.
func (c *Committer) passOn() {
	if len(c.queue) == 0 {
		c.busy = false
		return
	}
	c.queue[0].leads = true
	c.queue[0].signal <- struct{}{}
}

// lead commits a batch whose first write is the caller's, tells the others, and
// gives the lead away.
func (c *Committer) lead(batch []*write) {
	began, err := c.run(batch)
	if began && err != nil && len(batch) > 1 {
		// One of them spoiled it for all: each for itself.
		for i, w := range batch {
			_, w.err = c.run(batch[i : i+1])
		}
	} else {
		for _, w := range batch {
			w.err = err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range batch[1:] {
		w.signal <- struct{}{}
	}
	c.passOn()
}

// Waiting is the number of writes that no batch has yet.
func (c *Committer) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// run makes one transaction of a batch.
func (c *Committer) run(batch []*write) (began bool, err error) {
	if err := c.Begin(); err != nil {
		return false, err
	}
	for _, w := range batch {
		if err := w.do(); err != nil {
			_ = c.Rollback()
			return true, err
		}
	}
	if err := c.Commit(); err != nil {
		_ = c.Rollback()
		return true, err
	}
	return true, nil
}
