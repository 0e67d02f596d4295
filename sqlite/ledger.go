package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/filelock"
	"github.com/agentic-go/agentic/internal/savedform"
)

var _ client.Ledger = (*Ledger)(nil)

// Begin implements client.Ledger. A new request is one durable commit, one that is
// not final takes its fence in one, and one that is final writes nothing.
func (l *Ledger) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	h, err := l.hold(ctx, b.Scope, b.RequestID, &b, intent, wait)
	if err != nil {
		return nil, ledgerError("begin", err)
	}
	return h, nil
}

// Take implements client.Ledger.
func (l *Ledger) Take(ctx context.Context, scope client.Scope, requestID string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	h, err := l.hold(ctx, scope, requestID, nil, intent, wait)
	if err != nil {
		return nil, ledgerError("take", err)
	}
	return h, nil
}

func (l *Ledger) hold(ctx context.Context, scope client.Scope, requestID string, b *client.Binding, intent client.Intent, wait time.Duration) (*hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.enterToWrite(); err != nil {
		return nil, err
	}
	defer l.calls.Done()
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
		case !r.record.PurgedAt.IsZero():
			return &client.PurgedError{RequestID: requestID, Outcome: r.record.Purged, PurgedAt: r.record.PurgedAt}
		default:
			if b != nil {
				if ds := client.Compare(&r.record.Binding, b); len(ds) > 0 {
					return &client.BindingError{RequestID: requestID, Differences: ds}
				}
			}
			h.maySubmit = intent == client.IntendSubmit && r.record.State == client.Prepared && r.settled == "" && !r.record.Expired(now) && !r.over()
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

// sameIntentSQL is what client.Guard refuses a new request for, with the arguments
// of insertStatements.request.
const sameIntentSQL = `intent = ?18 AND principal = ?1 AND environment = ?2 AND origin = ?4 AND action_id = ?5 AND input_digest = ?8
    AND (` + openSQL + ` AND NOT (state = 'prepared' AND created_at + window_us <= ?12) OR (outcome = 'succeeded' OR settled = 'attest-succeeded') AND seen_at > ?21)`

// insertStatements bind a new request. What the guard refuses gets no fence, which no
// row may lack, so that IGNORE leaves it out as it does a bound ID. With the question
// in a WHERE instead, SQLite first copies the row into a table of its own, and the
// ledger's part of an action takes an eighth more processor time.
type insertStatements struct{ snapshot, request, found, earlier *sql.Stmt }

func prepareInsert(p *preparer) insertStatements {
	return insertStatements{
		snapshot: p.prepare(`INSERT INTO ledger_snapshot (digest, body, sum) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING`),
		request: p.prepare(`
INSERT OR IGNORE INTO ledger_request (principal, environment, request_id, origin, action_id, profile_digest, openapi_digest,
    input_digest, input, input_sum, state, created_at, seen_at, attempted_at, window_us, term_us, supersedes, intent, next_check, fence, entries)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    CASE WHEN ?20 AND EXISTS (SELECT 1 FROM ledger_request WHERE ` + sameIntentSQL + `) THEN NULL ELSE 1 END, 0)`),
		found:   p.prepare(`SELECT count(*) FROM ledger_request WHERE principal = ? AND environment = ? AND request_id = ?`),
		earlier: p.prepare(`SELECT ` + summarySQL + ` FROM ledger_request WHERE ?20 AND ` + sameIntentSQL + ` ORDER BY id DESC LIMIT 1`),
	}
}

// bind saves a new request, attempted when it is to be submitted. It reports false
// when somebody else has bound the ID, and a *client.DuplicateError when the guard
// refuses it.
func (l *Ledger) bind(ctx context.Context, b *client.Binding, intent client.Intent, now time.Time) (*row, bool, error) {
	if b.Profile.Digest == "" || b.OpenAPI.Digest == "" {
		return nil, false, errors.New("a document without a digest")
	}
	r := &row{fence: 1, record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: now, SeenAt: now}}
	r.record.Fresh, r.record.Guard = false, client.Guard{}
	var next time.Time
	if intent == client.IntendSubmit {
		r.record.State, r.record.AttemptedAt = client.Attempted, now
		next = client.AfterAttempt(now, b.Term)
	}
	since := int64(math.MaxInt64)
	if b.Guard.Succeeded > 0 {
		since = now.Add(-b.Guard.Succeeded).UnixMicro()
	}
	args := []any{b.Scope.Principal, b.Scope.Environment, b.RequestID, b.Origin, b.ActionID, b.Profile.Digest, b.OpenAPI.Digest,
		b.InputDigest, notNull(b.Input), savedform.Sum(b.Input), string(r.record.State), now.UnixMicro(), now.UnixMicro(), nullMicros(r.record.AttemptedAt),
		b.Window.Microseconds(), b.Term.Microseconds(), b.Supersedes, b.Intent64(), nullMicros(next), b.Guard.On, since}
	var n int64
	var refused error
	err := l.commits.Submit(ctx, func() error {
		refused = nil
		// Nearly every request finds its documents saved: the foreign keys tell
		// which one does not.
		res, err := l.insert.request.Exec(args...)
		if isForeignKey(err) {
			for _, d := range []client.Snapshot{b.Profile, b.OpenAPI} {
				if _, err := l.insert.snapshot.Exec(d.Digest, notNull(d.Body), savedform.Sum(d.Body)); err != nil {
					return err
				}
			}
			res, err = l.insert.request.Exec(args...)
		}
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil {
			return err
		}
		if n == 0 {
			refused, err = l.whyNot(b, args)
			return err
		}
		r.id, err = res.LastInsertId()
		return err
	})
	if err == nil {
		err = refused
	}
	return r, err == nil && n == 1, err
}

