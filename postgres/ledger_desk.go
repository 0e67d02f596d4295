package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/savedform"
)

// named puts the schema into a statement.
func (l *Ledger) named(sql string) string { return strings.ReplaceAll(sql, "{schema}", l.sql.schema) }

// inOwnTx runs f in a transaction, again while the server cannot serve or wants
// another run. An answer to a commit that was lost is told as that.
func (l *Ledger) inOwnTx(ctx context.Context, f func(pgx.Tx) error) error {
	return l.onConn(ctx, func(conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, pgfold.TxOptions)
		if err != nil {
			return err
		}
		defer func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgfold.EndTime)
			defer cancel()
			_ = tx.Rollback(end) // after a commit it does nothing
		}()
		if _, err := tx.Exec(ctx, `SELECT `+kept); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgfold.EndTime)
		defer cancel()
		if err := tx.Commit(end); err != nil {
			return pgfold.Unanswered{Err: err}
		}
		return nil
	})
}

// AddNote implements desk.Ledger. When the answer to its commit is lost, the
// error says so, and the notes of the request tell whether it was added.
func (l *Ledger) AddNote(ctx context.Context, scope client.Scope, requestID string, n client.Note) error {
	if err := l.usable(ctx); err != nil {
		return ledgerError("note", err)
	}
	if err := n.Validate(); err != nil {
		return err
	}
	return ledgerError("note", l.inOwnTx(ctx, func(tx pgx.Tx) error { return l.addNote(ctx, tx, scope, requestID, n) }))
}

func (l *Ledger) addNote(ctx context.Context, tx pgx.Tx, scope client.Scope, requestID string, n client.Note) error {
	var s summaryScan
	var id, notes int64
	key := keyOfRequest(scope, requestID)
	err := tx.QueryRow(ctx, l.named(`SELECT `+summaryColumns+`, r.id, r.notes, coalesce($2::timestamptz, clock_timestamp())
FROM {schema}.ledger_request r WHERE r.key = $1::bytea FOR NO KEY UPDATE`), key[:], l.now()).Scan(append(s.into(), &id, &notes, &n.At)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return &client.NotFoundError{Scope: scope, RequestID: requestID}
	}
	if err != nil {
		return err
	}
	sum, err := s.summary()
	if err != nil {
		return err
	}
	if err := sum.Admits(n.Verb); err != nil {
		return err
	}
	n.At = n.At.UTC()
	encoded, err := savedform.Encode([]client.Note{n})
	if err != nil {
		return err
	}
	settled := ""
	if n.Verb.Settles() {
		settled = string(n.Verb)
	}
	b := &pgx.Batch{}
	b.Queue(l.named(`INSERT INTO {schema}.ledger_note (request, seq, note) VALUES ($1::bigint, $2::bigint, $3::text)`), id, notes+1, encoded)
	b.Queue(l.named(`UPDATE {schema}.ledger_request SET notes = notes + 1, seen_at = greatest(seen_at, $2::timestamptz),
	settled = coalesce(nullif($3::text, ''), settled), next_check = CASE WHEN $3::text = '' THEN next_check END WHERE key = $1::bytea`), key[:], n.At, settled)
	return tx.SendBatch(ctx, b).Close()
}

// purgeChunk is how many requests are purged in one transaction.
const purgeChunk = 500

// Purge implements desk.Ledger, in transactions of some hundred requests each:
// when it ends early, what was purged stays so.
func (l *Ledger) Purge(ctx context.Context, o client.PurgeOptions) (client.Purged, error) {
	var p client.Purged
	if err := l.usable(ctx); err != nil {
		return p, ledgerError("purge", err)
	}
	p, err := l.purge(ctx, o)
	return p, ledgerError("purge", err)
}

