package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	db     *sql.DB
	stmts  statements
	maxAge time.Duration // of a batch that still takes members: maxBatchAge

	mu      sync.Mutex
	queue   []*submission
	leading bool
	closed  bool

	current atomic.Pointer[batch] // the transaction whose turns are given now
}

// A batch has at most maxBatch members, and maxBatchAge bounds how long its first
// one waits for others to run.
const (
	maxBatch    = 256
	maxBatchAge = 20 * time.Millisecond
)

// submission is one call of Transact.
type submission struct {
	turn chan *batch // may run in it; once for each run
	ran  chan error  // of the run
	done chan error  // of its transaction; once

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
	s := &submission{turn: make(chan *batch, 1), ran: make(chan error, 1), done: make(chan error, 1)}
	if err := b.enqueue(s); err != nil {
		return storeError("begin", err)
	}
	var refused error // of the last run
	ended := ctx.Done()
	for {
		select {
		case t := <-s.turn:
			refused = s.run(ctx, t, f)
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
func (s *submission) run(ctx context.Context, t *batch, f func(context.Context, *sql.Tx) error) (err error) {
	defer func() { s.ran <- err }()
	if err = ctx.Err(); err != nil {
		return err
	}
	err = errLeft // stays when f does not return
	err = f(ctx, t.tx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = t.unsettled()
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
		t := &batch{tx: tx, began: time.Now(), stmts: b.stmts.in(tx)}
		b.batch(t)
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
	tx    *sql.Tx
	stmts statements // of tx
	began time.Time
	ran   []*submission

	mu   sync.Mutex
	made []claim // in the turn under way; written when it ends well
}

// give lets s run, and tells what came of it.
func (t *batch) give(s *submission) error {
	t.made = t.made[:0]
	s.turn <- t
	return <-s.ran
}

// batch runs what waits in one transaction and ends it.
func (b *submissions) batch(t *batch) {
	b.current.Store(t)
	defer b.current.Store(nil)
	for len(t.ran) < maxBatch && (len(t.ran) == 0 || time.Since(t.began) < b.maxAge) {
		s := b.next(t.ran)
		if s == nil {
			break
		}
		if !b.join(t, s) {
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

// join gives s its turn, in a savepoint. When that breaks the transaction, all is
// rolled back and runs again: s alone, or who was before it when s had no turn yet.
func (b *submissions) join(t *batch, s *submission) bool {
	if _, err := t.stmts.save.Exec(); err != nil {
		if len(t.ran) == 0 {
			b.broken(t, nil)
			s.done <- storeError("begin", err)
			return false
		}
		b.broken(t, t.ran, s)
		return false
	}
	ran := t.give(s)
	var err error
	if ran != nil {
		_, err = t.stmts.undo.Exec()
	}
	if err == nil {
		// It fails too when SQLite took the transaction back and s kept silent.
		_, err = t.stmts.release.Exec()
	}
	if err == nil && ran == nil {
		err = t.write()
	}
	switch {
	case err == nil && ran != errLeft:
		t.ran = append(t.ran, s)
	case err == nil:
	case ran == errLeft:
		b.broken(t, nil)
	case len(t.ran) == 0 && ran != nil:
		b.broken(t, nil)
		s.done <- nil // its own error counts
	case errors.Is(t.tx.Rollback(), sql.ErrTxDone):
		// s ended it, and may have committed what it wrote: no time to try again.
		answer(t.ran, ended())
		s.done <- fmt.Errorf("sqlite: end: %w", errEnded)
	case len(t.ran) == 0:
		s.done <- storeError("end", err)
	default:
		b.again(append(t.ran, s), []*submission{s})
	}
	return err == nil
}

// broken ends a transaction that cannot be used any more. Those that ran, and
// those that did not yet, run again; the suspects alone.
func (b *submissions) broken(t *batch, suspects []*submission, notYet ...*submission) {
	if err := t.tx.Rollback(); errors.Is(err, sql.ErrTxDone) {
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
