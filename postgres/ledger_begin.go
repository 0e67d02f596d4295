package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/lease"
	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/savedform"
)

// Begin implements client.Ledger. A new request is one round trip; one that is saved
// costs two more, and one that is final writes nothing.
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
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	until := time.Now().Add(max(0, wait))
	h := &hold{ledger: l, key: keyOfRequest(scope, requestID), holder: rand.Int64()}
	in, err := l.gates.Enter(ctx, h.key, wait)
	if err != nil {
		return nil, err
	}
	if !in {
		return nil, &client.HeldError{RequestID: requestID}
	}
	x := beginning{hold: h, scope: scope, requestID: requestID, binding: b, intent: intent, until: until}
	if err := x.run(ctx); err != nil {
		if x.dubious != nil {
			// A write whose answer was lost may hold the request for nobody.
			_ = h.free()
			if !pgfold.Retryable(err) {
				err = fmt.Errorf("%w; before, an answer was lost, so the request may be saved: %w", err, x.dubious)
			}
		}
		l.gates.Leave(h.key)
		return nil, err
	}
	l.register(h)
	return h, nil
}

// beginning is one call of Begin or Take, inside of its gate.
type beginning struct {
	*hold
	scope     client.Scope
	requestID string
	binding   *client.Binding // nil of Take
	intent    client.Intent
	until     time.Time // of the caller's patience
	dubious   error     // of a write that was made or not
}

// maxLooks bounds how often a request that is not there cannot be bound either: each
// time somebody else must have changed that in between.
const maxLooks = 20

// run ends when the hold has the request. Every round starts from what stands, so a
// write whose answer was lost is recognized by its holder.
func (x *beginning) run(ctx context.Context) error {
	var trouble, others pgfold.Pauses
	trouble.Since()
	insert := x.binding != nil
	for looks := 1; ; {
		done, err := false, error(nil)
		if insert {
			done, err = x.insert(ctx)
		} else {
			done, err = x.look(ctx, &others)
		}
		switch {
		case err != nil && pgfold.Retryable(err):
			if trouble.Since() > retryTime && time.Now().After(x.until) {
				return err
			}
			if ended := trouble.Sleep(ctx); ended != nil {
				return fmt.Errorf("%w: %w", ended, err)
			}
			insert = insert && x.dubious == nil
		case err != nil || done:
			return err
		case insert:
			insert = false
		case x.row != nil: // and changed since it was read, or is held
		case looks == maxLooks:
			return errors.New("the request is neither there nor can it be bound")
		default:
			looks++
			insert = true
		}
	}
}

// look reads the request and takes it. It reports false when that has to be done
// again, without a row when it is not there.
func (x *beginning) look(ctx context.Context, others *pgfold.Pauses) (bool, error) {
	l := x.ledger
	var err error
	if x.row, err = l.read(ctx, x.scope, x.requestID); err != nil {
		return false, err
	}
	r := x.row
	switch {
	case r == nil && x.binding == nil:
		return false, &client.NotFoundError{Scope: x.scope, RequestID: x.requestID}
	case r == nil:
		return false, x.makeRoom(ctx)
	case !r.record.PurgedAt.IsZero():
		return false, &client.PurgedError{RequestID: x.requestID, Outcome: r.record.Purged, PurgedAt: r.record.PurgedAt}
	case x.binding != nil && len(client.Compare(&r.record.Binding, x.binding)) > 0:
		return false, &client.BindingError{RequestID: x.requestID, Differences: client.Compare(&r.record.Binding, x.binding)}
	case r.held && r.holder != x.holder:
		return false, x.await(ctx, others)
	case r.over():
		x.ended = true // no lease, as there is nothing to write
		x.begun(r, false, r.read, 0, r.moment)
		return true, nil
	}
	return x.take(ctx)
}

// makeRoom finds out why a request that is not there could not be bound.
func (x *beginning) makeRoom(ctx context.Context) error {
	l, b := x.ledger, x.binding
	if b.Guard.On {
		earlier, err := l.earlier(ctx, b)
		if err != nil {
			return err
		}
		if earlier != nil {
			return &client.DuplicateError{RequestID: b.RequestID, Earlier: *earlier}
		}
	}
	return l.saveSnapshots(ctx, b)
}

// earlier is the newest request that a guard refuses b for, or nil.
func (l *Ledger) earlier(ctx context.Context, b *client.Binding) (sum *client.Summary, err error) {
	key := keyOfRequest(b.Scope, b.RequestID)
	err = l.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var s summaryScan
		err := conn.QueryRow(ctx, l.sql.duplicate, l.now(), b.Intent64(), key[:], []byte(b.Scope.Principal), []byte(b.Scope.Environment),
			b.Origin, b.ActionID, b.InputDigest, b.Guard.Succeeded.Microseconds()).Scan(s.into()...)
		if errors.Is(err, pgx.ErrNoRows) {
			sum = nil
			return nil
		}
		if err == nil {
			sum, err = s.summary()
		}
		return err
	})
	return sum, err
}