func (l *Ledger) purge(ctx context.Context, o client.PurgeOptions) (p client.Purged, err error) {
	if o.Before.IsZero() {
		return p, nil
	}
	var old where
	old.and("r.seen_at < %s::timestamptz AND r.purged_at IS NULL", ceilMicros(o.Before))
	old.scope(o.Principal, o.Environment)
	olds := strings.Join(old.conditions, " AND ")
	var over, entries int
	var limit *int64
	if o.Limit > 0 {
		n := int64(o.Limit)
		limit = &n
	}
	counting := fmt.Sprintf(`
WITH o AS MATERIALIZED (SELECT r.id, r.entries, (`+isOpen+`) AS open FROM {schema}.ledger_request r WHERE `+olds+`),
	v AS MATERIALIZED (SELECT id, entries FROM o WHERE NOT open ORDER BY id LIMIT $%d::bigint)
SELECT (SELECT count(*) FROM o WHERE open), (SELECT count(*) FROM o WHERE NOT open), (SELECT coalesce(sum(entries), 0)::bigint FROM v),
	(SELECT count(*) FROM {schema}.ledger_snapshot s
		WHERE NOT EXISTS (SELECT FROM {schema}.ledger_request r WHERE r.profile_digest = s.digest AND r.id NOT IN (SELECT id FROM v))
			AND NOT EXISTS (SELECT FROM {schema}.ledger_request r WHERE r.openapi_digest = s.digest AND r.id NOT IN (SELECT id FROM v)))`, len(old.args)+1)
	if err := l.onConn(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, l.named(counting), append(old.args[:len(old.args):len(old.args)], limit)...).Scan(&p.Open, &over, &entries, &p.Snapshots)
	}); err != nil {
		return client.Purged{}, err
	}
	if !o.Apply {
		p.Requests, p.Entries, p.More = over, entries, false
		if o.Limit > 0 && over > o.Limit {
			p.Requests, p.More = o.Limit, true
		}
		return p, nil
	}
	p.Snapshots = 0
	for {
		n := purgeChunk
		if o.Limit > 0 {
			n = min(n, o.Limit-p.Requests)
		}
		requests, entries, err := l.purgeSome(ctx, &old, olds, n)
		if err != nil {
			return p, err
		}
		p.Requests, p.Entries = p.Requests+requests, p.Entries+entries
		if n == 0 || requests < n {
			break
		}
	}
	p.More = over > p.Requests && o.Limit > 0 && p.Requests == o.Limit
	p.Snapshots, err = l.purgeSnapshots(ctx)
	return p, err
}

// purgeSome leaves the tombstones of at most so many requests. It locks them first: a
// statement does not see what was appended while it waited for a row.
func (l *Ledger) purgeSome(ctx context.Context, old *where, olds string, limit int) (requests, entries int, err error) {
	n := len(old.args)
	choose := l.named(fmt.Sprintf(`
SELECT r.key FROM {schema}.ledger_request r WHERE `+olds+` AND NOT (`+isOpen+`) ORDER BY r.id LIMIT $%d::bigint FOR NO KEY UPDATE`, n+1))
	err = l.inOwnTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, choose, append(old.args[:n:n], int64(limit))...)
		if err != nil {
			return err
		}
		keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, l.named(bury), keys, l.now()).Scan(&requests, &entries)
	})
	return requests, entries, err
}

const bury = `
WITH v AS MATERIALIZED (
	SELECT r.key, r.id FROM {schema}.ledger_request r WHERE r.key = ANY ($1::bytea[])
), e AS (
	DELETE FROM {schema}.ledger_entry e USING v WHERE e.request = v.id RETURNING 1
), n AS (
	DELETE FROM {schema}.ledger_note n USING v WHERE n.request = v.id
), u AS (
	UPDATE {schema}.ledger_request r
	SET purged_at = coalesce($2::timestamptz, clock_timestamp()), fence = r.fence + 1, lease_until = NULL, next_check = NULL, entries = 0, notes = 0,
		profile_digest = NULL, openapi_digest = NULL, input = NULL, input_sum = NULL
	FROM v WHERE r.key = v.key RETURNING 1
)
SELECT (SELECT count(*) FROM u), (SELECT count(*) FROM e)`

