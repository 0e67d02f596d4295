package postgres

import (
	"strings"

	"github.com/agentic-go/agentic/internal/pgmigrate"
)

// ledgerSQL has the statements of a ledger, for one schema. What stands in one of
// them only is written where it is used, and named by schema.
type ledgerSQL struct {
	schema    string
	lockSpace int64 // keeps the advisory locks of this schema's intents apart from others

	prelude, guarded           string // before a statement of a batch, without and with locks of intents
	insert, take, append, free string // of a batch
	renew                      string
	load, held, written        string
	duplicate, snapshots       string
}

// isOpen is client.Summary.Open. The planner knows it as the predicate of the index
// ledger_request_open, so its text has to stay that of the index.
const isOpen = `(r.outcome IS NULL OR r.outcome NOT IN ('succeeded', 'failed')) AND r.settled IS NULL AND r.purged_at IS NULL`

// isDuplicate is what a guard refuses m for, beside the same intent; t.now is the time.
const isDuplicate = `r.principal = m.principal AND r.environment = m.environment AND r.origin = m.origin
	AND r.action_id = m.action_id AND r.input_digest = m.input_digest
	AND (` + isOpen + ` AND NOT (r.attempted_at IS NULL AND r.window_ends <= t.now) OR (r.outcome = 'succeeded' OR r.settled = 'attest-succeeded')
		AND m.succeeded_us > 0 AND r.seen_at > t.now - m.succeeded_us * interval '1 microsecond')`

// summaryColumns are what scanSummary reads, of ledger_request r.
const summaryColumns = `r.principal, r.environment, r.request_id, r.origin, r.action_id, coalesce(r.outcome, ''), coalesce(r.settled, ''),
	r.supersedes, r.created_at, r.seen_at, r.attempted_at, r.window_ends, r.next_check, r.purged_at`

// kept has a transaction last, and not for ever: the server ends it when its host, paused
// or cut off, says nothing more, before those who wait for its rows give up
// (pgfold.BatchTime).
const kept = `set_config('idle_in_transaction_session_timeout', '5s', true), ` + durable

// tuned keeps the planner to indexes, in the transaction of a batch only: a plan that
// was made while the tables were nearly empty would read all of them when they are
// not. It also overrides synchronous_commit = off: a commit that was answered must
// not be lost.
const tuned = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), ` + kept

func newLedgerSQL(schema string) *ledgerSQL {
	named := func(sql string) string { return strings.ReplaceAll(sql, "{schema}", schema) }
	return &ledgerSQL{
		schema:    schema,
		lockSpace: pgmigrate.Lock("intents", schema),
		prelude:   tuned,

		// A lock of a guarded intent lasts until the commit. They come in the order of
		// the array, which is sorted: no two batches wait for each other.
		guarded: tuned + `, (SELECT count(pg_advisory_xact_lock(k)) FROM unnest($1::bigint[]) k)`,

		// A member that is not returned is bound already, or refused by its guard, or
		// its documents are not there.
		insert: named(`
INSERT INTO {schema}.ledger_request (key, intent, window_us, term_us, created_at, window_ends, seen_at, attempted_at, attempted_by,
	next_check, fence, holder, lease_until, principal, environment, request_id, origin, action_id, supersedes, input_digest,
	profile_digest, openapi_digest, input, input_sum)
SELECT m.key, m.intent, m.window_us, m.term_us, t.now, t.now + m.window_us * interval '1 microsecond', t.now,
	CASE WHEN m.attempt THEN t.now END, CASE WHEN m.attempt THEN m.holder END,
	CASE WHEN m.attempt THEN t.now + m.check_us * interval '1 microsecond' END,
	1, m.holder, clock_timestamp() + m.lease_us * interval '1 microsecond', m.principal, m.environment, m.request_id, m.origin,
	m.action_id, m.supersedes, m.input_digest, m.profile, m.openapi, m.input, m.input_sum
FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[],
	$10::bytea[], $11::bytea[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[],
	$19::bytea[], $20::bytea[], $21::boolean[], $22::bigint[])
	AS m (key, intent, window_us, term_us, attempt, holder, check_us, lease_us, principal, environment, request_id, origin, action_id,
	supersedes, input_digest, profile, openapi, input, input_sum, guard, succeeded_us),
	(SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) t
WHERE EXISTS (SELECT FROM {schema}.ledger_snapshot s WHERE s.digest = m.profile AND NOT s.condemned)
	AND EXISTS (SELECT FROM {schema}.ledger_snapshot s WHERE s.digest = m.openapi AND NOT s.condemned)
	AND NOT (m.guard AND EXISTS (SELECT FROM {schema}.ledger_request r WHERE r.intent = m.intent AND ` + isDuplicate + `))
ON CONFLICT (key) DO NOTHING
RETURNING key, id, created_at`),

		// A compare-and-set on all that was read of a request, and on nobody holding it
		// now, or the very holder that asks again.
		take: named(`
UPDATE {schema}.ledger_request r
SET fence = r.fence + CASE WHEN r.holder = m.holder THEN 0 ELSE 1 END, holder = m.holder,
	lease_until = clock_timestamp() + m.lease_us * interval '1 microsecond', seen_at = greatest(r.seen_at, t.now),
	attempted_at = CASE WHEN m.attempt THEN coalesce(r.attempted_at, t.now) ELSE r.attempted_at END,
	attempted_by = CASE WHEN m.attempt THEN coalesce(r.attempted_by, m.holder) ELSE r.attempted_by END,
	next_check = CASE WHEN r.settled IS NULL AND (m.attempt OR r.attempted_at IS NOT NULL)
		THEN greatest(r.seen_at, t.now) + m.check_us * interval '1 microsecond' END
FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::bigint[], $9::bigint[])
	AS m (key, fence, holder, entries, notes, attempt, check_us, lease_us),
	(SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) t
WHERE r.key = m.key AND r.entries = m.entries AND r.notes = m.notes AND r.purged_at IS NULL
	AND (r.holder = m.holder OR r.fence = m.fence AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp()))
RETURNING r.key, r.fence, r.seen_at, r.attempted_at, r.attempted_by = r.holder, t.now`),

		// The time that a hold saw is by this host's clock between two looks at the
		// database's, so it does not count beyond that.
		append: named(`
WITH u AS (
	UPDATE {schema}.ledger_request r
	SET entries = r.entries + m.entry, seen_at = greatest(r.seen_at, least(m.seen, CASE WHEN $1::boolean THEN m.seen ELSE clock_timestamp() END)),
		outcome = CASE WHEN m.outcome <> '' THEN m.outcome ELSE r.outcome END,
		next_check = CASE WHEN m.outcome = '' THEN r.next_check WHEN r.settled IS NULL THEN m.next_check END,
		queued_for = CASE WHEN $2::boolean AND r.settled IS NULL AND m.next_check IS NOT NULL THEN r.entries + 1 ELSE r.queued_for END,
		lease_until = CASE WHEN m.outcome = '' THEN r.lease_until END
	FROM unnest($3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::text[], $10::timestamptz[],
		$11::text[], $12::text[]) AS m (key, fence, holder, entries, entry, seen, outcome, next_check, observations, receipt)
	WHERE r.key = m.key AND r.fence = m.fence AND r.holder = m.holder AND r.entries = m.entries AND r.lease_until > clock_timestamp()
	RETURNING r.key, r.id, r.entries, r.holder, r.next_check, m.entry, m.observations, m.receipt
), e AS (
	INSERT INTO {schema}.ledger_entry (request, seq, holder, observations, receipt)
	SELECT id, entries, holder, observations, nullif(receipt, '') FROM u WHERE entry = 1
)
SELECT key, next_check FROM u`),

		free: named(`
UPDATE {schema}.ledger_request r SET lease_until = NULL
FROM unnest($1::bytea[], $2::bigint[]) AS m (key, holder)
WHERE r.key = m.key AND r.holder = m.holder
RETURNING r.key`),

		// A row that is being written is passed over: nobody waits for anybody here.
		// Each member is returned with whether it is still the holder; without a lease it
		// is the one that has just given the request free itself.
		renew: named(`
WITH m AS (
	SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[]) AS m (key, fence, holder, lease_us)
), l AS (
	SELECT r.key, m.lease_us FROM m JOIN {schema}.ledger_request r ON r.key = m.key
	WHERE r.fence = m.fence AND r.holder = m.holder AND r.lease_until > clock_timestamp()
	FOR NO KEY UPDATE OF r SKIP LOCKED
), u AS (
	UPDATE {schema}.ledger_request r SET lease_until = clock_timestamp() + l.lease_us * interval '1 microsecond'
	FROM l WHERE r.key = l.key RETURNING r.key
)
SELECT m.key, u.key IS NOT NULL, coalesce(r.fence = m.fence AND r.holder = m.holder AND coalesce(r.lease_until > clock_timestamp(), true), false)
FROM m LEFT JOIN {schema}.ledger_request r ON r.key = m.key LEFT JOIN u ON u.key = m.key`),

		load: named(`
SELECT ` + summaryColumns + `, r.id, r.window_us, r.term_us, r.fence, r.holder, coalesce(r.lease_until > clock_timestamp(), false), clock_timestamp(),
	r.entries, r.notes,
	coalesce(r.profile_digest, ''), coalesce(r.openapi_digest, ''), r.input_digest, r.input, p.body, o.body, p.sum, o.sum, r.input_sum,
	e.seqs, e.observations, e.receipts, n.seqs, n.notes
FROM {schema}.ledger_request r
LEFT JOIN {schema}.ledger_snapshot p ON p.digest = r.profile_digest
LEFT JOIN {schema}.ledger_snapshot o ON o.digest = r.openapi_digest
LEFT JOIN LATERAL (SELECT array_agg(seq ORDER BY seq) AS seqs, array_agg(observations ORDER BY seq) AS observations,
	array_agg(coalesce(receipt, '') ORDER BY seq) AS receipts FROM {schema}.ledger_entry WHERE request = r.id) e ON true
LEFT JOIN LATERAL (SELECT array_agg(seq ORDER BY seq) AS seqs, array_agg(note ORDER BY seq) AS notes
	FROM {schema}.ledger_note WHERE request = r.id) n ON true
WHERE r.key = $1::bytea`),

		held: named(`SELECT coalesce(lease_until > clock_timestamp(), false) FROM {schema}.ledger_request WHERE key = $1::bytea`),

		written: named(`SELECT EXISTS (SELECT FROM {schema}.ledger_entry WHERE request = $1::bigint AND seq = $2::bigint AND holder = $3::bigint)`),

		duplicate: named(`
SELECT ` + summaryColumns + `
FROM {schema}.ledger_request r,
	(SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) t,
	(SELECT $4::bytea AS principal, $5::bytea AS environment, $6::text AS origin, $7::text AS action_id, $8::text AS input_digest,
		$9::bigint AS succeeded_us) m
WHERE r.intent = $2::bigint AND r.key <> $3::bytea AND ` + isDuplicate + `
ORDER BY r.id DESC LIMIT 1`),

		snapshots: named(`
INSERT INTO {schema}.ledger_snapshot AS s (digest, body, sum)
SELECT DISTINCT ON (m.digest) m.digest, m.body, m.sum FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS m (digest, body, sum)
ON CONFLICT (digest) DO UPDATE SET condemned = false WHERE s.condemned`),
	}
}
