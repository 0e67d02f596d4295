package sqlite

import (
	"context"
	"database/sql"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentic-go/agentic/client"
)

// openSQL is client.Summary.Open. Workers have nothing to look at in the rest, so
// only what is open has a NextCheck, whatever an older program left in the row.
const openSQL = `(purged_at IS NULL AND settled IS NULL AND coalesce(outcome, '') NOT IN ('succeeded', 'failed'))`

const summarySQL = `principal, environment, request_id, origin, action_id, state, coalesce(outcome, ''), coalesce(settled, ''), supersedes,
    created_at, seen_at, attempted_at, window_us, CASE WHEN ` + openSQL + ` THEN next_check END, purged_at`

// scanSummary reads the columns of summarySQL, behind others.
func scanSummary(scan func(...any) error, before ...any) (client.Summary, error) {
	var s client.Summary
	var created, seen, window int64
	var attempted, next, purged sql.NullInt64
	if err := scan(append(before, &s.Scope.Principal, &s.Scope.Environment, &s.RequestID, &s.Origin, &s.ActionID, &s.State, &s.Outcome, &s.Settled,
		&s.Supersedes, &created, &seen, &attempted, &window, &next, &purged)...); err != nil {
		if err == sql.ErrNoRows {
			return s, err
		}
		return s, damaged("%v", err)
	}
	if s.State != client.Prepared && s.State != client.Attempted || s.Outcome != "" && !s.Outcome.Valid() || s.Settled != "" && !s.Settled.Settles() {
		return s, damaged("request %.140s is %.140s with the outcome %.140s and settled by %.140q", s.RequestID, s.State, s.Outcome, string(s.Settled))
	}
	s.CreatedAt, s.SeenAt, s.WindowEnds = fromMicros(created), fromMicros(seen), fromMicros(created+window)
	s.AttemptedAt, s.NextCheck, s.PurgedAt = fromNullMicros(attempted), fromNullMicros(next), fromNullMicros(purged)
	return s, nil
}

// conditions gathers what has to hold of a row, and its arguments.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(sql string, args ...any) {
	c.parts = append(c.parts, sql)
	c.args = append(c.args, args...)
}

// scope adds the parts of a scope that were given.
func (c *conditions) scope(principal, environment *string) {
	if principal != nil {
		c.add("principal = ?", *principal)
	}
	if environment != nil {
		c.add("environment = ?", *environment)
	}
}

// where is all of them; everything when there is none.
func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return " WHERE TRUE"
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// inOrder has for each Order what comes before the time of creation.
var inOrder = map[client.Order]string{
	client.UrgentFirst: `
CASE WHEN NOT ` + openSQL + ` THEN 3 WHEN state = 'prepared' THEN 2 WHEN created_at + window_us <= @now THEN 1 ELSE 0 END,
CASE WHEN NOT ` + openSQL + ` OR state = 'prepared' THEN 0 WHEN created_at + window_us <= @now THEN -(created_at + window_us) ELSE created_at + window_us END, `,
	client.DueFirst: `CASE WHEN ` + openSQL + ` THEN next_check END ASC NULLS LAST, `,
}

// List implements client.Ledger.
func (l *Ledger) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	if err := l.enter(); err != nil {
		return nil, ledgerError("list", err)
	}
	defer l.calls.Done()
	out, err := l.list(ctx, f)
	return out, ledgerError("list", err)
}

func (l *Ledger) list(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	var c conditions
	c.scope(f.Principal, f.Environment)
	order := inOrder[f.Order]
	if f.Due {
		c.add("next_check <= @now AND " + openSQL)
		if f.Order == client.DueFirst {
			order = "next_check, " // as the index has it
		}
	}
	if f.Open {
		c.add(openSQL)
	}
	if f.NeedsPerson {
		c.add(openSQL + " AND state = 'attempted' AND created_at + window_us <= @now")
	}
	for column, want := range map[string]string{"origin": f.Origin, "action_id": f.ActionID, "outcome": string(f.Outcome)} {
		if want != "" {
			c.add(column+" = ?", want)
		}
	}
	if !f.Before.IsZero() {
		c.add("created_at < ?", microsFrom(f.Before))
	}
	if !f.After.IsZero() {
		c.add("created_at >= ?", microsFrom(f.After))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1 // none, to SQLite
	}
	c.args = append(c.args, limit)
	query := "SELECT " + summarySQL + " FROM ledger_request" + c.where() + " ORDER BY " + order + "created_at DESC, id DESC LIMIT ?"
	query = strings.ReplaceAll(query, "@now", strconv.FormatInt(l.now().UnixMicro(), 10))
	rows, err := l.readers.QueryContext(ctx, query, c.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []client.Summary
	for rows.Next() {
		s, err := scanSummary(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// microsFrom is the first microsecond that is not before t: what a column has is
// before t when it is less. Times that no column can have are the ends of the range.
func microsFrom(t time.Time) int64 {
	switch {
	case t.Year() < 1:
		return math.MinInt64
	case t.Year() > 9999:
		return math.MaxInt64
	}
	n := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		n++
	}
	return n
}