// purgeSnapshots removes the documents that no request needs. It condemns them first,
// so that whoever binds a request from then on saves them again, or takes the
// sentence back. Those who did not see that yet are waited for, which is all that
// others notice of it, and not longer than a second at once. What is still not needed
// then is removed.
func (l *Ledger) purgeSnapshots(ctx context.Context) (n int, err error) {
	const unneeded = `NOT EXISTS (SELECT FROM {schema}.ledger_request r WHERE r.profile_digest = s.digest)
	AND NOT EXISTS (SELECT FROM {schema}.ledger_request r WHERE r.openapi_digest = s.digest)`
	for _, sql := range []string{
		`UPDATE {schema}.ledger_snapshot s SET condemned = true WHERE ` + unneeded,
		`LOCK TABLE {schema}.ledger_request IN SHARE MODE`,
		`DELETE FROM {schema}.ledger_snapshot s WHERE s.condemned AND ` + unneeded,
	} {
		if err := l.inOwnTx(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', '1s', true)`); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, l.named(sql))
			n = int(tag.RowsAffected())
			return err
		}); err != nil || n == 0 && strings.HasPrefix(sql, "UPDATE") {
			return 0, err
		}
	}
	return n, nil
}

// lostJob is how long a request is overdue before the job that was made for it
// counts as lost. What is swept so late has its NextCheck moved, so that the new job
// has as long.
const lostJob = 15 * time.Minute

// Sweep makes jobs for what has none for its state and is due: of hosts that
// crashed, of hosts without Enqueue, and for jobs that were lost. It marks at most
// limit requests of the scopes and calls Enqueue in the same transaction, and gives
// their number. Sweeps of several hosts pass over each other's.
func (l *Ledger) Sweep(ctx context.Context, scopes []client.Scope, limit int) (int, error) {
	if err := l.usable(ctx); err != nil {
		return 0, ledgerError("sweep", err)
	}
	if l.enqueue == nil {
		return 0, ledgerError("sweep", errors.New("LedgerConfig has no Enqueue"))
	}
	if len(scopes) == 0 || limit <= 0 {
		return 0, nil
	}
	var due []Due
	err := l.inOwnTx(ctx, func(tx pgx.Tx) (err error) {
		due, err = l.sweep(ctx, tx, scopes, limit)
		if err != nil {
			return err
		}
		return l.callEnqueue(ctx, tx, due)
	})
	if err != nil {
		return 0, ledgerError("sweep", err)
	}
	return len(due), nil
}

const sweepSQL = `
WITH t AS MATERIALIZED (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now), v AS MATERIALIZED (
	SELECT r.key, r.next_check <= (SELECT now FROM t) - $2::bigint * interval '1 microsecond' AS late FROM {schema}.ledger_request r
	WHERE ` + isOpen + ` AND r.next_check <= (SELECT now FROM t) AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
		AND (r.queued_for <> r.entries OR r.next_check <= (SELECT now FROM t) - $2::bigint * interval '1 microsecond')
		AND (r.principal, r.environment) IN (SELECT * FROM unnest($3::bytea[], $4::bytea[]))
	ORDER BY r.next_check LIMIT $5::bigint FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.ledger_request r
SET queued_for = r.entries, next_check = CASE WHEN v.late THEN (SELECT now FROM t) ELSE r.next_check END
FROM v WHERE r.key = v.key
RETURNING r.principal, r.environment, r.request_id, r.origin, r.next_check, r.entries`

func (l *Ledger) sweep(ctx context.Context, tx pgx.Tx, scopes []client.Scope, limit int) ([]Due, error) {
	var principals, environments [][]byte
	for _, s := range scopes {
		principals, environments = append(principals, []byte(s.Principal)), append(environments, []byte(s.Environment))
	}
	rows, err := tx.Query(ctx, l.named(sweepSQL),
		l.now(), lostJob.Microseconds(), principals, environments, int64(limit))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Due, err error) {
		var principal, environment []byte
		err = row.Scan(&principal, &environment, &d.RequestID, &d.Origin, &d.At, &d.Entries)
		d.Scope, d.At = client.Scope{Principal: string(principal), Environment: string(environment)}, d.At.UTC()
		return d, err
	})
}
