// Package inputschema checks an action's input against the JSON Schema of the
// request body, before anything is saved or sent (D18).
//
// Its job is to keep a wrong input at home, whatever the publisher wrote: the
// schema is hostile text. Nothing outside of it is ever read, and its size, its
// numbers, its patterns and the work of one check are bounded. A schema that it
// cannot check against it names with ErrUnsupported; the service is still the one
// that decides. An input that cannot be checked is refused: no input may switch
// its own check off.
//
// Not its job: the limits and evidence of an input, which Plan.CheckInput checks.
// It imports package agentic, internal/strictjson and the schema library, whose
// start-up of some 4 ms every program pays that imports this package.
package inputschema

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// MaxSchemaBytes is the largest schema that Check compiles; the work of the
// library grows with its square.
const MaxSchemaBytes = 64 << 10

// maxMagnitude bounds the power of ten of every number in schema and input: the
// library expands numbers, and panics beyond a million.
const maxMagnitude = 300

// maxProblems bounds what one check reports.
const maxProblems = 20

// ErrUnsupported says that this program cannot check any input against this
// schema: it refers outside of itself, is not a valid schema, uses a pattern that
// RE2 lacks, or is too large, or too costly even for an empty object. It tells
// nothing about the input.
var ErrUnsupported = errors.New("the request schema cannot be checked by this program")

// Check checks an input against a schema: draft 2020-12 unless "$schema" says
// otherwise, formats not asserted. No diagnostics and no error is a valid input.
// The diagnostics have the code "input/schema" and places in the input; they name
// the keyword that refuses and quote no value of the input, because an
// *agentic.InputError reaches logs. An input whose numbers are beyond what the
// library takes, or that makes a check too costly, is refused in the same way. The
// error wraps ErrUnsupported, or is the *strictjson.Error of an input that is no
// JSON.
func Check(schema, input []byte) (ds agentic.Diagnostics, err error) {
	value, err := strictjson.Parse(input)
	if err != nil {
		return nil, err
	}
	b := &budget{patterns: map[string]*pattern{}}
	compiled, err := b.compile(schema)
	if err == nil {
		// What an empty object cannot be held against, nothing can.
		_, err = b.validate(compiled, map[string]any{})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	r := report{value: value, source: input}
	r.beyond(value, "")
	if len(r.found) > 0 {
		return r.list(), nil
	}
	instance, err := library(value)
	var invalid *jsonschema.ValidationError
	if err == nil {
		invalid, err = b.validate(compiled, instance)
	}
	if err != nil {
		r.refuse("", "The input cannot be held against the request schema: "+err.Error(), "Make the input smaller or simpler.")
		return r.list(), nil
	}
	if invalid == nil {
		return nil, nil
	}
	r.add(invalid)
	if r.cycle {
		return nil, fmt.Errorf("%w: a $ref leads back to itself", ErrUnsupported)
	}
	return r.list(), nil
}

// validate holds a value against a schema, with a budget of its own. invalid is
// nil when it fits; the error is what stopped the library.
func (b *budget) validate(s *jsonschema.Schema, value any) (invalid *jsonschema.ValidationError, err error) {
	defer func() {
		if r := recover(); r == errCostly {
			invalid, err = nil, errCostly
		} else if r != nil {
			invalid, err = nil, errLibrary
		}
	}()
	b.left = maxWork
	err = s.Validate(value)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return invalid, nil
	}
	return nil, err
}

// errLibrary says that the schema library panicked.
var errLibrary = errors.New("the schema library failed")

// location names the schema inside the library. It is never loaded.
const location = "agentic:request-body"

func (b *budget) compile(schema []byte) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			compiled, err = nil, errLibrary
		}
	}()
	if len(schema) > MaxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, and %d is the most", len(schema), MaxSchemaBytes)
	}
	value, err := strictjson.Parse(schema)
	if err != nil {
		return nil, err
	}
	doc, err := library(value)
	if err != nil {
		return nil, err
	}
	if object, ok := doc.(map[string]any); ok {
		// The dialect of OpenAPI 3.1 is draft 2020-12 with annotations.
		if s, ok := object["$schema"].(string); ok && strings.HasPrefix(s, "https://spec.openapis.org/oas/3.1/") {
			delete(object, "$schema")
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(denyAll{})
	c.UseRegexpEngine(b.pattern)
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "agentic:budget", Compile: b.weigh})
	c.AssertVocabs()
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// denyAll is a loader that gives nothing: no file, no network.
type denyAll struct{}

func (denyAll) Load(string) (any, error) {
	return nil, errors.New("a reference outside of the schema is not followed")
}

