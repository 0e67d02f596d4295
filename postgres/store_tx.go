package postgres

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgfold"
)

// pipelinedTx is the pgx.Tx that Transact hands out. It saves two round trips of
// five: a claim that comes first travels with BEGIN, and its settlement with
// COMMIT. Everything else begins the transaction, or sends what waits, before it
// goes its way: the order of statements is that of the calls. At 64 callers over
// HTTP that is a sixth of what a tracked submission costs.
//
// The settlement may wait because it cannot miss its record: the claim was the
// first statement, so no savepoint's rollback takes it back, and nobody else sees
// it. Like any pgx.Tx it is used by one goroutine at a time.
type pipelinedTx struct {
	ctx  context.Context // of Transact, for methods without one
	conn *pgxpool.Conn
	tx   pgx.Tx // nil before BEGIN
	err  error  // why nothing goes any more

	stale bool // the connection was broken when BEGIN was sent

	claimed []byte // key of the claim that travelled with BEGIN and is not settled
	waiting *query // its settlement
}

type query struct {
	sql  string
	args []any // the first is the key
}

var _ pgx.Tx = (*pipelinedTx)(nil)

var txOptions = pgfold.TxOptions

// errNotYours is what ends a transaction whose function tries to end it.
var errNotYours = errors.New("the transaction is ended by Transact, not in it")

// ready begins the transaction, and sends what waits.
func (t *pipelinedTx) ready(ctx context.Context) error {
	switch {
	case t.err != nil:
	case t.tx == nil:
		t.tx, t.err = t.conn.Conn().BeginTx(ctx, txOptions)
		t.stale = t.err != nil && t.conn.Conn().IsClosed()
	case t.waiting != nil:
		q := t.waiting
		t.waiting = nil
		_, t.err = t.tx.Exec(ctx, q.sql, q.args...)
	}
	return t.err
}

// beginWith sends BEGIN and a claim.
func (t *pipelinedTx) beginWith(ctx context.Context, claim query) (made int64, err error) {
	b := &pgx.Batch{}
	b.BeginTx(txOptions)
	b.Queue(claim.sql, claim.args...)
	results := t.conn.Conn().SendBatch(ctx, b)
	t.tx = results.Tx()
	_, err = results.Exec() // of BEGIN
	var tag pgconn.CommandTag
	if err == nil {
		tag, err = results.Exec()
	}
	if closing := results.Close(); err == nil {
		err = closing
	}
	if made = tag.RowsAffected(); made == 1 {
		t.claimed = claim.args[0].([]byte)
	}
	t.err = err
	t.stale = err != nil && t.conn.Conn().IsClosed()
	return made, err
}

// commit sends COMMIT, and before it what waits.
func (t *pipelinedTx) commit(ctx context.Context) error {
	switch {
	case t.err != nil:
		return t.err
	case t.tx == nil:
		return nil
	case t.conn.Conn().PgConn().TxStatus() == 'I':
		return errNotYours
	case t.waiting == nil:
		return t.tx.Commit(ctx)
	}
	b := &pgx.Batch{}
	b.Queue(t.waiting.sql, t.waiting.args...)
	b.Queue("commit")
	results := t.tx.SendBatch(ctx, b)
	settled, err := results.Exec()
	var tag pgconn.CommandTag
	if err == nil {
		tag, err = results.Exec()
	}
	if closing := results.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return err
	case tag.String() != "COMMIT":
		return pgx.ErrTxCommitRollback
	case settled.RowsAffected() != 1:
		return errNotYours // it was another transaction's commit
	}
	return nil
}

// release rolls back what was not committed and gives the connection back, which
// the pool closes when it is still in a transaction.
func (t *pipelinedTx) release() {
	conn := t.conn.Conn()
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), endTimeout)
		_, _ = conn.Exec(ctx, "rollback")
		cancel()
	}
	t.conn.Release()
	t.err = pgx.ErrTxClosed
}

// claiming runs the statements of a claim, and settling that of a settlement.
type (
	claiming struct{ *pipelinedTx }
	settling struct{ *pipelinedTx }
)

func (t claiming) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	if t.tx == nil && t.err == nil {
		return t.beginWith(ctx, query{sql, args})
	}
	return pgxQueries{t}.exec(ctx, sql, args...)
}

func (t claiming) row(ctx context.Context, sql string, args ...any) scanner {
	return t.QueryRow(ctx, sql, args...)
}

func (t settling) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	if t.err == nil && t.claimed != nil && bytes.Equal(t.claimed, args[0].([]byte)) {
		t.claimed, t.waiting = nil, &query{sql, args}
		return 1, nil
	}
	return pgxQueries{t}.exec(ctx, sql, args...)
}

func (t settling) row(ctx context.Context, sql string, args ...any) scanner {
	return t.QueryRow(ctx, sql, args...)
}

// Begin begins a nested transaction, in which the claim may be settled unseen.
func (t *pipelinedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	t.claimed = nil
	return t.tx.Begin(ctx)
}

// Commit and Rollback are Transact's.
func (t *pipelinedTx) Commit(context.Context) error {
	t.err = errNotYours
	return t.err
}

func (t *pipelinedTx) Rollback(ctx context.Context) error { return t.Commit(ctx) }

func (t *pipelinedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.ready(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.tx.Exec(ctx, sql, args...)
}

func (t *pipelinedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.ready(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
	}
	return t.tx.Query(ctx, sql, args...)
}

func (t *pipelinedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.ready(ctx); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).QueryRow()
	}
	return t.tx.QueryRow(ctx, sql, args...)
}

func (t *pipelinedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.ready(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return t.tx.SendBatch(ctx, b)
}

func (t *pipelinedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	return t.tx.CopyFrom(ctx, table, columns, rows)
}

func (t *pipelinedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	return t.tx.Prepare(ctx, name, sql)
}

func (t *pipelinedTx) LargeObjects() pgx.LargeObjects {
	if err := t.ready(t.ctx); err != nil {
		b := &pgx.Batch{}
		b.BeginTx(txOptions)
		return pgx.FailedBatchResults(b, err).Tx().LargeObjects()
	}
	return t.tx.LargeObjects()
}

// Conn gives the connection under the transaction, which is begun.
func (t *pipelinedTx) Conn() *pgx.Conn {
	if t.ready(t.ctx) == nil {
		t.claimed = nil
	}
	return t.conn.Conn()
}
