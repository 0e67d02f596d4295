package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/filelock"
	"github.com/agentic-go/agentic/internal/savedform"
)

// What ends the writes of a hold: a receipt that no other follows (D11), or one of its own.
var (
	errOver     = errors.New("the request has a receipt that no other follows; nothing is appended to it")
	errFinished = errors.New("this hold has written its receipt; nothing comes after it")
)

// hold is the exclusive execution of one request: a lock of the kernel, and a
// fence number that every write compares.
type hold struct {
	ledger    *Ledger
	key       filelock.Key
	row       *row // entries move with what this hold wrote
	maySubmit bool
	seen      time.Time // the highest time that this hold saw
	finished  bool      // by this hold
	released  bool
}

func (h *hold) Record() *client.Record { return &h.row.record }

func (h *hold) MaySubmit() bool { return h.maySubmit && !h.released && !h.finished }

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
	if err := savedform.SameRequest(&r, &h.row.record.Binding); err != nil {
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
	if h.finished {
		return ledgerError(op, errFinished)
	}
	if h.row.over() {
		return ledgerError(op, errOver)
	}
	if err := h.ledger.enter(); err != nil {
		return ledgerError(op, err)
	}
	defer h.ledger.calls.Done()
	encoded, err := savedform.Encode(obs)
	if err != nil {
		return ledgerError(op, err)
	}
	h.Now()
	l, rec, id, fence, entries, seen := h.ledger, &h.row.record, h.row.id, h.row.fence, h.row.entries, h.seen
	if rec.SeenAt.After(seen) {
		seen = rec.SeenAt
	}
	added := int64(1) // a look at the clock alone leaves no entry
	if len(obs) == 0 && r == nil {
		added = 0
	}
	var receipt sql.NullString
	var next sql.NullInt64
	if r != nil {
		receipt = sql.NullString{String: string(r.Encode()), Valid: true}
		if at, ok := client.NextCheck(rec.RequestID, rec.CreatedAt, seen, rec.Window); ok && !r.Outcome.Final() {
			next = nullMicros(at)
		}
	}
	var n int64
	err = l.commits.Submit(ctx, func() error {
		var res sql.Result
		var err error
		if r != nil {
			res, err = l.update.finish.Exec(seen.UnixMicro(), string(r.Outcome), next, id, fence, entries)
		} else {
			res, err = l.update.observe.Exec(seen.UnixMicro(), added, id, fence, entries)
		}
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil || n == 0 || added == 0 {
			return err
		}
		_, err = l.update.entry.Exec(id, entries+1, encoded, receipt)
		return err
	})
	if err != nil {
		return ledgerError(op, err)
	}
	if n == 0 {
		return client.ErrLost
	}
	h.row.entries += added
	h.finished = r != nil
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
