package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
)

// Whatever a publisher does with the transaction, statements run in the order of
// the calls, and settlements are those that were reported.
func TestOrderInTransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	pool := d.newPool(t, d.config(t, 4))
	s := newStore(t, pool)
	k := key("request-1")
	type test struct {
		name  string
		f     func(ctx context.Context, tx pgx.Tx) error
		state service.State // of the record, or "" for none
		rows  int
		fails bool
	}
	claim := func(ctx context.Context, tx pgx.Tx) error {
		_, err := s.Claim(ctx, tx, k, "fingerprint", window)
		return err
	}
	settle := func(ctx context.Context, tx pgx.Tx, to service.State) error { return s.Settle(ctx, tx, k, to, answer) }
	notPending := func(err error) error {
		if errors.Is(err, service.ErrNotPending) {
			return nil
		}
		return errors.Join(errors.New("want ErrNotPending"), err)
	}
	for _, tt := range []test{
		{"nothing", func(context.Context, pgx.Tx) error { return nil }, "", 0, false},
		{"rows only", func(ctx context.Context, tx pgx.Tx) error { return insertPgx(ctx, tx, "one") }, "", 1, false},
		{"claim and settle", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(claim(ctx, tx), settle(ctx, tx, service.Done))
		}, service.Done, 0, false},
		{"row, claim, settle, row", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(insertPgx(ctx, tx, "one"), claim(ctx, tx), settle(ctx, tx, service.Done), insertPgx(ctx, tx, "two"))
		}, service.Done, 2, false},
		{"settled twice", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(claim(ctx, tx), settle(ctx, tx, service.Done), notPending(settle(ctx, tx, service.Refused)))
		}, service.Done, 0, false},
		{"pending, then done", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(claim(ctx, tx), settle(ctx, tx, service.Pending), settle(ctx, tx, service.Done))
		}, service.Done, 0, false},
		{"read after the settlement", func(ctx context.Context, tx pgx.Tx) error {
			err := errors.Join(claim(ctx, tx), settle(ctx, tx, service.Done))
			r, errFind := s.FindIn(ctx, tx, k)
			if r == nil || r.State != service.Done {
				err = errors.Join(err, errors.New("the settlement is not there"))
			}
			return errors.Join(err, errFind)
		}, service.Done, 0, false},
		{"settled in a savepoint that is rolled back", func(ctx context.Context, tx pgx.Tx) error {
			err := claim(ctx, tx)
			sp, errBegin := tx.Begin(ctx)
			return errors.Join(err, errBegin, settle(ctx, sp, service.Refused), insertPgx(ctx, sp, "one"), sp.Rollback(ctx), settle(ctx, tx, service.Done))
		}, service.Done, 0, false},
		{"settled in a savepoint, and again", func(ctx context.Context, tx pgx.Tx) error {
			err := claim(ctx, tx)
			sp, errBegin := tx.Begin(ctx)
			return errors.Join(err, errBegin, settle(ctx, sp, service.Done), sp.Commit(ctx), notPending(settle(ctx, tx, service.Refused)))
		}, service.Done, 0, false},
		{"claimed in a savepoint that is rolled back", func(ctx context.Context, tx pgx.Tx) error {
			sp, errBegin := tx.Begin(ctx)
			return errors.Join(errBegin, claim(ctx, sp), sp.Rollback(ctx), notPending(settle(ctx, tx, service.Done)), insertPgx(ctx, tx, "one"))
		}, "", 1, false},
		{"a savepoint in SQL", func(ctx context.Context, tx pgx.Tx) error {
			err := claim(ctx, tx)
			_, err1 := tx.Exec(ctx, `SAVEPOINT a`)
			err2 := settle(ctx, tx, service.Refused)
			_, err3 := tx.Exec(ctx, `ROLLBACK TO a`)
			return errors.Join(err, err1, err2, err3, settle(ctx, tx, service.Done))
		}, service.Done, 0, false},
		{"the connection, a batch and a copy", func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, `INSERT INTO note (text) VALUES ('one')`)
			err = errors.Join(err, claim(ctx, tx), settle(ctx, tx, service.Done))
			b := &pgx.Batch{}
			b.Queue(`INSERT INTO note (text) VALUES ('two')`)
			_, errCopy := tx.CopyFrom(ctx, pgx.Identifier{"note"}, []string{"text"}, pgx.CopyFromRows([][]any{{"three"}}))
			return errors.Join(err, errCopy, tx.SendBatch(ctx, b).Close())
		}, service.Done, 3, false},
		{"large objects and a prepared statement", func(ctx context.Context, tx pgx.Tx) error {
			objects := tx.LargeObjects()
			_, err := objects.Create(ctx, 0)
			_, errPrepare := tx.Prepare(ctx, "note", `INSERT INTO note (text) VALUES ($1)`)
			_, errExec := tx.Exec(ctx, "note", "one")
			return errors.Join(err, errPrepare, errExec)
		}, "", 1, false},
		{"a claim without a settlement", func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(claim(ctx, tx), insertPgx(ctx, tx, "one"))
		}, "", 0, true},
		{"a failed statement that nobody tells of", func(ctx context.Context, tx pgx.Tx) error {
			err := errors.Join(claim(ctx, tx), insertPgx(ctx, tx, "one"))
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return errors.Join(err, settle(ctx, tx, service.Done))
		}, "", 0, true},
		{"a commit", func(ctx context.Context, tx pgx.Tx) error {
			if err := errors.Join(claim(ctx, tx), insertPgx(ctx, tx, "one"), settle(ctx, tx, service.Done)); err != nil {
				return err
			}
			_ = tx.Commit(ctx)
			return nil
		}, "", 0, true},
		{"a rollback", func(ctx context.Context, tx pgx.Tx) error {
			err := claim(ctx, tx)
			_ = tx.Rollback(ctx)
			if insertPgx(ctx, tx, "one") == nil || tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)) == nil {
				return errors.New("statements go on")
			}
			if rows, errQuery := tx.Query(ctx, `SELECT 1`); errQuery == nil || rows.Next() || rows.Err() == nil {
				return errors.New("queries go on")
			}
			objects := tx.LargeObjects()
			_, errObject := objects.Create(ctx, 0)
			_, errBegin := tx.Begin(ctx)
			if errObject == nil || errBegin == nil || tx.SendBatch(ctx, &pgx.Batch{}).Close() == nil {
				return errors.New("something goes on")
			}
			return err
		}, "", 0, true},
		{"a rollback in SQL", func(ctx context.Context, tx pgx.Tx) error {
			err := claim(ctx, tx)
			_, errRollback := tx.Exec(ctx, `ROLLBACK`)
			return errors.Join(err, errRollback, settle(ctx, tx, service.Done))
		}, "", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d.exec(t, `DELETE FROM agentic.tracked_request; DELETE FROM note`)
			var kept pgx.Tx
			err := s.Transact(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				kept = tx
				return tt.f(ctx, tx)
			})
			if (err != nil) != tt.fails || errors.Is(err, service.ErrUnavailable) {
				t.Errorf("Transact: %v", err)
			}
			if err := insertPgx(t.Context(), kept, "late"); err == nil {
				t.Error("the transaction goes on after Transact")
			}
			r, err := s.Find(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			var state service.State
			if r != nil {
				state = r.State
			}
			if n := len(d.rows(t)); state != tt.state || n != tt.rows {
				t.Errorf("state %q and %d rows, want %q and %d", state, n, tt.state, tt.rows)
			}
		})
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

