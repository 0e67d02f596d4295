package conformcmd

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/ticket"
)

const input = `{"subject":"a test"}`

func exampleProfile(t *testing.T) string {
	t.Helper()
	return string(ticket.Profile("https://support.example"))
}

// ticketService is the reference service on a port of its own.
func ticketService(t *testing.T) (origin string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	origin = "http://" + srv.Listener.Addr().String()
	s, err := ticket.Open(t.Context(), ticket.Config{Origin: origin, Path: filepath.Join(t.TempDir(), "tickets.db")})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = s.Handler()
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return origin
}

func TestService(t *testing.T) {
	origin := ticketService(t)
	dir := t.TempDir()
	report, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	h := &house{live: true, stdin: input}
	args := []string{"service", origin + "/agentic.json", "--approve", origin, "--allow-loopback", "--input", "-", "--i-own-this-service",
		"--seed", "7", "--report", report, "--html", page, "--repeat", "2"}
	args = append(args, onlyTwo(t)...)
	if err := h.run(t, args...); err != nil || h.failed {
		t.Fatalf("%v, failed %v\n%s", err, h.failed, h.stdout.String())
	}
	if out := h.stdout.String(); !strings.Contains(out, conformance.Statement) || !strings.Contains(out, "2 checks") || h.asked != "" {
		t.Errorf("asked %q, printed\n%s", h.asked, out)
	}
	if want := "1/2 2/2 0/0"; strings.Join(h.progress, " ") != want {
		t.Errorf("progress %v", h.progress)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := conformance.ParseReport(b)
	if err != nil || rep.Kind != conformance.Service || rep.Seed != 7 || rep.Repeat != 2 || rep.Tool.Version != "test" || rep.Subject.Origin != origin || len(rep.Checks) != 2 {
		t.Errorf("%+v, %v", rep, err)
	}
	if b, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(b), "<!DOCTYPE html>") {
		t.Errorf("page %.20q, %v", b, err)
	}
}

// onlyTwo are --only flags for the first two checks.
func onlyTwo(t *testing.T) (args []string) {
	t.Helper()
	for _, c := range checks(conformance.Service)[:2] {
		args = append(args, "--only", c.ID)
	}
	return args
}

// The owner is asked before anything is sent, and told what.
func TestServiceConsent(t *testing.T) {
	origin := ticketService(t)
	args := append([]string{"service", origin + "/agentic.json", "--approve", origin, "--allow-loopback", "--input", input,
		"--header-from-env", "Authorization=FIRST", "--second-principal-header-from-env", "X-Other=SECOND", "--json"}, onlyTwo(t)...)
	env := map[string]string{"FIRST": "first-secret", "SECOND": "second-secret"}
	no := &house{env: env, terminal: true, answer: errors.New("no")}
	if err := no.run(t, args...); err == nil || !strings.Contains(err.Error(), "you did not agree") || no.stdout.Len() > 0 {
		t.Errorf("%v\n%s", err, no.stdout.String())
	}
	for _, want := range []string{origin + "\n", "create-ticket", fmt.Sprintf("at most %d\n", servicekit.DefaultMaxRequests), "Authorization", "X-Other", `{"subject":"a test"}`, "makes real resources", "[y/N]"} {
		if !strings.Contains(no.asked, want) {
			t.Errorf("the question has no %q:\n%s", want, no.asked)
		}
	}
	if strings.Contains(no.asked, "secret") {
		t.Errorf("the question tells a credential:\n%s", no.asked)
	}
	yes := &house{env: env, terminal: true}
	if err := yes.run(t, args...); err != nil || yes.asked == "" {
		t.Fatalf("%v, asked %q", err, yes.asked)
	}
	if rep, err := conformance.ParseReport(yes.stdout.Bytes()); err != nil || len(rep.Checks) != 2 || strings.Contains(yes.stdout.String(), "secret") {
		t.Errorf("%v\n%s", err, yes.stdout.String())
	}
	usage(t, (&house{env: env}).run(t, args...), "no terminal to ask on")
}

// A wrong command line is refused before anything is read or sent.
func TestServiceUsage(t *testing.T) {
	profile := save(t, t.TempDir(), "agentic.json", exampleProfile(t))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--input", input}, "the profile is missing"},
		{[]string{profile}, "--input is missing"},
		{[]string{"-", "--input", "-"}, "standard input can hold only one"},
		{[]string{profile, "--input", "@-", "--other-input", "-"}, "standard input can hold only one"},
		{[]string{profile, "--input", input, "--other-action", "x"}, "belong together"},
		{[]string{profile, "--input", input, "--other-action-input", input}, "belong together"},
		{[]string{profile, "--input", input, "--action", "x", "--other-action", "x", "--other-action-input", input}, "is the action itself"},
		{[]string{profile, "--input", input, "--count-pointer", "/total"}, "--count-pointer says nothing"},
		{[]string{profile, "--input", input, "--max-requests", "-1"}, "--max-requests -1"},
		{[]string{profile, "--input", input, "--max-requests", "0"}, "--max-requests 0 is below one"},
		{[]string{profile, "--input", input, "--count-url", "https://other.example/count"}, "--count-url https://other.example/count is not a root-relative path"},
		{[]string{profile, "--input", input, "--count-url", "/count", "--count-pointer", "total"}, "--count-pointer total is not a JSON Pointer"},
		{[]string{profile, "--input", input, "--settle", "-1s"}, "--settle -1s"},
		{[]string{profile, "--input", input, "--repeat", "0"}, "--repeat 0"},
		{[]string{profile, "--input", input, "--only", "absent"}, `no check is named by "absent"`},
		{[]string{profile, "--input", input, "--restart-command", "systemctl restart x"}, "--restart-command is not JSON"},
		{[]string{profile, "--input", input, "--restart-command", `"systemctl"`}, "names no program"},
		{[]string{profile, "--input", input, "--restart-command", `["a", 1]`}, "no text"},
		{[]string{profile, "--input", input, "--restart-command", `[""]`}, "names no program"},
		{[]string{profile, "--input", input, "--header-from-env", "A=ABSENT"}, "--header-from-env A=ABSENT"},
		{[]string{profile, "--input", input, "--second-principal-header-from-env", "A=ABSENT"}, "--second-principal-header-from-env A=ABSENT"},
		{[]string{profile, "--input", input, "--header-from-env", "A=ONE", "--second-principal-header-from-env", "a=ONE"}, "has the headers of --header-from-env"},
	} {
		h := &house{env: map[string]string{"ONE": "1"}}
		usage(t, h.run(t, append([]string{"service", "--i-own-this-service"}, tt.args...)...), tt.want)
	}
	h := &house{terminal: true, stdin: input}
	usage(t, h.run(t, "service", profile, "--input", "-"), "your answer")
}