// whyNot tells why an insert made no row: nil when the ID is bound, and otherwise
// what the guard found. It is part of the insert's transaction.
func (l *Ledger) whyNot(b *client.Binding, args []any) (refused, err error) {
	var n int
	if err := l.insert.found.QueryRow(args[:3]...).Scan(&n); err != nil || n > 0 {
		return nil, err
	}
	earlier, err := scanSummary(l.insert.earlier.QueryRow(args...).Scan)
	if err != nil {
		return nil, err
	}
	return &client.DuplicateError{RequestID: b.RequestID, Earlier: earlier}, nil
}

// notNull is an empty blob for no bytes: to the driver nil is NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// updateStatements change a request that is there. Each is a compare-and-set.
type updateStatements struct{ take, observe, finish, entry *sql.Stmt }

func prepareUpdate(p *preparer) updateStatements {
	return updateStatements{
		take: p.prepare(`
UPDATE ledger_request SET fence = fence + 1, seen_at = max(seen_at, ?), state = ?, attempted_at = coalesce(attempted_at, ?), next_check = ?
WHERE id = ? AND fence = ? AND entries = ? AND state = ? AND coalesce(settled, '') = ?`),
		observe: p.prepare(`
UPDATE ledger_request SET seen_at = max(seen_at, ?), entries = entries + ? WHERE id = ? AND fence = ? AND entries = ?`),
		finish: p.prepare(`
UPDATE ledger_request SET seen_at = max(seen_at, ?), entries = entries + 1, outcome = ?, next_check = CASE WHEN settled IS NULL THEN ? END
WHERE id = ? AND fence = ? AND entries = ?`),
		entry: p.prepare(`INSERT INTO ledger_entry (request, seq, observations, receipt) VALUES (?, ?, ?, ?)`),
	}
}

// take moves the fence of a request that was read as r, and makes it attempted
// when it is to be submitted; r tells afterwards what stands. It reports false when
// r is not what stands any more: somebody wrote, or a person settled it. One
// that is over stays as it is.
func (l *Ledger) take(ctx context.Context, r *row, attempt bool, now time.Time) (bool, error) {
	if r.over() {
		return true, nil
	}
	rec := &r.record
	was := rec.State
	state, attempted, seen := was, rec.AttemptedAt, rec.SeenAt
	if attempt {
		state, attempted = client.Attempted, now
	}
	if now.After(seen) {
		seen = now
	}
	var next time.Time
	if state == client.Attempted && r.settled == "" {
		next = client.AfterAttempt(seen, rec.Term)
	}
	var n int64
	err := l.commits.Submit(ctx, func() error {
		res, err := l.update.take.Exec(now.UnixMicro(), string(state), nullMicros(attempted), nullMicros(next), r.id, r.fence, r.entries, string(was), r.settled)
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	if err != nil || n == 0 {
		return false, err
	}
	r.fence++
	rec.State, rec.AttemptedAt, rec.SeenAt = state, attempted, seen
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