// saveSnapshots saves the documents of b. Nearly every request finds them saved.
func (l *Ledger) saveSnapshots(ctx context.Context, b *client.Binding) error {
	docs := []client.Snapshot{b.Profile, b.OpenAPI}
	slices.SortFunc(docs, func(a, b client.Snapshot) int { return cmp.Compare(a.Digest, b.Digest) }) // no two hosts wait for each other
	var digests []string
	var bodies, sums [][]byte
	for _, d := range docs {
		digests, bodies, sums = append(digests, d.Digest), append(bodies, notNull(d.Body)), append(sums, savedform.Sum(d.Body))
	}
	return l.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return pgfold.InTx(ctx, conn, pgfold.Query{SQL: l.sql.prelude}, pgfold.Query{SQL: l.sql.snapshots, Args: []any{digests, bodies, sums}}, func(pgx.Rows) error { return nil }, nil)
	})
}

// notNull is an empty value for no bytes: to the driver nil is NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// await looks now and then whether another process still holds the request, with no
// connection in between, until the caller's patience ends.
func (x *beginning) await(ctx context.Context, p *pgfold.Pauses) error {
	for {
		left := time.Until(x.until)
		if left <= 0 {
			return &client.HeldError{RequestID: x.requestID}
		}
		if err := p.SleepAtMost(ctx, left); err != nil {
			return err
		}
		held := false
		if err := x.ledger.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, x.ledger.sql.held, x.key[:]).Scan(&held)
			if errors.Is(err, pgx.ErrNoRows) {
				err = nil
			}
			return err
		}); err != nil || !held {
			return err
		}
	}
}

// insertion is a new request, and what it came to.
type insertion struct {
	binding *client.Binding
	intent  int64
	key     lease.Key
	holder  int64
	attempt bool
	lease   time.Duration

	done    bool
	id      int64
	created time.Time
	moment  lease.Moment
}

// sameIntent keeps two requests apart of which a guard may have to refuse one: no
// statement sees what it has inserted itself.
func sameIntent(a, b *insertion) bool {
	return a.intent == b.intent && (a.binding.Guard.On || b.binding.Guard.On)
}

// insert binds a new request, attempted when it is to be submitted.
func (x *beginning) insert(ctx context.Context) (bool, error) {
	l, b := x.ledger, x.binding
	m := &insertion{binding: b, intent: b.Intent64(), key: x.key, holder: x.holder, attempt: x.intent == client.IntendSubmit, lease: l.leaseOf(b.Term)}
	if err := l.inserts.Submit(ctx, m); err != nil {
		x.doubt(err)
		return false, err
	}
	if !m.done {
		return false, nil
	}
	r := &row{id: m.id, fence: 1, holder: x.holder, record: client.Record{Binding: *b, State: client.Prepared, CreatedAt: m.created, SeenAt: m.created}}
	rec := &r.record
	rec.Fresh, rec.Guard = false, client.Guard{}
	if m.attempt {
		rec.State, rec.AttemptedAt = client.Attempted, m.created
	}
	x.begun(r, m.attempt, m.created, m.lease, m.moment)
	return true, nil
}

// doubt remembers a write that may have been made.
func (x *beginning) doubt(err error) {
	if is[pgfold.Broken](err) {
		x.dubious = err
	}
}

func (l *Ledger) writeInsertions(ctx context.Context, conn *pgx.Conn, batch []*insertion) error {
	slices.SortFunc(batch, func(a, b *insertion) int { return bytes.Compare(a.key[:], b.key[:]) })
	n := len(batch)
	byKey := make(map[lease.Key]*insertion, n)
	var locks []int64
	var intents, windows, terms, holders, checks, leases, succeeded []int64
	var keys, principals, environments, inputs, sums [][]byte
	var attempts, guards []bool
	var ids, origins, actions, supersedes, digests, profiles, openapis []string
	for _, m := range batch {
		b := m.binding
		m.done = false
		byKey[m.key] = m
		if b.Guard.On {
			locks = append(locks, m.intent^l.sql.lockSpace)
		}
		keys, intents, holders, attempts = append(keys, m.key[:]), append(intents, m.intent), append(holders, m.holder), append(attempts, m.attempt)
		windows, terms = append(windows, b.Window.Microseconds()), append(terms, b.Term.Microseconds())
		checks, leases = append(checks, checkAfter(b.Term).Microseconds()), append(leases, m.lease.Microseconds())
		principals, environments = append(principals, []byte(b.Scope.Principal)), append(environments, []byte(b.Scope.Environment))
		ids, origins, actions = append(ids, b.RequestID), append(origins, b.Origin), append(actions, b.ActionID)
		supersedes, digests = append(supersedes, b.Supersedes), append(digests, b.InputDigest)
		profiles, openapis = append(profiles, b.Profile.Digest), append(openapis, b.OpenAPI.Digest)
		inputs, sums = append(inputs, notNull(b.Input)), append(sums, savedform.Sum(b.Input))
		guards, succeeded = append(guards, b.Guard.On), append(succeeded, b.Guard.Succeeded.Microseconds())
	}
	before := pgfold.Query{SQL: l.sql.prelude}
	if len(locks) > 0 {
		slices.Sort(locks)
		before = pgfold.Query{SQL: l.sql.guarded, Args: []any{slices.Compact(locks)}}
	}
	sent := time.Now()
	err := pgfold.InTx(ctx, conn, before, pgfold.Query{SQL: l.sql.insert, Args: []any{l.now(), keys, intents, windows, terms, attempts, holders, checks, leases,
		principals, environments, ids, origins, actions, supersedes, digests, profiles, openapis, inputs, sums, guards, succeeded}},
		func(rows pgx.Rows) error {
			var key []byte
			var id int64
			var created time.Time
			if err := rows.Scan(&key, &id, &created); err != nil {
				return err
			}
			m := byKey[lease.Key(key)]
			m.done, m.id, m.created = true, id, created.UTC()
			return nil
		}, nil)
	answered := time.Now()
	for _, m := range batch {
		m.moment = lease.Moment{Sent: sent, Answered: answered}
	}
	return err
}

