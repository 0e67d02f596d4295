package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
)

// What to do about a ledger depends on what is the matter with it, and is never to
// use another one.
func TestLedgerRemedies(t *testing.T) {
	const never = "Do not use another ledger for an action that may be in this one"
	for _, tt := range []struct {
		reason error
		want   []string
	}{
		{sqlite.ErrNewer, []string{"Use the version of this program that wrote it", never}},
		{sqlite.ErrOlder, []string{"'agentic ledger migrate' and the same --ledger", never}},
		{sqlite.ErrCorrupt, []string{"restore it from a copy", "start none of its actions anew", never}},
		{sqlite.ErrFull, []string{"Make room", never}},
		{sqlite.ErrReadOnly, []string{"whether you may write", never}},
		{sqlite.ErrBusy, []string{"which program has it open", never}},
		{sqlite.ErrPlace, []string{"Look at its name"}},
		{errors.New("something"), []string{"Mend this ledger", never}},
	} {
		err := &client.LedgerError{Op: "open", Err: tt.reason}
		a := &app{ledgerArgs: " --ledger x"}
		for _, shown := range []error{err, unsettled(err, "request-1", true, false)} {
			f := a.explain(shown)
			for _, want := range tt.want {
				if f.Code != "ledger" || !strings.Contains(f.Remedy, want) {
					t.Errorf("%v: %s with the remedy %q, want %q", tt.reason, f.Code, f.Remedy, want)
				}
			}
			if strings.Contains(f.Remedy, "another place") {
				t.Errorf("%v: %s", tt.reason, f.Remedy)
			}
		}
	}
}

