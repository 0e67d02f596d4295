package agentic

import (
	"fmt"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// maxRawInputBytes bounds what CheckInput parses: white space and long spellings
// may make a small input large, but not without end.
const maxRawInputBytes = 1 << 20

// CheckInput checks an input: a strict JSON object of at most MaxInputBytes,
// without white space as well as in canonical form, in which every input pointer
// of the evidence resolves (D18). The error is an *InputError with every problem
// found.
func (p *Plan) CheckInput(data []byte) (Input, error) {
	c := checker{document: "input", source: data}
	if len(data) > maxRawInputBytes {
		c.tooLarge(len(data), maxRawInputBytes)
		return Input{}, &InputError{Diagnostics: c.found}
	}
	root, found := parseDocument(c.document, data)
	if found != nil {
		return Input{}, &InputError{Diagnostics: found}
	}
	v := root.value
	if v.Kind() != strictjson.Object {
		c.fail(root, "not-object", fmt.Sprintf("The input is not a JSON object: it is %s.", v.Kind().One()),
			"Write the input as one JSON object.")
		return Input{}, &InputError{Diagnostics: c.found}
	}
	in := Input{body: v.Compact(), digest: v.Digest(), value: v}
	if size := max(len(in.body), len(v.Canonical())); size > MaxInputBytes {
		c.tooLarge(size, MaxInputBytes)
	}
	for _, pair := range p.Action.Evidence.InputBindings {
		if _, ok := v.Lookup(pair.InputPointer); !ok {
			c.fail(node{value: v, pointer: pair.InputPointer}, "evidence-missing",
				fmt.Sprintf("The input has no value at %s, which the action needs as evidence.", shorten(pair.InputPointer, maxShown)),
				"Add the value to the input.")
		}
	}
	if c.found != nil {
		return Input{}, &InputError{Diagnostics: c.found}
	}
	return in, nil
}

func (c *checker) tooLarge(size, limit int) {
	c.report(SeverityError, 0, "", "too-large", fmt.Sprintf("The %s has %d bytes, and %d is the most.", c.document, size, limit),
		"Make it smaller.")
}
