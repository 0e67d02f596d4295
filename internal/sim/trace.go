package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic/internal/sim/choice"
)

// TraceFormat is the first line of the text of a Trace, and names its version.
const TraceFormat = "agentic-simulation/1"

// Trace is one run in words, with the choices that make it again.
type Trace struct {
	Seed      uint64 // that the choices were drawn from, before they were shrunk
	Shrunk    bool   // Choices are fewer than those of Seed
	Planted   Plant  // "" for the engine as it is
	Violation *Violation
	Events    []string

	choices choice.Lists // what was chosen at each point; past their end everything is harmless
}

// streamNames name the lists of choices, in their order.
var streamNames = [choice.Streams]string{"world", "host-A", "host-B", "host-C"}

// none stands in the text of a trace where there is nothing.
const none = "none"

// Text is the trace as a file:
//
//	agentic-simulation/1
//	seed 8123                    the seed that it was found with
//	shrunk true                  the choices are fewer than those of the seed
//	planted forget-token         the planted fault, or none
//	violates one-writer          the invariant that does not hold, or none
//	choices world 3 0=2          for the world and each host: how many choices there are,
//	choices host-A 96 5=1 88=3   and those of them that are not 0
//	choices host-B 0
//	choices host-C 0
//	detail Host B writes …       one line, only with a violation
//	replay agentic conformance simulate --replay FILE
//	                             an empty line; then events, for people
//	  1     1ms  host A    executes request-1
//
// What follows the empty line is not read back. Lines end with a line feed.
func (t *Trace) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nseed %d\nshrunk %t\nplanted %s\n", TraceFormat, t.Seed, t.Shrunk, orNone(string(t.Planted)))
	name := none
	if t.Violation != nil {
		name = string(t.Violation.Invariant)
	}
	fmt.Fprintf(&b, "violates %s\n", name)
	for i, list := range t.choices {
		fmt.Fprintf(&b, "choices %s %d", streamNames[i], len(list))
		for i, v := range list {
			if v != 0 {
				fmt.Fprintf(&b, " %d=%d", i, v)
			}
		}
		b.WriteByte('\n')
	}
	if t.Violation != nil {
		fmt.Fprintf(&b, "detail %s\n", strings.ReplaceAll(t.Violation.Detail, "\n", " "))
	}
	replay := "agentic conformance simulate --replay FILE"
	if !t.Shrunk && t.Planted == "" {
		replay = fmt.Sprintf("agentic conformance simulate --seed %d --runs 1", t.Seed)
	}
	fmt.Fprintf(&b, "replay %s\n\n", replay)
	for i, e := range t.Events {
		fmt.Fprintf(&b, "%3d %s\n", i+1, e)
	}
	return b.Bytes()
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// Limits of a trace that is read.
const (
	maxTraceBytes = 1 << 20
	maxChoices    = 100_000
)

