package pgfold

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Query is a statement with its arguments.
type Query struct {
	SQL  string
	Args []any
}

// TxOptions are those of every transaction, whatever the role's defaults are.
var TxOptions = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}

// EndTime bounds a commit or rollback, which the caller's context does not end: a
// commit that is cut off is neither done nor undone to us.
const EndTime = 10 * time.Second

// InTx runs one statement in a transaction of its own and in one round trip, after
// what prepares it: locks, for which the statement's snapshot must not be older.
// each gets the rows of the statement; then, still before the commit and only if
// there is one, last is called, which costs further round trips.
func InTx(ctx context.Context, conn *pgx.Conn, before, statement Query, each func(pgx.Rows) error, last func(pgx.Tx) error) (err error) {
	b := &pgx.Batch{}
	b.BeginTx(TxOptions)
	b.Queue(before.SQL, before.Args...)
	b.Queue(statement.SQL, statement.Args...)
	if last == nil {
		b.Queue("commit")
	}
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	defer func() {
		if err == nil || conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), EndTime)
		defer cancel()
		_, _ = conn.Exec(end, "rollback") // a connection that is still in a transaction is dropped
	}()
	err = readBatch(results, each, last == nil)
	if closing := results.Close(); err == nil {
		err = closing
	}
	if err != nil || last == nil {
		return err
	}
	if err := last(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func readBatch(results pgx.BatchResults, each func(pgx.Rows) error, commits bool) error {
	for range 2 { // BEGIN, and what comes before
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			rows.Close()
			return err
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil || !commits {
		return err
	}
	var tag pgconn.CommandTag
	if tag, err = results.Exec(); err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}
