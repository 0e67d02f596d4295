package clientkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/ticket"
)

func TestMain(m *testing.M) {
	if args := os.Args; len(args) == 3 && args[1] == "as-program" {
		os.Exit(programs[args[2]]())
	}
	code := m.Run()
	if dir := built.dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

var built struct {
	once sync.Once
	dir  string
	path string
	out  string
	err  error
}

// honest is this project's own client, built once.
func honest(t *testing.T) Adapter {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "clientkit-test-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "agentic.exe")
		cmd := exec.Command("go", "build", "-o", built.path, "github.com/agentic-go/agentic/cmd/agentic")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as 'make build' has it: nothing is compiled once more
		out, err := cmd.CombinedOutput()
		built.out, built.err = string(out), err
	})
	if built.err != nil {
		t.Fatal(built.err, built.out)
	}
	return Adapter{Name: "agentic-go", Authorship: AuthorshipProject, Command: []string{built.path, "adapter"}, Features: []string{FeatureTestNow, FeatureActionID}}
}

func run(t *testing.T, c Config) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // on a machine that is busy otherwise
	defer cancel()
	rep, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// failures are the expectations of a check that did not hold, and its errors.
func failures(r conformance.Result) string {
	var all []string
	for _, try := range r.Tries {
		for _, e := range try.Expectations {
			if !e.OK {
				all = append(all, e.What+": expected "+e.Expected+", found "+e.Found)
			}
		}
		if try.Error != "" {
			all = append(all, "error: "+try.Error)
		}
		all = append(all, try.Notes...)
	}
	return strings.Join(all, "\n  ")
}

// TestOurClientPasses has the checks that need a process, or a feature that the clients of
// these tests lack. internal/proof/kits holds the client against all checks.
func TestOurClientPasses(t *testing.T) {
	begin := time.Now()
	rep := run(t, Config{Adapter: honest(t), Parallel: 8, Seed: 1, Match: []string{
		"Scenarios of the draft", "Crashes", "Two processes", "Resuming", "Receipts", "Time", "Several actions"}})
	t.Logf("%d checks in %s", len(rep.Checks), time.Since(begin).Round(time.Millisecond))
	for _, c := range rep.Checks {
		if c.Status != conformance.Passed && !untriable(c) {
			t.Errorf("%s is %s: %s\n  %s", c.ID, c.Status, c.Missing, failures(c))
		}
	}
}

// untriable reports whether it is the system that lacks an address of a check.
func untriable(c conformance.Result) bool {
	return runtime.GOOS != "linux" && c.Status == conformance.NotExercised && strings.Contains(c.Missing, "127.0.0.2")
}

func TestChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.ID] || !idForm.MatchString(c.ID) {
			t.Errorf("the ID %q is twice there or not of the form", c.ID)
		}
		seen[c.ID] = true
		decision := slices.ContainsFunc(c.Sections, func(s string) bool { return strings.HasPrefix(s, "D") })
		section := slices.ContainsFunc(c.Sections, func(s string) bool { return !strings.HasPrefix(s, "D") })
		if !section || decision && c.Level == conformance.Must {
			t.Errorf("%s of level %s cites %q: a MUST is of the draft alone", c.ID, c.Level, c.Sections)
		}
		if c.Group == "" || c.Title == "" || !strings.HasSuffix(c.Asks, ".") || strings.HasSuffix(c.Title, ".") {
			t.Errorf("%s lacks words: %+v", c.ID, c)
		}
	}
	for _, id := range []string{"normal", "response-lost", "status-unavailable", "stale-read", "wrong-evidence", "pending", "restart-after-submit"} {
		if !seen[id] {
			t.Errorf("the draft's scenario %s is not there", id)
		}
	}
	for _, f := range ticket.Faults() {
		if !seen[f.Name] && !seen["service/"+f.Name] {
			t.Errorf("no check for the fault %s of the reference service", f.Name)
		}
	}
}

var idForm = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)*$`)

func TestRunRefuses(t *testing.T) {
	good := Adapter{Name: "a", Authorship: AuthorshipProject, Command: []string{os.Args[0]}}
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"no adapter":  {Config{}, "adapter"},
		"no program":  {Config{Adapter: Adapter{Name: "a", Authorship: AuthorshipProject, Command: []string{"./there-is-none"}}}, "program"},
		"no check":    {Config{Adapter: good, Match: []string{"normal", "abnormal"}}, `no check is named by "abnormal"`},
		"bad pattern": {Config{Adapter: good, Match: []string{"["}}, "pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want one that says %s", err, c.says)
			}
		})
	}
}

// TestRepeat: identities follow from the seed, and differ from run to run of a check.
func TestRepeat(t *testing.T) {
	identities := func(seed uint64) string {
		rep := inside(lying{madeUp: true}.main).try(t, Config{Match: []string{"normal"}, Repeat: 2, Seed: seed})
		var all []string
		for _, try := range rep.Checks[0].Tries {
			all = append(all, regexp.MustCompile(`"request_id":"[^"]*"`).FindString(strings.Join(try.Notes, " ")))
		}
		return strings.Join(all, " ")
	}
	one, again, two := identities(1), identities(1), identities(2)
	if first, second, _ := strings.Cut(one, " "); one != again || one == two || first == second || first == "" {
		t.Errorf("identities: %s; again %s; of another seed %s", one, again, two)
	}
}

// TestGivesUp: a client that never ends is not called hundreds of times.
func TestGivesUp(t *testing.T) {
	rep := inside(lying{hangs: true}.main).try(t, Config{Timeout: 20 * time.Millisecond})
	if rep.OK() || rep.Summary.Failed+rep.Summary.NotExercised < giveUp || rep.Summary.Failed > giveUp || rep.Summary.Errors < len(rep.Checks)-giveUp-20 {
		t.Errorf("%+v of %d", rep.Summary, len(rep.Checks))
	}
	if last := rep.Checks[len(rep.Checks)-1]; last.Status != conformance.Broken || !strings.Contains(last.Tries[0].Error, "5 checks in a row") {
		t.Errorf("the last check is %s: %+v", last.Status, last.Tries)
	}
}
