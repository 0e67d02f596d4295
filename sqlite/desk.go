package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/savedform"
)

// noteStatements append a note.
type noteStatements struct{ find, add, mark *sql.Stmt }

func prepareNote(p *preparer) noteStatements {
	return noteStatements{
		find: p.prepare(`SELECT id, ` + summarySQL + ` FROM ledger_request WHERE principal = ? AND environment = ? AND request_id = ?`),
		add: p.prepare(`
INSERT INTO ledger_note (request, seq, at, by, verb, reason, resource_id, new_id)
SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7 FROM ledger_note WHERE request = ?1`),
		mark: p.prepare(`
UPDATE ledger_request SET seen_at = max(seen_at, ?1), settled = coalesce(?2, settled), next_check = CASE WHEN ?2 IS NULL THEN next_check END
WHERE id = ?3`),
	}
}

// AddNote implements desk.Ledger. It needs no hold: it moves no fence, and a
// hold that begins or finishes meanwhile finds the request settled in its own
// compare-and-set.
func (l *Ledger) AddNote(ctx context.Context, scope client.Scope, requestID string, n client.Note) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if err := l.enterToWrite(); err != nil {
		return ledgerError("add note", err)
	}
	defer l.calls.Done()
	now := l.now().UnixMicro()
	settles := sql.NullString{String: string(n.Verb), Valid: n.Verb.Settles()}
	var refused error
	err := l.commits.Submit(ctx, func() error {
		refused = nil
		var id int64
		sum, err := scanSummary(l.note.find.QueryRow(scope.Principal, scope.Environment, requestID).Scan, &id)
		if err == sql.ErrNoRows {
			refused = &client.NotFoundError{Scope: scope, RequestID: requestID}
			return nil
		}
		if err != nil {
			return err
		}
		if refused = sum.Admits(n.Verb); refused != nil {
			return nil
		}
		if _, err = l.note.add.Exec(id, now, n.By, string(n.Verb), n.Reason, n.ResourceID, n.NewID); err == nil {
			_, err = l.note.mark.Exec(now, settles, id)
		}
		return err
	})
	if err == nil {
		err = refused
	}
	return ledgerError("add note", err)
}

// enterToWrite is enter for a call that needs the writing connection.
func (l *Ledger) enterToWrite() error {
	if l.locks == nil {
		return fmt.Errorf("%w: the ledger was opened for reading", ErrReadOnly)
	}
	return l.enter()
}

// purgeChunk is how many requests one commit of a purge takes at most: others wait
// for their turn so long.
const purgeChunk = 500

// Purge implements desk.Ledger. What it removed is overwritten in the file.
func (l *Ledger) Purge(ctx context.Context, o client.PurgeOptions) (client.Purged, error) {
	enter := l.enter
	if o.Apply {
		enter = l.enterToWrite
	}
	if err := enter(); err != nil {
		return client.Purged{}, ledgerError("purge", err)
	}
	defer l.calls.Done()
	p := purge{ledger: l, limit: -1}
	if o.Limit > 0 {
		p.limit = o.Limit
	}
	p.old.add("purged_at IS NULL AND seen_at < ?", microsFrom(o.Before))
	p.old.scope(o.Principal, o.Environment)
	err := p.count(ctx, o.Apply)
	if err != nil {
		return client.Purged{}, ledgerError("purge", err)
	}
	if o.Apply {
		err = p.apply(ctx)
	}
	return p.done, ledgerError("purge", err)
}

// purge is one call of Purge.
type purge struct {
	ledger *Ledger
	old    conditions // what is old enough, open or not
	limit  int        // -1 is none
	last   int64      // the highest ID of what is to be purged
	done   client.Purged
}

// closed is what can be purged: old, and not open.
func (p *purge) closed() string { return p.old.where() + " AND NOT " + openSQL }

// with gives the arguments of old, with more behind them.
func (p *purge) with(args ...any) []any {
	return append(p.old.args[:len(p.old.args):len(p.old.args)], args...)
}

// count tells what would be removed, without changing anything. Documents are counted
// when they are removed, if they are.
func (p *purge) count(ctx context.Context, apply bool) error {
	db := p.ledger.readers
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM ledger_request`+p.old.where()+` AND `+openSQL, p.old.args...).Scan(&p.done.Open); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `
SELECT count(*), coalesce(sum(entries), 0), coalesce(max(id), 0)
FROM (SELECT id, entries FROM ledger_request`+p.closed()+` ORDER BY id LIMIT ?)`, p.with(p.limit)...).
		Scan(&p.done.Requests, &p.done.Entries, &p.last); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM ledger_request`+p.closed()+` AND id > ?)`, p.with(p.last)...).
		Scan(&p.done.More); err != nil || apply {
		return err
	}
	unneeded, err := p.unneeded(ctx, p.closed()+` AND id <= ?`, p.with(p.last)...)
	p.done.Snapshots = len(unneeded)
	return err
}

