package sim

import (
	"testing"
)

func TestSearch(t *testing.T) {
	r, err := Search(t.Context(), Options{Runs: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs, %.0f a second, %d steps", r.Runs, r.Rate, r.Steps)
	for _, name := range countNames {
		t.Logf("%-40s %d", name, r.Coverage[name])
	}
	if r.Violation != nil {
		t.Fatalf("%s", r.Violation.Trace.Text())
	}
}
