package conformcmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

// mute is a client that reads its input and prints no receipt, but a sequence that a
// terminal acts on.
const mute = `{"name": "mute\u001b[31m", "authorship": "project", "command": ["/bin/sh", "-c", "cat > /dev/null; printf '\\033]0;title\\007' >&2"]}`

// A failed check is exit code 1, unless the baseline expects it.
func TestClient(t *testing.T) {
	dir := t.TempDir()
	adapter := save(t, dir, "adapter.json", mute)
	baseline, junit := filepath.Join(dir, "baseline.json"), filepath.Join(dir, "report.xml")
	args := []string{"client", "--adapter", adapter, "--only", "normal", "--timeout", "5s", "--junit", junit}

	h := &house{live: true}
	if err := h.run(t, append(args, "--write-baseline", baseline, "--repeat", "2")...); err != nil || !h.failed {
		t.Fatalf("%v, failed %v\n%s", err, h.failed, h.stdout.String())
	}
	if out := h.stdout.String(); !strings.Contains(out, "  FAILED           normal: ") || !strings.Contains(out, "this is try 1") || !strings.Contains(out, `mute\x1b[31m`) || strings.Contains(out, "\x1b") {
		t.Errorf("printed\n%s", out)
	}
	if strings.Join(h.progress, " ") != "1/1 0/0" {
		t.Errorf("progress %v", h.progress)
	}
	if b, err := os.ReadFile(junit); err != nil || !strings.Contains(string(b), `failures="1"`) {
		t.Errorf("%s, %v", b, err)
	}
	b, err := os.ReadFile(baseline)
	if err != nil || !strings.Contains(string(b), `"reason": "`+conformance.Unexplained+`"`) {
		t.Fatalf("%s, %v", b, err)
	}

	save(t, dir, "baseline.json", strings.Replace(string(b), conformance.Unexplained, "it was never finished", 1))
	h = &house{}
	if err := h.run(t, append(args, "--baseline", baseline, "--json")...); err != nil || h.failed || h.progress != nil {
		t.Fatalf("%v, failed %v, progress %v", err, h.failed, h.progress)
	}
	rep, err := conformance.ParseReport(h.stdout.Bytes())
	if err != nil || rep.Checks[0].Status != conformance.Expected || rep.Checks[0].Reason != "it was never finished" || rep.Subject.Name != "mute\x1b[31m" {
		t.Errorf("%+v, %v", rep, err)
	}

	// With --json standard output has the report alone, also when a file fails.
	if err := os.Remove(junit); err != nil {
		t.Fatal(err)
	}
	h = &house{}
	if err := h.run(t, append(args, "--baseline", baseline, "--json", "--html", filepath.Join(dir, "full", "x"))...); err == nil {
		t.Error("a folder that is not there is found after the run only")
	}
	if _, err := os.Stat(junit); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a report was written without a run: %v", err)
	}
}

// What a command cannot say with --json once the report is printed goes to standard error.
func TestFinish(t *testing.T) {
	rep := &conformance.Report{Format: conformance.Format, Statement: conformance.Statement, Kind: conformance.Client, Repeat: 1}
	dir := t.TempDir()
	bad := outputFlags{junit: dir}
	h := &house{json: true}
	if err := New(h, h).finish(rep, &bad); err != nil || !h.failed || !strings.Contains(h.stderr.String(), "agentic: --junit: cannot write "+dir) {
		t.Errorf("%v, failed %v, %q", err, h.failed, h.stderr.String())
	}
	if _, err := conformance.ParseReport(h.stdout.Bytes()); err != nil {
		t.Error(err)
	}
	h = &house{}
	advised(t, New(h, h).finish(rep, &bad), "file", "--junit: cannot write")
	if !strings.Contains(h.stdout.String(), conformance.Statement) {
		t.Error("the text is lost with the file")
	}
	good := outputFlags{report: filepath.Join(dir, "report.json")}
	h = &house{broken: errors.New("nobody reads")}
	if err := New(h, h).finish(rep, &good); !errors.Is(err, h.broken) {
		t.Error(err)
	}
	if _, err := os.Stat(good.report); err != nil {
		t.Errorf("the file is lost with standard output: %v", err)
	}
}

func TestClientUsage(t *testing.T) {
	dir := t.TempDir()
	adapter := save(t, dir, "adapter.json", mute)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "--adapter is missing"},
		{[]string{"--adapter", adapter, "--repeat", "0"}, "--repeat 0"},
		{[]string{"--adapter", adapter, "--parallel", "0"}, "--parallel 0"},
		{[]string{"--adapter", adapter, "--parallel", "65"}, "--parallel 65 is above 64"},
		{[]string{"--adapter", adapter, "--timeout", "0s"}, "--timeout 0s"},
		{[]string{"--adapter", adapter, "--timeout", "99ms"}, "--timeout 99ms is below 100ms"},
		{[]string{"--adapter", adapter, "--report", adapter}, "--report would overwrite the file that --adapter names"},
		{[]string{"--adapter", "-", "--baseline", "-"}, "standard input can hold only one"},
		{[]string{"--adapter", adapter, "--only", "absent"}, `no check is named by "absent"`},
		{[]string{"--adapter", adapter, "--junit", dir + "/a", "--write-baseline", dir + "/a"}, "--junit and --write-baseline name the same file"},
	} {
		usage(t, (&house{}).run(t, append([]string{"client"}, tt.args...)...), tt.want)
	}
}

// What is wrong with a file says which file, and what.
func TestClientFiles(t *testing.T) {
	dir := t.TempDir()
	adapter := save(t, dir, "adapter.json", mute)
	gone := save(t, dir, "gone.json", `{"name": "a", "authorship": "project", "command": ["./absent"]}`)
	for _, tt := range []struct {
		args       []string
		code, want string
	}{
		{[]string{"--adapter", save(t, dir, "a.json", `{"name": "a", "commnd": []}`)}, "adapter", `a.json: adapter: there is no member "commnd"`},
		{[]string{"--adapter", gone}, "adapter", "absent"},
		{[]string{"--adapter", adapter, "--baseline", save(t, dir, "b.json", `{"subject": "other", "expected_failures": []}`)}, "baseline", `b.json: the baseline is about "other"`},
		{[]string{"--adapter", adapter, "--baseline", save(t, dir, "c.json", `{"subject": "mute\u001b[31m", "expected_failures": [{"check": "nope", "reason": "r"}]}`)}, "baseline", `expects "nope" to fail, and there is no such check`},
		{[]string{"--adapter", adapter, "--baseline", save(t, dir, "d.json", strings.Repeat(" ", maxBaselineBytes+1))}, "baseline", "longer than 1048576 bytes"},
	} {
		advised(t, (&house{}).run(t, append([]string{"client"}, tt.args...)...), tt.code, tt.want)
	}
	if err := (&house{}).run(t, "client", "--adapter", filepath.Join(dir, "absent.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestClientInterrupted(t *testing.T) {
	slow := save(t, t.TempDir(), "slow.json", `{"name": "slow", "authorship": "project", "command": ["/bin/sh", "-c", "exec sleep 60"]}`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := (&house{}).runIn(ctx, "client", "--adapter", slow, "--only", "normal")
	advised(t, err, "interrupted", "there is no report")
	if time.Since(begin) > 20*time.Second {
		t.Error("it went on")
	}
}
