package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// loadSQL reads one request with everything appended to it, in one statement and
// so at one moment. Documents and input come with the first row only.
const loadSQL = `
SELECT r.id, r.origin, r.action_id, r.profile_digest, r.openapi_digest, r.input_digest,
       r.state, r.created_at, r.seen_at, r.attempted_at, r.fence, r.entries, r.outcome,
       p.sum, o.sum, r.input_sum,
       CASE WHEN e.seq IS NULL OR e.seq = 1 THEN r.input END,
       CASE WHEN e.seq IS NULL OR e.seq = 1 THEN p.body END,
       CASE WHEN e.seq IS NULL OR e.seq = 1 THEN o.body END,
       e.seq, e.observations, e.receipt
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
	record  client.Record
}

func (r *row) final() bool {
	last := r.record.Last()
	return last != nil && last.Outcome.Final()
}

// read gives a request, or nil when there is none. A row that cannot be right is
// an error that wraps ErrCorrupt.
func (l *Ledger) read(ctx context.Context, scope client.Scope, requestID string) (*row, error) {
	rows, err := l.load.QueryContext(ctx, scope.Principal, scope.Environment, requestID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var r *row
	var outcome sql.NullString
	var n int64 // entries read
	for rows.Next() {
		var next row
		var attempted, seq sql.NullInt64
		var created, seen int64
		var sums [3][]byte
		var observations, receipt sql.NullString
		rec := &next.record
		if err := rows.Scan(&next.id, &rec.Origin, &rec.ActionID, &rec.Profile.Digest, &rec.OpenAPI.Digest, &rec.InputDigest,
			&rec.State, &created, &seen, &attempted, &next.fence, &next.entries, &outcome, &sums[0], &sums[1], &sums[2],
			&rec.Input, &rec.Profile.Body, &rec.OpenAPI.Body, &seq, &observations, &receipt); err != nil {
			return nil, damaged("%v", err)
		}
		if r == nil {
			r = &next
			rec.Scope, rec.RequestID = scope, requestID
			rec.CreatedAt, rec.SeenAt, rec.AttemptedAt = fromMicros(created), fromMicros(seen), fromNullMicros(attempted)
			if err := checkRequest(rec, sums); err != nil {
				return nil, err
			}
		}
		if !seq.Valid {
			continue
		}
		if n++; seq.Int64 != n {
			return nil, damaged("entry %d is where entry %d belongs", seq.Int64, n)
		}
		if err := appendEntry(&r.record, observations.String, receipt); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil || r == nil {
		return nil, err
	}
	if n != r.entries {
		return nil, damaged("%d entries instead of %d", n, r.entries)
	}
	if last := r.record.Last(); last == nil && outcome.Valid || last != nil && string(last.Outcome) != outcome.String {
		return nil, damaged("the outcome is not the last receipt's")
	}
	return r, nil
}

// checkRequest checks what can be checked of a request without its entries. sums
// are those of the profile, the OpenAPI document and the input.
func checkRequest(r *client.Record, sums [3][]byte) error {
	if r.State != client.Prepared && r.State != client.Attempted {
		return damaged("state %.140s", r.State)
	}
	if (r.State == client.Attempted) == r.AttemptedAt.IsZero() {
		return damaged("a request that is %s, with the wrong time of its attempt", r.State)
	}
	for _, t := range []time.Time{r.CreatedAt, r.SeenAt, r.AttemptedAt} {
		if t.Year() < 1 || t.Year() > 9999 || t.After(r.SeenAt) {
			return damaged("a time that cannot be: %s", t)
		}
	}
	for i, body := range [][]byte{r.Profile.Body, r.OpenAPI.Body, r.Input} {
		if !bytes.Equal(sumOf(body), sums[i]) {
			return damaged("the %s is not what was saved", [...]string{"profile", "OpenAPI document", "input"}[i])
		}
	}
	return nil
}

// appendEntry adds what one write of a hold appended.
func appendEntry(r *client.Record, observations string, receipt sql.NullString) error {
	obs, err := decodeObservations(observations)
	if err != nil {
		return damaged("observations: %v", err)
	}
	r.Observations = append(r.Observations, obs...)
	if !receipt.Valid {
		return nil
	}
	parsed, problems := agentic.ParseReceipt([]byte(receipt.String))
	if err := problems.Err(); err != nil {
		return damaged("receipt: %v", err)
	}
	if err := sameRequest(parsed, &r.Binding); err != nil {
		return damaged("%v", err)
	}
	r.Receipts = append(r.Receipts, *parsed)
	return nil
}

// sameRequest checks that a receipt is about the request it is appended to.
func sameRequest(r *agentic.Receipt, b *client.Binding) error {
	if r.RequestID != b.RequestID || r.ActionID != b.ActionID || r.Origin != b.Origin {
		return fmt.Errorf("a receipt of another request: %.140s", r.RequestID)
	}
	return nil
}

// The observations of one write are a JSON array: our own data, strict all the same.
func encodeObservations(obs []client.Observation) (string, error) {
	if len(obs) == 0 {
		return "[]", nil
	}
	var b strings.Builder
	err := json.NewEncoder(&b).Encode(obs)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func decodeObservations(s string) ([]client.Observation, error) {
	if s == "[]" {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	var obs []client.Observation
	if err := d.Decode(&obs); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the array")
	}
	return obs, nil
}

func sumOf(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

func fromNullMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
}
