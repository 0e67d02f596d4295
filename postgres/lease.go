package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
)

// A lease ends by the database's clock. A host counts on it only by its own two
// clocks, from before the statement that took or renewed it was sent: the monotonic
// one does not run while the machine is suspended, the other may be set.

// moment is when a statement was sent and answered, by this host's clocks.
type moment struct{ sent, answered time.Time }

// right is how long a host may count on its lease. The ledger's goroutine moves it.
type right struct {
	mu    sync.Mutex
	from  time.Time     // of the statement that set it last
	lease time.Duration // from then
	began time.Time
	term  time.Duration // from began: the longest that it is renewed
	lost  bool
}

func (r *right) begin(sent time.Time, lease, term time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.lease, r.began, r.term = sent, lease, sent, term
}

// stands is false from a tenth of the lease before its end.
func (r *right) stands(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.lost && passed(r.from, now) < r.lease-r.lease/10
}

// passed is the longer of what the two clocks say.
func passed(from, now time.Time) time.Duration {
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0)))
}

// renewal is the lease to ask for at now, if it is time to: no longer than the term
// allows.
func (r *right) renewal(now time.Time, longest time.Duration) (lease time.Duration, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lease = min(longest, r.term-passed(r.began, now))
	return lease, !r.lost && now.Sub(r.from) >= longest/3 && lease > 0 && passed(r.from, now)+lease > r.lease
}

func (r *right) renewed(sent time.Time, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.lease = sent, lease
}

// lose reports whether it was not known yet.
func (r *right) lose() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.lost
	r.lost = true
	return !before
}

// termOf is the longest that a hold lasts: an execution that is looked for only
// later has at least so long.
func termOf(term time.Duration) time.Duration { return checkAfter(term) }

// leaseOf is the first lease of a request.
func (l *Ledger) leaseOf(term time.Duration) time.Duration { return min(l.lease, termOf(term)) }

func (l *Ledger) register(h *hold) {
	if h.ended {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[h] = struct{}{}
}

func (l *Ledger) unregister(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holds, h)
}

// lost tells of a hold that another has taken, or whose lease has ended.
func (h *hold) lost() {
	h.ledger.unregister(h)
	if h.right.lose() {
		h.ledger.onLost(1)
		h.ledger.logger.Warn("the hold on a request was lost", "request_id", h.row.record.RequestID, "action", h.row.record.ActionID)
	}
}

// renewLeases renews what is held, until the ledger is closed.
func (l *Ledger) renewLeases() {
	every := time.NewTicker(l.lease / 6)
	defer every.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-every.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), min(l.lease/3, batchTime))
		if err := l.renew(ctx); err != nil {
			l.logger.Warn("cannot renew leases", "error", err)
		}
		cancel()
	}
}

// renew renews the leases of which a third has passed, in as few statements as
// their number allows. A hold that is just being written to is left for the next
// time.
func (l *Ledger) renew(ctx context.Context) error {
	now := time.Now()
	var due []*hold
	var leases []time.Duration
	l.mu.Lock()
	for h := range l.holds {
		if lease, yes := h.right.renewal(now, l.lease); yes {
			due, leases = append(due, h), append(leases, lease)
		}
	}
	l.mu.Unlock()
	const most = 1000
	for len(due) > 0 {
		n := min(len(due), most)
		if err := l.onceOnConn(ctx, func(conn *pgx.Conn) error { return l.renewSome(ctx, conn, due[:n], leases[:n]) }); err != nil {
			return err
		}
		due, leases = due[n:], leases[n:]
	}
	return nil
}

func (l *Ledger) renewSome(ctx context.Context, conn *pgx.Conn, holds []*hold, leases []time.Duration) error {
	var keys [][]byte
	var fences, holders, micros []int64
	byKey := make(map[requestKey]int, len(holds))
	for i, h := range holds {
		byKey[h.key] = i
		keys, fences, holders, micros = append(keys, h.key[:]), append(fences, h.row.fence), append(holders, h.holder), append(micros, leases[i].Microseconds())
	}
	var lost []*hold
	sent := time.Now()
	err := inTx(ctx, conn, &query{sql: l.sql.prelude}, &query{l.sql.renew, []any{keys, fences, holders, micros}}, func(rows pgx.Rows) error {
		var key []byte
		var renewed, mine bool
		if err := rows.Scan(&key, &renewed, &mine); err != nil {
			return err
		}
		i := byKey[requestKey(key)]
		switch {
		case renewed:
			holds[i].right.renewed(sent, leases[i])
		case !mine:
			lost = append(lost, holds[i])
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	for _, h := range lost {
		l.mu.Lock()
		_, still := l.holds[h] // neither finished nor released meanwhile
		l.mu.Unlock()
		if still {
			h.lost()
		}
	}
	return nil
}

var _ client.Hold = (*hold)(nil)
