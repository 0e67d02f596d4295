package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// fillChunk is how many requests of version 1 one commit fills in.
const fillChunk = 1000

// fillIn works out what version 1 did not save of a request: its intent, its window
// and term by the saved documents, and when a worker looks at it next. Documents
// that cannot be used any more leave a window of 0: if the request is open, it needs
// a person. A program of version 1 that still has the file open may add more
// requests; the next Open finds them by their missing intent.
func (l *Ledger) fillIn(ctx context.Context) error {
	f := filler{ledger: l, actions: map[[3]string]agentic.Action{}}
	for {
		var found bool
		if err := l.conn.QueryRowContext(ctx, unfilledSQL).Scan(&found); err != nil || !found {
			return err
		}
		if err := l.commits.Submit(ctx, f.chunk); err != nil {
			return err
		}
	}
}

// unfilledSQL tells whether there are requests of version 1.
const unfilledSQL = `SELECT EXISTS (SELECT 1 FROM ledger_request WHERE intent IS NULL)`

type filler struct {
	ledger  *Ledger
	actions map[[3]string]agentic.Action // by the digests of its documents and its ID
}

// old is a request of version 1.
type old struct {
	id  int64
	sum client.Summary
	b   client.Binding
}

// chunk fills in some requests, inside a transaction.
func (f *filler) chunk() error {
	found, err := f.find()
	if err != nil {
		return err
	}
	ctx := context.Background() // an interrupt could come between a commit and its answer
	update, err := f.ledger.conn.PrepareContext(ctx, `UPDATE ledger_request SET window_us = ?, term_us = ?, intent = ?, next_check = ? WHERE id = ?`)
	if err != nil {
		return err
	}
	defer update.Close()
	for _, r := range found {
		key := [3]string{r.b.Profile.Digest, r.b.OpenAPI.Digest, r.b.ActionID}
		action, known := f.actions[key]
		if !known {
			if action, err = f.look(key); err != nil {
				return err
			}
			f.actions[key] = action
		}
		var term time.Duration
		var next time.Time
		if action.Retention > 0 {
			term = client.Term(action)
			switch {
			case !r.sum.Open() || r.sum.State == client.Prepared:
			case r.sum.Outcome == "":
				next = client.AfterAttempt(r.sum.SeenAt, term)
			default:
				next, _ = client.NextCheck(r.sum.RequestID, r.sum.CreatedAt, r.sum.SeenAt, action.Retention)
			}
		}
		if _, err := update.Exec(action.Retention.Microseconds(), term.Microseconds(), r.b.Intent64(), nullMicros(next), r.id); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) find() ([]old, error) {
	rows, err := f.ledger.conn.QueryContext(context.Background(), `
SELECT id, profile_digest, openapi_digest, input_digest, `+summarySQL+` FROM ledger_request WHERE intent IS NULL LIMIT ?`, fillChunk)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []old
	for rows.Next() {
		var r old
		if r.sum, err = scanSummary(rows.Scan, &r.id, &r.b.Profile.Digest, &r.b.OpenAPI.Digest, &r.b.InputDigest); err != nil {
			return nil, err
		}
		r.b.Scope, r.b.Origin, r.b.ActionID = r.sum.Scope, r.sum.Origin, r.sum.ActionID
		found = append(found, r)
	}
	return found, rows.Err()
}

// look reads a pair of documents for an action, which is zero when they cannot be
// used.
func (f *filler) look(key [3]string) (a agentic.Action, err error) {
	var profile, openapi []byte
	err = f.ledger.conn.QueryRowContext(context.Background(), `
SELECT p.body, o.body FROM ledger_snapshot p, ledger_snapshot o WHERE p.digest = ? AND o.digest = ?`, key[0], key[1]).Scan(&profile, &openapi)
	if err == sql.ErrNoRows {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	// Whether loopback is allowed was settled when the request was bound.
	if plan, err := agentic.Load(profile, openapi, key[2], agentic.Options{AllowLoopback: true}); err == nil {
		a = plan.Action
	}
	return a, nil
}
