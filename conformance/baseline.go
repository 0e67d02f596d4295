package conformance

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// Baseline has the failures that are known of one subject. It keeps a run from failing
// on them, and makes it fail as soon as one of them is gone.
type Baseline struct {
	Subject  string            `json:"subject"` // Report.Subject.Name
	Expected []ExpectedFailure `json:"expected_failures"`
}

// ExpectedFailure is one check that is known to fail.
type ExpectedFailure struct {
	Check  string `json:"check"`  // Info.ID
	Reason string `json:"reason"` // for people, not empty
}

// Unexplained is the reason of a failure that nobody has explained yet.
const Unexplained = "not explained yet"

// ParseBaseline reads the file of a Baseline: one JSON object, strictly (D1), with no
// other members, each check once and each with a reason.
func ParseBaseline(data []byte) (Baseline, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		return Baseline{}, err
	}
	d := &reader{}
	o := d.object(root, "")
	o.only("subject", "expected_failures")
	b := Baseline{Subject: o.text("subject")}
	known := map[string]bool{}
	b.Expected = list(o, "expected_failures", true, func(v strictjson.Value, at string) ExpectedFailure {
		f := d.object(v, at)
		f.only("check", "reason")
		e := ExpectedFailure{f.text("check"), f.text("reason")}
		switch {
		case strings.TrimSpace(e.Reason) == "":
			d.fail(f.place("reason"), "is empty: it has to say why %q is expected to fail", e.Check)
		case known[e.Check]:
			d.fail(at, "is the check %q a second time", e.Check)
		}
		known[e.Check] = true
		return e
	})
	return b, d.err
}

// Check refuses a baseline of another subject, and one that names a check which is not
// among those of its kit.
func (b Baseline) Check(subject string, checks []Info) error {
	if b.Subject != subject {
		return fmt.Errorf("the baseline is about %q, and the subject is %q", b.Subject, subject)
	}
	known := map[string]bool{}
	for _, c := range checks {
		known[c.ID] = true
	}
	for _, e := range b.Expected {
		if !known[e.Check] {
			return fmt.Errorf("the baseline expects %q to fail, and there is no such check", e.Check)
		}
	}
	return nil
}

// Apply makes an Expected of what failed and is in the baseline, and an Unexpected,
// which is a failure, of what passed and is in it. What could not be tried stays as it
// is. An entry for a check that was not run changes nothing: Check knows all checks.
func (r *Report) Apply(b Baseline) {
	reasons := map[string]string{}
	for _, e := range b.Expected {
		reasons[e.Check] = e.Reason
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		reason, ok := reasons[c.ID]
		if !ok {
			continue
		}
		switch c.Status {
		case Failed, Flaky:
			c.Status, c.Reason = Expected, reason
		case Passed:
			c.Status, c.Reason = Unexpected, reason
		}
	}
	r.count()
}

// Baseline is one that expects what failed here: for the reason that known has, or
// Unexplained. An entry of known stays when its check was not run or could not be
// tried, and goes when it passed.
func (r *Report) Baseline(known Baseline) Baseline {
	reasons := map[string]string{}
	for _, e := range known.Expected {
		reasons[e.Check] = e.Reason
	}
	b := Baseline{Subject: r.Subject.Name, Expected: []ExpectedFailure{}}
	for _, c := range r.Checks {
		reason, ok := reasons[c.ID]
		delete(reasons, c.ID)
		switch c.Status {
		case Passed, Unexpected:
			continue
		case Failed, Flaky, Expected:
			if !ok {
				reason, ok = cmp.Or(c.Reason, Unexplained), true
			}
		}
		if ok {
			b.Expected = append(b.Expected, ExpectedFailure{c.ID, reason})
		}
	}
	for _, e := range known.Expected {
		if reason, ok := reasons[e.Check]; ok {
			b.Expected = append(b.Expected, ExpectedFailure{e.Check, reason})
		}
	}
	return b
}

// Write writes the file that ParseBaseline reads.
func (b Baseline) Write(w io.Writer) error {
	if b.Expected == nil {
		b.Expected = []ExpectedFailure{}
	}
	return writeJSON(w, b)
}
