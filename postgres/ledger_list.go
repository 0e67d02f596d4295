package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
)

// List implements client.Ledger.
func (l *Ledger) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	if err := l.usable(ctx); err != nil {
		return nil, ledgerError("list", err)
	}
	sql, args := l.listSQL(&f)
	var out []client.Summary
	err := l.onConn(ctx, func(conn *pgx.Conn) error {
		out = nil
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s summaryScan
			if err := rows.Scan(s.into()...); err != nil {
				return err
			}
			sum, err := s.summary()
			if err != nil {
				return err
			}
			out = append(out, *sum)
		}
		return rows.Err()
	})
	return out, ledgerError("list", err)
}

// where collects conditions, and the arguments that they name.
type where struct {
	conditions []string
	args       []any
}

// and adds a condition, in which %s is the argument.
func (w *where) and(condition string, arg any) {
	w.args = append(w.args, arg)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, fmt.Sprintf("$%d", len(w.args))))
}

func (w *where) scope(principal, environment *string) {
	if principal != nil {
		w.and("r.principal = %s::bytea", []byte(*principal))
	}
	if environment != nil {
		w.and("r.environment = %s::bytea", []byte(*environment))
	}
}

// listSQL has only the conditions that are asked for, so that each can use its index.
func (l *Ledger) listSQL(f *client.Filter) (string, []any) {
	w := where{conditions: []string{"true"}}
	now := `statement_timestamp()`
	if l.clock != nil {
		w.args = append(w.args, l.now())
		now = `coalesce($1::timestamptz, statement_timestamp())`
		w.conditions = append(w.conditions, now+` IS NOT NULL`) // an argument has to stand somewhere
	}
	w.scope(f.Principal, f.Environment)
	needsPerson := isOpen + ` AND r.attempted_at IS NOT NULL AND r.window_ends <= ` + now
	if f.Origin != "" {
		w.and("r.origin = %s::text", f.Origin)
	}
	if f.ActionID != "" {
		w.and("r.action_id = %s::text", f.ActionID)
	}
	if f.Outcome != "" {
		w.and("r.outcome = %s::text", string(f.Outcome))
	}
	if f.Open {
		w.conditions = append(w.conditions, isOpen)
	}
	if f.NeedsPerson {
		w.conditions = append(w.conditions, needsPerson)
	}
	if f.Due { // what has a NextCheck is open
		w.conditions = append(w.conditions, isOpen, `r.next_check <= `+now)
	}
	if !f.Before.IsZero() {
		w.and("r.created_at < %s::timestamptz", ceilMicros(f.Before))
	}
	if !f.After.IsZero() {
		w.and("r.created_at >= %s::timestamptz", ceilMicros(f.After))
	}
	order := `r.created_at DESC, r.id DESC`
	switch f.Order {
	case client.UrgentFirst:
		running := isOpen + ` AND r.attempted_at IS NOT NULL AND r.window_ends > ` + now
		order = `CASE WHEN ` + running + ` THEN 0 WHEN ` + needsPerson + ` THEN 1 WHEN ` + isOpen + ` THEN 2 ELSE 3 END,
			CASE WHEN ` + running + ` THEN r.window_ends END, CASE WHEN ` + needsPerson + ` THEN r.window_ends END DESC, ` + order
	case client.DueFirst:
		order = `r.next_check NULLS LAST, ` + order
	}
	sql := `SELECT ` + summaryColumns + ` FROM ` + l.sql.schema + `.ledger_request r WHERE ` + strings.Join(w.conditions, " AND ") + ` ORDER BY ` + order
	if f.Limit > 0 {
		w.args = append(w.args, int64(f.Limit))
		sql += fmt.Sprintf(" LIMIT $%d::bigint", len(w.args))
	}
	return sql, w.args
}

// ceilMicros is the first time of the ledger's that is not before t.
func ceilMicros(t time.Time) time.Time {
	if c := toMicros(t); !c.Before(t) {
		return c
	}
	return toMicros(t).Add(time.Microsecond)
}
