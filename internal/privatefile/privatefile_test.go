package privatefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Every name of a file leads to one place, and what is no file to none.
func TestPlace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("there"), nil, 0o600), os.Symlink("there", at("link")), os.Symlink("link", at("chain")),
		os.Symlink("gone", at("nowhere")), os.Symlink(".", at("self"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"there": at("there"), "link": at("there"), "chain": at("there"), "free": at("free"), "self/free": at("free")} {
		if got, err := Place(at(name)); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", dir, at("nowhere"), at("a\x00b")} {
		if got, err := Place(name); !errors.Is(err, ErrPlace) {
			t.Errorf("%q: %s, %v", name, got, err)
		}
	}
}
