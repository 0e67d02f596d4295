package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/sqlite"
)

func open(t *testing.T, c sqlite.Config) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// rawDB is the file without the ledger, to look at and to damage.
func rawDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLedger(t *testing.T) {
	ledgertest.Ledger(t, func(t *testing.T) ledgertest.LedgerStore {
		path := filepath.Join(t.TempDir(), "ledger.db")
		return ledgertest.LedgerStore{
			Open: func(t *testing.T, clock func() time.Time) desk.Ledger {
				l, err := sqlite.Open(context.Background(), sqlite.Config{Path: path, Clock: clock})
				if err != nil {
					t.Fatal(err)
				}
				return l
			},
			TakeOver: func(t *testing.T, scope client.Scope, id string) { takeOver(t, path, scope, id) },
		}
	})
}

// takeOver breaks a hold as a lock file that somebody deleted does: the next
// process locks another file, and only the fence is left.
func takeOver(t *testing.T, path string, _ client.Scope, _ string) {
	t.Helper()
	for _, name := range []string{path + ".lock", path + ".locks"} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}
