package strictjson

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func parse(t testing.TB, doc string) Value {
	t.Helper()
	v, err := Parse([]byte(doc))
	if err != nil {
		t.Fatalf("%.100s: %v", doc, err)
	}
	return v
}

func nested(open, end string, depth int) string {
	return strings.Repeat(open, depth) + strings.Repeat(end, depth)
}

// accepted are strict documents; they seed the fuzz targets as well.
var accepted = []string{
	`null`, `true`, ` false `, `""`, "\t\r\n 0", `-0`, `1.5E+10`, `[]`, `{}`, `[1,[2,{"a":[]}]]`,
	`{"a":{"x":1},"b":{"x":1}}`, `{"a":1,"A":2,"":3," ":4}`, `{"\u0061":1,"\\u0061":2}`,
	`"\ud83d\ude00 😀 \u0000 \u2028 \/"`, "\"\u007f\u0085\uFEFF\"", `{"a~b/c":{"~1":[true]}}`,
	`9007199254740993`, `1e1000000000000000`, `10e999999999999999`, `0.1e1000000000000001`, `0e99999999999999999999999`, `1e000000000000000000000000001`,
	nested("[", "]", MaxDepth), nested(`{"a":`, "}", MaxDepth-1)[:5*(MaxDepth-1)] + "{}" + strings.Repeat("}", MaxDepth-1),
}

type refusal struct {
	doc          string
	reason       error
	pointer      string
	line, column int
}

var refused = []refusal{
	{``, ErrEmpty, "", 1, 1},
	{" \n ", ErrEmpty, "", 2, 2},

	{`{"a":1,"a":1}`, ErrDuplicateMember, "/a", 1, 8},
	{`{"a":1,"\u0061":2}`, ErrDuplicateMember, "/a", 1, 8},
	{`{"\u00e9":1,"é":2}`, ErrDuplicateMember, "/é", 1, 13},
	{`{"":1,"":2}`, ErrDuplicateMember, "/", 1, 7},
	{`{"x":[0,{"a~/":{},"a~\/":{}}]}`, ErrDuplicateMember, "/x/1/a~0~1", 1, 19},
	{"{\"é\": \"😀\",\r\n\"b\": {\"c\":1, \"é\":1,\r\n  \"c\":2}}", ErrDuplicateMember, "/b/c", 3, 3},
	{strings.Repeat(`{"a":`, 60) + `{"b":1,"b":1}` + strings.Repeat("}", 60), ErrDuplicateMember, strings.Repeat("/a", 60) + "/b", 1, 308},

	{`"\ud800"`, ErrEncoding, "", 1, 2},
	{`"\udc00\ud800"`, ErrEncoding, "", 1, 2},
	{`["a","\ud83dx"]`, ErrEncoding, "/1", 1, 7},
	{`{"\ud800":1}`, ErrEncoding, "", 1, 3},
	{"\"\xff\"", ErrEncoding, "", 1, 2},
	{"\"\xed\xa0\x80\"", ErrEncoding, "", 1, 2},
	{"\"\xc0\xaf\"", ErrEncoding, "", 1, 2},
	{"{\"a\":\"é\xe2\x82\"}", ErrEncoding, "/a", 1, 8},
	{"\uFEFF{}", ErrSyntax, "", 1, 1},

	{nested("[", "]", MaxDepth+1), ErrDepth, strings.Repeat("/0", MaxDepth), 1, MaxDepth + 1},
	{strings.Repeat(`{"a":`, MaxDepth) + "{}" + strings.Repeat("}", MaxDepth), ErrDepth, strings.Repeat("/a", MaxDepth), 1, 5*MaxDepth + 1},
	{strings.Repeat(`{"a":[`, MaxDepth/2) + "[]" + strings.Repeat("]}", MaxDepth/2), ErrDepth, strings.Repeat("/a/0", MaxDepth/2), 1, 3*MaxDepth + 1},
	{strings.Repeat("[", 100000), ErrDepth, strings.Repeat("/0", MaxDepth), 1, MaxDepth + 1},

	{`1 2`, ErrTrailing, "", 1, 3},
	{"{}\n\n x", ErrTrailing, "", 3, 2},
	{`[]]`, ErrTrailing, "", 1, 3},
	{`null,`, ErrTrailing, "", 1, 5},
	{"0\x00", ErrTrailing, "", 1, 2},
	{"{}\uFEFF", ErrTrailing, "", 1, 3},
	{"true\xff", ErrTrailing, "", 1, 5},

	{`1e1000000000000001`, ErrNumberRange, "", 1, 1},
	{`[0,1E-1000000000000001]`, ErrNumberRange, "/1", 1, 4},
	{`{"a":10e1000000000000000}`, ErrNumberRange, "/a", 1, 6},
	{`-1e99999999999999999999999`, ErrNumberRange, "", 1, 1},

	{`{`, ErrSyntax, "", 1, 2},
	{`[1,`, ErrSyntax, "", 1, 4},
	{`"abc`, ErrSyntax, "", 1, 5},
	{`{"a":1,}`, ErrSyntax, "", 1, 7},
	{`[1,]`, ErrSyntax, "", 1, 3},
	{`[1 2]`, ErrSyntax, "", 1, 4},
	{`{"a" 1}`, ErrSyntax, "/a", 1, 6},
	{`{a:1}`, ErrSyntax, "", 1, 2},
	{`{1:1}`, ErrSyntax, "", 1, 2},
	{`{'a':1}`, ErrSyntax, "", 1, 2},
	{`01`, ErrTrailing, "", 1, 2},
	{`+1`, ErrSyntax, "", 1, 1},
	{`.5`, ErrSyntax, "", 1, 1},
	{`[1.]`, ErrSyntax, "/0", 1, 4},
	{`-`, ErrSyntax, "", 1, 2},
	{`NaN`, ErrSyntax, "", 1, 1},
	{`True`, ErrSyntax, "", 1, 1},
	{`nul`, ErrSyntax, "", 1, 4},
	{"\"a\tb\"", ErrSyntax, "", 1, 3},
	{`"\x"`, ErrSyntax, "", 1, 2},
	{`// c`, ErrSyntax, "", 1, 1},
	{"\u00a01", ErrSyntax, "", 1, 1},
}

