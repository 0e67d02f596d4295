package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/filelock"
)

var _ client.Ledger = (*Ledger)(nil)

// Begin implements client.Ledger. A new request is one durable commit, one that is
// not final takes its fence in one, and one that is final writes nothing.
func (l *Ledger) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	h, err := l.hold(ctx, b.Scope, b.RequestID, &b, intent, wait)
	if err != nil {
		return nil, contractError("begin", err)
	}
	return h, nil
}

// Take implements client.Ledger.
func (l *Ledger) Take(ctx context.Context, scope client.Scope, requestID string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	h, err := l.hold(ctx, scope, requestID, nil, intent, wait)
	if err != nil {
		return nil, contractError("take", err)
	}
	return h, nil
}

// contractError leaves the errors of the contract as they are and makes a
// *client.LedgerError of the rest.
func contractError(op string, err error) error {
	var held *client.HeldError
	var bound *client.BindingError
	var missing *client.NotFoundError
	if errors.As(err, &held) || errors.As(err, &bound) || errors.As(err, &missing) {
		return err
	}
	return ledgerError(op, err)
}

func (l *Ledger) hold(ctx context.Context, scope client.Scope, requestID string, b *client.Binding, intent client.Intent, wait time.Duration) (*hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.calls.Done()
	if l.locks == nil {
		return nil, fmt.Errorf("%w: the ledger was opened for reading", ErrReadOnly)
	}
	key := filelock.KeyOf(scope.Principal, scope.Environment, requestID)
	switch err := l.locks.Acquire(ctx, key, wait); err {
	case nil:
	case filelock.ErrHeld:
		return nil, &client.HeldError{RequestID: requestID}
	case filelock.ErrStopped:
		return nil, ErrClosed
	default:
		return nil, err
	}
	l.killPoint("sqlite/locked")
	h := &hold{ledger: l, key: key}
	if err := h.begin(ctx, scope, requestID, b, intent); err != nil {
		if unlockErr := l.locks.Release(key); unlockErr != nil {
			err = errors.Join(err, unlockErr)
		}
		return nil, err
	}
	return h, nil
}

// begin binds or finds the request, and takes the fence. The kernel's lock makes
// this the only one; should it ever not, the compare-and-set of each write fails,
// and it looks again.
func (h *hold) begin(ctx context.Context, scope client.Scope, requestID string, b *client.Binding, intent client.Intent) error {
	for look := b == nil || !b.Fresh; ; look = true {
		var r *row
		var err error
		if look {
			// Too short to be worth an interrupt, which costs more than the read.
			if r, err = h.ledger.read(context.WithoutCancel(ctx), scope, requestID); err != nil {
				return err
			}
		}
		now := h.Now()
		var done bool
		switch {
		case r == nil && b == nil:
			return &client.NotFoundError{Scope: scope, RequestID: requestID}
		case r == nil:
			r, done, err = h.ledger.bind(ctx, b, intent, now)
			h.maySubmit = intent == client.IntendSubmit
		default:
			if b != nil {
				if ds := client.Compare(&r.record.Binding, b); len(ds) > 0 {
					return &client.BindingError{RequestID: requestID, Differences: ds}
				}
			}
			h.maySubmit = intent == client.IntendSubmit && r.record.State == client.Prepared && !r.final()
			done, err = h.ledger.take(ctx, r, h.maySubmit, now)
		}
		if err != nil {
			return err
		}
		if done {
			h.row = r
			return nil
		}
	}
}

// insertStatements bind a new request.
type insertStatements struct{ snapshot, request *sql.Stmt }

func prepareInsert(p *preparer) insertStatements {
	return insertStatements{
		snapshot: p.prepare(`INSERT INTO ledger_snapshot (digest, body, sum) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING`),
		request: p.prepare(`
INSERT INTO ledger_request (principal, environment, request_id, origin, action_id, profile_digest, openapi_digest,
    input_digest, input, input_sum, state, created_at, seen_at, attempted_at, fence, entries)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0)
ON CONFLICT (principal, environment, request_id) DO NOTHING`),
	}
}

// bind saves a new request, attempted when it is to be submitted. It reports false
// when somebody else has bound the ID.
func (l *Ledger) bind(ctx context.Context, b *client.Binding, intent client.Intent, now time.Time) (*row, bool, error) {
	r := &row{fence: 1, record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: now, SeenAt: now}}
	r.record.Fresh = false
	var attempted sql.NullInt64
	if intent == client.IntendSubmit {
		r.record.State, r.record.AttemptedAt = client.Attempted, now
		attempted = sql.NullInt64{Int64: now.UnixMicro(), Valid: true}
	}
	sum := sumOf(b.Input)
	insert := func() (sql.Result, error) {
		return l.insert.request.Exec(b.Scope.Principal, b.Scope.Environment, b.RequestID, b.Origin, b.ActionID,
			b.Profile.Digest, b.OpenAPI.Digest, b.InputDigest, notNull(b.Input), sum,
			string(r.record.State), now.UnixMicro(), now.UnixMicro(), attempted)
	}
	var n int64
	err := l.commits.submit(ctx, func() error {
		// Nearly every request finds its documents saved: the foreign keys tell
		// which one does not.
		res, err := insert()
		if isForeignKey(err) {
			for _, d := range []client.Snapshot{b.Profile, b.OpenAPI} {
				if _, err := l.insert.snapshot.Exec(d.Digest, notNull(d.Body), sumOf(d.Body)); err != nil {
					return err
				}
			}
			res, err = insert()
		}
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		r.id, err = res.LastInsertId()
		return err
	})
	return r, err == nil && n == 1, err
}