// taking takes a request as it was read, and tells what it came to.
type taking struct {
	key                          lease.Key
	fence, holder                int64
	entries, notes               int64
	attempt                      bool
	term, lease                  time.Duration
	done, attemptedByMe          bool
	newFence                     int64
	seen, attemptedAt, statement time.Time
	moment                       lease.Moment
}

// take takes the fence of the request as it was read, and makes it attempted when it
// is to be submitted. It reports false when another was faster.
func (x *beginning) take(ctx context.Context) (bool, error) {
	r := x.row
	rec := &r.record
	now := r.read
	if t := x.ledger.now(); t != nil {
		now = *t
	}
	m := &taking{key: x.key, fence: r.fence, holder: x.holder, entries: r.entries, notes: r.notes, term: rec.Term, lease: x.ledger.leaseOf(rec.Term),
		attempt: x.intent == client.IntendSubmit && rec.State == client.Prepared && rec.Settled() == nil && !rec.Expired(now)}
	if err := x.ledger.takes.Submit(ctx, m); err != nil {
		x.doubt(err)
		return false, err
	}
	if !m.done {
		return false, nil
	}
	r.fence, r.holder = m.newFence, x.holder
	rec.SeenAt, rec.AttemptedAt = m.seen, m.attemptedAt
	if !m.attemptedAt.IsZero() {
		rec.State = client.Attempted
	}
	x.begun(r, m.attemptedByMe && x.intent == client.IntendSubmit, m.statement, m.lease, m.moment)
	return true, nil
}

func (l *Ledger) writeTakings(ctx context.Context, conn *pgx.Conn, batch []*taking) error {
	slices.SortFunc(batch, func(a, b *taking) int { return bytes.Compare(a.key[:], b.key[:]) })
	byKey := make(map[lease.Key]*taking, len(batch))
	var keys [][]byte
	var fences, holders, entries, notes, checks, leases []int64
	var attempts []bool
	for _, m := range batch {
		m.done = false
		byKey[m.key] = m
		keys, fences, holders = append(keys, m.key[:]), append(fences, m.fence), append(holders, m.holder)
		entries, notes, attempts = append(entries, m.entries), append(notes, m.notes), append(attempts, m.attempt)
		checks, leases = append(checks, checkAfter(m.term).Microseconds()), append(leases, m.lease.Microseconds())
	}
	sent := time.Now()
	err := pgfold.InTx(ctx, conn, pgfold.Query{SQL: l.sql.prelude}, pgfold.Query{SQL: l.sql.take, Args: []any{l.now(), keys, fences, holders, entries, notes, attempts, checks, leases}},
		func(rows pgx.Rows) error {
			var key []byte
			var fence int64
			var seen, statement time.Time
			var attempted *time.Time
			var byMe *bool
			if err := rows.Scan(&key, &fence, &seen, &attempted, &byMe, &statement); err != nil {
				return err
			}
			m := byKey[lease.Key(key)]
			m.done, m.newFence, m.seen, m.attemptedAt, m.statement = true, fence, seen.UTC(), utc(attempted), statement.UTC()
			m.attemptedByMe = byMe != nil && *byMe
			return nil
		}, nil)
	answered := time.Now()
	for _, m := range batch {
		m.moment = lease.Moment{Sent: sent, Answered: answered}
	}
	return err
}

// checkAfter is how long after it began a worker looks at an execution of the term.
func checkAfter(term time.Duration) time.Duration {
	at := time.Unix(0, 0)
	return client.AfterAttempt(at, term).Sub(at)
}
