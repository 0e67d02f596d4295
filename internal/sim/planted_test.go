package sim

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the corpus of planted faults anew")

// within is in how many runs from seed 0 every planted fault has to be found.
const within = 100_000

// caught has for every planted fault the invariants that may be the first to see it.
var caught = map[Plant][]Invariant{
	ResendAfterRestart: {OnePost, PermittedCall}, // the second when the first POST was never made
	ResendOnBreak:      {OnePost},
	TrustPost:          {TrueSuccess},
	SkipEvidence:       {TrueSuccess},
	TimeoutIsFailed:    {TrueFailure},
	UnknownIsFailed:    {TrueFailure},
	OtherStatus:        {TrueFailure},
	NeverKnows:         {KnownOutcome},
	ForgetToken:        {OneWriter},
	ReceiptBeforeSave:  {SavedReceipt},
	AttemptedLate:      {NothingLost},
	OverwriteReceipts:  {FinalReceipt},
	RewriteFinal:       {FinalReceipt},
	UnboundedChecks:    {Bounded},
	WaitForever:        {Bounded},
	IgnoreClock:        {PermittedCall},
	IgnoreLease:        {PermittedCall},
	OtherInput:         {SameBinding},
	SendOtherInput:     {SameBinding},
	ForgetsUnknown:     {NothingLost},
	Panics:             {NoPanic},
}

// TestPlanted is the test of the tests: every fault that is put into the seams of the
// engine is found, by the invariant that is about it, and its shrunk trace is the one in
// the corpus.
func TestPlanted(t *testing.T) {
	for _, p := range Plants() {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			r, err := Search(t.Context(), Options{Runs: within, Workers: 1, Planted: p})
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation == nil {
				t.Fatalf("not found in %d runs", r.Runs)
			}
			trace := r.Violation.Trace
			t.Logf("%s with seed %d, %d events", r.Violation.Invariant, trace.Seed, len(trace.Events))
			if !slices.Contains(caught[p], r.Violation.Invariant) {
				t.Errorf("caught by %s, not by %s:\n%s", r.Violation.Invariant, caught[p], trace.Text())
			}
			if len(trace.Events) > 40 {
				t.Errorf("a trace of %d events is not for people:\n%s", len(trace.Events), trace.Text())
			}
			file := filepath.Join("testdata", "planted", string(p)+".trace")
			if *update {
				if err := os.WriteFile(file, trace.Text(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEveryInvariantIsNeeded: each is the only one, or the first, to see some fault.
func TestEveryInvariantIsNeeded(t *testing.T) {
	for _, inv := range Invariants() {
		alone := false
		for _, by := range caught {
			alone = alone || len(by) == 1 && by[0] == inv.Name
		}
		if !alone {
			t.Errorf("no planted fault is for %s", inv.Name)
		}
		if inv.Says == "" {
			t.Errorf("%s says nothing", inv.Name)
		}
	}
	if len(caught) != len(Plants()) {
		t.Errorf("%d of %d planted faults have an invariant", len(caught), len(Plants()))
	}
}

// TestCorpus replays the traces of testdata: those of planted faults are found again,
// and each engine without the fault passes the same choices. What was found in the
// engine itself stays mended (testdata/engine).
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.trace"))
	if err != nil || len(files) < len(Plants())+2 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		was, err := ParseTrace(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		now, err := Replay(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		switch {
		case was.Planted == "" && was.Violation != nil && now.Violation != nil:
			t.Errorf("%s is found again:\n%s", file, now.Text())
		case was.Planted == "":
		case now.Violation == nil || now.Violation.Invariant != was.Violation.Invariant:
			t.Errorf("%s is not found any more; if its choices mean something else now, write it anew with -update:\n%s", file, now.Text())
		default:
			if d := cmp.Diff(string(text), string(now.Text())); d != "" {
				t.Errorf("%s is another run now; write it anew with -update (-saved +now):\n%s", file, d)
			}
			without := *was
			without.Planted, without.Violation = "", nil
			if clean, err := Replay(without.Text()); err != nil || clean.Violation != nil {
				t.Errorf("%s without its fault: %v\n%s", file, err, clean.Text())
			}
		}
	}
}