// notNull is an empty blob for no bytes: to the driver nil is NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// updateStatements change a request that is there. Each is a compare-and-set.
type updateStatements struct{ take, advance, entry *sql.Stmt }

func prepareUpdate(p *preparer) updateStatements {
	return updateStatements{
		take: p.prepare(`
UPDATE ledger_request SET fence = fence + 1, seen_at = max(seen_at, ?), state = ?, attempted_at = coalesce(attempted_at, ?)
WHERE id = ? AND fence = ? AND entries = ? AND state = ?`),
		advance: p.prepare(`
UPDATE ledger_request SET entries = entries + 1, seen_at = max(seen_at, ?), outcome = coalesce(?, outcome)
WHERE id = ? AND fence = ? AND entries = ?`),
		entry: p.prepare(`INSERT INTO ledger_entry (request, seq, observations, receipt) VALUES (?, ?, ?, ?)`),
	}
}

// take moves the fence of a request that was read as r, and makes it attempted
// when it is to be submitted; r tells afterwards what stands. It reports false when
// r is not what stands any more. A final request stays as it is.
func (l *Ledger) take(ctx context.Context, r *row, attempt bool, now time.Time) (bool, error) {
	if r.final() {
		return true, nil
	}
	rec := &r.record
	state, at := rec.State, sql.NullInt64{}
	if attempt {
		state, at = client.Attempted, sql.NullInt64{Int64: now.UnixMicro(), Valid: true}
	}
	var n int64
	err := l.commits.submit(ctx, func() error {
		res, err := l.update.take.Exec(now.UnixMicro(), string(state), at, r.id, r.fence, r.entries, string(rec.State))
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	if err != nil || n == 0 {
		return false, err
	}
	r.fence++
	rec.State = state
	if attempt {
		rec.AttemptedAt = now
	}
	if now.After(rec.SeenAt) {
		rec.SeenAt = now
	}
	return true, nil
}

// Load implements client.Ledger.
func (l *Ledger) Load(ctx context.Context, scope client.Scope, requestID string) (*client.Record, error) {
	if err := l.enter(); err != nil {
		return nil, ledgerError("load", err)
	}
	defer l.calls.Done()
	r, err := l.read(ctx, scope, requestID)
	if err != nil {
		return nil, ledgerError("load", err)
	}
	if r == nil {
		return nil, &client.NotFoundError{Scope: scope, RequestID: requestID}
	}
	return &r.record, nil
}

const listSQL = `
SELECT request_id, origin, action_id, state, coalesce(outcome, ''), created_at, seen_at FROM ledger_request
WHERE principal = ?1 AND environment = ?2
  AND (NOT ?3 OR outcome IS NULL OR outcome NOT IN ('succeeded', 'failed'))
  AND (?4 = '' OR outcome = ?4)
ORDER BY created_at DESC, id DESC LIMIT ?5`

// List implements client.Ledger.
func (l *Ledger) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	if err := l.enter(); err != nil {
		return nil, ledgerError("list", err)
	}
	defer l.calls.Done()
	out, err := l.list(ctx, client.Scope{Principal: *f.Principal, Environment: *f.Environment}, f)
	return out, ledgerError("list", err)
}

func (l *Ledger) list(ctx context.Context, scope client.Scope, f client.Filter) ([]client.Summary, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = -1 // none, to SQLite
	}
	rows, err := l.readers.QueryContext(ctx, listSQL, scope.Principal, scope.Environment, f.Open, string(f.Outcome), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []client.Summary
	for rows.Next() {
		s := client.Summary{Scope: scope}
		var created, seen int64
		if err := rows.Scan(&s.RequestID, &s.Origin, &s.ActionID, &s.State, &s.Outcome, &created, &seen); err != nil {
			return nil, damaged("%v", err)
		}
		if s.State != client.Prepared && s.State != client.Attempted || s.Outcome != agentic.Outcome("") && !s.Outcome.Valid() {
			return nil, damaged("request %.140s is %.140s with the outcome %.140s", s.RequestID, s.State, s.Outcome)
		}
		s.CreatedAt, s.SeenAt = fromMicros(created), fromMicros(seen)
		out = append(out, s)
	}
	return out, rows.Err()
}
