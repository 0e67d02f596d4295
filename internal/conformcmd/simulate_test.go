package conformcmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/sim"
)

func TestSimulate(t *testing.T) {
	h := &house{live: true}
	if err := h.run(t, "simulate", "--seed", "18446744073709551000", "--runs", "200", "--workers", "2"); err != nil || h.failed {
		t.Fatalf("%v, failed %v\n%s", err, h.failed, h.stdout.String())
	}
	if out := h.stdout.String(); !strings.HasPrefix(out, "200 runs with the seeds from 18446744073709551000 to 18446744073709551199, ") || !strings.Contains(out, "No run broke a promise.") {
		t.Errorf("printed\n%s", out)
	}
	h = &house{}
	if err := h.run(t, "simulate", "--for", "50ms", "--json"); err != nil || !strings.HasPrefix(h.stdout.String(), `{"seed":1,"last_seed":`) || !strings.Contains(h.stdout.String(), `"violation":null`) {
		t.Errorf("%v\n%s", err, h.stdout.String())
	}
}

// One run is printed whole, and made again from what was printed or written.
func TestSimulateReplay(t *testing.T) {
	written := filepath.Join(t.TempDir(), "trace.txt")
	h := &house{}
	if err := h.run(t, "simulate", "--seed", "42", "--runs", "1", "--trace", written); err != nil || h.failed {
		t.Fatalf("%v, failed %v", err, h.failed)
	}
	if !strings.HasPrefix(h.stdout.String(), sim.TraceFormat+"\nseed 42\n") || !strings.Contains(h.stderr.String(), "simulate --replay "+written+"\n") {
		t.Errorf("printed\n%s\n%s", h.stdout.String(), h.stderr.String())
	}
	again := &house{stdin: h.stdout.String()}
	if err := again.run(t, "simulate", "--replay", "-"); err != nil || again.stdout.String() != h.stdout.String() {
		t.Errorf("%v; made again it is another\n%s", err, again.stdout.String())
	}
	asJSON := &house{}
	if err := asJSON.run(t, "simulate", "--replay", written, "--json"); err != nil || !strings.HasPrefix(asJSON.stdout.String(), `{"seed":42,"violation":null,"trace":"agentic-simulation/1\nseed 42\n`) {
		t.Errorf("%v\n%s", err, asJSON.stdout.String())
	}
	advised(t, (&house{stdin: "nothing"}).run(t, "simulate", "--replay", "-"), "trace", "-: ")
	if err := (&house{}).run(t, "simulate", "--replay", written+".absent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A run that breaks a promise is exit code 1, and its trace is on standard output alone.
func TestSimulateViolation(t *testing.T) {
	r, err := sim.Search(t.Context(), sim.Options{Seed: 1, Runs: 100_000, Planted: sim.Plants()[0]})
	if err != nil || r.Violation == nil {
		t.Fatalf("nothing was found: %v", err)
	}
	trace := string(r.Violation.Trace.Text())
	h := &house{stdin: trace}
	if err := h.run(t, "simulate", "--replay", "-"); err != nil || !h.failed || !strings.HasPrefix(h.stdout.String(), sim.TraceFormat+"\n") || !strings.Contains(h.stderr.String(), string(r.Violation.Invariant)) {
		t.Errorf("%v, failed %v\n%s\n%s", err, h.failed, h.stdout.String(), h.stderr.String())
	}
	h = &house{}
	if err := New(h, h).printSearch(r, []byte(trace)); err != nil || h.stdout.String() != string(visible([]byte(trace))) || !strings.Contains(h.stderr.String(), "does not hold") {
		t.Errorf("%v\n%s\n%s", err, h.stdout.String(), h.stderr.String())
	}
	h = &house{json: true}
	if err := New(h, h).printSearch(r, []byte(trace)); err != nil || !strings.Contains(h.stdout.String(), `"violation":{"invariant":"`+string(r.Violation.Invariant)+`"`) || h.stderr.Len() > 0 {
		t.Errorf("%v\n%s", err, h.stdout.String())
	}
	// A file that cannot be written does not take the trace away.
	h = &house{json: true}
	f := &simulateFlags{trace: t.TempDir()}
	if err := New(h, h).printTrace(r.Violation.Trace, f); err != nil || !h.failed || h.stdout.Len() == 0 || !strings.Contains(h.stderr.String(), "--trace: cannot write") {
		t.Errorf("%v\n%s\n%s", err, h.stdout.String(), h.stderr.String())
	}
}

func TestSimulateUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--runs 5 --for 1s":   "cannot both say",
		"--replay a --seed 1": "--replay makes one run",
		"--runs 0":            "--runs 0",
		"--for 0s":            "--for 0s",
		"--workers 0":         "--workers 0",
	} {
		usage(t, (&house{}).run(t, append([]string{"simulate"}, strings.Fields(args)...)...), want)
	}
	advised(t, (&house{}).run(t, "simulate", "--trace", t.TempDir()), "file", "not a regular file")
}

func TestSimulateInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, args := range [][]string{{"--runs", "1000000000"}, {"--for", "1h"}} {
		advised(t, (&house{}).runIn(ctx, append([]string{"simulate"}, args...)...), "interrupted", "broke no promise")
	}
	e, _ := errors.AsType[*advice.Error]((&house{}).runIn(ctx, "simulate", "--seed", "7"))
	if e == nil || !strings.Contains(e.Remedy, "--seed") || strings.Contains(e.Remedy, "--only") {
		t.Errorf("advice %+v", e)
	}
}
