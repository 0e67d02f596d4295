package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentic-go/agentic/service"
	msqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// submissions folds the functions of Transact that wait into one commit. While
// there are any, one goroutine leads: it begins a transaction, gives each its
// turn, the first that waits first, and commits when none waits any more. Unlike
// the committer of a Ledger it takes them one by one, because they run code of
// the publisher: whoever waits may leave until its turn comes.
type submissions struct {
	db                  *sql.DB
	save, release, undo *sql.Stmt

	mu      sync.Mutex
	queue   []*submission
	leading bool
	closed  bool

	claims claims
}

// maxBatchAge bounds how long the first of a batch waits for others to run. A
// batch has no more than maxBatch either.
const maxBatchAge = 20 * time.Millisecond

// submission is one call of Transact.
type submission struct {
	turn chan *sql.Tx // may run in it; once for each run
	ran  chan error   // of the run
	done chan error   // of its transaction; once

	alone bool // the leader's: it runs in no batch any more
}

var (
	errLeft        = errors.New("the function did not return") // a panic, or runtime.Goexit
	errEnded       = errors.New("a function ended the transaction that it shared with others")
	errStoreClosed = errors.New("the store is closed")
)

// submit is Store.Transact.
func (b *submissions) submit(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := &submission{turn: make(chan *sql.Tx, 1), ran: make(chan error, 1), done: make(chan error, 1)}
	if err := b.enqueue(s); err != nil {
		return storeError("begin", err)
	}
	var refused error // of the last run
	ended := ctx.Done()
	for {
		select {
		case tx := <-s.turn:
			refused = b.run(ctx, s, tx, f)
		case err := <-s.done:
			if err != nil {
				return err
			}
			// Also what was refused waits for the commit: it may rest on what another
			// one did in the same transaction.
			return refused
		case <-ended:
			if b.withdraw(s) {
				return fmt.Errorf("waiting for the database: %w", ctx.Err())
			}
			ended = nil // its turn comes now, or its commit
		}
	}
}

// run is one turn. A panic goes on in the caller's goroutine, with its own stack.
func (b *submissions) run(ctx context.Context, s *submission, tx *sql.Tx, f func(context.Context, *sql.Tx) error) (err error) {
	err = errLeft
	b.claims.begin(tx)
	defer func() {
		b.claims.end()
		s.ran <- err
	}()
	if err = ctx.Err(); err != nil {
		return err
	}
	err = errLeft
	err = f(ctx, tx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = b.claims.unsettled()
	}
	return err
}

func (b *submissions) enqueue(s *submission) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errStoreClosed
	}
	b.queue = append(b.queue, s)
	if !b.leading {
		b.leading = true
		go b.lead()
	}
	return nil
}

// withdraw takes a submission out of the queue, if it is there.
func (b *submissions) withdraw(s *submission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, s)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return true
}

func (b *submissions) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// lead makes transactions until nothing waits.
func (b *submissions) lead() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.leading = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		// Not a caller's context: its end would take back what others did. The busy
		// timeout bounds the wait for the write lock; whoever waits may withdraw.
		tx, err := b.db.BeginTx(context.Background(), nil)
		if err != nil {
			b.mu.Lock()
			waiting := b.queue
			b.queue = nil
			b.mu.Unlock()
			answer(waiting, storeError("begin", err))
			continue
		}
		b.batch(&batch{tx: tx, began: time.Now(), save: tx.Stmt(b.save), release: tx.Stmt(b.release), undo: tx.Stmt(b.undo)})
	}
}

// next takes the first that waits, unless it may not join those that ran.
func (b *submissions) next(ran []*submission) *submission {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 || len(ran) > 0 && b.queue[0].alone {
		return nil
	}
	s := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	return s
}

func answer(ss []*submission, err error) {
	for _, s := range ss {
		s.done <- err
	}
}

// batch is one transaction.
type batch struct {
	tx                  *sql.Tx
	began               time.Time
	save, release, undo *sql.Stmt
	ran                 []*submission
}

// batch runs what waits in one transaction and ends it.
func (b *submissions) batch(t *batch) {
	for len(t.ran) < maxBatch && (len(t.ran) == 0 || time.Since(t.began) < maxBatchAge) {
		s := b.next(t.ran)
		if s == nil {
			break
		}
		if len(t.ran) == 0 {
			// The first needs no savepoint: the transaction is its own until it returns.
			s.turn <- t.tx
			if err := <-s.ran; err != nil {
				_ = t.tx.Rollback() // fails when SQLite has rolled back by itself
				s.done <- nil       // its own error counts
				return
			}
			t.ran = append(t.ran, s)
		} else if !b.join(t, s) {
			return
		}
		if s.alone {
			break
		}
	}
	if len(t.ran) == 0 {
		_ = t.tx.Rollback()
		return
	}
	err := t.tx.Commit()
	switch {
	case err == nil:
		answer(t.ran, nil)
	case errors.Is(err, sql.ErrTxDone):
		answer(t.ran, ended())
	case len(t.ran) == 1 || isBusy(err):
		answer(t.ran, storeError("commit", err))
	default:
		b.again(t.ran, t.ran) // one of them may have spoiled it for all
	}
}

// join gives s its turn in a savepoint behind others. When that breaks the
// transaction, all is rolled back and runs again: s alone, or who was before it
// when s had no turn yet.
func (b *submissions) join(t *batch, s *submission) bool {
	if _, err := t.save.Exec(); err != nil {
		b.broken(t, err, t.ran, s)
		return false
	}
	s.turn <- t.tx
	ran := <-s.ran
	var err error
	if ran != nil {
		_, err = t.undo.Exec()
	}
	if err == nil {
		_, err = t.release.Exec()
	}
	switch {
	case err == nil && ran != errLeft:
		t.ran = append(t.ran, s)
	case err == nil:
	case ran == errLeft:
		b.broken(t, err, nil)
	default:
		t.ran = append(t.ran, s)
		b.broken(t, err, []*submission{s})
	}
	return err == nil
}

// broken ends a transaction that cannot be used any more. Those that ran, and
// those that did not yet, run again; the suspects alone.
func (b *submissions) broken(t *batch, err error, suspects []*submission, notYet ...*submission) {
	_ = t.tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		// That may have been a commit of them all, so that none may run again.
		answer(t.ran, ended())
		b.again(notYet, nil)
		return
	}
	b.again(append(t.ran, notYet...), suspects)
}

// again puts submissions that were rolled back before all others.
func (b *submissions) again(ss, suspects []*submission) {
	for _, s := range suspects {
		s.alone = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = slices.Insert(b.queue, 0, ss...)
}

func ended() error { return fmt.Errorf("%w: %w", service.ErrUnavailable, errEnded) }

func isBusy(err error) bool {
	var se *msqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_BUSY
}

// claims are those that the turn under way has made and not settled. A claim that
// was committed so could never be settled, and would block its key for the
// whole window.
type claims struct {
	mu   sync.Mutex
	tx   *sql.Tx
	open []service.Key
}

func (c *claims) begin(tx *sql.Tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx, c.open = tx, c.open[:0]
}

func (c *claims) end() { c.begin(nil) }

func (c *claims) claimed(tx *sql.Tx, k service.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tx == tx {
		c.open = append(c.open, k)
	}
}

func (c *claims) settled(tx *sql.Tx, k service.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.open, k); c.tx == tx && i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
}

func (c *claims) unsettled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil
	}
	return fmt.Errorf("the claim of %.140q was not settled", c.open[0].RequestID)
}
