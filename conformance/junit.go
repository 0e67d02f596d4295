package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// The part of JUnit's XML that the common readers agree on.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitProblem `xml:"skipped"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML: one suite, a testcase for each check, named
// by its ID. A failed, a flaky and an unexpectedly passed check is a failure; what could
// not be tried an error; what was not exercised, an expected failure, and what is left out of
// judgement, is skipped with its reason. Everything from the subject is escaped (D6).
func (r *Report) WriteJUnit(w io.Writer) error {
	s := junitSuite{
		Name: string(r.Kind) + ": " + visible(r.Subject.Name), Tests: len(r.Checks),
		Time: seconds(r.Finished.Sub(r.Started)), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
	}
	for _, p := range []junitProperty{
		{"format", r.Format}, {"statement", r.Statement}, {"draft", r.Draft},
		{"tool", r.Tool.Name}, {"tool.version", r.Tool.Version}, {"go", r.Tool.Go}, {"system", r.Tool.System},
		{"subject", r.Subject.Name}, {"subject.version", r.Subject.Version}, {"subject.authorship", r.Subject.Authorship},
		{"subject.origin", r.Subject.Origin}, {"subject.action", r.Subject.Action},
		{"judged", string(r.Judged)}, {"seed", fmt.Sprint(r.Seed)}, {"repeat", fmt.Sprint(r.Repeat)},
		{"started", r.Started.UTC().Format(time.RFC3339Nano)}, {"finished", r.Finished.UTC().Format(time.RFC3339Nano)},
	} {
		if p.Value != "" {
			s.Properties = append(s.Properties, junitProperty{p.Name, visible(p.Value)})
		}
	}
	for _, c := range r.Checks {
		jc := c.junit(r.Kind, r.judges(c.Level))
		switch {
		case jc.Failure != nil:
			s.Failures++
		case jc.Error != nil:
			s.Errors++
		case jc.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, jc)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	err := e.Encode(junitSuites{Name: "agentic conformance", Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Time: s.Time, Suite: s})
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

func (c Result) junit(kind Kind, judged bool) junitCase {
	var took time.Duration
	for _, t := range c.Tries {
		took += t.Duration
	}
	jc := junitCase{Class: visible(string(kind) + "." + c.Group), Name: visible(c.ID), Time: seconds(took)}
	p := &junitProblem{Message: quoted(c.Title), Type: string(c.Status), Text: strings.Join(c.details(), "\n")}
	if !judged && !c.Status.OK() {
		p.Message, p.Type = string(c.Status)+", left out of judgement: "+p.Message, ""
		jc.Skipped = p
		return jc
	}
	switch c.Status {
	case Passed:
	case NotExercised:
		jc.Skipped = &junitProblem{Message: visible(c.Missing)}
	case Expected:
		jc.Skipped = &junitProblem{Message: "expected failure: " + visible(c.Reason)}
	case Failed, Flaky, Unexpected:
		jc.Failure = p
	default:
		jc.Error = p
	}
	return jc
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
