package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentic-go/agentic/internal/ticket"
)

// openTerminal gives both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (person, process *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, process
}

// converse runs a command on a terminal, types early before it starts, gives the
// answer when it is asked, and returns what the terminal showed.
func converse(t *testing.T, cmd *exec.Cmd, early, answer string) (code int, stdout, shown string) {
	t.Helper()
	person, process := openTerminal(t)
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, &out, process
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // Ctrl-C is a signal then
	if _, err := io.WriteString(person, early); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Close()
	var all []byte
	asked := false
	for b := make([]byte, 1<<10); ; {
		n, err := person.Read(b) // ends with EIO when the process does
		all = append(all, b[:n]...)
		if err != nil {
			break
		}
		if !asked && bytes.Contains(all, []byte("? [y/N] ")) {
			asked = true
			if _, err := io.WriteString(person, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the exit code is compared by the caller
	return cmd.ProcessState.ExitCode(), out.String(), string(all)
}

// On a terminal a person sees what would be sent, escaped, and decides.
func TestQuestion(t *testing.T) {
	s := startTestTickets(t, "normal")
	dir := t.TempDir()
	profile := filepath.Join(dir, "agentic.json")
	hostile := strings.Replace(string(ticket.Profile(s.Origin)), "Create a support ticket", `Create \u001b[31ma \u202esupport ticket`, 1)
	openapi := filepath.Join(dir, "openapi.json")
	for name, body := range map[string]string{profile: hostile, openapi: string(ticket.OpenAPI(s.Origin))} {
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ledger := filepath.Join(dir, "ledger.db")
	reach := []string{"--ledger", ledger, "--approve", s.Origin, "--allow-loopback"}
	run := append([]string{"run", profile, "--openapi", openapi, "--input", `{"subject":"Printer"}`}, reach...)

	for _, tt := range []struct {
		name   string
		args   []string
		answer string
		code   int
		posts  int
		shown  []string
	}{
		{"no", run, "n\n", exitError, 0, []string{"you did not agree, so nothing was sent"}},
		{"nothing", run, "\n", exitError, 0, []string{"you did not agree"}},
		{"something else", run, "yesterday\n", exitError, 0, []string{"you did not agree"}},
		{"end of input", run, "\x04", exitError, 0, []string{"Send it? [y/N] \r\nagentic: you did not agree"}},
		{"interrupt", run, "\x03", exitError, 0, []string{"\r\nagentic: interrupted: nothing was sent by this command"}},
		{"prepare asks nothing", append([]string{"prepare"}, append(run[1:], "--request-id", "prepared-1")...), "", exitOK, 0, nil},
		{"resume --send, no", append([]string{"resume", "prepared-1", "--send"}, reach...), "n\n", exitError, 0, []string{"request ID  prepared-1", "you did not agree"}},
		{"resume --send, yes", append([]string{"resume", "prepared-1", "--send"}, reach...), "yes\n", exitOK, 1, []string{`"subject": "Printer"`}},
		{"yes", append(run, "--request-id", "agreed-1"), "Y\n", exitOK, 2, []string{
			"This would be sent, once:", "origin      " + s.Origin, "action      create-ticket", `Create \x1b[31ma \u202esupport ticket`,
			"principal   default", "environment default", `"subject": "Printer"`, "Send it? [y/N]"}},
		{"what was attempted is not asked about", append(run, "--request-id", "agreed-1"), "", exitOK, 2, []string{"already saved: it is not sent again"}},
		{"an ID that is none is not asked about", append(run, "--request-id", "short"), "", exitUsage, 2, []string{"is not 8 to 128 characters"}},
		{"standard input is taken", append([]string{"run", profile, "--input", "-"}, reach...), "", exitUsage, 2, []string{"cannot hold both"}},
	} {
		code, out, shown := converse(t, command(t, tt.args...), "", tt.answer)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d; the terminal showed:\n%q", tt.name, code, tt.code, shown)
		}
		for _, want := range tt.shown {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: the terminal showed no %q:\n%s", tt.name, want, shown)
			}
		}
		if tt.code == exitUsage && strings.Contains(shown, "Send it?") {
			t.Errorf("%s: was asked:\n%s", tt.name, shown)
		}
		if strings.ContainsAny(shown+out, "\x1b\u202e") {
			t.Errorf("%s: the publisher's words drive the terminal: %q", tt.name, shown)
		}
		if state, err := s.State(t.Context()); err != nil || state.Posts != tt.posts {
			t.Errorf("%s: %d POSTs, want %d (%v)", tt.name, state.Posts, tt.posts, err)
		}
	}
	// Of the requests that were declined nothing is saved.
	_, list, _ := exitOf(t, command(t, "requests", "list", "--ledger", ledger))
	if lines := strings.Count(list, "\n"); lines != 3 {
		t.Errorf("the ledger has more than the two requests that were agreed to:\n%s", list)
	}
}

// What was typed before the question is no answer to it.
func TestTypedAhead(t *testing.T) {
	s := startTestTickets(t, "normal")
	run := []string{"run", s.Origin + "/agentic.json", "--approve", s.Origin, "--allow-loopback", "--input", `{"subject":"x"}`}
	for _, tt := range []struct {
		early, answer string
		code, posts   int
	}{
		{"y\ny\nyes\n", "\n", exitError, 0},
		{"y\n", "n\n", exitError, 0},
		{"y", "\n", exitError, 0},
		{"n\n", "y\n", exitOK, 1},
	} {
		code, _, shown := converse(t, command(t, run...), tt.early, tt.answer)
		state, err := s.State(t.Context())
		if err != nil || code != tt.code || state.Posts != tt.posts || !strings.Contains(shown, "Send it?") {
			t.Errorf("%q and then %q: exit code %d, %d POSTs (%v), shown:\n%s", tt.early, tt.answer, code, state.Posts, err, shown)
		}
	}
}
