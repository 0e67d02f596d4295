package kits

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/conformance"
)

// runTime bounds one run of a kit, for each repeat.
const runTime = 4 * time.Minute

// restartRole has the URL that this program asks to restart a service, when it is the
// restart command of a kit.
const restartRole = "AGENTIC_PROOF_RESTART"

func TestMain(m *testing.M) {
	if url := os.Getenv(restartRole); url != "" {
		if err := askFor(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if bin, err = os.MkdirTemp("", "agentic-kits-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func askFor(url string) error {
	res, err := http.Post(url, "", nil)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNoContent {
		return errors.Join(err, errors.New(res.Status))
	}
	return nil
}

// asked is what AGENTIC_PROOF_REPORTS, a folder for reports, and AGENTIC_PROOF_REPEAT
// and AGENTIC_PROOF_SEED ask for: 'make conformance' and 'make soak' set them.
type asked struct {
	reports      string
	repeat, seed uint64
}

func readAsked(t *testing.T) asked {
	t.Helper()
	a := asked{reports: os.Getenv("AGENTIC_PROOF_REPORTS"), repeat: 1, seed: 1}
	if a.reports == "" {
		a.reports = t.TempDir()
	}
	for name, n := range map[string]*uint64{"AGENTIC_PROOF_REPEAT": &a.repeat, "AGENTIC_PROOF_SEED": &a.seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *n, err = strconv.ParseUint(text, 10, 64); err != nil || *n == 0 {
				t.Fatalf("%s is not a number above zero", name)
			}
		}
	}
	return a
}

// bin is the folder of the command, once it is built.
var bin string

var built = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=auto", "-o", bin+string(filepath.Separator), "../../../cmd/agentic")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// build makes the command, first in PATH.
func build(t *testing.T) {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// kit runs 'agentic conformance' with the arguments of one kit, and leaves its report in
// every form under that name. Whatever is a failure fails the test with the report's text.
func (a asked) kit(t *testing.T, name string, env []string, args ...string) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(a.repeat)*runTime)
	defer cancel()
	at := func(extension string) string { return filepath.Join(a.reports, name+extension) }
	args = append(append([]string{"conformance"}, args...), "--repeat", fmt.Sprint(a.repeat), "--seed", fmt.Sprint(a.seed),
		"--report", at(".json"), "--junit", at(".xml"), "--html", at(".html"))
	cmd := exec.CommandContext(ctx, "agentic", args...)
	cmd.Env = append(os.Environ(), env...)
	var text, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &diag
	begin := time.Now()
	err := cmd.Run()
	if err := os.WriteFile(at(".txt"), text.Bytes(), 0o600); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatalf("%v after %s\n%s%s", err, time.Since(begin), text.Bytes(), diag.Bytes())
	}
	data, err := os.ReadFile(at(".json"))
	if err != nil {
		t.Fatal(err)
	}
	var rep conformance.Report
	if err := json.Unmarshal(data, &rep); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v in %s", name, rep.Summary, time.Since(begin).Round(time.Millisecond))
	for _, extension := range []string{".xml", ".html"} {
		if info, err := os.Stat(at(extension)); err != nil || info.Size() == 0 {
			t.Errorf("report %s: %v", extension, err)
		}
	}
	return &rep
}

// missing has the checks that were not exercised.
func missing(rep *conformance.Report) []string {
	ids := []string{}
	for _, c := range rep.Checks {
		if c.Status == conformance.NotExercised {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Our client passes every check of the client kit, and every check is exercised.
func TestClient(t *testing.T) {
	a := readAsked(t)
	build(t)
	rep := a.kit(t, "client", nil, "client", "--adapter", "../../../conformance/adapters/agentic.json", "--parallel", "4")
	if diff := cmp.Diff([]string{}, missing(rep)); diff != "" || rep.Summary.Passed != len(rep.Checks) {
		t.Errorf("not exercised (-want +got):\n%s", diff)
	}
}
