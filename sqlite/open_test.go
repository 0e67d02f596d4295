//go:build unix

package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// What cannot be a ledger says why, and stays as it was.
func TestOpenRefuses(t *testing.T) {
	write := func(name, content string) func(*testing.T, string) string {
		return func(t *testing.T, dir string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	tests := map[string]struct {
		make func(t *testing.T, dir string) string
		want error
	}{
		"a newer schema": {func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "ledger.db")
			l := open(t, sqlite.Config{Path: path})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := rawDB(t, path).Exec(`INSERT INTO agentic_ledger_migration (version_id, is_applied) VALUES (99, 1)`)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrNewer},
		"not a database": {write("ledger.db", strings.Repeat("this is a letter to a friend\n", 100)), sqlite.ErrCorrupt},
		"a damaged header": {func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "ledger.db")
			if err := open(t, sqlite.Config{Path: path}).Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copy(b[100:], bytes.Repeat([]byte{0xff}, 400))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrCorrupt},
		"a directory":                     {func(_ *testing.T, dir string) string { return dir }, sqlite.ErrPlace},
		"a parent that is a file":         {func(t *testing.T, dir string) string { return write("file", "x")(t, dir) + "/ledger.db" }, sqlite.ErrPlace},
		"a grandparent that is a file":    {func(t *testing.T, dir string) string { return write("file", "x")(t, dir) + "/a/ledger.db" }, sqlite.ErrPlace},
		"no path":                         {func(*testing.T, string) string { return "" }, sqlite.ErrPlace},
		"a path that no system can carry": {func(_ *testing.T, dir string) string { return dir + "/a\x00b" }, sqlite.ErrPlace},
		"a pipe": {func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrPlace},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := tt.make(t, t.TempDir())
			l, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			var le *client.LedgerError
			if l != nil || !errors.As(err, &le) || !errors.Is(err, client.ErrLedger) || !errors.Is(err, tt.want) {
				t.Fatalf("Open: %v, want %v", err, tt.want)
			}
			if le.Op != "open" {
				t.Errorf("Op %q", le.Op)
			}
		})
	}
}

// childOpen opens as a user without rights of their own, and says what it got.
func childOpen(path, _ string) error {
	if os.Geteuid() == 0 { // root may do anything; nobody may not
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			return err
		}
	}
	look, err := sqlite.Open(context.Background(), sqlite.Config{Path: path, ReadOnly: true})
	if err == nil {
		list, err := look.List(context.Background(), client.Filter{}.In(request("").Scope))
		fmt.Println("looked at", len(list), err)
		if err := look.Close(); err != nil {
			return err
		}
		found, err := sqlite.CheckLedger(context.Background(), path)
		for _, f := range found {
			if strings.Contains(f.Name, "rights") {
				continue // the test has changed them
			}
			fmt.Printf("%s=%s ", f.Name, f.Value)
		}
		fmt.Println(err)
	}
	l, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err == nil {
		return l.Close()
	}
	fmt.Println(errors.Is(err, client.ErrLedger), errors.Is(err, sqlite.ErrReadOnly), errors.Is(err, sqlite.ErrPlace))
	return nil
}

func TestOpenWithoutRights(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, dir string) string
		want string // ledger error, read only, no place
	}{
		"a file that may be read only": {func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "ledger.db")
			if err := open(t, sqlite.Config{Path: path}).Close(); err != nil {
				t.Fatal(err)
			}
			return path
		}, "true true false"},
		"a directory that may be read only": {func(_ *testing.T, dir string) string { return filepath.Join(dir, "ledger.db") }, "true true false"},
		"a parent that cannot be made":      {func(_ *testing.T, dir string) string { return filepath.Join(dir, "state", "ledger.db") }, "true true true"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := tt.make(t, dir)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				// The lock may be written, so that it is SQLite that refuses.
				mode := fs.FileMode(0o444)
				if strings.Contains(f, ".lock") {
					mode = 0o666
				}
				if err := os.Chmod(f, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd, out := child(t, "open", path, "")
			if len(files) > 0 {
				line(t, out, "looked at 0 <nil>") // reading needs no right to write
				line(t, out, "schema=2 journal_mode=not known synchronous=not known quick_check=ok <nil>")
			}
			line(t, out, tt.want)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Files are the user's alone, whatever the umask and whoever made them.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o277} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			base := t.TempDir()
			path := filepath.Join(base, "state", "ledger.db")
			if umask == 0o277 { // it would spoil the directory before anything else
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			old := syscall.Umask(umask)
			l, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			if err == nil {
				err = action(t.Context(), l, "request-1")
			}
			syscall.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			wantMode(t, filepath.Dir(path), 0o700)
			for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
				wantMode(t, path+suffix, 0o600)
			}
		})
	}
	t.Run("existing", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "ledger.db")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		l := open(t, sqlite.Config{Path: path})
		if err := action(t.Context(), l, "request-1"); err != nil {
			t.Fatal(err)
		}
		wantMode(t, dir, 0o755)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			wantMode(t, path+suffix, 0o600)
		}
	})
}

func wantMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
	}
}

// A path is only a path: nothing in it is an option or another file.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b", "a%20b", "a&_synchronous=OFF", ":memory:", "file:x", "é'\".db"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			l := open(t, sqlite.Config{Path: path})
			if err := action(t.Context(), l, "request-1"); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if f.Name() != name && f.Name() != name+".lock" {
					t.Errorf("a stray file %q", f.Name())
				}
			}
			if _, err := open(t, sqlite.Config{Path: path}).Load(t.Context(), request("").Scope, "request-1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A name for the file is the file: two ways to it exclude each other.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	first := open(t, sqlite.Config{Path: filepath.Join(dir, "linked", "ledger.db")})
	if err := os.Symlink(filepath.Join(real, "ledger.db"), filepath.Join(dir, "name.db")); err != nil {
		t.Fatal(err)
	}
	second := open(t, sqlite.Config{Path: filepath.Join(dir, "name.db")})
	mustExclude(t, first, second)
}
