package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/storetest"
)

func newStore(tb testing.TB, pool *pgxpool.Pool) *postgres.Store {
	tb.Helper()
	s, err := postgres.NewStore(context.Background(), postgres.StoreConfig{Pool: pool})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func newSQLStore(tb testing.TB, db *sql.DB) *postgres.SQLStore {
	tb.Helper()
	s, err := postgres.NewSQLStore(context.Background(), postgres.SQLStoreConfig{DB: db})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// database is one migrated database with a publisher's table, and how tests
// connect to it.
type database struct {
	url   string
	admin *pgxpool.Pool // of the test itself

	// wrap stands around every connection of newPool and newDB.
	wrap func(net.Conn) net.Conn
}

func newDatabase(tb testing.TB, cluster *pgtest.Cluster) *database {
	tb.Helper()
	d := connectTo(tb, cluster.NewDatabase(tb))
	if err := postgres.Migrate(context.Background(), d.admin, ""); err != nil {
		tb.Fatal(err)
	}
	d.exec(tb, `CREATE TABLE note (text text NOT NULL)`)
	return d
}

// connectTo has no tables yet.
func connectTo(tb testing.TB, url string) *database {
	tb.Helper()
	d := &database{url: url, wrap: func(c net.Conn) net.Conn { return c }}
	var err error
	if d.admin, err = pgxpool.New(context.Background(), d.url); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.admin.Close)
	return d
}

func (d *database) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := d.admin.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) rows(tb testing.TB) []string {
	tb.Helper()
	rows, err := d.admin.Query(context.Background(), `SELECT text FROM note`)
	if err != nil {
		tb.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

// config is for connections of their own, which the server knows by a name.
func (d *database) config(tb testing.TB, conns int32) *pgxpool.Config {
	tb.Helper()
	c, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		tb.Fatal(err)
	}
	c.MaxConns = conns
	c.ConnConfig.RuntimeParams["application_name"] = fmt.Sprintf("handle %d", handles.Add(1))
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return d.wrap(conn), nil
	}
	return c
}

var handles atomic.Int64

// kill ends the sessions of a config's connections.
func (d *database) kill(tb testing.TB, c *pgxpool.Config) {
	tb.Helper()
	d.exec(tb, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, c.ConnConfig.RuntimeParams["application_name"])
}

func (d *database) newPool(tb testing.TB, c *pgxpool.Config) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func (d *database) newDB(tb testing.TB, c *pgxpool.Config) *sql.DB {
	tb.Helper()
	db := stdlib.OpenDB(*c.ConnConfig)
	db.SetMaxOpenConns(int(c.MaxConns))
	db.SetMaxIdleConns(int(c.MaxConns))
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// advance makes every record older, which is the same as a later clock.
func (d *database) advance(tb testing.TB, by time.Duration) {
	tb.Helper()
	d.exec(tb, `UPDATE agentic.tracked_request SET created_at = created_at - $1::bigint * interval '1 microsecond',
		expires_at = expires_at - $1::bigint * interval '1 microsecond'`, by.Microseconds())
}

// fault breaks the connection that sends the n-th message from now on, before the
// message leaves.
type fault struct {
	mu   sync.Mutex
	left int // messages until then; 0 is no fault
	hit  bool
}

type faultyConn struct {
	net.Conn
	fault *fault
}

func (f *fault) set(n int) (stop func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.hit = n, false
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left = 0
		return f.hit
	}
}

func (f *fault) now() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return false
	}
	f.left--
	f.hit = f.hit || f.left == 0
	return f.left == 0
}

func (c faultyConn) Write(b []byte) (int, error) {
	if c.fault.now() {
		_ = c.Close()
		return 0, errors.New("the connection broke")
	}
	return c.Conn.Write(b)
}

const connections = 6 // of a handle

func pgxHarness(t *testing.T) storetest.StoreHarness[pgx.Tx] {
	d, f := newDatabase(t, pgtest.Shared(t)), &fault{}
	d.wrap = func(c net.Conn) net.Conn { return faultyConn{c, f} }
	return storetest.StoreHarness[pgx.Tx]{
		Open: func(t *testing.T) storetest.StoreHandle[pgx.Tx] {
			c := d.config(t, connections)
			pool := d.newPool(t, c)
			return storetest.StoreHandle[pgx.Tx]{
				Store: newStore(t, pool),
				Begin: func(ctx context.Context) (pgx.Tx, func(bool) error, error) {
					tx, err := pool.Begin(ctx)
					return tx, func(commit bool) error {
						if commit {
							return tx.Commit(ctx)
						}
						return tx.Rollback(ctx)
					}, err
				},
				Close: func() error { pool.Close(); return nil },
				Fill: func(t *testing.T) func() {
					var all []*pgxpool.Conn
					for range connections {
						conn, err := pool.Acquire(context.Background())
						if err != nil {
							t.Fatal(err)
						}
						all = append(all, conn)
					}
					return func() {
						for _, conn := range all {
							conn.Release()
						}
					}
				},
				Kill: func(t *testing.T) { d.kill(t, c) },
			}
		},
		Insert: func(ctx context.Context, tx pgx.Tx, row string) error {
			_, err := tx.Exec(ctx, `INSERT INTO note (text) VALUES ($1)`, row)
			return err
		},
		Rows:    func(t *testing.T) []string { return d.rows(t) },
		Advance: func(t *testing.T, by time.Duration) { d.advance(t, by) },
		FailAt:  func(t *testing.T, n int) func() bool { return f.set(n) },
	}
}

func sqlHarness(t *testing.T) storetest.StoreHarness[*sql.Tx] {
	d, f := newDatabase(t, pgtest.Shared(t)), &fault{}
	d.wrap = func(c net.Conn) net.Conn { return faultyConn{c, f} }
	return storetest.StoreHarness[*sql.Tx]{
		Open: func(t *testing.T) storetest.StoreHandle[*sql.Tx] {
			c := d.config(t, connections)
			db := d.newDB(t, c)
			return storetest.StoreHandle[*sql.Tx]{
				Store: newSQLStore(t, db),
				Begin: func(ctx context.Context) (*sql.Tx, func(bool) error, error) {
					tx, err := db.BeginTx(ctx, nil)
					return tx, func(commit bool) error {
						if commit {
							return tx.Commit()
						}
						return tx.Rollback()
					}, err
				},
				Close: db.Close,
				Fill: func(t *testing.T) func() {
					var all []*sql.Conn
					for range connections {
						conn, err := db.Conn(context.Background())
						if err != nil {
							t.Fatal(err)
						}
						all = append(all, conn)
					}
					return func() {
						for _, conn := range all {
							_ = conn.Close()
						}
					}
				},
				Kill: func(t *testing.T) { d.kill(t, c) },
			}
		},
		Insert: func(ctx context.Context, tx *sql.Tx, row string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO note (text) VALUES ($1)`, row)
			return err
		},
		Rows:    func(t *testing.T) []string { return d.rows(t) },
		Advance: func(t *testing.T, by time.Duration) { d.advance(t, by) },
		FailAt:  func(t *testing.T, n int) func() bool { return f.set(n) },
	}
}

func TestStoreSuite(t *testing.T)    { storetest.Store(t, pgxHarness) }
func TestSQLStoreSuite(t *testing.T) { storetest.Store(t, sqlHarness) }
