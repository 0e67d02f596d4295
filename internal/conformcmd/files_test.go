package conformcmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/internal/advice"
)

func filled(text string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		_, werr := io.WriteString(w, text)
		return errors.Join(werr, err)
	}
}

// A report's file appears whole, for its owner only, in the place of an older one.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "report.xml")
	link := filepath.Join(dir, "link.xml")
	if err := os.Symlink("report.xml", link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	advised(t, writeFile(file{"--junit", name, filled("half", full)}), "file", "--junit: cannot write "+name+": no room")
	if b, err := os.ReadFile(name); err != nil || string(b) != "older" {
		t.Errorf("a failure left %q, %v", b, err)
	}
	for at, text := range map[string]string{name: "whole", link: "through a link"} {
		if err := writeFile(file{"--junit", at, filled(text, nil)}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		info, serr := os.Lstat(name)
		if err != nil || serr != nil || string(b) != text || info.Mode() != 0o600 {
			t.Errorf("%q, %v, %v", b, info.Mode(), errors.Join(err, serr))
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestWriteFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		dir: "not a regular file", filepath.Join(dir, "absent", "report.xml"): "no such file", "/dev/null": "not a regular file", "a\x00b": "no path",
	} {
		err := writeFile(file{"--html", name, filled("whole", nil)})
		advised(t, err, "file", want)
		if err != nil && !strings.HasPrefix(err.Error(), "--html: cannot write "+name) {
			t.Errorf("%v does not name the file that was asked for", err)
		}
		f := outputFlags{html: name}
		advised(t, f.check(), "file", want) // before the run, too
	}
	f := outputFlags{html: filepath.Join(dir, "a"), report: filepath.Join(dir, ".", "a")}
	usage(t, f.check(), "--html and --report name the same file")
	if err := (&outputFlags{}).check(); err != nil {
		t.Error(err)
	}
}

// Files that can be written are, also when another cannot.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	err := writeAll([]file{{"--junit", dir, filled("", nil)}, {"--html", good, filled("whole", nil)}, {"--report", "", nil}})
	if e, ok := errors.AsType[*advice.Error](err); !ok || e.Code != "file" {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(good); err != nil || string(b) != "whole" {
		t.Errorf("%q, %v", b, err)
	}
}
