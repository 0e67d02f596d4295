package sim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSearch: the engine as it is violates nothing, and everything that can happen does.
func TestSearch(t *testing.T) {
	r, err := Search(t.Context(), Options{Runs: manyRuns})
	if err != nil {
		t.Fatal(err)
	}
	if r.Violation != nil {
		t.Fatalf("%v\n%s", r.Violation, r.Violation.Trace.Text())
	}
	if r.Runs != manyRuns || r.Last != manyRuns-1 || r.Steps < 10*manyRuns || r.Rate <= 0 {
		t.Errorf("%d runs to seed %d with %d steps, %f a second", r.Runs, r.Last, r.Steps, r.Rate)
	}
	if len(r.Coverage) != countKinds {
		t.Errorf("%d kinds are counted, and there are %d", len(r.Coverage), countKinds)
	}
	for name, n := range r.Coverage {
		if n == 0 {
			t.Errorf("in %d runs this never happened: %s", r.Runs, name)
		}
	}
}

// TestSeedsDecide: a seed gives the same run, byte for byte, whatever was run before.
func TestSeedsDecide(t *testing.T) {
	l := newLab()
	defer l.close()
	for seed := range uint64(manyRuns / 100) {
		first := Run(seed).Text()
		l.choices.seeded(seed)
		if d := cmp.Diff(string(first), string(l.trace(&Trace{Seed: seed}).Text())); d != "" {
			t.Fatalf("seed %d again (-first +second):\n%s", seed, d)
		}
		again, err := Replay(first)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(first), string(again.Text())); d != "" {
			t.Fatalf("seed %d from its trace (-run +replayed):\n%s", seed, d)
		}
	}
}

// TestSearchDoesNotDependOnWorkers: the violation is that of the lowest seed.
func TestSearchDoesNotDependOnWorkers(t *testing.T) {
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		r, err := Search(t.Context(), Options{Seed: 40, Runs: 5000, Workers: workers, Planted: IgnoreLease})
		if err != nil || r.Violation == nil {
			t.Fatalf("%d workers: %v, %v", workers, r.Violation, err)
		}
		got := r.Violation.Trace.Text()
		if want == nil {
			want = got
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%d workers (-1 worker +this):\n%s", workers, d)
		}
	}
}

func TestSearchEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var told atomic.Int64
	r, err := Search(ctx, Options{Progress: func(p Progress) { told.Store(p.Runs) }})
	if err != nil || r.Runs == 0 || told.Load() == 0 {
		t.Errorf("without a number of runs: %d made, %d told, %v", r.Runs, told.Load(), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Search(ended, Options{Runs: 10}); !errors.Is(err, context.Canceled) || r.Runs != 0 {
		t.Errorf("with a context that has ended: %d made, %v", r.Runs, err)
	}
}

// BenchmarkRun is one run on one processor.
func BenchmarkRun(b *testing.B) {
	l := newLab()
	defer l.close()
	var seed uint64
	for b.Loop() {
		l.choices.seeded(seed)
		if w := l.simulate("", new(counts), false); w.bad != nil {
			b.Fatal(w.bad)
		}
		seed++
	}
}

// TestText: a trace can be read back, and its text is for people.
func TestText(t *testing.T) {
	tr := Run(7)
	text := tr.Text()
	if !bytes.Contains(text, []byte("\nreplay agentic conformance simulate --seed 7 --runs 1\n")) {
		t.Errorf("the command that makes the run again is missing:\n%s", text)
	}
	if !bytes.Contains(text, []byte("  1             0s  world     ")) {
		t.Errorf("the first event is missing:\n%s", text)
	}
	back, err := ParseTrace(text)
	if err != nil || back.Seed != 7 || back.Violation != nil || back.Planted != "" || back.Shrunk {
		t.Fatalf("%+v, %v", back, err)
	}
	if d := cmp.Diff(tr.choices, back.choices, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("choices (-made +read):\n%s", d)
	}
}

// TestParseTrace: what is not exactly a trace is refused, and told why.
func TestParseTrace(t *testing.T) {
	valid := "agentic-simulation/1\nseed 1\nshrunk true\nplanted forget-token\nviolates one-writer\n" +
		"choices world 3 0=2\nchoices host-A 9 1=1 8=255\nchoices host-B 0\nchoices host-C 0\ndetail it is so\nreplay x\n\nevents\n"
	if _, err := ParseTrace([]byte(valid)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"agentic-simulation/1", "agentic-simulation/2"},
		{"seed 1", "seed -1"},
		{"seed 1", "seed 1\nseed 2"},
		{"shrunk true", "shrunk yes"},
		{"planted forget-token", "planted something"},
		{"violates one-writer", "violates something"},
		{"violates one-writer", "violates none"},
		{"choices world 3", "choices host-A 3"},
		{"world 3", "world 1000000"},
		{"world 3", "world -3"},
		{" 0=2", " 3=2"},
		{" 0=2", " 0=0"},
		{" 0=2", " 0=256"},
		{" 0=2", " 0=2 0=2"},
		{" 0=2", " 0"},
		{" 0=2", "  0=2"},
		{"choices host-C 0\n", ""},
		{"detail it is so\n", ""},
		{"detail it is so", "detail "},
		{"replay x\n", "replay x\nmore\n"},
		{"\n\nevents", ""},
	} {
		text := bytes.Replace([]byte(valid), []byte(change[0]), []byte(change[1]), 1)
		if tr, err := ParseTrace(text); err == nil {
			t.Errorf("%q in place of %q gives %+v", change[1], change[0], tr)
		}
	}
	for text, want := range map[string]string{
		"nothing": "not a trace", "agentic-conformance-report/1\n": "not a trace", "{}": "not a trace", "": "not a trace",
		"agentic-simulation/2\nother\n": "version \"2\"; this simulator reads agentic-simulation/1", "agentic-simulation/1\nseed 1\n": "an empty line",
	} {
		if _, err := ParseTrace([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseTrace(make([]byte, maxTraceBytes+1)); err == nil {
		t.Error("an endless trace is read")
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add(Run(1).Text())
	f.Fuzz(func(t *testing.T, text []byte) {
		tr, err := ParseTrace(text)
		if err != nil {
			return
		}
		if tr.Violation != nil {
			tr.Violation.Detail = "x"
		}
		back, err := ParseTrace(tr.Text())
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if d := cmp.Diff(tr.choices, back.choices, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}
