//go:build unix

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/ticket"
)

// closedPipe is a pipe whose reader has left.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// Whoever stops reading the messages does not end the process between the mark
// "attempted" and the POST, and the result is printed all the same.
func TestNobodyReadsStderr(t *testing.T) {
	s := startTestTickets(t, "normal")
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	run := command(t, "run", s.Origin+"/agentic.json", "--approve", s.Origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--json",
		"--request-id", "request-1", "--ledger", ledger)
	adapter := command(t, "adapter")
	adapter.Stdin = strings.NewReader(scenarioText(s.Origin, "request-2", ledger))
	for n, cmd := range []*exec.Cmd{run, adapter} {
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, closedPipe(t)
		err := cmd.Run()
		r, found := agentic.ParseReceipt(out.Bytes())
		if err != nil || r == nil || r.Outcome != agentic.Succeeded {
			t.Errorf("%s: %v, stdout %q (%v)", cmd.Args[1], err, out.String(), found)
		}
		if state, err := s.State(t.Context()); err != nil || state.Posts != n+1 {
			t.Errorf("%s: %d POSTs (%v)", cmd.Args[1], state.Posts, err)
		}
	}
}

// A result that nobody reads is an error: exit code 1 and one message, which leads
// to what is saved. Nothing is left behind.
func TestNobodyReadsStdout(t *testing.T) {
	s := startTestTickets(t, "normal")
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger.db")
	reach := []string{"--approve", s.Origin, "--allow-loopback", "--ledger", ledger}
	run := append([]string{"run", s.Origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes"}, reach...)
	prepare := append([]string{"prepare"}, run[1:]...)
	const broken = "cannot write to standard output: broken pipe\n"
	for _, tt := range []struct {
		args  []string
		stdin string
		saved string // what the message says of the request, if there is one
	}{
		{append(run, "--request-id", "request-1"), "", "request-1 is saved as succeeded"},
		{append([]string{"resume", "request-1"}, reach...), "", "request-1 is saved as succeeded"},
		{append(prepare, "--request-id", "request-2"), "", "request-2 is saved as prepared"},
		{[]string{"adapter"}, scenarioText(s.Origin, "request-3", ledger), "request-3 is saved as succeeded"},
		{[]string{"requests", "abandon", "request-2", "--yes", "--reason", "x", "--ledger", ledger}, "", "request-2 is settled as abandon"},
		{append([]string{"requests", "supersede", "request-2", "--yes", "--reason", "x"}, reach...), "", "request-2 is superseded by request "},
		{[]string{"ledger", "purge", "--before", "1ms", "--apply", "--json", "--ledger", ledger}, "", ""},
		{[]string{"demo"}, "", ""},
		{[]string{"demo", "--crash"}, "", ""},
		{[]string{"demo", "--json"}, "", ""},
		{[]string{"requests", "list", "--ledger", ledger}, "", ""},
		{[]string{"serve", "--addr", "127.0.0.1:0"}, "", ""},
		{[]string{"--help"}, "", ""},
		{[]string{"help", "run"}, "", ""},
		{[]string{"completion", "bash"}, "", ""},
		{[]string{"version"}, "", ""},
	} {
		cmd := command(t, tt.args...)
		tmp := t.TempDir()
		cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
		var diag bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(tt.stdin), closedPipe(t), &diag
		_ = cmd.Run() // the exit code is looked at
		if code := cmd.ProcessState.ExitCode(); code != exitError || strings.Count(diag.String(), broken) != 1 || strings.Count(diag.String(), "broken pipe") != 1 {
			t.Errorf("%s: exit code %d, stderr %s", tt.args, code, diag.String())
		}
		if tt.saved != "" && (!strings.Contains(diag.String(), tt.saved) ||
			!strings.Contains(diag.String(), "To see it: agentic requests show "+tt.saved[:9]+" --ledger "+ledger+"\n")) {
			t.Errorf("%s: stderr %s", tt.args, diag.String())
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v behind (%v)", tt.args, left, err)
		}
	}
}

// The first signal ends a command that waits for something to read.
func TestInterruptWhileReading(t *testing.T) {
	dir := t.TempDir()
	fifo, profile := filepath.Join(dir, "fifo"), filepath.Join(dir, "agentic.json")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(profile, ticket.Profile("https://support.example"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"validate", "-"}, {"validate", fifo}, {"validate", profile, fifo}, {"receipt", "check", "-"}, {"receipt", "check", fifo}, {"adapter"},
		{"run", "-", "--input", "{}", "--yes"}, {"run", fifo, "--input", "{}", "--yes"}, {"run", profile, "--input", "-", "--yes"},
		{"run", profile, "--input", "@" + fifo, "--yes"}, {"prepare", profile, "--openapi", fifo, "--input", "{}"}, {"demo", "client"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			cmd := command(t, args...)
			stdin, err := cmd.StdinPipe() // nobody writes
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			var out, diag bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &diag
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond) // a signal before the program begins would kill it
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code is looked at
			if code := cmd.ProcessState.ExitCode(); code != exitError || !strings.Contains(diag.String(), "interrupted: nothing was sent by this command") || out.Len() > 0 {
				t.Errorf("%v, stdout %s, stderr %s", cmd.ProcessState, out.String(), diag.String())
			}
		})
	}
}

// Commands that only look need no right to write to the ledger, and change nothing
// of it: SQLite alone keeps its two files beside a database that is looked at.
func TestLookingChangesNothing(t *testing.T) {
	s := startTestTickets(t, "normal")
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	if code, _, diag := runHere(t, "run", s.Origin+"/agentic.json", "--approve", s.Origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1", "--ledger", path); code != exitOK {
		t.Fatal(diag)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	for _, args := range [][]string{{"requests", "list"}, {"requests", "show", "request-1"}, {"requests", "show", "request-9"}} {
		a := testApp(io.Discard, io.Discard)
		opened := a.open
		readOnly := false
		a.open = func(ctx context.Context, p place.Place, o place.Options) (ledger, error) {
			readOnly = o.ReadOnly
			return opened(ctx, p, o)
		}
		want := exitOK
		if args[len(args)-1] == "request-9" {
			want = exitError
		}
		if code := a.run(t.Context(), append(args, "--ledger", path, "--json")); code != want || !readOnly {
			t.Errorf("%s: exit code %d, read only %v", args, code, readOnly)
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", args, before, after)
		}
	}
}

// snapshot tells the names, modes, times and contents of a folder, without what
// SQLite keeps beside a database.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-wal") || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := enc.Encode([]any{e.Name(), info.Mode().String(), info.ModTime(), sha256.Sum256(body)}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
