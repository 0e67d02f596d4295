package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// What is not a ledger stays as it is: its bytes, its rights, and nothing new
// beside it.
func TestForeignFilesStay(t *testing.T) {
	database := func(path string) error {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(`CREATE TABLE theirs (a INTEGER)`)
		return err
	}
	for name, write := range map[string]func(path string) error{
		"text": func(p string) error {
			return os.WriteFile(p, []byte("shopping list: milk, bread, and a longer text\n"), 0o664)
		},
		"one byte":         func(p string) error { return os.WriteFile(p, []byte("x"), 0o664) },
		"another database": database,
	} {
		for _, readOnly := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, "notes")
			if err := write(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o664); err != nil {
				t.Fatal(err)
			}
			before := sum(t, path)
			if l, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ReadOnly: readOnly}); !errors.Is(err, sqlite.ErrCorrupt) {
				t.Errorf("%s: Open = %v, %v", name, l, err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o664 || sum(t, path) != before {
				t.Errorf("%s was changed: %v, %v", name, info.Mode(), err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
				t.Errorf("%s: left beside it: %v, %v", name, names, err)
			}
		}
	}
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ReadOnly: true}); !errors.Is(err, sqlite.ErrPlace) {
		t.Errorf("a ledger that is not there: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was made")
	}
	writer := open(t, sqlite.Config{Path: path})
	h, err := writer.Begin(t.Context(), request("request-1"), client.IntendSubmit, 0)
	if err != nil {
		t.Fatal(err)
	}
	look := func(name string) {
		l, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ReadOnly: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer l.Close()
		if rec, err := l.Load(t.Context(), request("").Scope, "request-1"); err != nil || rec.State != client.Attempted {
			t.Errorf("%s: Load = %v, %v", name, rec, err)
		}
		if list, err := l.List(t.Context(), client.Filter{}.In(request("").Scope)); err != nil || len(list) != 1 {
			t.Errorf("%s: List = %v, %v", name, list, err)
		}
		for _, id := range []string{"request-1", "request-2"} {
			if _, err := l.Begin(t.Context(), request(id), client.IntendSubmit, time.Second); !errors.Is(err, sqlite.ErrReadOnly) {
				t.Errorf("%s: Begin = %v", name, err)
			}
		}
	}
	look("beside a writer")
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	look("alone")
}