// unneeded gives the documents that no request names but those of a condition.
func (p *purge) unneeded(ctx context.Context, but string, args ...any) ([]string, error) {
	return column[string](ctx, p.ledger.readers, `
WITH kept AS (SELECT profile_digest, openapi_digest FROM ledger_request WHERE id NOT IN (SELECT id FROM ledger_request`+but+`))
SELECT digest FROM ledger_snapshot WHERE digest <> ''
AND digest NOT IN (SELECT profile_digest FROM kept UNION SELECT openapi_digest FROM kept)`, args...)
}

// apply removes what was counted, and counts again.
func (p *purge) apply(ctx context.Context) error {
	l := p.ledger
	stmts := preparer{ctx: context.WithoutCancel(ctx), on: l.conn}
	defer stmts.close()
	bury := stmts.prepare(`
UPDATE ledger_request SET profile_digest = '', openapi_digest = '', input = x'', input_sum = ?1, entries = 0, fence = fence + 1,
    next_check = NULL, purged_at = ?2
WHERE id = ?3 AND purged_at IS NULL AND seen_at < ?4 AND NOT ` + openSQL)
	entries := stmts.prepare(`DELETE FROM ledger_entry WHERE request = ?`)
	notes := stmts.prepare(`DELETE FROM ledger_note WHERE request = ?`)
	if stmts.err != nil {
		return stmts.err
	}
	before, sum := p.old.args[0], savedform.Sum(nil)
	p.done.Requests, p.done.Entries, p.done.Snapshots = 0, 0, 0
	for after := int64(0); after < p.last; {
		ids, err := column[int64](ctx, l.readers, `SELECT id FROM ledger_request`+p.closed()+` AND id > ? AND id <= ? ORDER BY id LIMIT ?`,
			p.with(after, p.last, purgeChunk)...)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			break
		}
		after = ids[len(ids)-1]
		var requests, removed int64
		now := l.now().UnixMicro()
		err = l.commits.Submit(ctx, func() error {
			requests, removed = 0, 0
			for _, id := range ids {
				n, err := affected(bury.Exec(sum, now, id, before))
				if err != nil {
					return err
				}
				if n == 0 {
					continue // something happened to it
				}
				gone, err := affected(entries.Exec(id))
				if err != nil {
					return err
				}
				if _, err := notes.Exec(id); err != nil {
					return err
				}
				requests, removed = requests+n, removed+gone
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.done.Requests += int(requests)
		p.done.Entries += int(removed)
	}
	return p.removeSnapshots(ctx)
}

// removeSnapshots removes the documents that nothing needs any more.
func (p *purge) removeSnapshots(ctx context.Context) error {
	var newest int64
	if err := p.ledger.readers.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM ledger_request`).Scan(&newest); err != nil {
		return err
	}
	digests, err := p.unneeded(ctx, " WHERE FALSE")
	if err == nil && len(digests) > 0 {
		err = p.remove(ctx, digests, newest)
	}
	if err != nil || p.done.Requests+p.done.Snapshots == 0 {
		return err
	}
	return p.ledger.emptyLog(ctx)
}

// remove removes documents that no request up to newest names. None of these can
// come to name one, so only those that were made since are looked at, over a
// connection without foreign keys: they would look through all requests, a second
// for every 300,000 of them, while nobody can write.
func (p *purge) remove(ctx context.Context, digests []string, newest int64) error {
	db, err := sql.Open("sqlite", dsn(p.ledger.path, unchecked))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, d := range digests {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := affected(db.Exec(`
DELETE FROM ledger_snapshot WHERE digest = ?1
AND NOT EXISTS (SELECT 1 FROM ledger_request WHERE id > ?2 AND (profile_digest = ?1 OR openapi_digest = ?1))`, d, newest))
		if err != nil {
			return err
		}
		p.done.Snapshots += int(n)
	}
	return nil
}

// emptyLog brings what was committed into the file and empties the -wal, where what
// was purged still stands. Readers and writers may be in its way; then the last one
// who closes the file does it.
func (l *Ledger) emptyLog(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // the timeout has to be put back
	c, err := l.readers.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, q := range []string{"busy_timeout = 200", "wal_checkpoint(TRUNCATE)", fmt.Sprintf("busy_timeout = %d", busyTimeout.Milliseconds())} {
		if _, e := c.ExecContext(ctx, "PRAGMA "+q); err == nil && reasonOf(e) != ErrBusy {
			err = e
		}
	}
	return err
}

// column reads the only column of a query.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, damaged("%v", err)
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
