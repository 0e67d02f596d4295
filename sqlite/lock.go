package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agentic-go/agentic/client"
)

// lockKey is what a lock of the kernel is for: 62 bits of a hash, so that it can
// be the offset of a byte. Two requests that share a key only wait for each other.
type lockKey int64

// openKey is held while a file is made, put in WAL mode and migrated.
const openKey lockKey = 1 << 62

func keyOf(scope client.Scope, requestID string) lockKey {
	h := sha256.New()
	for _, s := range []string{scope.Principal, scope.Environment, requestID} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return lockKey(binary.BigEndian.Uint64(h.Sum(nil)) >> 2)
}

// kernelLock is a lock that the operating system keeps between processes, and
// frees when the process that has it ends, however it ends. It need not exclude
// two callers that share one kernelLock: lockTable does.
type kernelLock interface {
	// try takes the lock, or reports false when somebody else has it.
	try(k lockKey) (bool, error)
	unlock(k lockKey) error
	close() error
}

// lockTable excludes the goroutines of one handle by a queue for each key, and
// everybody else by the kernel.
type lockTable struct {
	kernel kernelLock
	closed chan struct{} // closed when waiting has to end

	mu   sync.Mutex
	held map[lockKey][]chan struct{} // who waits for it, first come first served
}

// Other processes cannot wake a waiter, so it looks again, ever less often.
const (
	firstPoll = time.Millisecond
	lastPoll  = 25 * time.Millisecond
)

// errHeld says that somebody else had the lock for as long as the caller waits.
var errHeld = errors.New("held by another")

// acquire takes the lock, waiting for it at most so long; without a wait it tries
// once. The error is errHeld, the context's, ErrClosed or the kernel's.
func (t *lockTable) acquire(ctx context.Context, k lockKey, wait time.Duration) error {
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
func (t *lockTable) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return errHeld
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return ErrClosed
	}
}

// enqueue waits until no other goroutine of this handle has the key.
func (t *lockTable) enqueue(ctx context.Context, k lockKey, wait time.Duration) error {
	t.mu.Lock()
	waiters, taken := t.held[k]
	if !taken {
		t.held[k] = nil
		t.mu.Unlock()
		return nil
	}
	if wait <= 0 {
		t.mu.Unlock()
		return errHeld
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
		err = errHeld
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.closed:
		err = ErrClosed
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
func (t *lockTable) dequeue(k lockKey) {
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

// inFlight is the number of keys that goroutines of this handle have.
func (t *lockTable) inFlight() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

func (t *lockTable) release(k lockKey) error {
	err := t.kernel.unlock(k)
	t.dequeue(k)
	return err
}
