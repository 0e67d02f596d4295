// Package strictjson reads JSON the way the Agentic Action Profile needs it.
//
// Its job: decode a document without tolerance (UTF-8 only, no duplicate
// member name at any depth, no lone surrogate, nothing after the value, depth
// at most 64: D1), keep numbers exact (D2), resolve RFC 6901 pointers (D5),
// compare structurally, and give a canonical form with its SHA-256 digest.
// Every error names the place: JSON Pointer, line and column.
//
// Not its job: mapping JSON to Go structs, schemas, or any meaning of a
// document. It imports the standard library and jsontext only; nothing else in
// the module imports jsontext.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the deepest nesting of objects and arrays that Parse accepts.
const MaxDepth = 64

// Kind tells what a Value is.
type Kind uint8

// The kinds of JSON values. The zero Kind is Invalid: the kind of a zero Value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name a person would use: "object", "number", ...
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "nothing"
}

// One is String with its article: "an object", "a number", "null", ...
func (k Kind) One() string {
	switch k {
	case Array, Object:
		return "an " + k.String()
	case Bool, Number, String:
		return "a " + k.String()
	}
	return k.String()
}

// Value is one JSON value and, below it, everything it holds. It is immutable
// and safe for concurrent use.
type Value struct {
	kind    Kind
	truth   bool
	offset  int
	text    string // content of a string, literal of a number
	elems   []Value
	members []Member
}

// Member is one member of an object, in the order of the document.
type Member struct {
	Name   string
	Offset int // byte offset of the name's opening quote
	Value  Value
}

// Kind tells what v is.
func (v Value) Kind() Kind { return v.kind }

// Offset is the byte offset of v in the document it was parsed from.
func (v Value) Offset() int { return v.offset }

// Truth is the value of a boolean, false for everything else.
func (v Value) Truth() bool { return v.kind == Bool && v.truth }

// Text is the content of a string; for everything else it is "" and false.
func (v Value) Text() (s string, ok bool) {
	if v.kind != String {
		return "", false
	}
	return v.text, true
}

// Literal is the number as it was written; for everything else it is "" and
// false.
func (v Value) Literal() (s string, ok bool) {
	if v.kind != Number {
		return "", false
	}
	return v.text, true
}

// Decimal is the exact value of a number; ok is false for everything else.
func (v Value) Decimal() (d Decimal, ok bool) {
	if v.kind != Number {
		return Decimal{}, false
	}
	return parseDecimal(v.text)
}

// Len is the number of elements of an array or of members of an object.
func (v Value) Len() int { return len(v.elems) + len(v.members) }

// Elements are the elements of an array. The caller must not change them.
func (v Value) Elements() []Value { return v.elems }

// Members are the members of an object. The caller must not change them.
func (v Value) Members() []Member { return v.members }

// Member returns the member of that exact name.
func (v Value) Member(name string) (Value, bool) {
	for i := range v.members {
		if v.members[i].Name == name {
			return v.members[i].Value, true
		}
	}
	return Value{}, false
}

// Reasons why a document is refused. Error.Is matches them with errors.Is.
var (
	ErrSyntax          = errors.New("not valid JSON")
	ErrEmpty           = errors.New("no JSON value")
	ErrDuplicateMember = errors.New("duplicate member name")
	ErrEncoding        = errors.New("not valid UTF-8 text")
	ErrDepth           = errors.New("nested too deep")
	ErrTrailing        = errors.New("data after the JSON value")
	ErrNumberRange     = errors.New("number out of range")
)

// Error tells why and where a document is not strict JSON.
type Error struct {
	Reason  error  // one of the Err values of this package
	Pointer string // JSON Pointer of the value at fault, bounded in length
	Line    int    // 1-based
	Column  int    // 1-based, in code points
	Detail  string // what was found, for people; may hold document text
}

