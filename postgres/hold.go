package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/lease"
	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/savedform"
)

// errEnded refuses what would come after a receipt of this hold, or a final one (D11).
var errEnded = errors.New("the request has a final receipt, or this hold has written one; nothing is appended to it")

// hold is the exclusive execution of one request: a gate in this process, and a row
// whose fence and holder every write compares, beside a lease that has not ended.
// Its lease is renewed by the ledger's own goroutine.
type hold struct {
	ledger    *Ledger
	key       lease.Key
	holder    int64
	row       *row // entries and seen time move with what this hold wrote
	maySubmit bool
	clock     time.Time // of the database, at answered of the moment it began
	began     lease.Moment
	right     lease.Right // to the lease, as this host may count on it
	seen      time.Time   // the highest time that this hold saw
	ended     bool        // a final receipt was there, or one was written by this hold
	released  bool
}

// begun makes it the hold of r.
func (h *hold) begun(r *row, maySubmit bool, clock time.Time, lease time.Duration, m lease.Moment) {
	h.row, h.maySubmit, h.clock, h.began = r, maySubmit, clock.UTC(), m
	h.right.Begin(m.Sent, lease, termOf(r.record.Term))
	h.Now()
}

func (h *hold) Record() *client.Record { return &h.row.record }

func (h *hold) MaySubmit() bool {
	return h.maySubmit && !h.ended && !h.released && h.right.Stands(time.Now())
}

// Now is the database's clock as it was when the hold began, and what has passed
// here since: it is never ahead by more than the two clocks drift apart meanwhile.
func (h *hold) Now() time.Time {
	var t time.Time
	if c := h.ledger.clock; c != nil {
		t = toMicros(c())
	} else {
		t = toMicros(h.clock.Add(time.Since(h.began.Answered)))
	}
	if t.After(h.seen) {
		h.seen = t
	}
	return t
}

func (h *hold) Observe(ctx context.Context, obs []client.Observation) error {
	return ledgerError("observe", h.append(ctx, obs, nil))
}

// Finish appends and gives the request free in one statement.
func (h *hold) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	err := savedform.SameRequest(&r, &h.row.record.Binding)
	if err == nil {
		err = r.Validate().Err()
	}
	if err == nil {
		err = h.append(ctx, obs, &r)
	}
	return ledgerError("finish", err)
}

// appending is one write of a hold, and what it came to.
type appending struct {
	hold         *hold
	entry        bool // there is something to append
	seen         time.Time
	outcome      agentic.Outcome // "" without a receipt
	next         *time.Time
	observations string
	receipt      string

	done bool
}

func (h *hold) append(ctx context.Context, obs []client.Observation, r *agentic.Receipt) error {
	l := h.ledger
	if err := l.usable(ctx); err != nil {
		return err
	}
	if h.released {
		return client.ErrLost
	}
	if h.ended {
		return errEnded
	}
	h.Now()
	m := &appending{hold: h, entry: len(obs) > 0 || r != nil, seen: h.seen}
	var err error
	if m.observations, err = savedform.Encode(obs); err != nil {
		return err
	}
	f := &l.appends
	if r != nil {
		m.outcome, m.receipt = r.Outcome, string(r.Encode())
		rec := &h.row.record
		highest := h.seen
		if rec.SeenAt.After(highest) {
			highest = rec.SeenAt
		}
		if at, ok := client.NextCheck(rec.RequestID, rec.CreatedAt, highest, rec.Window); ok && !r.Outcome.Final() {
			m.next = &at
			if l.enqueue != nil {
				f = &l.enqueues
			}
		}
	}
	if err := h.write(ctx, f, m); err != nil {
		return err
	}
	if m.entry {
		h.row.entries++
	}
	if r != nil {
		h.ended = true
		l.unregister(h)
	}
	return nil
}

// write makes a write again until it is known what came of it, or ctx ends.
func (h *hold) write(ctx context.Context, f *pgfold.Folder[appending], m *appending) error {
	var p pgfold.Pauses
	var doubt error
	for {
		err := f.Submit(ctx, m)
		switch {
		case err == nil && m.done:
			return nil
		case err == nil && doubt == nil:
			h.lost()
			return client.ErrLost
		case err == nil:
			var written bool
			if written, err = h.written(ctx); err == nil && written {
				return nil
			} else if err == nil {
				h.lost()
				return client.ErrLost
			}
		case is[pgfold.Broken](err):
			doubt = err
		case errors.Is(err, errEnqueue) && !pgfold.Retryable(err) && f != &h.ledger.appends:
			if !h.ledger.jobless.Swap(true) { // once, until one can be made again
				h.ledger.logger.Warn("receipts are saved without a job for the next look, which only a sweep makes then", "error", err)
			}
			f = &h.ledger.appends
			continue
		}
		if !pgfold.Retryable(err) || p.Sleep(ctx) != nil {
			if doubt != nil {
				return errors.Join(errors.New("an answer of the database was lost, so this may have been written"), err, ctx.Err())
			}
			return errors.Join(err, ctx.Err())
		}
	}
}

