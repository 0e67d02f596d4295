package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/scenario"
	"github.com/agentic-go/agentic/internal/ticket"
)

// processTime bounds every process of these tests.
const processTime = 30 * time.Second

// command is a process of agentic, which is this test binary.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), processTime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "agentic", args...)
	cmd.Env = append(os.Environ(), "AGENTIC_LEDGER="+filepath.Join(t.TempDir(), "ledger.db"))
	return cmd
}

// exitOf runs a command to its end.
func exitOf(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode(), out.String(), diag.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), diag.String()
}

// serveProcess is 'agentic serve' as a process; it is stopped with SIGTERM and has
// to end well.
func serveProcess(t *testing.T, fault string, more ...string) (origin string) {
	t.Helper()
	return serving(t, command(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--fault", fault, "--inspect"}, more...)...), fault)
}

func serving(t *testing.T, cmd *exec.Cmd, fault string) (origin string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve did not stop cleanly: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var first struct{ Origin, Fault string }
	if err := json.Unmarshal(line, &first); err != nil || first.Fault != fault {
		t.Fatalf("first line of serve: %s (%v)", line, err)
	}
	return first.Origin
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: HTTP %d, %v", url, res.StatusCode, err)
	}
	return body
}

func stateOf(t *testing.T, origin string) ticket.State {
	t.Helper()
	var s ticket.State
	if err := json.Unmarshal(get(t, origin+"/__state"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The seven scenarios of the draft's compatibility runner, each against a service
// and through a client that are processes of their own.
func TestAdapterScenarios(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		restart     bool
		folder      bool // ledger_path is a folder
		want        agentic.Outcome
		tickets     int
	}{
		{"normal", "normal", false, false, agentic.Succeeded, 1},
		{"response-lost", "response-lost", false, false, agentic.Succeeded, 1},
		{"status-unavailable", "status-unavailable", false, false, agentic.Unknown, 1},
		{"stale-read", "stale-read", false, false, agentic.Succeeded, 1},
		{"wrong-evidence", "wrong-evidence", false, false, agentic.Unknown, 1},
		{"pending", "pending", false, false, agentic.Pending, 0},
		{"restart-after-submit", "normal", true, false, agentic.Succeeded, 1},
		{"restart with a folder as the ledger's place", "response-lost", true, true, agentic.Succeeded, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			origin := serveProcess(t, tt.fault)
			place := t.TempDir()
			if !tt.folder {
				place = filepath.Join(place, "adapter-state")
			}
			call := func(crash bool) (int, string, string) {
				cmd := command(t, "adapter")
				cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"profile": %s, "openapi": %s, "request_id": "scenario-1", "input": {"subject": "Printer"}, "ledger_path": %q, "test_crash_after_submit": %v}`,
					get(t, origin+"/agentic.json"), get(t, origin+"/openapi.json"), place, crash))
				return exitOf(t, cmd)
			}
			if tt.restart {
				code, out, diag := call(true)
				if code != exitCrashed || out != "" {
					t.Fatalf("crash: exit code %d, stdout %q, stderr:\n%s", code, out, diag)
				}
			}
			for n := range 2 { // the second call is a repeat
				code, out, diag := call(false)
				r, found := agentic.ParseReceipt([]byte(out))
				if code != 0 || r == nil {
					t.Fatalf("call %d: exit code %d, stdout %q (%v), stderr:\n%s", n, code, out, found, diag)
				}
				if r.Outcome != tt.want || r.RequestID != "scenario-1" || r.Origin != origin {
					t.Errorf("call %d: receipt %+v, want %s", n, r, tt.want)
				}
			}
			if s := stateOf(t, origin); s.Posts != 1 || s.Tickets != tt.tickets {
				t.Errorf("service state %+v, want 1 POST and %d tickets", s, tt.tickets)
			}
		})
	}
}

func TestAdapterRefuses(t *testing.T) {
	const origin = "http://127.0.0.1:1"
	whole := func(origin, more string) string {
		return fmt.Sprintf(`{"profile": %s, "openapi": %s, "request_id": "scenario-1", "input": {"subject": "x"}, "ledger_path": %q%s}`,
			ticket.Profile(origin), ticket.OpenAPI(origin), filepath.Join(t.TempDir(), "ledger"), more)
	}
	_, actions, _ := strings.Cut(string(ticket.Profile(origin)), `"actions": [`)
	other := strings.Replace(actions[:strings.LastIndex(actions, "]")], "create-ticket", "other", 1)
	for _, tt := range []struct{ name, stdin, want string }{ // want and a remedy
		{"nothing", "", "not a scenario"},
		{"an array", "[]", "it is not a JSON object"},
		{"several actions", strings.Replace(whole(origin, ""), `"actions": [`, `"actions": [`+other+",", 1), "the profile has 2 actions"},
		{"another action", whole(origin, `, "action_id": "\u001b[31m"`), `no action "\x1b[31m"; it has: create-ticket`},
		{"a time that is none", whole(origin, `, "test_now": "today"`), `"test_now" is not a time`},
		{"no request ID", strings.Replace(whole(origin, ""), "scenario-1", "?", 1), `"request_id" is "?"`},
		{"an input without its evidence", strings.Replace(whole(origin, ""), `"subject": "x"`, "", 1), "input: error: The input has no value at /subject"},
		{"a member given twice", whole(origin, `, "request_id": "scenario-2"`), "duplicate member"},
		{"a hostile member given twice", "{\n\"\\u001b\": 1, \"\\u001b\": 2}", "not a scenario: duplicate member name in line 2, column 14"},
		{"a wrong type", whole(origin, `, "test_crash_after_submit": "yes"`), `"test_crash_after_submit" is a string, not a boolean`},
		{"a missing member", `{"profile": {}}`, `"openapi" is nothing, not an object`},
		{"an origin that is not on loopback", whole("https://support.example", ""), "not http on loopback"},
		{"an invalid profile", strings.Replace(whole(origin, ""), `"create-ticket"`, `"?"`, 1), "a document is invalid"},
		{"too much", strings.Repeat(" ", scenario.MaxBytes+1), "longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := command(t, "adapter")
			cmd.Stdin = strings.NewReader(tt.stdin)
			code, out, diag := exitOf(t, cmd)
			if code != exitError || out != "" || !strings.Contains(diag, tt.want) || strings.Count(diag, "\n  ") < 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 1, a remedy and %q", code, out, diag, tt.want)
			}
		})
	}
}

// Each fault ends the demo in the outcome its name implies, with one POST; so it
// does when the client is killed after the POST, for one fault of each outcome.
func TestDemoFaults(t *testing.T) {
	check := func(t *testing.T, f ticket.FaultInfo, code int, out, diag string) {
		var d demo.Story
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("exit code %d, %v in %q, stderr:\n%s", code, err, out, diag)
		}
		if code != outcomeExit(f.Outcome) || d.Outcome != f.Outcome || d.Receipt.Outcome != f.Outcome || d.Service.Posts != 1 {
			t.Errorf("exit code %d, outcome %s, service %+v; want %s and 1 POST", code, d.Outcome, d.Service, f.Outcome)
		}
		if ds := d.Receipt.Validate(); ds.HasErrors() {
			t.Errorf("receipt: %v", ds)
		}
	}
	for _, f := range ticket.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			code, out, diag := runHere(t, "demo", "--fault", f.Name, "--json")
			check(t, f, code, out, diag)
		})
		if slices.Contains([]string{"normal", "late", "failed", "pending", "wrong-evidence"}, f.Name) {
			t.Run(f.Name+" and a crash", func(t *testing.T) {
				t.Parallel()
				code, out, diag := exitOf(t, command(t, "demo", "--fault", f.Name, "--crash", "--json"))
				check(t, f, code, out, diag)
			})
		}
	}
}

// serve answers a client that knows nothing of this program.
func TestServeOverHTTP(t *testing.T) {
	origin := serveProcess(t, "normal")
	post := func(subject string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, origin+"/tickets", strings.NewReader(`{"subject":"`+subject+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "curl-request-1")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var body struct{ ID string }
		if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, body.ID
	}
	first, id := post("Printer")
	again, same := post("Printer")
	other, _ := post("Other")
	if first != 201 || again != 200 || other != 409 || id == "" || id != same {
		t.Errorf("POSTs answered %d (%s), %d (%s), %d", first, id, again, same, other)
	}
	if body := get(t, origin+"/requests/curl-request-1"); !bytes.Contains(body, []byte(`"succeeded"`)) {
		t.Errorf("status %s", body)
	}
	if body := get(t, origin+"/tickets/"+id); !bytes.Contains(body, []byte(`"Printer"`)) {
		t.Errorf("ticket %s", body)
	}
	if diff := cmp.Diff(ticket.State{Posts: 3, Tickets: 1, Requests: 1, Reads: 2}, stateOf(t, origin)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
