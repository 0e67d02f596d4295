// Package filelock excludes goroutines and processes of one machine from each other
// by locks that the kernel keeps on a file and frees when their holder ends, however
// it ends. There is one lock for every key, and any number of keys.
//
// Not its job: more than one machine (no network file system), or knowing who
// holds. A lock file must never be deleted while a process has it open: two
// processes with different lock files do not exclude each other.
//
// It imports internal/privatefile, and golang.org/x/sys for the locks of Linux and
// Windows.
package filelock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Key is what a lock is for: 62 bits of a hash, so that it can be the offset of a
// byte. Two things that share a key only wait for each other.
type Key int64

// Place is the key of the place itself, while it is made or changed. KeyOf never
// gives it.
const Place Key = 1 << 62

// KeyOf is the key of what these parts name together.
func KeyOf(parts ...string) Key {
	h := sha256.New()
	for _, s := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return Key(binary.BigEndian.Uint64(h.Sum(nil)) >> 2)
}

// kernelLock is a lock that the operating system keeps between processes, and
// frees when the process that has it ends, however it ends. It need not exclude
// two callers that share one kernelLock: Table does.
type kernelLock interface {
	// try takes the lock, or reports false when somebody else has it.
	try(k Key) (bool, error)
	unlock(k Key) error
	close() error
}

// Table is one handle on the locks of a place. It excludes the goroutines that
// share it by a queue for each key, and everybody else by the kernel.
type Table struct {
	kernel  kernelLock
	stopped chan struct{} // closed when waiting has to end

	mu   sync.Mutex
	held map[Key][]chan struct{} // who waits for it, first come first served
}

// Other processes cannot wake a waiter, so it looks again, ever less often.
const (
	firstPoll = time.Millisecond
	lastPoll  = 25 * time.Millisecond
)

// ErrHeld says that somebody else had the lock for as long as the caller waits, and
// ErrStopped that the table was stopped meanwhile.
var (
	ErrHeld    = errors.New("held by another")
	ErrStopped = errors.New("the locks are closed")
)

// Open gives the locks of the place path: a file PATH.lock, with mode 0600, or on
// systems other than Linux and Windows a directory PATH.locks.
func Open(path string) (*Table, error) {
	k, err := newKernelLock(path)
	if err != nil {
		return nil, err
	}
	return newTable(k), nil
}

func newTable(k kernelLock) *Table {
	return &Table{kernel: k, stopped: make(chan struct{}), held: map[Key][]chan struct{}{}}
}

// Stop ends the waiting in Acquire, now and from now on. What is held stays held.
// It is called once.
func (t *Table) Stop() { close(t.stopped) }

// Close gives free whatever is held. Nothing may be called after it.
func (t *Table) Close() error { return t.kernel.close() }

// Acquire takes the lock, waiting for it at most so long; without a wait it tries
// once. The error is ErrHeld, the context's, ErrStopped or the kernel's.
func (t *Table) Acquire(ctx context.Context, k Key, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	if err := t.enqueue(ctx, k, wait); err != nil {
		return err
	}
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		ok, err := t.kernel.try(k)
		if ok {
			return nil
		}
		if err == nil {
			// A little chance keeps many waiters from looking all at once.
			err = t.pause(ctx, min(poll/2+rand.N(poll/2), time.Until(deadline)))
		}
		if err != nil {
			t.dequeue(k)
			return err
		}
	}
}

// pause is the time between two looks; none is left when d is not positive.
func (t *Table) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ErrHeld
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.stopped:
		return ErrStopped
	}
}

// enqueue waits until no other goroutine of this handle has the key.
func (t *Table) enqueue(ctx context.Context, k Key, wait time.Duration) error {
	t.mu.Lock()
	waiters, taken := t.held[k]
	if !taken {
		t.held[k] = nil
		t.mu.Unlock()
		return nil
	}
	if wait <= 0 {
		t.mu.Unlock()
		return ErrHeld
	}
	turn := make(chan struct{}, 1)
	t.held[k] = append(waiters, turn)
	t.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-timer.C:
		err = ErrHeld
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.stopped:
		err = ErrStopped
	}
	t.mu.Lock()
	i := slices.Index(t.held[k], turn)
	if i >= 0 {
		t.held[k] = slices.Delete(t.held[k], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.dequeue(k) // its turn came at the same moment: the next one's then
	}
	return err
}

// dequeue gives the key to the next goroutine that waits for it.
func (t *Table) dequeue(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiters := t.held[k]
	if len(waiters) == 0 {
		delete(t.held, k)
		return
	}
	waiters[0] <- struct{}{}
	t.held[k] = waiters[1:]
}

// InFlight is the number of keys that goroutines of this handle have.
func (t *Table) InFlight() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

// Release gives a key free that this table has, at once for those who wait in it.
func (t *Table) Release(k Key) error {
	err := t.kernel.unlock(k)
	t.dequeue(k)
	return err
}
