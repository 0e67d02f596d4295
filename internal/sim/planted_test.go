package sim

import (
	"slices"
	"testing"
)

// planted says which invariants may catch each planted fault.
var planted = map[Plant][]Invariant{}

func TestPlanted(t *testing.T) {
	for _, p := range Plants() {
		t.Run(string(p), func(t *testing.T) {
			r, err := Search(t.Context(), Options{Runs: 100_000, Planted: p})
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation == nil {
				t.Fatalf("not found in %d runs", r.Runs)
			}
			t.Logf("%s", r.Violation.Trace.Text())
			t.Logf("%s after %d runs, %d events", r.Violation.Invariant, r.Last+1, len(r.Violation.Trace.Events))
			if want := planted[p]; len(want) > 0 && !slices.Contains(want, r.Violation.Invariant) {
				t.Errorf("caught by %s", r.Violation.Invariant)
			}
		})
	}
}
