package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/google/go-cmp/cmp"
)

// A store refuses connections that can lose what was answered, and says why.
func TestOpenStoreRefuses(t *testing.T) {
	const busy = "&_busy_timeout=1000"
	for name, tt := range map[string]struct {
		params string
		memory bool
		then   string // on one connection
		want   string // "" is accepted
	}{
		"the defaults of SQLite":        {params: "", want: "EXTRA (3)"},
		"WAL and FULL":                  {params: "_journal_mode=WAL&_synchronous=FULL" + busy},
		"WAL and EXTRA":                 {params: "_journal_mode=WAL&_synchronous=EXTRA" + busy},
		"WAL and NORMAL":                {params: "_journal_mode=WAL&_synchronous=NORMAL" + busy, want: "synchronous is 1"},
		"WAL and OFF":                   {params: "_journal_mode=WAL&_synchronous=OFF" + busy, want: "synchronous is 0"},
		"DELETE and FULL":               {params: "_journal_mode=DELETE&_synchronous=FULL" + busy, want: "EXTRA (3)"},
		"DELETE and EXTRA":              {params: "_journal_mode=DELETE&_synchronous=EXTRA" + busy},
		"no journal":                    {params: "_journal_mode=OFF&_synchronous=FULL" + busy, want: `journal mode is "off"`},
		"a journal in memory":           {params: "_journal_mode=MEMORY&_synchronous=EXTRA" + busy, want: `journal mode is "memory"`},
		"no busy timeout":               {params: "_journal_mode=WAL&_synchronous=FULL", want: "busy timeout is 0"},
		"uncommitted reads":             {params: "_journal_mode=WAL&_synchronous=FULL&_pragma=read_uncommitted(1)" + busy, want: "read_uncommitted"},
		"a database in memory":          {memory: true, params: "_synchronous=FULL" + busy, want: `journal mode is "memory"`},
		"set on one connection by hand": {params: "_journal_mode=WAL&_synchronous=NORMAL" + busy, then: "PRAGMA synchronous = FULL", want: "synchronous is 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := "file://" + filepath.Join(t.TempDir(), "publisher.db") + "?" + tt.params
			if tt.memory {
				dsn = "file::memory:?" + tt.params
			}
			db, err := sql.Open("sqlite", dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if tt.memory {
				db.SetMaxOpenConns(1)
			}
			if tt.then != "" {
				if _, err := db.Exec(tt.then); err != nil {
					t.Fatal(err)
				}
			}
			if err := sqlite.Migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.OpenStore(t.Context(), sqlite.StoreConfig{DB: db})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, service.ErrUnavailable) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestOpenStoreNeedsMigrate(t *testing.T) {
	open := func(db *sql.DB) error {
		s, err := sqlite.OpenStore(t.Context(), sqlite.StoreConfig{DB: db})
		if err == nil {
			_ = s.Close()
		}
		return err
	}
	if err := open(nil); err == nil {
		t.Error("a store without a database")
	}
	db := openPublisher(t, filepath.Join(t.TempDir(), "publisher.db"), nil)
	if err := open(db); err == nil || !strings.Contains(err.Error(), "Migrate") {
		t.Errorf("before Migrate: %v", err)
	}
	for range 2 {
		if err := sqlite.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := open(db); err != nil {
			t.Errorf("after Migrate: %v", err)
		}
	}
	if _, err := db.Exec(`INSERT INTO agentic_service_migration (version_id, is_applied) VALUES (1000, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := open(db); !errors.Is(err, sqlite.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	if err := sqlite.Migrate(t.Context(), db); !errors.Is(err, sqlite.ErrNewer) {
		t.Errorf("Migrate of a newer schema: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(db); !errors.Is(err, service.ErrUnavailable) {
		t.Errorf("a closed database: %v", err)
	}
	if err := sqlite.Migrate(t.Context(), db); !errors.Is(err, service.ErrUnavailable) {
		t.Errorf("Migrate of a closed database: %v", err)
	}
}

// Many processes may start at once, and the publisher's own tables stay as they are.
func TestMigrateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "publisher.db")
	db := openPublisher(t, path, nil)
	if _, err := db.Exec(`CREATE TABLE rows (row TEXT NOT NULL); INSERT INTO rows VALUES ('one')`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		own := openPublisher(t, path, nil)
		wg.Go(func() {
			if err := sqlite.Migrate(t.Context(), own); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	want := []string{"agentic_request", "agentic_request_due", "agentic_request_stays", "agentic_service_migration", "rows"}
	if d := cmp.Diff(want, names); d != "" || rows.Err() != nil {
		t.Errorf("names (-want +got): %v\n%s", rows.Err(), d)
	}
	if d := cmp.Diff([]string{"one"}, publisherRows(t, db)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// DSN gives transactions that hold the write lock from the beginning.
func TestDSN(t *testing.T) {
	db := openPublisher(t, publisherDB(t), nil)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if second, err := db.BeginTx(ctx, nil); err == nil {
		_ = second.Rollback()
		t.Error("a second transaction began beside an immediate one")
	}
	for _, path := range []string{"", "a\x00b", ":memory:", "file:x?mode=memory"} {
		if dsn, err := sqlite.DSN(path); !errors.Is(err, sqlite.ErrPlace) {
			t.Errorf("DSN(%q) = %q, %v", path, dsn, err)
		}
	}
}

// A pool of one connection is enough.
func TestStoreOneConnection(t *testing.T) {
	db := openPublisher(t, publisherDB(t), nil)
	db.SetMaxOpenConns(1)
	s := openStore(t, db, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			k := newKey()
			err := s.Transact(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				if _, err := s.Claim(ctx, tx, k, fingerprint, time.Hour); err != nil {
					return err
				}
				return errors.Join(insertRow(ctx, tx, fmt.Sprint(i)), s.Settle(ctx, tx, k, service.Done, service.Settlement{Status: 201}))
			})
			if err != nil {
				t.Error(err)
			}
			if r, err := s.Find(t.Context(), k); err != nil || r == nil || r.State != service.Done {
				t.Errorf("Find: %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if n := len(publisherRows(t, db)); n != 16 {
		t.Errorf("%d rows", n)
	}
}
