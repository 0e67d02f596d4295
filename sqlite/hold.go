package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/filelock"
)

// errFinal refuses what would come after a final receipt (D11).
var errFinal = errors.New("the request has a final receipt; nothing is appended to it")

// hold is the exclusive execution of one request: a lock of the kernel, and a
// fence number that every write compares.
type hold struct {
	ledger    *Ledger
	key       filelock.Key
	row       *row // entries and seen time move with what this hold wrote
	maySubmit bool
	seen      time.Time // the highest time that this hold saw
	ended     bool      // a final receipt was there, or was written by this hold
	released  bool
}

func (h *hold) Record() *client.Record { return &h.row.record }

func (h *hold) MaySubmit() bool { return h.maySubmit }

func (h *hold) Now() time.Time {
	t := h.ledger.now()
	if t.After(h.seen) {
		h.seen = t
	}
	return t
}

// Observe appends in one durable commit.
func (h *hold) Observe(ctx context.Context, obs []client.Observation) error {
	return h.append(ctx, "observe", obs, nil)
}

// Finish appends in one durable commit.
func (h *hold) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	if err := sameRequest(&r, &h.row.record.Binding); err != nil {
		return ledgerError("finish", err)
	}
	if err := r.Validate().Err(); err != nil {
		return ledgerError("finish", err)
	}
	return h.append(ctx, "finish", obs, &r)
}

func (h *hold) append(ctx context.Context, op string, obs []client.Observation, r *agentic.Receipt) error {
	if h.released {
		return client.ErrLost
	}
	if h.ended || h.row.final() {
		return ledgerError(op, errFinal)
	}
	if err := h.ledger.enter(); err != nil {
		return ledgerError(op, err)
	}
	defer h.ledger.calls.Done()
	encoded, err := encodeObservations(obs)
	if err != nil {
		return ledgerError(op, err)
	}
	var outcome, receipt sql.NullString
	if r != nil {
		outcome = sql.NullString{String: string(r.Outcome), Valid: true}
		receipt = sql.NullString{String: string(r.Encode()), Valid: true}
	}
	h.Now()
	l, seen := h.ledger, h.seen.UnixMicro()
	var n int64
	err = l.commits.submit(ctx, func() error {
		res, err := l.update.advance.Exec(seen, outcome, h.row.id, h.row.fence, h.row.entries)
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = l.update.entry.Exec(h.row.id, h.row.entries+1, encoded, receipt)
		return err
	})
	if err != nil {
		return ledgerError(op, err)
	}
	if n == 0 {
		return client.ErrLost
	}
	h.row.entries++
	h.ended = r != nil && r.Outcome.Final()
	return nil
}

// Release gives the lock free, at once for those who wait in this process.
func (h *hold) Release() error {
	if h.released {
		return nil
	}
	h.released = true
	l := h.ledger
	if err := l.enter(); err != nil {
		return nil // closing freed the lock
	}
	defer l.calls.Done()
	err := l.locks.Release(h.key)
	l.killPoint("sqlite/released")
	return ledgerError("release", err)
}
