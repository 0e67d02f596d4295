package clientkit

import (
	"strings"
	"testing"

	"github.com/agentic-go/agentic/conformance"
)

// The hint follows from what did not hold, and is the check's own for everything else.
func TestHint(t *testing.T) {
	for _, tt := range []struct{ what, expected, found, want string }{
		{whatTime, "within 1s", "still running then", "more time"},
		{whatExit, "0", "1", "standard error is in the notes. A valid receipt"},
		{whatExit, "0", ended{exit: -1, signal: "signal 11 (segmentation fault)"}.code(), "crashed or was killed"},
		{whatCrash, "86", "0", "standard error"},
		{whatStdout, "one valid receipt and nothing else", "nothing", "Print the one receipt"},
		{whatPosts, "1", "2", "HTTP library does: some repeat a POST that carries Idempotency-Key when its connection breaks. own"},
		{whatPosts, "1", "0", "stopped before it sent"},
		{whatKey + numbered + "2)", "a", "b", "own"},
		{whatOutcome, "succeeded", "unknown", "own"},
	} {
		if got := hint(conformance.Expectation{What: tt.what, Expected: tt.expected, Found: tt.found}, "own"); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s", tt.what, tt.found, got)
		}
	}
}

// What is said of a second POST names it.
func TestSecondPostIsNumbered(t *testing.T) {
	for n, want := range map[int]string{1: whatSubmitted, 2: whatSubmitted + " (POST 2)"} {
		tr := &trial{Recorder: &conformance.Recorder{}, judge: &judge{}}
		tr.post(ask{}, arrival{path: "/elsewhere"}, n)
		if got, failed := tr.Failed(); !failed || got.What != want {
			t.Errorf("POST %d: %q, want %q", n, got.What, want)
		}
	}
}