// ParseTrace reads the text of a Trace, strictly. Its events are not read, and of its
// violation only the name.
func ParseTrace(text []byte) (*Trace, error) {
	if len(text) > maxTraceBytes {
		return nil, fmt.Errorf("a trace of over %d bytes", maxTraceBytes)
	}
	form, _, _ := strings.Cut(string(text), "\n")
	kind, _, _ := strings.Cut(TraceFormat, "/")
	switch version, ok := strings.CutPrefix(form, kind+"/"); {
	case !ok:
		return nil, fmt.Errorf("this is not a trace: its first line is not %s", TraceFormat)
	case form != TraceFormat:
		return nil, fmt.Errorf("a trace of the version %.40q; this simulator reads %s", version, TraceFormat)
	}
	head, _, found := strings.Cut(string(text), "\n\n")
	if !found {
		return nil, errors.New("a trace has an empty line before its events")
	}
	lines := strings.Split(head, "\n")[1:]
	t := &Trace{}
	for _, part := range []struct {
		name string
		read func(string) error
	}{
		{"seed", func(s string) (err error) { t.Seed, err = strconv.ParseUint(s, 10, 64); return err }},
		{"shrunk", func(s string) error {
			t.Shrunk = s == "true"
			if !t.Shrunk && s != "false" {
				return errors.New("neither true nor false")
			}
			return nil
		}},
		{"planted", func(s string) error {
			if t.Planted = Plant(s); s == none {
				t.Planted = ""
			} else if !slices.Contains(Plants(), t.Planted) {
				return fmt.Errorf("no planted fault is called %.40q", s)
			}
			return nil
		}},
		{"violates", t.readViolation},
		{"choices", func(s string) error { return t.readChoices(0, s) }},
		{"choices", func(s string) error { return t.readChoices(1, s) }},
		{"choices", func(s string) error { return t.readChoices(2, s) }},
		{"choices", func(s string) error { return t.readChoices(3, s) }},
	} {
		if len(lines) == 0 {
			return nil, fmt.Errorf("a trace without the line %q", part.name)
		}
		name, value, _ := strings.Cut(lines[0], " ")
		if name != part.name {
			return nil, fmt.Errorf("a trace with the line %.40q where %q is due", lines[0], part.name)
		}
		if err := part.read(value); err != nil {
			return nil, fmt.Errorf("the line %q of a trace: %w", part.name, err)
		}
		lines = lines[1:]
	}
	rest := []string{"replay"}
	if t.Violation != nil {
		rest = []string{"detail", "replay"}
	}
	if len(lines) != len(rest) {
		return nil, fmt.Errorf("a trace with %d lines after its choices; there should be %d", len(lines), len(rest))
	}
	for i, name := range rest {
		if got, value, _ := strings.Cut(lines[i], " "); got != name || value == "" {
			return nil, fmt.Errorf("a trace with the line %.40q where %q is due", lines[i], name)
		}
	}
	return t, nil
}

func (t *Trace) readViolation(s string) error {
	if s == none {
		return nil
	}
	for _, inv := range Invariants() {
		if string(inv.Name) == s {
			t.Violation = &Violation{Invariant: inv.Name}
			return nil
		}
	}
	return fmt.Errorf("no invariant is called %.40q", s)
}

func (t *Trace) readChoices(stream int, s string) error {
	words := strings.Split(s, " ")
	if len(words) < 2 || words[0] != streamNames[stream] {
		return fmt.Errorf("these are not the choices of %s", streamNames[stream])
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n > maxChoices {
		return fmt.Errorf("%.40q is not a number of choices up to %d", words[1], maxChoices)
	}
	list := make([]byte, n)
	t.choices[stream] = list
	last := -1
	for _, word := range words[2:] {
		index, value, _ := strings.Cut(word, "=")
		i, err := strconv.Atoi(index)
		v, err2 := strconv.ParseUint(value, 10, 8)
		if err != nil || err2 != nil || i <= last || i >= n || v == 0 {
			return fmt.Errorf("%.40q is not a choice in its place", word)
		}
		list[i], last = byte(v), i
	}
	return nil
}

// Run makes one run of a seed, in words.
func Run(seed uint64) *Trace { return runPlanted(seed, "") }

func runPlanted(seed uint64, planted Plant) *Trace {
	l := newLab()
	defer l.close()
	l.choices.seeded(seed)
	return l.trace(&Trace{Seed: seed, Planted: planted})
}

// Replay makes the run of a trace again, and gives its trace as it is now. The error
// says why text is not a trace; whether the run still violates something is in the
// Trace.
func Replay(text []byte) (*Trace, error) {
	t, err := ParseTrace(text)
	if err != nil {
		return nil, err
	}
	l := newLab()
	defer l.close()
	l.choices.Give(t.choices)
	return l.trace(&Trace{Seed: t.Seed, Shrunk: t.Shrunk, Planted: t.Planted}), nil
}

// trace makes a run in words and completes t with it.
func (l *lab) trace(t *Trace) *Trace {
	w := l.simulate(t.Planted, new(counts), true)
	t.choices, t.Events, t.Violation = l.choices.Made.Trimmed(), w.text, w.bad
	return t
}
