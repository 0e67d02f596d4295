package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/ticket"
)

// TestMain makes this test binary the agentic command as well, for scripts and
// for tests that need a process. Under the race detector every process would sleep
// for a second before it ends.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	testscript.Main(m, map[string]func(){"agentic": func() { os.Exit(Main()) }})
}

// TestScripts runs testdata/script. With UPDATE_SCRIPTS=1 it rewrites what their
// cmp commands expect.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("AGENTIC_LEDGER", filepath.Join(e.WorkDir, "state", "ledger.db"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "tickets": startService, "counted": counted, "capture": capture, "crash": crash,
		},
	})
}

// The README counts the faults; normal is none.
func TestReadmeCountsFaults(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("each of %d ways in which a service can misbehave", len(ticket.Faults())-1)
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// exits CODE PROGRAM ARG... runs a program that has to end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// capture NAME PREFIX SUFFIX sets a variable to what stands between the two in the
// last standard output.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture NAME PREFIX SUFFIX")
	}
	_, rest, found := strings.Cut(ts.ReadFile("stdout"), args[1])
	value, _, ended := strings.Cut(rest, args[2])
	if !found || !ended {
		ts.Fatalf("standard output has nothing between %q and %q", args[1], args[2])
	}
	ts.Setenv(args[0], value)
}

// services are the running ones by origin; scripts run side by side.
var (
	servicesMu sync.Mutex
	services   = make(map[string]*demo.Tickets)
)

// tickets FAULT starts a ticket service, sets ORIGIN, and writes its documents to
// agentic.json and openapi.json.
func startService(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tickets FAULT")
	}
	fault, err := ticket.ParseFault(args[0])
	ts.Check(err)
	s, err := demo.Start(context.Background(), "127.0.0.1:0", ticket.Config{Fault: fault}, nil)
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Stop()) })
	for _, name := range []string{"agentic.json", "openapi.json"} {
		res, err := http.Get(s.Origin + "/" + name)
		ts.Check(err)
		body, err := io.ReadAll(res.Body)
		ts.Check(errors.Join(err, res.Body.Close()))
		ts.Check(os.WriteFile(ts.MkAbs(name), body, 0o600))
	}
	ts.Setenv("ORIGIN", s.Origin)
	servicesMu.Lock()
	defer servicesMu.Unlock()
	services[s.Origin] = s
}

// crash ORIGIN ID SUBJECT has a host send a request and end before it knows what
// became of it. The ledger is that of AGENTIC_LEDGER.
func crash(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: crash ORIGIN ID SUBJECT")
	}
	cmd := exec.Command("agentic", "adapter")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"profile": %s, "openapi": %s, "request_id": %q, "input": {"subject": %q}, "ledger_path": %q, "test_crash_after_submit": true}`,
		ticket.Profile(args[0]), ticket.OpenAPI(args[0]), args[1], args[2], ts.Getenv("AGENTIC_LEDGER")))
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitCrashed {
		ts.Fatalf("%v: %s", err, out)
	}
}

// counted POSTS TICKETS compares the service's own counts.
func counted(ts *testscript.TestScript, neg bool, args []string) {
	servicesMu.Lock()
	s := services[ts.Getenv("ORIGIN")]
	servicesMu.Unlock()
	if neg || len(args) != 2 || s == nil {
		ts.Fatalf("usage: counted POSTS TICKETS, after tickets")
	}
	state, err := s.State(context.Background())
	ts.Check(err)
	if got, want := fmt.Sprint(state.Posts, state.Tickets), strings.Join(args, " "); got != want {
		ts.Fatalf("the service counts posts and tickets as %s, want %s", got, want)
	}
}
