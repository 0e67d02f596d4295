package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/savedform"
)

// loadSQL reads one request with everything appended to it, in one statement and
// so at one moment. Documents, input and notes come with the first row only, and a
// tombstone has none.
const loadSQL = `
SELECT r.id, r.origin, r.action_id, r.profile_digest, r.openapi_digest, r.input_digest,
       r.state, r.created_at, r.seen_at, r.attempted_at, r.fence, r.entries, coalesce(r.outcome, ''),
       r.window_us, r.term_us, r.supersedes, coalesce(r.settled, ''), r.purged_at,
       p.sum, o.sum, r.input_sum,
       CASE WHEN r.purged_at IS NULL AND (e.seq IS NULL OR e.seq = 1) THEN r.input END,
       CASE WHEN r.purged_at IS NULL AND (e.seq IS NULL OR e.seq = 1) THEN p.body END,
       CASE WHEN r.purged_at IS NULL AND (e.seq IS NULL OR e.seq = 1) THEN o.body END,
       CASE WHEN e.seq IS NULL OR e.seq = 1 THEN (
           SELECT json_group_array(json_object(
               'at', strftime('%Y-%m-%dT%H:%M:%S', n.at / 1000000, 'unixepoch') || printf('.%06dZ', n.at % 1000000),
               'by', n.by, 'verb', n.verb, 'reason', n.reason, 'resource_id', n.resource_id, 'new_id', n.new_id) ORDER BY n.seq)
           FROM ledger_note n WHERE n.request = r.id) END,
       e.seq, coalesce(e.observations, ''), e.receipt
FROM ledger_request r
LEFT JOIN ledger_snapshot p ON p.digest = r.profile_digest
LEFT JOIN ledger_snapshot o ON o.digest = r.openapi_digest
LEFT JOIN ledger_entry e ON e.request = r.id
WHERE r.principal = ? AND r.environment = ? AND r.request_id = ?
ORDER BY e.seq`

// row is a request with what the ledger alone has to know of it.
type row struct {
	id      int64
	fence   int64
	entries int64
	settled string // verb, or ""
	record  client.Record
}

func (r *row) over() bool { return r.record.Over() != nil }

// read gives a request, or nil when there is none. A row that cannot be right is
// an error that wraps ErrCorrupt.
func (l *Ledger) read(ctx context.Context, scope client.Scope, requestID string) (*row, error) {
	rows, err := l.load.QueryContext(ctx, scope.Principal, scope.Environment, requestID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var r *row
	var outcome string
	var n int64 // entries read
	for rows.Next() {
		var next row
		var attempted, purged, seq sql.NullInt64
		var created, seen, window, term int64
		var sums [3][]byte
		var notes, receipt sql.NullString
		var observations string
		rec := &next.record
		if err := rows.Scan(&next.id, &rec.Origin, &rec.ActionID, &rec.Profile.Digest, &rec.OpenAPI.Digest, &rec.InputDigest,
			&rec.State, &created, &seen, &attempted, &next.fence, &next.entries, &outcome,
			&window, &term, &rec.Supersedes, &next.settled, &purged, &sums[0], &sums[1], &sums[2],
			&rec.Input, &rec.Profile.Body, &rec.OpenAPI.Body, &notes, &seq, &observations, &receipt); err != nil {
			return nil, damaged("%v", err)
		}
		if r == nil {
			r = &next
			rec.Scope, rec.RequestID = scope, requestID
			rec.CreatedAt, rec.SeenAt, rec.AttemptedAt, rec.PurgedAt = fromMicros(created), fromMicros(seen), fromNullMicros(attempted), fromNullMicros(purged)
			rec.Window, rec.Term = time.Duration(window)*time.Microsecond, time.Duration(term)*time.Microsecond
			if err := savedform.CheckRequest(rec, sums); err != nil {
				return nil, damaged("%v", err)
			}
			if rec.Notes, err = savedform.Decode[client.Note](notes.String); err != nil {
				return nil, damaged("notes: %v", err)
			}
		}
		if !seq.Valid {
			continue
		}
		if n++; seq.Int64 != n {
			return nil, damaged("entry %d is where entry %d belongs", seq.Int64, n)
		}
		if receipt.Valid && receipt.String == "" {
			return nil, damaged("a receipt of nothing")
		}
		if err := savedform.AppendEntry(&r.record, observations, receipt.String); err != nil {
			return nil, damaged("%v", err)
		}
	}
	if err := rows.Err(); err != nil || r == nil {
		return nil, err
	}
	if n != r.entries {
		return nil, damaged("%d entries instead of %d", n, r.entries)
	}
	if err := savedform.CheckOutcome(&r.record, outcome); err != nil {
		return nil, damaged("%v", err)
	}
	return r, r.settle(outcome)
}

// settle checks what people did about the request, and tells it of a tombstone.
func (r *row) settle(outcome string) error {
	rec := &r.record
	for _, n := range rec.Notes {
		if err := n.Validate(); err != nil || n.At.IsZero() || n.At.After(rec.SeenAt) {
			return damaged("a note that cannot be: %v at %s", err, n.At)
		}
	}
	var by client.Verb
	if n := rec.Settled(); n != nil {
		by = n.Verb
	}
	switch verb := client.Verb(r.settled); {
	case verb != "" && !verb.Settles():
		return damaged("settled by %.140s", r.settled)
	case !rec.PurgedAt.IsZero():
		rec.Purged, rec.PurgedSettled = agentic.Outcome(outcome), verb
	case verb != by:
		return damaged("settled by %.140s, and the notes say %.140q", r.settled, string(by))
	}
	return nil
}

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

func fromNullMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
}

// nullMicros is a time as a column has it; the zero time is NULL.
func nullMicros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}
