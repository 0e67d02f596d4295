package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/service"
)

// tracking has the statements of a store, for one schema. Both stores use them.
type tracking struct{ claim, find, settle, expire, remove string }

// queries is where statements run: a transaction, a pool or a connection, of pgx
// or of database/sql.
type queries interface {
	exec(ctx context.Context, sql string, args ...any) (rows int64, err error)
	row(ctx context.Context, sql string, args ...any) scanner
}

// scanner is one row or an error; sql.ErrNoRows when there is none.
type scanner interface{ Scan(dest ...any) error }

// durable overrides synchronous_commit = off for the transaction of a statement:
// a commit that was answered must not be lost (section 5).
const durable = `CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END`

// clock_timestamp is the time of the statement; now() would be that at which the
// publisher's transaction began, perhaps long ago. The statements of the sweep
// are transactions of their own, and statement_timestamp can use an index; with IN
// instead of an array the planner reads the whole table.
func newTracking(schema string) *tracking {
	named := func(sql string) string { return strings.ReplaceAll(sql, "{schema}", schema) }
	return &tracking{
		// A concurrent claim of the key is waited for.
		claim: named(`
INSERT INTO {schema}.tracked_request (key, principal, action, request_id, fingerprint, state, open, created_at, expires_at)
SELECT $1::bytea, $2::bytea, $3::bytea, $4::bytea, $5::text, 'claimed', true, t.now, t.now + $6::bigint * interval '1 microsecond'
FROM (SELECT clock_timestamp() AS now) t
ON CONFLICT (key) DO NOTHING
RETURNING ` + durable),

		// The body of what is past its window is not read: a look-up would take longer
		// the larger it is, and tell that there was something (D24).
		find: named(`
SELECT principal, action, request_id, fingerprint, state, resource_id, status, CASE WHEN NOT over THEN body END, body_omitted,
       created_at, expires_at, over
FROM (SELECT *, state <> 'claimed' AND expires_at <= clock_timestamp() AS over FROM {schema}.tracked_request WHERE key = $1::bytea) t`),

		settle: named(`
UPDATE {schema}.tracked_request
SET state = $2::text, open = NULL, resource_id = $3::bytea, status = $4::integer, body = $5::bytea, body_omitted = $6::boolean
WHERE key = $1::bytea AND (state = 'claimed' OR state = 'pending' AND expires_at > clock_timestamp())
RETURNING ` + durable),

		expire: named(`
UPDATE {schema}.tracked_request
SET state = 'expired', swept = true, resource_id = '', status = 0, body = NULL, body_omitted = false
WHERE key = ANY (ARRAY(SELECT key FROM {schema}.tracked_request WHERE NOT swept AND expires_at <= statement_timestamp()
                       ORDER BY expires_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED))`),

		remove: named(`
DELETE FROM {schema}.tracked_request
WHERE key = ANY (ARRAY(SELECT key FROM {schema}.tracked_request
                       WHERE swept AND expires_at < statement_timestamp() - $2::bigint * interval '1 microsecond'
                         AND expires_at + (expires_at - created_at) < statement_timestamp()
                       ORDER BY expires_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED))`),
	}
}

// keyOf is the SHA-256 of the three parts, each with its length before it.
func keyOf(k service.Key) []byte {
	h := sha256.New()
	for _, part := range []string{k.Principal, k.Action, k.RequestID} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// maxClaims bounds how often a claim finds a record that is gone before it can be
// read: each time a sweep must have deleted it in between.
const maxClaims = 5

func (t *tracking) claimIn(ctx context.Context, q queries, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	for range maxClaims {
		made, err := q.exec(ctx, t.claim, keyOf(k), []byte(k.Principal), []byte(k.Action), []byte(k.RequestID), fingerprint, window.Microseconds())
		if err != nil {
			return nil, failure(ctx, "claim", err)
		}
		if made == 1 {
			return nil, nil
		}
		if r, err := t.findIn(ctx, q, k); r != nil || err != nil {
			return r, err
		}
	}
	return nil, fmt.Errorf("postgres: claim: %w: the record comes and goes", service.ErrUnavailable)
}

func (t *tracking) findIn(ctx context.Context, q queries, k service.Key) (*service.Record, error) {
	r := &service.Record{Key: k}
	var principal, action, requestID, resource []byte
	var expired bool
	err := q.row(ctx, t.find, keyOf(k)).Scan(&principal, &action, &requestID, &r.Fingerprint, &r.State, &resource,
		&r.Status, &r.Body, &r.BodyOmitted, &r.CreatedAt, &r.ExpiresAt, &expired)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, failure(ctx, "find", err)
	case k != service.Key{Principal: string(principal), Action: string(action), RequestID: string(requestID)}:
		return nil, errors.New("postgres: find: a record stands under the key of another")
	}
	r.ResourceID = string(resource)
	r.CreatedAt, r.ExpiresAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC()
	if expired {
		r.State, r.Settlement = service.Expired, service.Settlement{}
	}
	return r, nil
}

func (t *tracking) settleIn(ctx context.Context, q queries, k service.Key, to service.State, s service.Settlement) error {
	switch to {
	case service.Done, service.Refused, service.Pending:
	default:
		return fmt.Errorf("postgres: settle: a request is not settled as %q", to)
	}
	changed, err := q.exec(ctx, t.settle, keyOf(k), string(to), []byte(s.ResourceID), int64(s.Status), s.Body, s.BodyOmitted)
	if err != nil {
		return failure(ctx, "settle", err)
	}
	if changed != 1 {
		return service.ErrNotPending
	}
	return nil
}

func (t *tracking) sweepIn(ctx context.Context, q queries, keep time.Duration, limit int) (service.Swept, error) {
	var n service.Swept
	if limit <= 0 {
		return n, nil
	}
	expired, err := q.exec(ctx, t.expire, int64(limit))
	if err != nil {
		return n, failure(ctx, "sweep", err)
	}
	n.Expired = int(expired)
	if keep <= 0 {
		return n, nil
	}
	removed, err := q.exec(ctx, t.remove, int64(limit), keep.Microseconds())
	n.Deleted = int(removed)
	return n, failure(ctx, "sweep", err)
}

const endTimeout = pgfold.EndTime

// maxRuns bounds how often a transaction is run when the server rolls it back for
// another.
const maxRuns = 5

// again runs a transaction until the server does not want another run of it. once
// says whether the connection was broken before anything happened in it: one that
// lay in the pool when the server went away. Then the next run is wary and tries
// its connection first.
func again(ctx context.Context, once func(wary bool) (stale bool, err error)) error {
	wary := false
	for run := 1; ; run++ {
		stale, err := once(wary)
		switch {
		case err == nil, run == maxRuns, ctx.Err() != nil:
			return err
		case stale && !wary:
			wary = true
		case pgfold.WantsAnotherRun(err):
			pause := time.NewTimer(time.Duration(1+rand.IntN(10*run)) * time.Millisecond) // the others move on
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return err
			}
		default:
			return err
		}
	}
}
