package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A level leaves failures beyond it out of judgement, in every form, and says which.
func TestJudged(t *testing.T) {
	of := func(failed ...Level) *Report {
		r := &Report{Format: Format, Statement: Statement, Kind: Client, Repeat: 1}
		for i, l := range append([]Level{Must, Should, Reading}, failed...) {
			c := Result{Info: info(fmt.Sprintf("check/%d", i)), Status: Passed, Tries: []Try{}}
			if c.Level = l; i >= 3 {
				c.Status = Failed
			}
			r.Checks = append(r.Checks, c)
		}
		r.count()
		return r
	}
	for _, c := range []struct {
		judged  Level
		failed  []Level
		ok      bool
		skipped int
		says    string
	}{
		{"", []Level{Reading}, false, 0, ""},
		{Reading, []Level{Reading}, false, 0, "left out of judgement: nothing."},
		{Should, []Level{Reading, Should}, false, 1, "left out of judgement: check/3 (reading)."},
		{Must, []Level{Reading, Should}, true, 2, "left out of judgement: check/3 (reading), check/4 (should)."},
		{Must, []Level{Must}, false, 0, "left out of judgement: nothing."},
		{Must, nil, true, 0, "left out of judgement: nothing."},
	} {
		r := of(c.failed...)
		r.Judged = c.judged
		text, junit, page := written(t, r.WriteText), written(t, r.WriteJUnit), written(t, r.WriteHTML)
		if r.OK() != c.ok || !strings.Contains(text, c.says) || !strings.Contains(page, c.says) || strings.Contains(text, "out of judgement") != (c.says != "") {
			t.Errorf("%q, failed %v: OK is %t\n%s", c.judged, c.failed, r.OK(), text)
		}
		if !strings.Contains(junit, fmt.Sprintf(`failures="%d" errors="0" skipped="%d"`, len(c.failed)-c.skipped, c.skipped)) {
			t.Errorf("%q, failed %v:\n%s", c.judged, c.failed, junit)
		}
		if !strings.Contains(text, fmt.Sprintf("%d checks, ", 3+len(c.failed))) || strings.Count(text, "  FAILED ") != len(c.failed) {
			t.Errorf("a level hides a failure:\n%s", text)
		}
		back, err := ParseReport([]byte(written(t, r.WriteJSON)))
		if err != nil || back.Judged != c.judged {
			t.Errorf("%q comes back as %+v, %v", c.judged, back, err)
		}
	}
	if _, err := ParseReport([]byte(strings.Replace(written(t, of().WriteJSON), `"repeat"`, `"judged": "may", "repeat"`, 1))); err == nil {
		t.Error("a level that nobody knows is taken")
	}
}

// Exchanges that are the same one after the other are told once.
func TestSameExchanges(t *testing.T) {
	a, b := Exchange{"GET /a", "503", "late"}, Exchange{"GET /a", "503", ""}
	c := Result{Info: info("check/a"), Status: Failed, Tries: []Try{{Status: Failed, Exchanges: []Exchange{a, a, a, b, a, b, b}}}}
	var heads []string
	for _, line := range c.details() {
		if strings.HasPrefix(line, "exchange ") {
			heads = append(heads, line)
		}
	}
	want := []string{"exchange 1 (3 times): late", "exchange 4", "exchange 5: late", "exchange 6 (2 times)"}
	if d := cmp.Diff(want, heads); d != "" {
		t.Error(d)
	}
}

// A subject that only runs into time limits ends the run after so many cases in a row, and
// the report says of each of the rest that it was not tried.
func TestGiveUp(t *testing.T) {
	late, answered, nothing := []bool{true, true}, []bool{true, false}, []bool{}
	for _, c := range []struct {
		asked  [][]bool
		giveUp int
		want   string // F: failed, E: not tried, N: not exercised
	}{
		{[][]bool{late, late, late, late, late}, 3, "FFFEE"},
		{[][]bool{late, late, answered, late, late, late, late}, 3, "FFFFFFE"},
		{[][]bool{late, nothing, late, nothing, late, late}, 3, "FNFNFE"},
		{[][]bool{late, late, late, late}, 0, "FFFF"},
		{[][]bool{answered, answered, answered, answered}, 2, "FFFF"},
	} {
		var cases []Case
		for i, asked := range c.asked {
			cases = append(cases, Case{Info: info(fmt.Sprintf("check/%d", i)), Run: func(_ context.Context, r *Recorder) error {
				if len(asked) == 0 {
					r.NotExercised("nothing to ask")
					return nil
				}
				for _, late := range asked {
					r.Asked(late)
				}
				r.Expect("an answer", false, "one", "none")
				return nil
			}})
		}
		rep, err := Run(t.Context(), Client, Subject{Name: "a"}, Tool{}, cases, Options{GiveUp: c.giveUp})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range rep.Checks {
			got += map[Status]string{Failed: "F", Broken: "E", NotExercised: "N"}[c.Status]
			if c.Status == Broken && !strings.Contains(c.Tries[0].Error, "3 checks in a row") {
				t.Errorf("the reason is %q", c.Tries[0].Error)
			}
		}
		if got != c.want || rep.OK() {
			t.Errorf("%v: %s, want %s", c.asked, got, c.want)
		}
	}
}
