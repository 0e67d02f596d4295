package cli

import (
	"bytes"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// On a terminal a person sees where a request stands and what a choice risks, and
// decides; and a purge shows how far it is.
func TestDeskQuestions(t *testing.T) {
	s := startTestTickets(t, "pending")
	ledger := []string{"--ledger", filepath.Join(t.TempDir(), "ledger.db")}
	reach := []string{"--approve", s.Origin, "--allow-loopback"}
	args := func(parts ...any) (list []string) {
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				list = append(list, strings.Fields(p)...)
			case []string:
				list = append(list, p...)
			}
		}
		return list
	}
	run := args("run", s.Origin+"/agentic.json", "--yes --request-id pending-1", reach, ledger, "--input", `{"subject":"x"}`)
	if code, _, diag := exitOf(t, command(t, run...)); code != exitPending {
		t.Fatalf("exit code %d: %s", code, diag)
	}
	supersede := args("requests supersede pending-1 --reason agreed", reach, ledger)
	abandon := args("requests abandon pending-1 --reason enough", ledger)
	next := desk.SuccessorID(client.Scope{Principal: defaultScope, Environment: defaultScope}, "pending-1")
	sendNext := args("resume --send", next, reach, ledger)
	runNext := args("run", s.Origin+"/agentic.json", "--request-id", next, reach, ledger, "--input", `{"subject":"x"}`)
	const risk = "risk        The first request may have happened; the new one may do it a second time."
	for _, tt := range []struct {
		name   string
		args   []string
		answer string
		code   int
		shown  []string
		stdout string
	}{
		{"supersede, no", supersede, "n\n", exitError, []string{"A new request would be made", "why         At 20", "the POST    It was answered with HTTP status 202", risk,
			"It may happen twice. Make the new request? [y/N] ", "you did not agree, so nothing was changed"}, ""},
		{"abandon, no", abandon, "\n", exitError, []string{"This would be taken off the desk:", "request     pending-1", "risk        Nobody will know", "Abandon it? [y/N] ", "you did not agree"}, ""},
		{"attest", args("requests attest failed pending-1 --reason absent --by ann", ledger), "", exitOK, nil, "request pending-1: attest-failed"},
		{"what was noted is told, and the risk", abandon, "n\n", exitError, []string{"settled     attest-failed at 20", "Z by ann: absent", "risk        Nobody will know"}, ""},
		{"with supersede, too", supersede, "n\n", exitError, []string{"settled     attest-failed at 20", risk}, ""},
		{"abandon, interrupt", abandon, "\x03", exitError, []string{"interrupted"}, ""},
		{"supersede, yes", supersede, "y\n", exitOK, []string{risk, "The first request may have happened", "To send the new one: agentic resume "}, "request pending-1 is superseded by request "},
		{"supersede again is not asked about", supersede, "", exitOK, nil, "request pending-1 was superseded before by request "},
		{"the successor says what it supersedes", sendNext, "n\n", exitError, []string{"supersedes  pending-1", "The request that it supersedes may have happened; then this does it a second time.", "you did not agree"}, ""},
		{"with run, too", runNext, "n\n", exitError, []string{"supersedes  pending-1", "The request that it supersedes may have happened", "you did not agree"}, ""},
		{"and where it is shown", args("requests show", next, ledger), "", exitOK, nil, "Risk: The request that it supersedes may have happened; then this does it a second time."},
		{"what is superseded is not asked about", abandon, "", exitError, []string{"request pending-1 cannot be abandoned: it was superseded by request " + next + "; abandon that one"}, ""},
		{"a purge shows how far it is", args("ledger purge --before 1ms --apply", ledger), "", exitOK, []string{"1 of 1", "\x1b[K"}, "requests      1\n"},
		{"a tombstone is not asked about", abandon, "", exitError, []string{"request pending-1 cannot be abandoned: it was purged"}, ""},
		{"the successor is abandoned", args("requests abandon --yes --reason enough", next, ledger), "", exitOK, nil, "request " + next + ": abandon at 20"},
		{"what is never sent is not asked about", sendNext, "", exitError, []string{"was never sent, and never will be"}, ""},
		{"nor with run", runNext, "", exitError, []string{"was never sent, and never will be"}, ""},
		{"it is purged", args("ledger purge --before 1ms --apply", ledger), "", exitOK, []string{"1 of 1"}, "requests      1\n"},
		{"a tombstone is not asked about, not even where it may go", args("resume --send", next, ledger), "", exitError, []string{"was purged at 20", "its ID cannot be used again"}, ""},
		{"nor with run ", runNext, "", exitError, []string{"was purged at 20"}, ""},
	} {
		code, out, shown := converse(t, command(t, tt.args...), "", tt.answer)
		if code != tt.code || !strings.Contains(out, tt.stdout) {
			t.Errorf("%s: exit code %d, want %d; stdout %q, want %q; the terminal showed:\n%s", tt.name, code, tt.code, out, tt.stdout, shown)
		}
		for _, want := range tt.shown {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: the terminal showed no %q:\n%s", tt.name, want, shown)
			}
		}
		if tt.answer == "" && strings.Contains(shown, "[y/N]") {
			t.Errorf("%s: was asked:\n%s", tt.name, shown)
		}
	}
	if state, err := s.State(t.Context()); err != nil || state.Posts != 1 {
		t.Errorf("%d POSTs, want 1 (%v)", state.Posts, err)
	}
}

// Without --by and AGENTIC_BY a note has the name that the machine knows.
func TestDeskKnowsWho(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := testApp(&out, &out)
	for by, want := range map[string]string{"ana": "ana", "": me.Username} {
		a.lookupEnv = func(string) (string, bool) { return by, by != "" }
		if got, _, _ := strings.Cut((host{a}).By(), "@"); got != want {
			t.Errorf("with AGENTIC_BY=%s it is %q, want %q", by, got, want)
		}
	}
}
