package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseBaseline(t *testing.T) {
	b, err := ParseBaseline([]byte(`{"expected_failures": [{"reason": "no clock", "check": "clock/back"}], "subject": "theirs"}`))
	if diff := cmp.Diff(Baseline{"theirs", []ExpectedFailure{{"clock/back", "no clock"}}}, b); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, want := range map[string]string{
		`{"subject": "a"}`:                                                                                      `the document has no member "expected_failures"`,
		`{"subject": 1, "expected_failures": []}`:                                                               "/subject is a number, not a string",
		`{"subject": "a", "expected_failures": [], "expected": []}`:                                             `the document has a member "expected" that nobody knows`,
		`{"subject": "a", "expected_failures": [], "expected_failures": 1}`:                                     "duplicate member",
		`{"subject": "a", "expected_failures": [{"check": "x"}]}`:                                               `/expected_failures/0 has no member "reason"`,
		`{"subject": "a", "expected_failures": [{"check": "x", "reason": " "}]}`:                                `/expected_failures/0/reason is empty: it has to say why "x"`,
		`{"subject": "a", "expected_failures": [{"check": "x", "reason": "r", "id": 1}]}`:                       `/expected_failures/0 has a member "id"`,
		`{"subject": "a", "expected_failures": [{"check": "x", "reason": "r"}, {"check": "x", "reason": "s"}]}`: `/expected_failures/1 is the check "x" a second time`,
		`{"subject": "a", "expected_failures": ["x"]}`:                                                          "/expected_failures/0 is a string, not an object",
		``: "no JSON value",
	} {
		if _, err := ParseBaseline([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestBaselineCheck(t *testing.T) {
	b := Baseline{"theirs", []ExpectedFailure{{"a", "r"}, {"gone", "r"}}}
	for _, tt := range []struct {
		subject, known, want string
	}{
		{"theirs", "gone", ""},
		{"theirs", "b", `the baseline expects "gone" to fail, and there is no such check`},
		{"ours", "gone", `the baseline is about "theirs", and the subject is "ours"`},
	} {
		err := b.Check(tt.subject, []Info{{ID: "a"}, {ID: tt.known}})
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// A baseline turns a failure into an expected one, and makes one of what passes again.
func TestApply(t *testing.T) {
	r := &Report{Subject: Subject{Name: "theirs"}}
	for _, s := range []Status{Passed, Failed, Flaky, NotExercised, Broken} {
		r.Checks = append(r.Checks, Result{Info: info("in-" + string(s)), Status: s}, Result{Info: info("out-" + string(s)), Status: s})
	}
	b := Baseline{Subject: "theirs", Expected: []ExpectedFailure{{"not-run", "r"}}}
	for _, s := range []Status{Passed, Failed, Flaky, NotExercised, Broken} {
		b.Expected = append(b.Expected, ExpectedFailure{"in-" + string(s), "because"})
	}
	r.Apply(b)
	got := map[string]string{}
	for _, c := range r.Checks {
		got[c.ID] = string(c.Status) + c.Reason
	}
	if diff := cmp.Diff(map[string]string{
		"in-passed": "unexpected-passbecause", "in-failed": "expected-failurebecause", "in-flaky": "expected-failurebecause", "in-not-exercised": "not-exercised", "in-error": "error",
		"out-passed": "passed", "out-failed": "failed", "out-flaky": "flaky", "out-not-exercised": "not-exercised", "out-error": "error",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (Summary{Passed: 1, Failed: 1, Flaky: 1, Expected: 2, Unexpected: 1, NotExercised: 2, Errors: 2, ObservedChecks: 6}); r.Summary != want || r.OK() {
		t.Errorf("summary %+v, OK %v", r.Summary, r.OK())
	}

	// A new baseline keeps the reasons that there are, and drops what passes.
	next := r.Baseline(b)
	if diff := cmp.Diff(Baseline{"theirs", []ExpectedFailure{
		{"in-failed", "because"}, {"out-failed", Unexplained}, {"in-flaky", "because"}, {"out-flaky", Unexplained},
		{"in-not-exercised", "because"}, {"in-error", "because"}, {"not-run", "r"},
	}}, next); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(next.Expected[:4], r.Baseline(Baseline{}).Expected); diff != "" {
		t.Errorf("without the old one (-want +got):\n%s", diff)
	}
	back, err := ParseBaseline([]byte(written(t, next.Write)))
	if diff := cmp.Diff(next, back); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if text := written(t, Baseline{Subject: "s"}.Write); !strings.Contains(text, `"expected_failures": []`) {
		t.Errorf("an empty one is %s", text)
	}
}