// What is wrong with the documents and the inputs is told before consent is asked for.
func TestServiceInputs(t *testing.T) {
	dir := t.TempDir()
	profile, openapi := save(t, dir, "agentic.json", exampleProfile(t)), save(t, dir, "openapi.json", string(ticket.OpenAPI("https://support.example")))
	run := func(args ...string) error {
		h := &house{terminal: true, answer: errors.New("no")}
		err := h.run(t, append([]string{"service", profile, openapi}, args...)...)
		if h.asked != "" {
			t.Errorf("%v: the owner was asked", args)
		}
		return err
	}
	approved := []string{"--approve", "https://support.example"}
	if err := run("--input", input); err == nil {
		t.Error("an origin that is not approved is taken")
	} else if _, ok := errors.AsType[*client.OriginError](err); !ok {
		t.Error(err)
	}
	if err := run(append(approved, "--input", `{"subject":`)...); err == nil {
		t.Error("an input that is no JSON is taken")
	} else if _, ok := errors.AsType[*agentic.InputError](err); !ok {
		t.Error(err)
	}
	advised(t, run(append(approved, "--input", input, "--other-input", `[]`)...), "invalid-input", "--other-input: ")
	advised(t, run(append(approved, "--input", input, "--other-input", `{ "subject" : "a\u0020test" }`)...), "invalid-input", "--other-input: it is the same as --input")
	advised(t, run(append(approved, "--input", input, "--refused-input", `[]`)...), "invalid-input", "--refused-input: the input is not a JSON object")
	const forbidden = `{"subject":"forbidden"}`
	for _, args := range [][]string{{"--input", forbidden}, {"--input", input, "--other-input", forbidden}} {
		err := run(append(approved, args...)...)
		if e, ok := errors.AsType[*agentic.InputError](err); !ok || len(e.Diagnostics) != 1 {
			t.Errorf("%v: what the schema forbids would be sent: %v", args, err)
		}
	}
	usage(t, run(append(approved, "--input", input, "--other-action", "create-ticket", "--other-action-input", `{}`)...), "--other-action is the action itself")
	advised(t, run(append(approved, "--input", input, "--other-action", "x", "--other-action-input", `{}`)...), "unknown-action", `no action "x"`)
	if err := run(append(approved, "--input", "@"+filepath.Join(dir, "absent"))...); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What is refused may be anything but no object; and what the limit of requests left out is
// said beside the report.
func TestServiceSpent(t *testing.T) {
	origin := ticketService(t)
	h := &house{}
	err := h.run(t, "service", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--input", input, "--refused-input", `{"subject":"forbidden","more":[]}`,
		"--i-own-this-service", "--max-requests", "3", "--only", "status/*", "--only", "repeat/refused")
	if err != nil {
		t.Fatal(err)
	}
	if said := h.stderr.String(); !strings.Contains(said, "checks were not exercised, because the limit of requests was used up: give a larger --max-requests") {
		t.Errorf("said %q", said)
	}
}

// A run that is given up says that something may have been made.
func TestServiceInterrupted(t *testing.T) {
	origin := ticketService(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := &house{terminal: true}
	cmd := New(h, cancelled{h, cancel}).Conformance()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"service", origin + "/agentic.json", "--approve", origin, "--allow-loopback", "--input", input}, onlyTwo(t)...))
	advised(t, cmd.ExecuteContext(ctx), "interrupted", "may have made resources")
}

// cancelled gives up when the owner has agreed.
type cancelled struct {
	*house
	cancel func()
}

func (c cancelled) Ask(context.Context, []byte, string, string) error { c.cancel(); return nil }

func TestRestarter(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "a b")
	restart, err := restarter(`["/bin/sh", "-c", "echo again >> \"$0\"; sleep 5 & exec true", "`+mark+`"]`, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now() // what it leaves behind does not hold the command back
	if err := restart(t.Context()); err != nil || time.Since(begin) > 4*time.Second {
		t.Error(err)
	}
	if b, err := os.ReadFile(mark); err != nil || string(b) != "again\n" {
		t.Errorf("%q, %v", b, err)
	}
	restart, err = restarter(`["/bin/sh", "-c", "exit 3"]`, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := restart(t.Context()); err == nil || !strings.Contains(err.Error(), "the restart command: exit status 3") {
		t.Error(err)
	}
	restart, err = restarter(`["/bin/sh", "-c", "exec sleep 60"]`, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := restart(t.Context()); err == nil || !strings.Contains(err.Error(), "did not end within 100ms") {
		t.Error(err)
	}
	if none, err := restarter("", 0); none != nil || err != nil {
		t.Error("no command is a function")
	}
}
