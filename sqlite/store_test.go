package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/storetest"
	"github.com/google/uuid"
	msqlite "modernc.org/sqlite"
)

// publisherDB makes a database as a publisher has it, with a table of its own.
func publisherDB(t testing.TB) (path string) {
	path = filepath.Join(t.TempDir(), "publisher?.db")
	db := openPublisher(t, path, nil)
	if _, err := db.Exec(`CREATE TABLE rows (row TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return path
}

func openPublisher(t testing.TB, path string, f *faults) *sql.DB {
	t.Helper()
	dsn, err := sqlite.DSN(path)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := msqlite.NewConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if f != nil {
		connector = &faulty{connector, f}
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func openStore(t testing.TB, db *sql.DB, clock func() time.Time) *sqlite.Store {
	t.Helper()
	s, err := sqlite.OpenStore(t.Context(), sqlite.StoreConfig{DB: db, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func insertRow(ctx context.Context, tx *sql.Tx, row string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO rows (row) VALUES (?)`, row)
	return err
}

func publisherRows(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.Query(`SELECT row FROM rows`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStore(t *testing.T) {
	// Few connections, with which the pool is easily full, and as many as it takes.
	for name, conns := range map[string]int{"four connections": 4, "no bound": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Store(t, func(t *testing.T) storetest.StoreHarness[*sql.Tx] { return harness(t, conns) })
		})
	}
}

func harness(t *testing.T, conns int) storetest.StoreHarness[*sql.Tx] {
	path, clock, f := publisherDB(t), ledgertest.NewClock(), &faults{}
	reader := openPublisher(t, path, nil)
	return storetest.StoreHarness[*sql.Tx]{
		Open: func(t *testing.T) storetest.StoreHandle[*sql.Tx] {
			db := openPublisher(t, path, f)
			db.SetMaxOpenConns(conns)
			s := openStore(t, db, clock.Now)
			h := storetest.StoreHandle[*sql.Tx]{
				Store: s,
				Begin: func(ctx context.Context) (*sql.Tx, func(bool) error, error) {
					tx, err := db.BeginTx(ctx, nil)
					return tx, func(commit bool) error {
						if commit {
							return tx.Commit()
						}
						return tx.Rollback()
					}, err
				},
				Close: func() error { return errors.Join(s.Close(), db.Close()) },
			}
			if conns > 0 {
				h.Fill = func(t *testing.T) func() {
					var taken []*sql.Conn
					for range conns {
						c, err := db.Conn(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						taken = append(taken, c)
					}
					return func() {
						for _, c := range taken {
							_ = c.Close()
						}
					}
				}
			}
			return h
		},
		Insert:  insertRow,
		Rows:    func(t *testing.T) []string { return publisherRows(t, reader) },
		Advance: func(_ *testing.T, d time.Duration) { clock.Advance(d) },
		Frozen:  true,
		FailAt:  func(_ *testing.T, n int) func() bool { return f.failAt(n) },
	}
}

var _ service.Store[*sql.Tx] = (*sqlite.Store)(nil)

func newKey() service.Key {
	id, err := uuid.NewV7()
	if err != nil {
		panic(err)
	}
	return service.Key{Principal: "alice", Action: "create-ticket", RequestID: id.String()}
}