// library gives a value as the schema library wants it. Numbers go through the
// canonical form, so that a long spelling of a small number stays small.
func library(v strictjson.Value) (any, error) {
	if !bounded(v) {
		return nil, fmt.Errorf("a number is beyond 1e%d or below 1e-%d", maxMagnitude, maxMagnitude)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(v.Canonical()))
}

func bounded(v strictjson.Value) bool {
	var r report
	r.beyond(v, "")
	return len(r.found) == 0
}

// beyond reports every number that the library cannot take.
func (r *report) beyond(v strictjson.Value, at string) {
	if len(r.found) == maxProblems {
		return
	}
	if d, ok := v.Decimal(); ok && (d.Magnitude() > maxMagnitude || d.Magnitude() < -maxMagnitude) {
		r.refuse(at, fmt.Sprintf("The number is beyond 1e%d or below 1e-%d, and cannot be held against the request schema", maxMagnitude, maxMagnitude), "Give a number within these bounds.")
	}
	for i, e := range v.Elements() {
		r.beyond(e, at+"/"+strconv.Itoa(i))
	}
	for _, m := range v.Members() {
		r.beyond(m.Value, at+"/"+strictjson.EscapeToken(m.Name))
	}
}

// report turns the library's tree of causes into diagnostics. The library's own
// messages quote the input, so none of them is used.
type report struct {
	value  strictjson.Value
	source []byte
	found  agentic.Diagnostics
	cycle  bool // the schema is at fault, not the input
}

// add reports the leaves of a tree. The branches of anyOf, oneOf and contains
// contradict each other, so they are one problem; what is below propertyNames has
// no place in the input.
func (r *report) add(e *jsonschema.ValidationError) {
	at := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Contains, *kind.MinContains, *kind.PropertyNames:
	case *kind.RefCycle:
		r.cycle = true
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			r.problem(at+pointer([]string{name}), "The request schema has no such member", e)
		}
		return
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				r.add(cause)
			}
			return
		}
	}
	r.problem(at, refusal(e.ErrorKind), e)
}

// refusal says what a keyword has against a value, in words of the schema alone.
func refusal(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("The value is %s, and the request schema wants %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Required:
		return "The object lacks what the request schema requires, " + quotedList(k.Missing)
	case *kind.FalseSchema:
		return "The request schema allows nothing here"
	}
	keyword := "not"
	if path := k.KeywordPath(); len(path) > 0 {
		keyword = path[0]
	}
	return "The value breaks the keyword " + keyword + " of the request schema" + limit(k)
}

// limit is the number that a keyword of size has, in words; "" for all others.
func limit(k jsonschema.ErrorKind) string {
	n := 0
	switch k := k.(type) {
	case *kind.MinLength:
		n = k.Want
	case *kind.MaxLength:
		n = k.Want
	case *kind.MinItems:
		n = k.Want
	case *kind.MaxItems:
		n = k.Want
	default:
		return ""
	}
	return fmt.Sprintf(", which is %d", n)
}

func (r *report) problem(at, refusal string, e *jsonschema.ValidationError) {
	r.refuse(at, refusal+" ("+place(e)+")", "Mend the value as the service's OpenAPI document describes it.")
}

// refuse reports a sentence without its full stop about a place in the input.
func (r *report) refuse(at, sentence, remedy string) {
	v, _ := r.value.Lookup(at)
	d := agentic.Diagnostic{Severity: agentic.SeverityError, Code: "input/schema", Document: "input", Pointer: shorten(at),
		Problem: sentence + ".", Remedy: remedy}
	d.Line, d.Column = strictjson.Position(r.source, v.Offset())
	r.found = append(r.found, d)
}

// list is what was found, in the order of the input.
func (r *report) list() agentic.Diagnostics {
	slices.SortStableFunc(r.found, func(a, b agentic.Diagnostic) int {
		return (a.Line-b.Line)*1_000_000 + a.Column - b.Column
	})
	return r.found[:min(len(r.found), maxProblems)]
}

// place is where a keyword stands in the schema, as a quoted pointer.
func place(e *jsonschema.ValidationError) string {
	_, fragment, _ := strings.Cut(e.SchemaURL, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	return quoted(fragment + pointer(e.ErrorKind.KeywordPath()))
}

func pointer(tokens []string) string {
	p := ""
	for _, token := range tokens {
		p += "/" + strictjson.EscapeToken(token)
	}
	return p
}

func quotedList(words []string) string {
	list := make([]string, 0, len(words))
	for _, w := range words[:min(len(words), 5)] {
		list = append(list, quoted(w))
	}
	if len(list) < len(words) {
		list = append(list, "and more")
	}
	return strings.Join(list, ", ")
}

func quoted(s string) string { return string(strictjson.Quote(shorten(s))) }

// shorten bounds text of the schema or a place in the input.
func shorten(s string) string {
	const limit = 200
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