func (e *Error) Error() string {
	s := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Pointer != "" {
		s += ", at " + strconv.QuoteToGraphic(e.Pointer)
	}
	s += ": " + e.Reason.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the Reason, so that errors.Is works.
func (e *Error) Unwrap() error { return e.Reason }

// Parse decodes exactly one JSON value. The error, if any, is an *Error.
func Parse(data []byte) (Value, error) {
	p := parser{src: data, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	v, err := p.value()
	if err != nil {
		return Value{}, p.explain(err)
	}
	end := int(p.dec.InputOffset())
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 {
		line, col := Position(data, len(data)-len(rest))
		return Value{}, &Error{Reason: ErrTrailing, Line: line, Column: col}
	}
	return v, nil
}

type parser struct {
	src []byte
	dec *jsontext.Decoder
}

func (p *parser) fail(reason error, offset int, detail string) error {
	line, col := Position(p.src, offset)
	return &Error{Reason: reason, Pointer: clip(string(p.dec.StackPointer())), Line: line, Column: col, Detail: detail}
}

// value reads the next value. The recursion is bounded by MaxDepth.
func (p *parser) value() (Value, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return Value{}, err
	}
	v := Value{}
	end := int(p.dec.InputOffset())
	switch tok.Kind() {
	case 'n':
		v.kind, v.offset = Null, end-4
	case 't':
		v.kind, v.truth, v.offset = Bool, true, end-4
	case 'f':
		v.kind, v.offset = Bool, end-5
	case '"':
		v.kind, v.text, v.offset = String, tok.String(), p.stringStart(end)
	case '0':
		v.kind, v.text = Number, tok.String()
		v.offset = end - len(v.text)
		if _, ok := parseDecimal(v.text); !ok {
			return v, p.fail(ErrNumberRange, v.offset, "the exponent is beyond what this program compares exactly")
		}
	case '[':
		v.kind, v.offset = Array, end-1
		if p.dec.StackDepth() > MaxDepth {
			return v, p.fail(ErrDepth, v.offset, fmt.Sprintf("more than %d levels", MaxDepth))
		}
		for p.dec.PeekKind() != ']' {
			e, err := p.value()
			if err != nil {
				return v, err
			}
			v.elems = append(v.elems, e)
		}
		if _, err := p.dec.ReadToken(); err != nil {
			return v, err
		}
	case '{':
		v.kind, v.offset = Object, end-1
		if p.dec.StackDepth() > MaxDepth {
			return v, p.fail(ErrDepth, v.offset, fmt.Sprintf("more than %d levels", MaxDepth))
		}
		for p.dec.PeekKind() != '}' {
			name, err := p.dec.ReadToken()
			if err != nil {
				return v, err
			}
			m := Member{Name: name.String(), Offset: p.stringStart(int(p.dec.InputOffset()))}
			if m.Value, err = p.value(); err != nil {
				return v, err
			}
			v.members = append(v.members, m)
		}
		if _, err := p.dec.ReadToken(); err != nil {
			return v, err
		}
	}
	return v, nil
}

// stringStart finds the opening quote of the valid string literal that ends
// before end: a quote inside the literal has a backslash before it, and the
// opening one never has.
func (p *parser) stringStart(end int) int {
	for i := end - 2; i > 0; i-- {
		if p.src[i] == '"' && p.src[i-1] != '\\' {
			return i
		}
	}
	return 0
}

// explain turns a decoder error into an *Error.
func (p *parser) explain(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, io.EOF) {
		line, col := Position(p.src, len(p.src))
		return &Error{Reason: ErrEmpty, Line: line, Column: col}
	}
	e := &Error{Reason: ErrSyntax, Line: 1, Column: 1}
	syn, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		e.Detail = "unreadable"
		return e
	}
	off := int(syn.ByteOffset)
	e.Pointer = clip(string(syn.JSONPointer))
	switch {
	case errors.Is(syn.Err, jsontext.ErrDuplicateName):
		e.Reason = ErrDuplicateMember
		e.Detail = strconv.QuoteToGraphic(clip(syn.JSONPointer.LastToken()))
	case strings.Contains(syn.Err.Error(), "UTF-8"), strings.Contains(syn.Err.Error(), "surrogate"):
		e.Reason = ErrEncoding
	case errors.Is(syn.Err, io.ErrUnexpectedEOF):
		e.Detail = "the document ends too early"
		off = len(p.src)
	case off == 0 && bytes.HasPrefix(p.src, []byte("\uFEFF")):
		e.Detail = "a byte order mark stands before the value"
	default:
		e.Detail = clip(syn.Err.Error())
	}
	e.Line, e.Column = Position(p.src, off)
	return e
}

// Position turns a byte offset into a 1-based line and column; the column
// counts code points.
func Position(src []byte, offset int) (line, column int) {
	offset = max(0, min(offset, len(src)))
	before := src[:offset]
	line = bytes.Count(before, []byte{'\n'}) + 1
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	return line, utf8.RuneCount(before) + 1
}

// clip bounds text that came from a document, for use in an error.
func clip(s string) string {
	limit := 200
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