// A command line that contradicts itself, or names what cannot be, is refused with
// exit code 2 before anything is read, sent or made.
func TestContradictions(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("AGENTIC_LEDGER", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", dir)
	t.Setenv("FILLED", "value")
	t.Setenv("EMPTY", "")
	run := []string{"run", "absent.json", "--yes"}
	with := func(args ...string) []string { return append(slices.Clone(run), args...) }
	for _, tt := range []struct {
		args []string
		want string
	}{
		{with("--input", "{}", "--input", `{"a":1}`), "--input is given twice, with different values"},
		{with("--input", "{}", "--principal", "ann", "--principal", "bob"), "--principal is given twice"},
		{with("--input", "{}", "--request-id", "request-1", "--request-id", "request-2"), "--request-id is given twice"},
		{with("--input", "{}", "--yes=false"), "--yes is given twice"},
		{[]string{"requests", "list", "--limit", "1", "--limit", "2"}, "--limit is given twice"},
		{[]string{"serve", "--fault", "normal", "--fault", "late"}, "--fault is given twice"},
		{with("--input", ""), "--input may not be empty"},
		{with("--input", "{}", "--ledger", ""), "--ledger may not be empty"},
		{with("--input", "{}", "--principal", ""), "--principal may not be empty"},
		{[]string{"requests", "list", "--principal", "\t "}, "--principal is blank"},
		{[]string{"requests", "show", "request-1", "--environment", " "}, "--environment is blank"},
		{[]string{"requests", "show", ""}, "is not 8 to 128"},
		{with("--input", "{}", "--header-from-env", "Authorization=FILLED", "--header-from-env", "AUTHORIZATION=FILLED"), "this header is given twice"},
		{with("--input", "{}", "--header-from-env", "Authorization=ABSENT_VARIABLE"), "ABSENT_VARIABLE is not set\n  Set it"},
		{with("--input", "{}", "--header-from-env", "Authorization=EMPTY"), "EMPTY is empty\n  Give it a value"},
		{with("--input", "{}", "--approve", "https://münchen.de"), "--approve https://münchen.de: it holds a character that is not visible ASCII"},
		{with("--input", "{}", "--approve", "http://a.example"), "HTTP is for localhost, 127.0.0.1 and [::1] only\n  Write it as"},
		{with("--input", "{}", "--approve", "http://localhost:1"), "add --allow-loopback"},
		{[]string{"run", "-", "--input", "-", "--yes"}, "standard input can hold only one"},
		{[]string{"run", "-", "--openapi", "-", "--input", "{}", "--yes"}, "standard input can hold only one"},
		{with("--openapi", "-", "--input", "@-"), "standard input can hold only one"},
		{[]string{"requests", "list", "--ledger", ":memory:"}, "the ledger :memory: is not the name of a file"},
		{[]string{"requests", "list", "--ledger", "postgres:/ann:secret@db/agent"}, "the ledger is neither the name of a file nor a URL"},
		{[]string{"requests", "list", "--action", "\xff"}, "--action is not UTF-8"},
		{[]string{"requests", "export", "--origin", "https://Support.example/"}, "--origin \"https://Support.example/\": it"},
		{with("--input", "{}", "--principal", "an\nn\x1b[31m"), "--principal has a control character in it"},
		{with("--input", "{}", "--environment", "te\tst"), "--environment has a control character in it"},
		{with("--input", "{}", "--principal", "\xff"), "--principal is not UTF-8\n  Give the name in UTF-8."},
		{[]string{"requests", "attest", "failed", "request-1", "--reason", "x", "--by", "an\nn"}, "--by has a control character in it"},
		{[]string{"requests", "attest", "foo", "request-1", "--reason", "x"}, "there is no command \"foo\""},
		{[]string{"work"}, "--approve is missing"},
		{[]string{"requests", "list", "--ledger", "file:x?mode=memory"}, "is not the name of a file"},
	} {
		code, out, diag := runHere(t, tt.args...)
		if code != exitUsage || out != "" || !strings.Contains(diag, tt.want) || strings.Count(diag, "\n  ") != 1 {
			t.Errorf("%q: exit code %d, stdout %s, stderr %s; want %q", tt.args, code, out, diag, tt.want)
		}
	}
	for _, args := range [][]string{with("--input", "{}", "--input", "{}"), with("--input", "{}", "--yes")} {
		if code, _, diag := runHere(t, args...); code != exitError || !strings.Contains(diag, "absent.json") {
			t.Errorf("the same twice: %q: exit code %d, stderr %s", args, code, diag)
		}
	}
	t.Setenv("HOME", "relative")
	if code, _, diag := runHere(t, "requests", "list"); code != exitUsage || !strings.Contains(diag, "there is no place for the ledger") {
		t.Errorf("a relative HOME: exit code %d, stderr %s", code, diag)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v was made (%v)", left, err)
	}
}

// --json holds wherever it stands, with every value of a boolean, and for command
// lines that are not understood.
func TestJSONAnywhere(t *testing.T) {
	for _, tt := range []struct {
		args string
		exit int
		want string // part of stdout; "" is none
	}{
		{"nosuch --json", exitUsage, `"message":"there is no command \"nosuch\""`},
		{"--json nosuch", exitUsage, `"message":"there is no command \"nosuch\""`},
		{"requests nosuch --json", exitUsage, `"message":"there is no command \"nosuch\""`},
		{"requests --json nosuch", exitUsage, `"message":"there is no command \"nosuch\""`},
		{"completion nosuch --json", exitUsage, `"message":"there is no command \"nosuch\""`},
		{"--json", exitUsage, `"message":"a command is missing"`},
		{"--json version", exitOK, `{"version":`},
		{"--json requests list --ledger absent.db", exitError, `"code":"ledger"`},
		{"requests --json list --ledger absent.db", exitError, `"code":"ledger"`},
		{"run --json=true --bogus", exitUsage, `"message":"unknown flag: --bogus"`},
		{"run --bogus --json=1", exitUsage, `"message":"unknown flag: --bogus"`},
		{"run --bogus --json=false", exitUsage, ""},
		{"run --bogus --json=maybe", exitUsage, ""},
		{"run --bogus -- --json", exitUsage, ""},
		{"version --json=maybe", exitUsage, ""},
	} {
		code, out, diag := runHere(t, strings.Fields(tt.args)...)
		if code != tt.exit || !strings.Contains(out, tt.want) || (out == "") != (tt.want == "") || strings.Count(out, "\n") > 1 || strings.Contains(out, "Usage") {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", tt.args, code, out, diag)
		}
		if strings.Contains(diag, "strconv") || strings.Contains(tt.args, "=maybe") && !strings.Contains(tt.args, "bogus") && !strings.Contains(diag, `--json cannot be "maybe"`) {
			t.Errorf("%s: stderr %s", tt.args, diag)
		}
	}
}

// A problem is reported with the name of the file that has it, and a size that
// nobody measured is not told.
func TestDiagnosticsNameTheFile(t *testing.T) {
	s := startTestTickets(t, "normal")
	dir := t.TempDir()
	file := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profile, openapi := file("a.json", string(ticket.Profile(s.Origin))), file("o.json", string(ticket.OpenAPI(s.Origin)))
	broken := file("broken.json", "{\n  x")
	marked := file("marked.json", "\ufeff{}")
	big := func(n int) string { return file("big.json", strings.Repeat(" ", n)) }
	reach := []string{"--approve", s.Origin, "--allow-loopback", "--ledger", filepath.Join(dir, "ledger.db"), "--yes"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run", broken, "--input", "{}"}, broken + ":2:3: error: "},
		{[]string{"prepare", profile, "--openapi", broken, "--input", "{}"}, broken + ":2:3: error: "},
		{[]string{"run", profile, "--openapi", openapi, "--input", "@" + broken}, broken + ":2:3: error: "},
		{[]string{"run", profile, "--openapi", openapi, "--input", "{"}, "\ninput:1:2: error: "},
		{[]string{"run", s.Origin + "/openapi.json", "--input", "{}"}, s.Origin + "/openapi.json:"},
		{[]string{"run", s.Origin + "/absent.json", "--input", "{}"}, "cannot read the profile " + s.Origin + "/absent.json: "},
		{[]string{"run", big(agentic.MaxProfileBytes + 2), "--input", "{}"}, "There are more than 65536 bytes"},
		{[]string{"run", profile, "--openapi", openapi, "--input", `{"subject":"x","n":1e400}`}, "\ninput:1:20: error: The number is beyond 1e300"},
		{[]string{"run", marked, "--input", "{}"}, "emove the byte order mark"},
	} {
		code, _, diag := runHere(t, append(tt.args, reach...)...)
		if code != exitError || !strings.Contains(diag, tt.want) {
			t.Errorf("%s: exit code %d, stderr %s; want %q", tt.args, code, diag, tt.want)
		}
	}
	for _, tt := range []struct {
		args []string
		size int
		want string
	}{
		{[]string{"validate", filepath.Join(dir, "big.json")}, 1 << 20, "There are more than 65536 bytes"},
		{[]string{"validate", profile, filepath.Join(dir, "big.json"), "--allow-loopback"}, 1 << 20, "There are more than 262144 bytes"},
		{append([]string{"run", profile, "--openapi", openapi, "--input", "@" + filepath.Join(dir, "big.json")}, reach...), 2 << 20, "There are more than 1048576 bytes"},
		{append([]string{"run", profile, "--openapi", filepath.Join(dir, "big.json"), "--input", "{}"}, reach...), 1 << 20, "There are more than 262144 bytes"},
	} {
		big(tt.size)
		code, out, diag := runHere(t, tt.args...)
		if code != exitError || !strings.Contains(out+diag, tt.want) || !strings.Contains(out+diag, "big.json:") {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s; want %q", tt.args, code, out, diag, tt.want)
		}
	}
	if state, err := s.State(t.Context()); err != nil || state.Posts != 0 {
		t.Errorf("%d POSTs (%v)", state.Posts, err)
	}
}

// An input that was not held against the request schema says so in the JSON of
// prepare too.
func TestUncheckedIsSaid(t *testing.T) {
	dir := t.TempDir()
	profile, openapi := filepath.Join(dir, "a.json"), filepath.Join(dir, "o.json")
	const origin = "https://support.example"
	foreign := strings.Replace(string(ticket.OpenAPI(origin)), `"subject": {`, `"subject": { "$ref": "https://a.example/x\u001b",`, 1)
	for name, body := range map[string]string{profile: string(ticket.Profile(origin)), openapi: foreign} {
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"prepare", profile, "--openapi", openapi, "--approve", origin, "--input", `{"subject":"x"}`, "--json", "--ledger", filepath.Join(dir, "ledger.db")}
	code, out, diag := runHere(t, args...)
	var got struct {
		Unchecked string `json:"input_unchecked"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || !strings.Contains(got.Unchecked, "cannot be checked by this program") ||
		!strings.Contains(diag, "the input was not checked against the request schema: "+got.Unchecked) || strings.Contains(out+diag, "\x1b") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
}

// A suggested command that is pasted into a shell has the words that were meant,
// whatever a file or a principal is called.
func TestSuggestedCommandsCanBeCopied(t *testing.T) {
	for _, name := range []string{"it's", `back\slash`, "a b", "$(id)", "-x", "tab\there", "line\nbreak", "\x1b[31m", "\u202e", "ä", "\xff", "~/x", "'", `\'`, "é\u0301\u0301"} {
		lf := ledgerFlags{path: name, principal: name, environment: defaultScope}
		a := &app{ledgerArgs: lf.args(), reachArgs: (&reachFlags{approve: []string{"http://[::1]:80"}}).args()}
		f := a.explain(unsettled(client.ErrLost, "-request-1", true, true))
		_, line, _ := strings.Cut(f.Remedy, ": ")
		got, err := exec.CommandContext(t.Context(), "bash", "-c", `agentic() { printf '%s\n--\n' "$@"; }; `+line).Output()
		if err != nil {
			t.Fatalf("%q: %v in %s", name, err, line)
		}
		want := strings.Join([]string{"resume", "--ledger", name, "--principal", name, "--approve", "http://[::1]:80", "--", "-request-1", ""}, "\n--\n")
		if string(got) != want {
			t.Errorf("%s gives %q, want %q", line, got, want)
		}
	}
}
