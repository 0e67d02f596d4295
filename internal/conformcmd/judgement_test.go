package conformcmd

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/conformance"
)

// A service has a baseline, and both commands a level, as a run, its report and its exit
// code show.
func TestServiceJudgement(t *testing.T) {
	origin := ticketService(t)
	dir := t.TempDir()
	// Without credentials this service knows one principal, and its reading of a body's
	// media type is what the level leaves out.
	args := []string{"service", origin + "/agentic.json", "--approve", origin, "--allow-loopback", "--i-own-this-service", "--json",
		"--input", `{"subject":"a test"}`, "--count-url", "/absent", "--only", "documents/size", "--only", "key/empty", "--only", "key/missing"}
	run := func(more ...string) (*house, *conformance.Report) {
		t.Helper()
		h := &house{json: true}
		if err := h.run(t, append(args, more...)...); err != nil {
			t.Fatal(err)
		}
		rep, err := conformance.ParseReport(h.stdout.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, h.stdout.String())
		}
		return h, rep
	}
	if h, rep := run(); !h.failed || rep.Judged != "" || rep.Summary.Errors != 2 {
		t.Fatalf("failed %v, %+v", h.failed, rep.Summary)
	}
	if h, rep := run("--level", "must"); !h.failed || rep.Judged != conformance.Must {
		t.Errorf("a MUST that could not be tried is left out: %q", rep.Judged)
	}
	args = args[:len(args)-2] // key/missing is the MUST
	if h, _ := run("--level", "reading"); !h.failed {
		t.Error("reading leaves a reading out")
	}
	for _, level := range []string{"must", "should"} {
		if h, rep := run("--level", level); h.failed || string(rep.Judged) != level || rep.Summary.Errors != 1 {
			t.Errorf("--level %s: failed %v, %+v", level, h.failed, rep.Summary)
		}
	}

	baseline := save(t, dir, "known.json", `{"subject":"`+origin+`","expected_failures":[{"check":"documents/size","reason":"they were larger"}]}`)
	h, rep := run("--baseline", baseline, "--level", "must", "--write-baseline", filepath.Join(dir, "new.json"))
	if h.failed || rep.Summary.Unexpected != 1 || rep.Checks[0].Reason != "they were larger" {
		t.Errorf("failed %v, %+v", h.failed, rep.Summary)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new.json")); err != nil || strings.Contains(string(b), "documents/size") || !strings.Contains(string(b), origin) {
		t.Errorf("%s, %v", b, err)
	}
	if h, _ := run("--baseline", baseline, "--level", "should"); !h.failed {
		t.Error("what passes although the baseline says otherwise does not fail the run")
	}

	for text, want := range map[string]string{
		`{"subject":"https://other.example","expected_failures":[]}`:                                               `the baseline is about "https://other.example"`,
		`{"subject":"` + origin + `","expected_failures":[{"check":"response-lost","reason":"of the other kit"}]}`: "there is no such check",
	} {
		err := (&house{}).run(t, append(args, "--baseline", save(t, dir, "bad.json", text))...)
		advised(t, err, "baseline", want)
	}
	usage(t, (&house{stdin: "{}"}).run(t, append(args, "--baseline", "-", "--refused-input", "-")...), "only one of the documents, the inputs and the baseline")
	for _, args := range [][]string{args, {"client", "--adapter", save(t, dir, "adapter.json", mute)}} {
		usage(t, (&house{}).run(t, append(args, "--level", "may")...), `there is no level "may"`)
		usage(t, (&house{}).run(t, append(args, "--baseline", baseline, "--report", baseline)...), "--report would overwrite the file that --baseline names")
	}
}

func TestJudgementCompletion(t *testing.T) {
	for _, kind := range []string{"client", "service"} {
		for flag, want := range map[string]string{"--level": "should\n", "--baseline": "json\n", "--write-baseline": "json\n"} {
			cmd := New(&house{}, &house{}).Conformance()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			cmd.SetArgs([]string{cobra.ShellCompRequestCmd, kind, flag, ""})
			if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%s %s: %v\n%s", kind, flag, err, out.String())
			}
		}
	}
}
