package conformance

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentic-go/agentic/internal/escape"
)

// WriteText writes the report for people: a line for each check, and below what did
// not hold all that was found. Everything from the subject is escaped (D6), and
// nothing is coloured.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", r.heading(), r.Subject.words())
	fmt.Fprintf(&b, "draft %s, tried by %s\n", visible(r.Draft), r.Tool.words())
	fmt.Fprintf(&b, "%s, %s, seed %d, each check %s\n", r.Started.UTC().Format(time.RFC3339), r.took(), r.Seed, times(r.Repeat))
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n%s\n", visible(g.Name))
		for _, c := range g.Checks {
			fmt.Fprintf(&b, "  %-16s %s: %s\n", c.Status.word(), visible(c.ID), quoted(c.Title))
			for _, line := range c.details() {
				b.WriteString("      " + line + "\n")
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.counts())
	for _, line := range r.failures() {
		b.WriteString(line + "\n")
	}
	if left := r.leftOut(); left != "" {
		b.WriteString(left + "\n")
	}
	b.WriteString(visible(r.Statement) + "\n")
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) heading() string { return "Conformance of a " + visible(string(r.Kind)) }

func (r *Report) took() string { return r.Finished.Sub(r.Started).Round(time.Millisecond).String() }

func (s Subject) words() string {
	parts := []string{}
	for _, p := range []struct{ name, value string }{
		{"", s.Name}, {"version ", s.Version}, {"authorship ", s.Authorship}, {"origin ", s.Origin}, {"action ", s.Action},
	} {
		if p.value != "" && (p.name != "origin " || p.value != s.Name) {
			parts = append(parts, p.name+visible(p.value))
		}
	}
	return strings.Join(parts, ", ")
}

func (t Tool) words() string {
	return visible(strings.Join(slices.DeleteFunc([]string{t.Name, t.Version, t.Go, t.System}, func(s string) bool { return s == "" }), " "))
}

// counts are the counts that are not zero; what failed is told by level, since a reading of
// this project is not what the draft demands.
func (r *Report) counts() string {
	s := r.Summary
	failed := map[Level]int{}
	for _, c := range r.Checks {
		if c.Status == Failed {
			failed[c.Level]++
		}
	}
	var told []string
	for _, l := range levels {
		if failed[l] > 0 {
			told = append(told, fmt.Sprintf("%d %s", failed[l], l))
		}
	}
	all := s.ObservedChecks + s.NotExercised + s.Errors
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d observed:", plural(all, "check"), s.ObservedChecks)
	for _, c := range []struct {
		n    int
		word string
	}{
		{s.Passed, "passed"}, {s.Failed, "failed (" + strings.Join(told, ", ") + ")"}, {s.Flaky, "flaky"}, {s.Expected, "failed as expected"},
		{s.Unexpected, "passed unexpectedly"}, {s.NotExercised, "not exercised"}, {s.Errors, "could not be tried"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, " %d %s,", c.n, c.word)
		}
	}
	return b.String()[:b.Len()-1]
}

