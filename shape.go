package agentic

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// maxDiagnostics bounds what one document can make this program report; one more
// says that the list is not complete.
const maxDiagnostics = 100

// Bounds of limits.md, in code points.
const (
	maxName    = 64
	maxPointer = 200
)

// maxShown bounds text of a document inside a message, in code points.
const maxShown = 120

// parseDocument reads strict JSON (D1). The diagnostic, if any, names the place;
// its code is document + "/" + the kind of fault.
func parseDocument(document string, data []byte) (node, Diagnostics) {
	v, err := strictjson.Parse(data)
	if err == nil {
		return node{value: v}, nil
	}
	d := Diagnostic{Severity: SeverityError, Document: document, Code: document + "/not-json",
		Problem: "The document is not strict JSON: " + err.Error() + ".",
		Remedy:  "Write one JSON value in UTF-8, as RFC 8259 describes it.",
	}
	if bytes.HasPrefix(data, []byte("\uFEFF")) {
		d.Remedy = "Remove the byte order mark at the start of the document."
	}
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		d.Pointer, d.Line, d.Column = e.Pointer, e.Line, e.Column
		d.Problem = "The document is not strict JSON: " + e.Reason.Error()
		if e.Detail != "" {
			d.Problem += ": " + e.Detail
		}
		d.Problem += "."
	}
	for _, kind := range []struct {
		reason       error
		code, remedy string
	}{
		{strictjson.ErrEmpty, "empty", "Write one JSON object."},
		{strictjson.ErrDuplicateMember, "duplicate-member", "Keep one of the members of that name and delete the others."},
		{strictjson.ErrEncoding, "not-utf8", "Save the document as UTF-8, with surrogate escapes only in pairs."},
		{strictjson.ErrDepth, "too-deep", fmt.Sprintf("Nest at most %d objects and arrays.", strictjson.MaxDepth)},
		{strictjson.ErrTrailing, "trailing-data", "Delete everything after the JSON value."},
		{strictjson.ErrNumberRange, "number-range", "Write the number with a smaller exponent."},
	} {
		if errors.Is(err, kind.reason) {
			d.Code, d.Remedy = document+"/"+kind.code, kind.remedy
		}
	}
	return node{}, Diagnostics{d}
}

// node is a value of a document and where it is. The node of a missing member
// has an Invalid value; the methods of checker pass over it in silence, because
// checker.object has reported it.
type node struct {
	value   strictjson.Value
	pointer string
}

func (n node) missing() bool { return n.value.Kind() == strictjson.Invalid }

func (n node) member(name string) node {
	v, _ := n.value.Member(name)
	return node{value: v, pointer: n.pointer + "/" + strictjson.EscapeToken(name)}
}

// elements are the elements of an array, none for everything else.
func (n node) elements() []node {
	ns := make([]node, 0, len(n.value.Elements()))
	for i, v := range n.value.Elements() {
		ns = append(ns, node{value: v, pointer: n.pointer + "/" + strconv.Itoa(i)})
	}
	return ns
}

// checker collects the problems of one document against a fixed schema, with
// the meaning that JSON Schema gives to each keyword: lengths in code points,
// integers by value (3.0 is one). Each method reports what is wrong and returns
// the value it found; ok is false when it reported something or the node is
// missing.
type checker struct {
	document string // "profile", ...; also the prefix of every code
	source   []byte // nil when nothing was parsed: no line and column then
	found    Diagnostics
}

// report adds a diagnostic at a byte offset of the source. Past maxDiagnostics
// it only records that there are more.
func (c *checker) report(severity Severity, offset int, pointer, code, problem, remedy string) {
	d := Diagnostic{Severity: severity, Code: c.document + "/" + code, Document: c.document,
		Pointer: shorten(pointer, 2*maxShown), Problem: problem, Remedy: remedy}
	switch {
	case len(c.found) < maxDiagnostics:
	case len(c.found) == maxDiagnostics && severity == SeverityError:
		d.Code, d.Pointer = c.document+"/more-problems", ""
		d.Problem, d.Remedy = "There are more problems than are listed.", "Mend the listed ones and check again."
	default:
		return
	}
	if c.source != nil {
		d.Line, d.Column = strictjson.Position(c.source, offset)
	}
	c.found = append(c.found, d)
}

// fail reports an error at a node.
func (c *checker) fail(n node, code, problem, remedy string) {
	c.report(SeverityError, n.value.Offset(), n.pointer, code, problem, remedy)
}

// warn reports a warning at a node.
func (c *checker) warn(n node, code, problem, remedy string) {
	c.report(SeverityWarning, n.value.Offset(), n.pointer, code, problem, remedy)
}

// kind checks the type of a node: code "wrong-type".
func (c *checker) kind(n node, want strictjson.Kind) bool {
	if n.missing() {
		return false
	}
	if n.value.Kind() != want {
		c.fail(n, "wrong-type", fmt.Sprintf("%s is not %s: it is %s.", place(n), want.One(), show(n.value)),
			fmt.Sprintf("Write %s here.", want.One()))
		return false
	}
	return true
}

// object checks that a node is an object with every required member and no
// member that is not listed: codes "missing-member" and "unknown-member". ok
// tells only that it is an object, so that the members can be checked.
func (c *checker) object(n node, required, optional []string) bool {
	if !c.kind(n, strictjson.Object) {
		return false
	}
	for _, name := range required {
		if n.member(name).missing() {
			c.fail(n, "missing-member", fmt.Sprintf("%s lacks the required member %q.", place(n), name),
				fmt.Sprintf("Add the member %q.", name))
		}
	}
	for _, m := range n.value.Members() {
		if !slices.Contains(required, m.Name) && !slices.Contains(optional, m.Name) {
			c.report(SeverityError, m.Offset, n.pointer+"/"+strictjson.EscapeToken(m.Name), "unknown-member",
				fmt.Sprintf("%s has a member that this version does not know: %s.", place(n), quoted(m.Name)),
				"Delete the member, or mend its name.")
		}
	}
	return true
}

