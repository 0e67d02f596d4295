// Package lease is what one process knows of the leases that a database gives it: who
// in it waits for whom, and how long it may count on a lease without asking. It
// imports nothing of this module.
//
// A lease ends by the database's clock. A host counts on it only by its own two
// clocks, from before the statement that took or renewed it was sent: the monotonic
// one does not run while the machine is suspended, the other may be set.
package lease

import (
	"sync"
	"time"
)

// Moment is when a statement was sent and answered, by this host's clocks.
type Moment struct{ Sent, Answered time.Time }

// Right is how long a host may count on its lease. The ledger's goroutine moves it.
type Right struct {
	mu    sync.Mutex
	from  time.Time     // of the statement that set it last
	lease time.Duration // from then
	began time.Time
	term  time.Duration // from began: the longest that it is renewed
	lost  bool
}

// Begin is when the statement was sent that took the lease.
func (r *Right) Begin(sent time.Time, lease, term time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.lease, r.began, r.term = sent, lease, sent, term
}

// Stands is false from a tenth of the lease before its end.
func (r *Right) Stands(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.lost && passed(r.from, now) < r.lease-r.lease/10
}

// passed is the longer of what the two clocks say.
func passed(from, now time.Time) time.Duration {
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0)))
}

// Renewal is the lease to ask for at now, if it is time to: no longer than the term
// allows.
func (r *Right) Renewal(now time.Time, longest time.Duration) (lease time.Duration, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lease = min(longest, r.term-passed(r.began, now))
	return lease, !r.lost && now.Sub(r.from) >= longest/3 && lease > 0 && passed(r.from, now)+lease > r.lease
}

// Renewed is when the statement was sent that renewed the lease.
func (r *Right) Renewed(sent time.Time, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.lease = sent, lease
}

// Lose reports whether it was not known yet.
func (r *Right) Lose() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.lost
	r.lost = true
	return !before
}
