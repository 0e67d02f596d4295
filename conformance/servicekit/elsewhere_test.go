package servicekit_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

// A profile may be served anywhere. What is at /agentic.json is judged when it is the
// given profile, or when that is where it was read; and what is elsewhere is looked for
// there.
func TestProfileElsewhere(t *testing.T) {
	const missing, failed, passed = conformance.NotExercised, conformance.Failed, conformance.Passed
	for _, c := range []struct {
		flaw, at string
		profile  conformance.Status // of documents/profile
	}{
		{"", "", passed},
		{"", "/agentic.json", passed},
		{"a page at /agentic.json", "", missing},
		{"a page at /agentic.json", "/agentic.json", failed},
		{"another origin's profile", "", missing},
		{"another origin's profile", "/agentic.json", failed},
		{"another profile", "", missing},
		{"another profile", "/agentic.json", failed},
		{"documents redirect", "", missing},
		{"broken profile", "", missing},
		{"broken profile", "/agentic.json", failed},
		{"documents as text", "", failed},
		{"moved profile", "/moved.json", passed},
		{"", "/absent.json", failed},
	} {
		f := newFake(c.flaw)
		cfg := f.start(t, httptest.NewServer)
		if cfg.ProfileURL = ""; c.at != "" {
			cfg.ProfileURL = f.origin + c.at
		}
		cfg.Match = []string{"documents"}
		for _, r := range check(t, cfg).Checks {
			switch {
			case r.ID == "documents/profile" && r.Status != c.profile:
				t.Errorf("%q, read at %q: %s", c.flaw, c.at, r.Status)
			case r.Status == missing && !strings.Contains(r.Missing, "PROFILE as the URL"):
				t.Errorf("%q, read at %q: %q does not say what would show it", c.flaw, c.at, r.Missing)
			case r.ID == "documents/valid" && c.profile == missing && c.flaw != "documents redirect" && r.Status != passed:
				t.Errorf("%q, read at %q: what is there instead makes the documents %s", c.flaw, c.at, r.Status)
			}
		}
	}
}

// A service that drips ends the run after a few checks, and the report says why of the
// rest.
func TestDrips(t *testing.T) {
	f := newFake("drips")
	cfg := f.start(t, httptest.NewServer)
	cfg.Timeout, cfg.CountURL, cfg.CountPointer, cfg.Settle = 50*time.Millisecond, "", "", 10*time.Second
	begin := time.Now()
	rep := check(t, cfg)
	if n := f.requests.Load(); rep.OK() || n > 5*3 || time.Since(begin) > 10*time.Second || rep.Summary.Errors < len(rep.Checks)-10 {
		t.Errorf("%d requests in %s: %+v", n, time.Since(begin), rep.Summary)
	}
	if last := rep.Checks[len(rep.Checks)-1]; last.Status != conformance.Broken || !strings.Contains(last.Tries[0].Error, "5 checks in a row") {
		t.Errorf("the last check is %s: %+v", last.Status, last.Tries)
	}
	cfg.Match = []string{"submission", "status", "scope"} // a check ends, too
	for _, c := range check(t, cfg).Checks {
		if c.Status == conformance.Passed {
			t.Errorf("%s passed", c.ID)
		}
	}
}
