package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
)

// ways in which SQLite takes a whole transaction back while database/sql goes on
// as if it were there.
var takenBack = map[string]func(ctx context.Context, cancel func(), tx *sql.Tx) error{
	"or rollback": func(_ context.Context, _ func(), tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT OR ROLLBACK INTO rows (n) VALUES (1)`)
		return err
	},
	"said so": func(_ context.Context, _ func(), tx *sql.Tx) error {
		_, _ = tx.Exec(`ROLLBACK`)
		return errors.New("rolled back")
	},
	"interrupted": func(ctx context.Context, cancel func(), tx *sql.Tx) error {
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := tx.ExecContext(ctx, `INSERT INTO rows (n) WITH RECURSIVE c(x) AS
			(SELECT 100 UNION ALL SELECT x+1 FROM c WHERE x < 100000000) SELECT x FROM c`)
		return err
	},
}

// A function that keeps silent about it leaves no record: one would say that the
// publisher's write is there, and it is not.
func TestTakenBackBeforeSettle(t *testing.T) {
	for name, takeBack := range takenBack {
		t.Run(name, func(t *testing.T) {
			s, db := openTestStore(t, "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
				if existing, err := s.Claim(ctx, tx, testKey("request-1"), "f", time.Hour); err != nil || existing != nil {
					return errors.Join(err, errors.New("not mine"))
				}
				if err := addRow(tx, 1); err != nil {
					return err
				}
				if takeBack(ctx, cancel, tx) == nil {
					t.Error("nothing was taken back")
				}
				return s.Settle(ctx, tx, testKey("request-1"), service.Done, service.Settlement{ResourceID: "T-1", Status: 201})
			})
			r, findErr := s.Find(t.Context(), testKey("request-1"))
			if err == nil || findErr != nil || r != nil || len(rowNumbers(t, db)) != 0 {
				t.Errorf("Transact: %v; record %+v, %v; rows %v", err, r, findErr, rowNumbers(t, db))
			}
			// And the next one is not held up.
			if err := s.Transact(t.Context(), func(_ context.Context, tx *sql.Tx) error { return addRow(tx, 2) }); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

// The same for what is settled later, in a transaction of Transact and in the
// publisher's own: it stays pending.
func TestTakenBackBeforeCompletion(t *testing.T) {
	for name, takeBack := range takenBack {
		for _, own := range []bool{false, true} {
			s, db := openTestStore(t, "")
			k := testKey("request-1")
			err := s.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				if _, err := s.Claim(ctx, tx, k, "f", time.Hour); err != nil {
					return err
				}
				return s.Settle(ctx, tx, k, service.Pending, service.Settlement{Status: 202})
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			complete := func(_ context.Context, tx *sql.Tx) error {
				if err := addRow(tx, 1); err != nil {
					return err
				}
				if takeBack(ctx, cancel, tx) == nil {
					t.Errorf("%s: nothing was taken back", name)
				}
				return s.Settle(context.Background(), tx, k, service.Done, service.Settlement{ResourceID: "T-1", Status: 200})
			}
			if own {
				tx, beginErr := db.BeginTx(t.Context(), nil)
				if beginErr != nil {
					t.Fatal(beginErr)
				}
				err = complete(ctx, tx)
				_ = tx.Rollback()
			} else {
				err = s.Transact(t.Context(), complete)
			}
			cancel()
			r, findErr := s.Find(t.Context(), k)
			if err == nil || findErr != nil || r == nil || r.State != service.Pending || len(rowNumbers(t, db)) != 0 {
				t.Errorf("%s, own %t: %v; record %+v, %v; rows %v", name, own, err, r, findErr, rowNumbers(t, db))
			}
		}
	}
}

// What a function settled is seen by itself before it is in the table.
func TestSettledInTheSameTurn(t *testing.T) {
	s, _ := openTestStore(t, "")
	k := testKey("request-1")
	err := s.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		if _, err := s.Claim(ctx, tx, k, "f", time.Hour); err != nil {
			return err
		}
		body := []byte(`{"a":1}`)
		if err := s.Settle(ctx, tx, k, service.Pending, service.Settlement{Status: 202, Body: body}); err != nil {
			return err
		}
		body[5] = '2' // the store has its own
		if r, err := s.FindIn(ctx, tx, k); err != nil || r == nil || r.State != service.Pending || string(r.Body) != `{"a":1}` {
			t.Errorf("FindIn = %+v, %v", r, err)
		}
		if r, err := s.Claim(ctx, tx, k, "f", time.Hour); err != nil || r == nil || r.State != service.Pending {
			t.Errorf("Claim = %+v, %v", r, err)
		}
		if err := s.Settle(ctx, tx, k, service.Done, service.Settlement{ResourceID: "T-1", Status: 201}); err != nil {
			return err
		}
		if err := s.Settle(ctx, tx, k, service.Done, service.Settlement{ResourceID: "T-1", Status: 201}); !errors.Is(err, service.ErrNotPending) {
			t.Errorf("settled twice: %v", err)
		}
		return nil
	})
	if r, findErr := s.Find(t.Context(), k); err != nil || findErr != nil || r == nil || r.State != service.Done || r.ResourceID != "T-1" {
		t.Errorf("%v; record %+v, %v", err, r, findErr)
	}
}
