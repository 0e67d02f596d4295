package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// reader takes members out of JSON values and keeps the first thing that is wrong.
type reader struct{ err error }

func (d *reader) fail(at, format string, args ...any) {
	if d.err == nil {
		if at == "" {
			at = "the document"
		}
		d.err = fmt.Errorf("%s %s", at, fmt.Sprintf(format, args...))
	}
}

// object is an object at a place of the document, the JSON Pointer at.
type object struct {
	*reader
	at string
	v  strictjson.Value
}

func (d *reader) object(v strictjson.Value, at string) object {
	if v.Kind() != strictjson.Object {
		d.fail(at, "is %s, not an object", v.Kind().One())
	}
	return object{d, at, v}
}

// only refuses members that are not named.
func (o object) only(names ...string) {
	for _, m := range o.v.Members() {
		if !slices.Contains(names, m.Name) {
			o.fail(o.at, "has a member %q that nobody knows", m.Name)
		}
	}
}

// member is a member of that kind; one that may be left out is then Invalid.
func (o object) member(name string, kind strictjson.Kind, required bool) strictjson.Value {
	v, ok := o.v.Member(name)
	switch {
	case !ok && required:
		o.fail(o.at, "has no member %q", name)
	case ok && v.Kind() != kind:
		o.fail(o.place(name), "is %s, not %s", v.Kind().One(), kind.One())
	}
	return v
}

func (o object) place(name string) string { return o.at + "/" + strictjson.EscapeToken(name) }

func (o object) text(name string) string {
	s, _ := o.member(name, strictjson.String, true).Text()
	return s
}

func (o object) optional(name string) string {
	s, _ := o.member(name, strictjson.String, false).Text()
	return s
}

// word is a string out of a list.
func word[T ~string](o object, name string, known ...T) T {
	s := T(o.text(name))
	if !slices.Contains(known, s) {
		o.fail(o.place(name), "is %q, which nobody knows", s)
	}
	return s
}

func (o object) truth(name string) bool { return o.member(name, strictjson.Bool, true).Truth() }

func (o object) whole(name string) int64 {
	d, _ := o.member(name, strictjson.Number, true).Decimal()
	n, ok := d.Int64()
	if !ok || n < 0 {
		o.fail(o.place(name), "is no whole number from zero on")
	}
	return n
}

func (o object) count(name string) int {
	n := o.whole(name)
	if n > math.MaxInt32 {
		o.fail(o.place(name), "is more than a report can count")
	}
	return int(n)
}

func (o object) unsigned(name string) uint64 {
	s, _ := o.member(name, strictjson.Number, true).Literal()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		o.fail(o.place(name), "is no whole number of 64 bits")
	}
	return n
}

func (o object) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.text(name))
	if err != nil {
		o.fail(o.place(name), "is no time of RFC 3339")
	}
	return t.UTC()
}

func (o object) child(name string) object {
	return o.object(o.member(name, strictjson.Object, true), o.place(name))
}

// list reads an array, element by element.
func list[T any](o object, name string, required bool, read func(v strictjson.Value, at string) T) []T {
	out := []T{}
	v := o.member(name, strictjson.Array, required)
	if v.Kind() == strictjson.Invalid {
		return nil
	}
	for i, e := range v.Elements() {
		out = append(out, read(e, fmt.Sprintf("%s/%d", o.place(name), i)))
	}
	return out
}

func (d *reader) text(v strictjson.Value, at string) string {
	s, ok := v.Text()
	if !ok {
		d.fail(at, "is %s, not a string", v.Kind().One())
	}
	return s
}

// ErrFormat says that a report is of another version than Format.
var ErrFormat = errors.New("not a report of the format " + Format)

// ParseReport reads what WriteJSON has written. It is strict (D1): an unknown status, a
// summary that contradicts the checks, or a check that is there twice is an error, and a
// report of another format one that wraps ErrFormat. Members that it does not know it
// passes over, because the format allows new ones.
func ParseReport(data []byte) (*Report, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		return nil, err
	}
	d := &reader{}
	o := d.object(root, "")
	if format := o.text("format"); d.err == nil && format != Format {
		return nil, fmt.Errorf("%w: it is %q", ErrFormat, format)
	}
	r := &Report{
		Format: Format, Statement: o.text("statement"), Kind: word(o, "kind", Client, Service), Draft: o.text("draft"),
		Seed: o.unsigned("seed"), Repeat: o.count("repeat"), Started: o.time("started"), Finished: o.time("finished"),
	}
	if o.optional("judged") != "" {
		r.Judged = word(o, "judged", levels...)
	}
	s := o.child("subject")
	r.Subject = Subject{s.text("name"), s.optional("authorship"), s.optional("version"), s.optional("origin"), s.optional("action")}
	t := o.child("tool")
	r.Tool = Tool{t.text("name"), t.text("version"), t.text("go"), t.text("system")}
	c := o.child("summary")
	told := Summary{
		Passed: c.count("passed"), Failed: c.count("failed"), Flaky: c.count("flaky"), Expected: c.count("expected_failures"),
		Unexpected: c.count("unexpected_passes"), NotExercised: c.count("not_exercised"), Errors: c.count("errors"), ObservedChecks: c.count("observed"),
	}
	known := map[string]bool{}
	r.Checks = list(o, "checks", true, func(v strictjson.Value, at string) Result {
		res := d.result(v, at)
		if known[res.ID] {
			d.fail(at, "is the check %q a second time", res.ID)
		}
		known[res.ID] = true
		return res
	})
	if r.count(); d.err == nil && r.Summary != told {
		d.fail("/summary", "does not count what is in /checks")
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

func (d *reader) result(v strictjson.Value, at string) Result {
	o := d.object(v, at)
	return Result{
		Info: Info{
			ID: o.text("id"), Group: o.text("group"), Title: o.text("title"), Level: word(o, "level", Must, Should, Reading),
			Sections: list(o, "sections", true, d.text), Asks: o.text("asks"),
		},
		Status: word(o, "status", Passed, Failed, Flaky, Expected, Unexpected, NotExercised, Broken),
		Reason: o.optional("reason"), Missing: o.optional("missing"), Tries: list(o, "tries", true, d.try),
	}
}

func (d *reader) try(v strictjson.Value, at string) Try {
	o := d.object(v, at)
	return Try{
		Status: word(o, "status", Passed, Failed, NotExercised, Broken), Duration: time.Duration(o.whole("duration")),
		Expectations: list(o, "expectations", false, func(v strictjson.Value, at string) Expectation {
			e := d.object(v, at)
			return Expectation{e.text("what"), e.truth("ok"), e.text("expected"), e.text("found")}
		}),
		Exchanges: list(o, "exchanges", false, func(v strictjson.Value, at string) Exchange {
			e := d.object(v, at)
			return Exchange{e.text("request"), e.text("response"), e.optional("note")}
		}),
		Notes: list(o, "notes", false, d.text),
		Hint:  o.optional("hint"), Error: o.optional("error"),
	}
}
