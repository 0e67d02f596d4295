package conformcmd

import (
	"errors"
	"io"
	"io/fs"
	"net"
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
	nowhere, device, socket := filepath.Join(dir, "nowhere"), filepath.Join(dir, "device"), filepath.Join(dir, "s")
	for link, to := range map[string]string{nowhere: filepath.Join(dir, "gone"), device: os.DevNull} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]string{
		dir: "not a regular file", filepath.Join(dir, "absent", "report.xml"): "no such file", "/dev/null": "it is below /dev", "a\x00b": "no path",
		"/dev/stdout": "it is below /dev", "/proc/self/fd/1": "it is below /proc", "/dev/../dev/absent": "it is below /dev",
		nowhere: "a symbolic link that leads to no file", device: "it is below /dev", socket: "not a regular file",
	} {
		err := writeFile(file{"--html", name, filled("whole", nil)})
		advised(t, err, "file", want)
		if err != nil && !strings.HasPrefix(err.Error(), "--html: cannot write "+name) {
			t.Errorf("%v does not name the file that was asked for", err)
		}
		f := outputFlags{html: name}
		advised(t, f.check(nil), "file", want) // before the run, too
	}
	for name, kind := range map[string]fs.FileMode{nowhere: fs.ModeSymlink, device: fs.ModeSymlink, socket: fs.ModeSocket} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s was replaced: %v, %v", name, info, err)
		}
	}
	f := outputFlags{html: filepath.Join(dir, "a"), report: filepath.Join(dir, ".", "a")}
	usage(t, f.check(nil), "--html and --report name the same file")
	if err := (&outputFlags{}).check(nil); err != nil {
		t.Error(err)
	}
}

// A run never writes over what it reads, by whatever name, and not over its own output.
func TestOutputIsNoInput(t *testing.T) {
	dir := t.TempDir()
	in, hard := save(t, dir, "in.json", "{}"), filepath.Join(dir, "hard.json")
	if err := errors.Join(os.Link(in, hard), os.Symlink("in.json", filepath.Join(dir, "soft.json"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{in, hard, filepath.Join(dir, "soft.json"), filepath.Join(dir, "x", "..", "in.json")} {
		f := outputFlags{report: name}
		usage(t, f.check([]source{{"--adapter", in}}), "--report would overwrite the file that --adapter names")
	}
	absent := filepath.Join(dir, "absent")
	usage(t, (&outputFlags{report: absent}).check([]source{{"--input", dir + "/./absent"}}), "--report would overwrite")
	usage(t, (&outputFlags{html: in, report: hard}).check(nil), "--html and --report name the same file")
	if err := (&outputFlags{report: absent}).check([]source{{"--input", "-"}, {"PROFILE", ""}, {"OPENAPI", in}}); err != nil {
		t.Error(err)
	}
	f := serviceFlags{input: "@" + in, runFlags: runFlags{repeat: 1, outputFlags: outputFlags{report: hard}}, profile: "p", maxRequests: 1}
	usage(t, f.check(), "--report would overwrite the file that --input names")
	usage(t, (&house{}).run(t, "simulate", "--replay", in, "--trace", hard), "--trace would overwrite the file that --replay names")
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