func TestParseAccepts(t *testing.T) {
	for _, doc := range accepted {
		parse(t, doc)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		_, err := Parse([]byte(tt.doc))
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, tt.reason) {
			t.Errorf("%.60q: got %v, want %v", tt.doc, err, tt.reason)
			continue
		}
		want := refusal{tt.doc, tt.reason, clip(tt.pointer), tt.line, tt.column}
		got := refusal{tt.doc, e.Reason, e.Pointer, e.Line, e.Column}
		if got != want {
			t.Errorf("%.60q: %v\ngot  %q %d:%d\nwant %q %d:%d", tt.doc, err, got.pointer, got.line, got.column, want.pointer, want.line, want.column)
		}
	}
}

// Whatever a document holds, an error stays short enough for a message.
func TestErrorIsBounded(t *testing.T) {
	name := strings.Repeat("n\u202eé~", 10000)
	for _, doc := range []string{
		`{"` + name + `":1,"` + name + `":2}`,
		`{"` + name + `":[` + nested("[", "]", MaxDepth) + `]}`,
		strings.Repeat(`{"`+name[:1000]+`":`, MaxDepth+1) + "0",
		`{"` + name + `":1e1000000000000001}`,
		`{"` + name + `":"\ud800"}`,
		`{"` + name + `":` + name + `}`,
		`{"` + name + `" 1}`,
		`{"a":"` + name,
		`1` + name,
		`"\u` + name,
	} {
		_, err := Parse([]byte(doc))
		e, ok := errors.AsType[*Error](err)
		if !ok {
			t.Fatalf("%.40q: got %v", doc, err)
		}
		if len(e.Pointer) > 210 || len(e.Detail) > 1000 || len(e.Error()) > 2500 || !utf8.ValidString(e.Error()) {
			t.Errorf("%.40q: pointer %d, detail %d, message %d bytes", doc, len(e.Pointer), len(e.Detail), len(e.Error()))
		}
	}
}

func TestOffsets(t *testing.T) {
	doc := " {\"é\\\"\\\\\" : [\"x\\\\\", -1.50, true, false, null, {}, \"\"],\n\"n\":7}"
	v := parse(t, doc)
	var walk func(v Value)
	var got []string
	walk = func(v Value) {
		rest := doc[v.Offset():]
		got = append(got, rest[:min(2, len(rest))])
		for _, m := range v.Members() {
			got = append(got, doc[m.Offset:m.Offset+2])
			walk(m.Value)
		}
		for _, e := range v.Elements() {
			walk(e)
		}
	}
	walk(v)
	want := []string{`{"`, "\"\xc3", `["`, `"x`, `-1`, `tr`, `fa`, `nu`, `{}`, `""`, `"n`, `7}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPosition(t *testing.T) {
	src := []byte("aé\r\n😀b\n")
	for offset, want := range map[int][2]int{-1: {1, 1}, 0: {1, 1}, 1: {1, 2}, 3: {1, 3}, 4: {1, 4}, 5: {2, 1}, 9: {2, 2}, 10: {2, 3}, 11: {3, 1}, 99: {3, 1}} {
		if line, column := Position(src, offset); line != want[0] || column != want[1] {
			t.Errorf("offset %d: got %d:%d, want %v", offset, line, column, want)
		}
	}
}

// A value has the content of its own kind only: a number is no text, whether or
// not the caller looks at ok.
func TestKinds(t *testing.T) {
	type content struct {
		Kind          string
		Text, Literal string
		Decimal       string
		Truth         bool
		Len           int
	}
	for doc, want := range map[string]content{
		`null`:    {Kind: "null"},
		`true`:    {Kind: "boolean", Truth: true},
		`false`:   {Kind: "boolean"},
		`7.0`:     {Kind: "number", Literal: "7.0", Decimal: "7"},
		`"7"`:     {Kind: "string", Text: "7"},
		`[1,2]`:   {Kind: "array", Len: 2},
		`{"a":1}`: {Kind: "object", Len: 1},
	} {
		v := parse(t, doc)
		got := content{Kind: v.Kind().String(), Truth: v.Truth(), Len: v.Len()}
		got.Text, _ = v.Text()
		got.Literal, _ = v.Literal()
		if d, ok := v.Decimal(); ok {
			got.Decimal = d.String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", doc, diff)
		}
	}
	if (Value{}).Kind().String() != "nothing" {
		t.Error("the zero Value is something")
	}
}

func TestMember(t *testing.T) {
	v := parse(t, `{"a":1,"A":null,"\u00e9":3}`)
	for name, want := range map[string]string{"a": "1", "A": "null", "é": "3", "e\u0301": "", "": ""} {
		m, ok := v.Member(name)
		if string(m.Compact()) != want || ok != (want != "") {
			t.Errorf("%q: got %s, %v", name, m.Compact(), ok)
		}
	}
}
