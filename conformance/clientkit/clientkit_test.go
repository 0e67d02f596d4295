package clientkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

func TestMain(m *testing.M) {
	if l, ok := asLiar(os.Args); ok {
		os.Exit(l.main())
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
		out, err := exec.Command("go", "build", "-o", built.path, "github.com/agentic-go/agentic/cmd/agentic").CombinedOutput()
		built.out, built.err = string(out), err
	})
	if built.err != nil {
		t.Fatal(built.err, built.out)
	}
	return Adapter{Name: "agentic-go", Authorship: AuthorshipProject, Command: []string{built.path, "adapter"}, Features: []string{FeatureTestNow, FeatureActionID}}
}

func run(t *testing.T, c Config) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

func TestOurClientPasses(t *testing.T) {
	begin := time.Now()
	rep := run(t, Config{Adapter: honest(t), Parallel: 4, Seed: 1})
	t.Logf("%d checks in %s", len(rep.Checks), time.Since(begin).Round(time.Millisecond))
	for _, c := range rep.Checks {
		if c.Status != conformance.Passed {
			t.Errorf("%s is %s: %s\n  %s", c.ID, c.Status, c.Missing, failures(c))
		}
	}
}
