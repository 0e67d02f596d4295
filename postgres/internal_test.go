package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgmigrate"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/service"
)

// Among many tombstones and records, no statement reads the whole table.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := Migrate(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{
		`INSERT INTO agentic.tracked_request (key, principal, action, request_id, fingerprint, state, created_at, expires_at, swept)
			SELECT sha256(i::text::bytea), 'alice', 'a', i::text::bytea, '', CASE WHEN i <= 10000 THEN 'expired' ELSE 'done' END,
			now(), now() + (i - 10050) * interval '1 second', i <= 10000 FROM generate_series(1, 20000) i`,
		`ANALYZE agentic.tracked_request`,
		`SET plan_cache_mode = force_generic_plan`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	s := newTracking(pgmigrate.DefaultSchema)
	for name, statement := range map[string]struct{ sql, args string }{
		"claim":  {s.claim, `'k', 'p', 'a', 'r', 'f', 1`},
		"find":   {s.find, `'k'`},
		"settle": {s.settle, `'k', 'done', '', 200, NULL, false`},
		"expire": {s.expire, `500`},
		"remove": {s.remove, `500, 1`},
	} {
		if _, err := conn.Exec(t.Context(), `PREPARE `+name+` AS `+statement.sql); err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+name+`(`+statement.args+`)`, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || plan == "" || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %v\n%s", name, err, plan)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	said := func(code string) error { return fmt.Errorf("in words: %w", &pgconn.PgError{Code: code}) }
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want bool // unavailable
	}{
		{context.Background(), said("57P01"), true},
		{context.Background(), said("57P03"), true},
		{context.Background(), said("53100"), true},
		{context.Background(), said("53300"), true},
		{context.Background(), said("08006"), true},
		{context.Background(), said("25006"), true},
		{context.Background(), said("57014"), true},
		{context.Background(), said("55P03"), true},
		{context.Background(), said("40001"), true},
		{context.Background(), said("23503"), false},
		{context.Background(), said("25P02"), false},
		{context.Background(), said("42501"), false},
		{context.Background(), pgx.ErrTxCommitRollback, false},
		{context.Background(), errNotYours, false},
		{context.Background(), errors.New("the socket broke"), true},
		{late, errors.New("timeout"), true},
		{ended, errors.New("the socket broke"), false},
	} {
		err := failure(test.ctx, "test", test.err)
		if errors.Is(err, service.ErrUnavailable) != test.want || !errors.Is(err, test.err) || !errors.Is(err, test.ctx.Err()) && test.ctx.Err() != nil {
			t.Errorf("%v: %v", test.err, err)
		}
	}
	if err := failure(context.Background(), "test", nil); err != nil {
		t.Error(err)
	}
}