// written finds out whether a write whose answer was lost was made: only this hold
// writes under its number.
func (h *hold) written(ctx context.Context) (found bool, err error) {
	err = h.ledger.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, h.ledger.sql.written, h.row.id, h.row.entries+1, h.holder).Scan(&found)
	})
	return found, err
}

func (l *Ledger) writeAppendings(ctx context.Context, conn *pgx.Conn, batch []*appending) error {
	return l.writeEntries(ctx, conn, batch, nil)
}

// errEnqueue marks what LedgerConfig.Enqueue said.
var errEnqueue = errors.New("no job could be made for the next look at the request")

// writeAndEnqueue has Enqueue called in the transaction, for what leaves a NextCheck.
func (l *Ledger) writeAndEnqueue(ctx context.Context, conn *pgx.Conn, batch []*appending) error {
	var due []Due
	return l.writeEntries(ctx, conn, batch, func(tx pgx.Tx) error {
		due = due[:0]
		for _, m := range batch {
			if rec := &m.hold.row.record; m.done && m.next != nil {
				due = append(due, Due{Scope: rec.Scope, RequestID: rec.RequestID, Origin: rec.Origin, At: m.next.UTC(), Entries: m.hold.row.entries + 1})
			}
		}
		return l.callEnqueue(ctx, tx, due)
	})
}

func (l *Ledger) callEnqueue(ctx context.Context, tx pgx.Tx, due []Due) error {
	if len(due) == 0 {
		return nil
	}
	if err := l.enqueue(ctx, tx, due); err != nil {
		return errors.Join(errEnqueue, err)
	}
	l.jobless.Store(false)
	return nil
}

func (l *Ledger) writeEntries(ctx context.Context, conn *pgx.Conn, batch []*appending, last func(pgx.Tx) error) error {
	slices.SortFunc(batch, func(a, b *appending) int { return bytes.Compare(a.hold.key[:], b.hold.key[:]) })
	byKey := make(map[lease.Key]*appending, len(batch))
	var keys [][]byte
	var fences, holders, entries, adds []int64
	var seen []time.Time
	var nexts []*time.Time
	var outcomes, observations, receipts []string
	for _, m := range batch {
		h := m.hold
		m.done = false
		byKey[h.key] = m
		keys, fences, holders, entries = append(keys, h.key[:]), append(fences, h.row.fence), append(holders, h.holder), append(entries, h.row.entries)
		adds = append(adds, 0)
		if m.entry {
			adds[len(adds)-1] = 1
		}
		seen, nexts = append(seen, m.seen), append(nexts, m.next)
		outcomes, observations, receipts = append(outcomes, string(m.outcome)), append(observations, m.observations), append(receipts, m.receipt)
	}
	return pgfold.InTx(ctx, conn, pgfold.Query{SQL: l.sql.prelude}, pgfold.Query{SQL: l.sql.append, Args: []any{l.clock != nil, last != nil, keys, fences, holders, entries, adds,
		seen, outcomes, nexts, observations, receipts}},
		func(rows pgx.Rows) error {
			var key []byte
			var next *time.Time
			if err := rows.Scan(&key, &next); err != nil {
				return err
			}
			m := byKey[lease.Key(key)]
			m.done = true
			if next == nil && m.next != nil { // settled meanwhile
				m.next = nil
			}
			return nil
		}, last)
}

// Release gives the request free. After Finish that has happened already.
func (h *hold) Release() error {
	if h.released {
		return nil
	}
	h.released = true
	l := h.ledger
	l.unregister(h)
	defer l.gates.Leave(h.key)
	if h.ended {
		return nil
	}
	return ledgerError("release", h.free())
}

// freeTime bounds a release while the database cannot serve. What is not given free
// is free when its lease ends.
const freeTime = 3 * time.Second

// freeing is a hold that is given free. A lost one is left.
type freeing struct{ hold *hold }

func (h *hold) free() error {
	ctx, cancel := context.WithTimeout(context.Background(), freeTime)
	defer cancel()
	var p pgfold.Pauses
	for {
		err := h.ledger.frees.Submit(ctx, &freeing{h})
		if err == nil || !pgfold.Retryable(err) || p.Sleep(ctx) != nil {
			return err
		}
	}
}

func (l *Ledger) writeFreeings(ctx context.Context, conn *pgx.Conn, batch []*freeing) error {
	slices.SortFunc(batch, func(a, b *freeing) int { return bytes.Compare(a.hold.key[:], b.hold.key[:]) })
	var keys [][]byte
	var holders []int64
	for _, m := range batch {
		keys, holders = append(keys, m.hold.key[:]), append(holders, m.hold.holder)
	}
	return pgfold.InTx(ctx, conn, pgfold.Query{SQL: l.sql.prelude}, pgfold.Query{SQL: l.sql.free, Args: []any{keys, holders}}, func(pgx.Rows) error { return nil }, nil)
}
