package pgfold_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgfold"
	"github.com/agentic-go/agentic/internal/pgtest"
)

func newPool(t *testing.T, conns int32) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(pgtest.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE mark (n bigint CHECK (n >= 0))`); err != nil {
		t.Fatal(err)
	}
	return pool
}

type mark struct{ n, got int64 }

// marks writes a batch of marks; batches counts them.
func marks(pool *pgxpool.Pool, batches *atomic.Int64) *pgfold.Folder[mark] {
	return &pgfold.Folder[mark]{Pool: pool, Write: func(ctx context.Context, conn *pgx.Conn, batch []*mark) error {
		batches.Add(1)
		var ns []int64
		for _, m := range batch {
			ns = append(ns, m.n)
		}
		i := 0
		return pgfold.InTx(ctx, conn, pgfold.Query{SQL: `SELECT 1`}, pgfold.Query{SQL: `INSERT INTO mark SELECT * FROM unnest($1::bigint[]) RETURNING n`, Args: []any{ns}},
			func(rows pgx.Rows) error {
				i++
				return rows.Scan(&batch[i-1].got)
			}, nil)
	}}
}

func count(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM mark`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Writes that wait go together, and one that fails takes none with it.
func TestWritesAreFolded(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 2)
	var batches atomic.Int64
	f := marks(pool, &batches)
	f.Apart = func(a, b *mark) bool { return a.n == b.n }
	held := []*pgxpool.Conn{}
	for range 2 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			m := &mark{n: int64(i / 2)} // two of each
			if err := f.Submit(t.Context(), m); err != nil || m.got != m.n {
				t.Errorf("%d: %d, %v", i, m.got, err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // so that most of them wait
	for _, conn := range held {
		conn.Release()
	}
	wg.Wait()
	if n := count(t, pool); n != 50 || batches.Load() < 2 || batches.Load() > 25 {
		t.Errorf("%d marks in %d batches", n, batches.Load())
	}
	for i := range 20 {
		wg.Go(func() {
			n := int64(i)
			if i == 7 {
				n = -1
			}
			var said *pgconn.PgError
			if err := f.Submit(t.Context(), &mark{n: n}); (err != nil) != (i == 7) || err != nil && !errors.As(err, &said) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if n := count(t, pool); n != 69 {
		t.Errorf("%d marks", n)
	}
}

// Who gives up while the pool is empty has written nothing, and does not take the lead
// with him.
func TestWithdrawing(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 1)
	var batches atomic.Int64
	f := marks(pool, &batches)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if err := f.Submit(ctx, &mark{n: int64(i)}); !errors.Is(err, context.Canceled) || !errors.Is(err, pgfold.ErrWithdrawn) || pgfold.Retryable(err) {
				t.Error(err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	patient := make(chan error, 1)
	go func() { patient <- f.Submit(context.Background(), &mark{n: 100}) }()
	time.Sleep(20 * time.Millisecond)
	cancel()
	wg.Wait()
	conn.Release()
	if err := <-patient; err != nil {
		t.Error(err)
	}
	if n := count(t, pool); n != 1 {
		t.Errorf("%d marks", n)
	}
}

// What InTx runs last is in the transaction: its error takes the rest back, and the
// connection is as good as before.
func TestLastInTx(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 1)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	refused := errors.New("refused")
	run := func(fail error) error {
		return pgfold.InTx(t.Context(), conn.Conn(), pgfold.Query{SQL: `SELECT 1`}, pgfold.Query{SQL: `INSERT INTO mark VALUES (1)`}, func(pgx.Rows) error { return nil },
			func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `INSERT INTO mark VALUES (2)`); err != nil {
					return err
				}
				return fail
			})
	}
	if err := run(refused); !errors.Is(err, refused) || conn.Conn().PgConn().TxStatus() != 'I' {
		t.Errorf("%v, in state %c", err, conn.Conn().PgConn().TxStatus())
	}
	if err := run(nil); err != nil {
		t.Error(err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM mark`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d marks, %v", n, err)
	}
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	said := func(code string) error { return fmt.Errorf("in words: %w", &pgconn.PgError{Code: code}) }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{said("57P01"), true}, {said("57P03"), true}, {said("53300"), true}, {said("40P01"), true}, {said("40001"), true}, {said("25006"), true},
		{said("23505"), false}, {said("42P01"), false}, {said("22021"), false}, {io.ErrUnexpectedEOF, false}, {context.DeadlineExceeded, false},
		{pgfold.Unanswered{Err: said("57P01")}, false},
	} {
		if pgfold.Retryable(tt.err) != tt.want {
			t.Errorf("%v: %v", tt.err, !tt.want)
		}
	}
	pool := newPool(t, 1)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := pgfold.WrapBroken(conn.Conn(), said("23505")); pgfold.Retryable(err) {
		t.Errorf("on a connection that stands: %v", err)
	}
	_ = conn.Conn().Close(t.Context())
	if err := pgfold.WrapBroken(conn.Conn(), io.ErrUnexpectedEOF); !pgfold.Retryable(err) {
		t.Errorf("on a broken connection: %v", err)
	}
	if err := pgfold.WrapBroken(conn.Conn(), pgfold.Unanswered{Err: io.EOF}); pgfold.Retryable(err) {
		t.Errorf("a commit without an answer: %v", err)
	}
}

func TestPausesGrowAndEnd(t *testing.T) {
	t.Parallel()
	var p pgfold.Pauses
	start := time.Now()
	for range 4 {
		if err := p.Sleep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 75*time.Millisecond {
		t.Errorf("four pauses took %s", took)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Sleep(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A batch that hangs holds up those that are in it, and nobody else for long.
func TestBesideABatchThatHangs(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 4)
	var batches atomic.Int64
	f := marks(pool, &batches)
	write, hangs, end := f.Write, make(chan struct{}), make(chan struct{})
	f.Write = func(ctx context.Context, conn *pgx.Conn, batch []*mark) error {
		if batch[0].n == 0 {
			close(hangs)
			<-end
		}
		return write(ctx, conn, batch)
	}
	first := make(chan error, 1)
	go func() { first <- f.Submit(t.Context(), &mark{n: 0}) }()
	<-hangs
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if err := f.Submit(t.Context(), &mark{n: int64(i + 1)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, pool); n != 40 {
		t.Errorf("%d marks beside the batch that hangs", n)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := count(t, pool); n != 41 {
		t.Errorf("%d marks", n)
	}
}
