package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/lease"
	"github.com/agentic-go/agentic/internal/pgfold"
)

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
	if h.right.Lose() {
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
		ctx, cancel := context.WithTimeout(context.Background(), min(l.lease/3, pgfold.BatchTime))
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
		if lease, yes := h.right.Renewal(now, l.lease); yes {
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
	byKey := make(map[lease.Key]int, len(holds))
	for i, h := range holds {
		byKey[h.key] = i
		keys, fences, holders, micros = append(keys, h.key[:]), append(fences, h.row.fence), append(holders, h.holder), append(micros, leases[i].Microseconds())
	}
	var lost []*hold
	var renewed []int
	sent := time.Now()
	err := pgfold.InTx(ctx, conn, pgfold.Query{SQL: l.sql.prelude}, pgfold.Query{SQL: l.sql.renew, Args: []any{keys, fences, holders, micros}}, func(rows pgx.Rows) error {
		var key []byte
		var isRenewed, mine bool
		if err := rows.Scan(&key, &isRenewed, &mine); err != nil {
			return err
		}
		i := byKey[lease.Key(key)]
		switch {
		case isRenewed:
			renewed = append(renewed, i)
		case !mine:
			lost = append(lost, holds[i])
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	for _, i := range renewed { // only now it is committed
		holds[i].right.Renewed(sent, leases[i])
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
