package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// BenchmarkSubmission is a submission at the store, beside the same insert without
// tracking: committed the same way, and each with a commit of its own.
func BenchmarkSubmission(b *testing.B) {
	answer := service.Settlement{ResourceID: "0198c0de", Status: 201, Body: []byte(`{"id":"0198c0de","status":"open","subject":"printer on fire"}`)}
	type call func(ctx context.Context, db *sql.DB, s *sqlite.Store, insert *sql.Stmt) error
	row := func(ctx context.Context, tx *sql.Tx, insert *sql.Stmt) error {
		_, err := tx.StmtContext(ctx, insert).ExecContext(ctx, "printer on fire")
		return err
	}
	for _, kind := range []struct {
		name string
		call call
	}{
		{"tracked", func(ctx context.Context, _ *sql.DB, s *sqlite.Store, insert *sql.Stmt) error {
			k := newKey()
			return s.Transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
				if r, err := s.Claim(ctx, tx, k, fingerprint, time.Hour); err != nil || r != nil {
					return fmt.Errorf("claim: %v, %w", r, err)
				}
				if err := row(ctx, tx, insert); err != nil {
					return err
				}
				return s.Settle(ctx, tx, k, service.Done, answer)
			})
		}},
		{"untracked", func(ctx context.Context, _ *sql.DB, s *sqlite.Store, insert *sql.Stmt) error {
			return s.Transact(ctx, func(ctx context.Context, tx *sql.Tx) error { return row(ctx, tx, insert) })
		}},
		{"alone", func(ctx context.Context, db *sql.DB, _ *sqlite.Store, insert *sql.Stmt) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := row(ctx, tx, insert); err != nil {
				return err
			}
			return tx.Commit()
		}},
	} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", kind.name, callers), func(b *testing.B) {
				db := openPublisher(b, publisherDB(b), nil)
				db.SetMaxOpenConns(4)
				db.SetMaxIdleConns(4)
				s := openStore(b, db, nil)
				insert, err := db.Prepare(`INSERT INTO rows (row) VALUES (?)`)
				if err != nil {
					b.Fatal(err)
				}
				defer insert.Close()
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						for next.Add(1) <= int64(b.N) {
							if err := kind.call(b.Context(), db, s, insert); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
			})
		}
	}
}

const fingerprint = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
