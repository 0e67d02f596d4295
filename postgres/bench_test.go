package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
)

// BenchmarkSubmit compares a tracked submission with the same insert without
// tracking, committed the same way, each behind HTTP over kept-alive connections
// and at the level of the store. The ratio of two submissions/s is what counts.
func BenchmarkSubmit(b *testing.B) {
	url := pgtest.Shared(b).NewDatabase(b)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.Migrate(b.Context(), pool, ""); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `CREATE TABLE note (id bigserial PRIMARY KEY, text text NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	defer db.Close()
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)

	const insert = `INSERT INTO note (text) VALUES ($1) RETURNING id`
	ways := []struct {
		name   string
		submit func(ctx context.Context, n int64) error
	}{
		{"pgx/bare", func(ctx context.Context, n int64) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				var id int64
				return tx.QueryRow(ctx, insert, "text").Scan(&id)
			})
		}},
		{"pgx/tracked", tracked(b, newStore(b, pool), func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			return id, tx.QueryRow(ctx, insert, "text").Scan(&id)
		})},
		{"sql/bare", func(ctx context.Context, n int64) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			var id int64
			if err := tx.QueryRowContext(ctx, insert, "text").Scan(&id); err != nil {
				return err
			}
			return tx.Commit()
		}},
		{"sql/tracked", tracked(b, newSQLStore(b, db), func(ctx context.Context, tx *sql.Tx) (id int64, err error) {
			return id, tx.QueryRowContext(ctx, insert, "text").Scan(&id)
		})},
	}
	for _, callers := range []int{1, 16, 64} {
		for _, way := range ways {
			var n atomic.Int64
			run := time.Now().UnixNano()
			submit := func() error { return way.submit(context.Background(), run+n.Add(1)) }
			b.Run(fmt.Sprintf("store/callers=%d/%s", callers, way.name), func(b *testing.B) { concurrently(b, callers, submit) })

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := way.submit(r.Context(), run+n.Add(1)); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			}))
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			post := func() error {
				resp, err := client.Post(server.URL, "application/json", http.NoBody)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					return fmt.Errorf("%s, %w", resp.Status, err)
				}
				return nil
			}
			b.Run(fmt.Sprintf("http/callers=%d/%s", callers, way.name), func(b *testing.B) { concurrently(b, callers, post) })
			server.Close()
			client.CloseIdleConnections()
		}
	}
}

func tracked[Tx any](b *testing.B, s service.Store[Tx], insert func(context.Context, Tx) (int64, error)) func(context.Context, int64) error {
	b.Helper()
	return func(ctx context.Context, n int64) error {
		k := service.Key{Principal: "alice", Action: "create-note", RequestID: fmt.Sprintf("request-%d", n)}
		return s.Transact(ctx, func(ctx context.Context, tx Tx) error {
			existing, err := s.Claim(ctx, tx, k, fmt.Sprintf("%064x", n), time.Hour)
			if err != nil || existing != nil {
				return fmt.Errorf("claim: %+v, %w", existing, err)
			}
			id, err := insert(ctx, tx)
			if err != nil {
				return err
			}
			return s.Settle(ctx, tx, k, service.Done, service.Settlement{ResourceID: fmt.Sprint(id), Status: 201, Body: []byte(`{"id":1}`)})
		})
	}
}

func concurrently(b *testing.B, callers int, f func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
}