// The statements work however the publisher's pool runs them.
func TestQueryExecModes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pgtest.Shared(t))
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		c := d.config(t, 2)
		c.ConnConfig.DefaultQueryExecMode = mode
		t.Run("pgx "+mode.String(), func(t *testing.T) { testExecMode(t, d, newStore(t, d.newPool(t, c)), insertPgx) })
		t.Run("sql "+mode.String(), func(t *testing.T) { testExecMode(t, d, newSQLStore(t, d.newDB(t, c)), insertSQL) })
		if err := postgres.Migrate(t.Context(), d.newPool(t, c), "mode_"+string('a'+rune(mode))); err != nil {
			t.Errorf("Migrate in mode %s: %v", mode, err)
		}
	}
}

func testExecMode[Tx any](t *testing.T, d *database, s service.Store[Tx], insert func(context.Context, Tx, string) error) {
	d.exec(t, `DELETE FROM agentic.tracked_request`)
	k := service.Key{Principal: "\x00\xffalice", Action: "create-note", RequestID: `a'b\c`}
	for range 2 {
		if err := submit(t.Context(), s, insert, k, "one"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Find(t.Context(), k)
	if err != nil || r == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	want := &service.Record{Key: k, Fingerprint: "fingerprint", State: service.Done, Settlement: answer, CreatedAt: r.CreatedAt, ExpiresAt: r.CreatedAt.Add(window)}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	d.advance(t, 2*window)
	if n, err := s.Sweep(t.Context(), window/2, 10); err != nil || n != (service.Swept{Expired: 1, Deleted: 1}) {
		t.Errorf("Sweep: %+v, %v", n, err)
	}
}