// failures are the IDs of what did not pass, a line for each level.
func (r *Report) failures() (out []string) {
	for _, l := range levels {
		var ids []string
		for _, c := range r.Checks {
			if c.Level == l && !c.Status.OK() {
				id := visible(c.ID)
				if c.Status != Failed {
					id += " (" + visible(string(c.Status)) + ")"
				}
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			out = append(out, "did not pass, "+string(l)+": "+strings.Join(ids, ", "))
		}
	}
	return out
}

// leftOut is which failures are not the run's, "" when all are.
func (r *Report) leftOut() string {
	if r.Judged == "" {
		return ""
	}
	var ids []string
	for _, c := range r.Checks {
		if !c.Status.OK() && !r.judges(c.Level) {
			ids = append(ids, visible(c.ID)+" ("+visible(string(c.Level))+")")
		}
	}
	if len(ids) == 0 {
		ids = []string{"nothing"}
	}
	return "Judged to the level " + visible(string(r.Judged)) + "; of what did not pass, left out of judgement: " + strings.Join(ids, ", ") + "."
}

// word makes a status that is a failure stand out.
func (s Status) word() string {
	if s.OK() {
		return visible(string(s))
	}
	return strings.ToUpper(visible(string(s)))
}

// group is the checks under one heading.
type group struct {
	Name   string
	Checks []Result
}

// groups gives the checks by heading, each in the order of the kit.
func (r *Report) groups() (all []group) {
	for _, c := range r.Checks {
		i := slices.IndexFunc(all, func(g group) bool { return g.Name == c.Group })
		if i < 0 {
			i = len(all)
			all = append(all, group{Name: c.Group})
		}
		all[i].Checks = append(all[i].Checks, c)
	}
	return all
}

// details are the escaped lines below a check, none for one that passed.
func (c Result) details() (out []string) {
	add := func(prefix, s string) {
		for _, line := range lines(s) {
			out = append(out, prefix+line)
		}
	}
	switch c.Status {
	case Passed:
		return nil
	case NotExercised:
		add("", c.Missing)
		return out
	case Expected:
		add("the baseline: ", c.Reason)
		return out
	case Unexpected:
		add("the baseline expects a failure: ", c.Reason)
		return append(out, "It passed in every try: take it out of the baseline.")
	}
	add("", c.asks())
	t, which := c.telling()
	if which != "" {
		out = append(out, which)
	}
	for _, held := range []bool{false, true} { // what explains the failure comes first
		for _, e := range t.Expectations {
			if e.OK == held {
				add("", e.words())
			}
		}
	}
	if t.Error != "" {
		add("error: ", t.Error)
	}
	for i := 0; i < len(t.Exchanges); {
		e, n := t.Exchanges[i], 1
		for i+n < len(t.Exchanges) && t.Exchanges[i+n] == e {
			n++
		}
		head := fmt.Sprintf("exchange %d", i+1)
		if i += n; n > 1 {
			head += fmt.Sprintf(" (%d times)", n)
		}
		if e.Note != "" {
			head += ": " + visible(e.Note)
		}
		out = append(out, head)
		add("  > ", e.Request)
		add("  < ", e.answer())
	}
	for _, n := range t.Notes {
		add("note: ", n)
	}
	if t.Hint != "" {
		add("hint: ", t.Hint)
	}
	return out
}

// asks is what the draft, or this project where the draft is silent, asks for.
func (c Result) asks() string {
	who := "the draft"
	switch c.Level {
	case Must:
		who = "the draft demands"
	case Should:
		who = "the draft recommends"
	case Reading:
		who = "the draft is silent, and the safe reading asks"
	}
	return who + " (" + c.cites() + "): " + c.Asks
}

func (c Result) cites() string {
	var sections, decisions []string
	for _, s := range c.Sections {
		if strings.HasPrefix(s, "D") {
			decisions = append(decisions, s)
		} else {
			sections = append(sections, s)
		}
	}
	word := "section "
	if len(sections) > 1 {
		word = "sections "
	}
	if len(sections) > 0 {
		sections[0] = word + sections[0]
	}
	return strings.Join(append(sections, decisions...), ", ")
}

// telling is the first try that did not pass, and which one it is of several.
func (c Result) telling() (t Try, which string) {
	bad := 0
	first := -1
	for i, try := range c.Tries {
		if try.Status == Failed || try.Status == Broken {
			bad++
			if first < 0 || try.Status == Failed && c.Tries[first].Status != Failed {
				first = i
			}
		}
	}
	if first < 0 {
		return Try{}, ""
	}
	if len(c.Tries) > 1 {
		which = fmt.Sprintf("%d of %d tries did not pass; this is try %d", bad, len(c.Tries), first+1)
	}
	return c.Tries[first], which
}

func (e Expectation) words() string {
	if e.OK {
		return "held      " + e.What + ": " + e.Expected
	}
	return "NOT HELD  " + e.What + ": expected " + e.Expected + ", found " + e.Found
}

// answer is what came back, in words if nothing did.
func (e Exchange) answer() string {
	if e.Response == "" {
		return "(no answer)"
	}
	return e.Response
}

// visible is text in one line that a terminal shows as it is.
func visible(s string) string { return escape.Terminal(s) }

// quoted is visible for a text of a kit in which JSON is quoted already.
func quoted(s string) string { return escape.Quoted(s) }

// lines are the lines of a text, each visible; at least one.
func lines(s string) []string {
	out := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range out {
		out[i] = visible(strings.TrimSuffix(line, "\r"))
	}
	return out
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