// array checks the number of elements: codes "too-few" and "too-many"; most 0
// is no limit. ok tells only that it is an array.
func (c *checker) array(n node, least, most int) (elems []node, ok bool) {
	if !c.kind(n, strictjson.Array) {
		return nil, false
	}
	elems = n.elements()
	if len(elems) < least {
		c.fail(n, "too-few", fmt.Sprintf("%s has %d elements, and %d is the least.", place(n), len(elems), least),
			"Add an element.")
	}
	if most > 0 && len(elems) > most {
		c.fail(n, "too-many", fmt.Sprintf("%s has %d elements, and %d is the most.", place(n), len(elems), most),
			"Delete elements.")
	}
	return elems, true
}

// unique checks that no two elements are structurally equal: code
// "duplicate-element".
func (c *checker) unique(elems []node) bool {
	seen := make(map[string]bool, len(elems))
	ok := true
	for _, e := range elems {
		key := string(e.value.Canonical())
		if seen[key] {
			c.fail(e, "duplicate-element", fmt.Sprintf("%s repeats an earlier element: %s.", place(e), show(e.value)),
				"Delete the repetition.")
			ok = false
		}
		seen[key] = true
	}
	return ok
}

// text checks a string and its length in code points: codes "too-short" and
// "too-long"; most 0 is no limit.
func (c *checker) text(n node, least, most int) (s string, ok bool) {
	if !c.kind(n, strictjson.String) {
		return "", false
	}
	s, _ = n.value.Text()
	switch length := utf8.RuneCountInString(s); {
	case length < least:
		c.fail(n, "too-short", fmt.Sprintf("%s has %d characters, and %d is the least.", place(n), length, least),
			"Write a longer string.")
	case most > 0 && length > most:
		c.fail(n, "too-long", fmt.Sprintf("%s has %d characters, and %d is the most.", place(n), length, most),
			"Write a shorter string.")
	default:
		return s, true
	}
	return s, false
}

// match is text that also has a form: code "wrong-form". form completes the
// sentence "Write ...".
func (c *checker) match(n node, least, most int, matches func(string) bool, form string) (s string, ok bool) {
	if s, ok = c.text(n, least, most); ok && !matches(s) {
		c.fail(n, "wrong-form", fmt.Sprintf("%s does not have the required form: %s.", place(n), show(n.value)),
			"Write "+form+".")
		ok = false
	}
	return s, ok
}

// name is a "name" of limits.md: ^[a-zA-Z][a-zA-Z0-9_-]*$ of 1 to 64.
func (c *checker) name(n node) (string, bool) {
	return c.match(n, 1, maxName, isName, "a letter and then letters, digits, _ and -")
}

// pointer is a "pointer" of limits.md: an RFC 6901 pointer of 1 to 200.
func (c *checker) pointer(n node) (string, bool) {
	return c.match(n, 1, maxPointer, isPointer, `a JSON Pointer such as "/id", with ~0 for ~ and ~1 for / inside a name`)
}

// oneOf checks that a node is one of some strings: code "wrong-value".
func (c *checker) oneOf(n node, words ...string) (s string, ok bool) {
	if n.missing() {
		return "", false
	}
	s, ok = n.value.Text()
	if !ok || !slices.Contains(words, s) {
		c.fail(n, "wrong-value", fmt.Sprintf("%s is %s, which is not allowed.", place(n), show(n.value)),
			`Write "`+strings.Join(words, `" or "`)+`".`)
		return s, false
	}
	return s, true
}

// integer checks a number by its exact value: codes "not-integer" and
// "out-of-range".
func (c *checker) integer(n node, least, most int64) (i int64, ok bool) {
	if !c.kind(n, strictjson.Number) {
		return 0, false
	}
	d, _ := n.value.Decimal()
	if !d.IsInteger() {
		c.fail(n, "not-integer", fmt.Sprintf("%s is not an integer: it is %s.", place(n), show(n.value)),
			fmt.Sprintf("Write an integer from %d to %d.", least, most))
		return 0, false
	}
	if i, ok = d.Int64(); !ok || i < least || i > most {
		c.fail(n, "out-of-range", fmt.Sprintf("%s is out of range: it is %s.", place(n), show(n.value)),
			fmt.Sprintf("Write an integer from %d to %d.", least, most))
		return 0, false
	}
	return i, true
}

func isName(s string) bool {
	for i, b := range []byte(s) {
		letter := 'a' <= b|0x20 && b|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= b && b <= '9' || b == '_' || b == '-')) {
			return false
		}
	}
	return s != ""
}

func isPointer(s string) bool { return s != "" && strictjson.ValidPointer(s) }

// place names a node at the start of a sentence.
func place(n node) string {
	if n.pointer == "" {
		return "The document"
	}
	return shorten(n.pointer, maxShown)
}

// show is a value as compact JSON, bounded; for people.
func show(v strictjson.Value) string {
	if v.Kind() == strictjson.Invalid {
		return "nothing"
	}
	return shorten(string(v.Compact()), maxShown)
}

// quoted is text as a JSON string, bounded; for people.
func quoted(s string) string { return shorten(string(strictjson.Quote(s)), maxShown) }

// shorten bounds text to a number of code points, the mark of omission
// included.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	count := 0
	cut := 0
	for i := range s {
		if count == limit-1 {
			cut = i
		}
		if count++; count > limit {
			return s[:cut] + "…"
		}
	}
	return s
}
