package inputschema

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const ticket = `{"type":"object","properties":{"subject":{"type":"string","minLength":1,"maxLength":5}},"required":["subject"],"additionalProperties":false}`

func TestCheck(t *testing.T) {
	tests := []struct {
		name, schema, input string
		want                []string // pointers of the problems
	}{
		{"valid", ticket, `{"subject":"a"}`, nil},
		{"code points", ticket, `{"subject":"😀😀😀😀😀"}`, nil},
		{"too long", ticket, `{"subject":"abcdef"}`, []string{"/subject"}},
		{"missing", ticket, `{}`, []string{""}},
		{"unknown member and wrong type", ticket, `{"subject":1,"x":2}`, []string{"/subject", "/x"}},
		{"boolean schema", `true`, `{"a":1}`, nil},
		{"false schema", `false`, `{"a":1}`, []string{""}},
		{"inner reference", `{"$defs":{"a/b":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a~1b"}}}`, `{"x":1}`, []string{"/x"}},
		{"exact numbers", `{"properties":{"x":{"const":9007199254740993}}}`, `{"x":9007199254740992}`, []string{"/x"}},
		{"integer spelled as a fraction", `{"properties":{"x":{"type":"integer"}}}`, `{"x":3.0}`, nil},
		{"largest exponent", `{"properties":{"x":{"maximum":1e300}}}`, `{"x":1e300}`, nil},
		{"zero with any exponent", `{"properties":{"x":{"maximum":0e9999999}}}`, `{"x":0e9999999}`, nil},
		{"dialect of OpenAPI", `{"$schema":"https://spec.openapis.org/oas/3.1/dialect/base","type":"object"}`, `{}`, nil},
		{"older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","required":["a"]}`, `{}`, []string{""}},
		{"format is not asserted", `{"properties":{"x":{"format":"email"}}}`, `{"x":"a"}`, nil},
		{"branches are one problem", `{"properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"x":1}`, []string{"/x"}},
		{"property names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, []string{""}},
		{"pattern", `{"properties":{"x":{"pattern":"^a+$"}}}`, `{"x":"b"}`, []string{"/x"}},
		{"pointer is escaped", `{"additionalProperties":{"type":"string"}}`, `{"a/\u001b~":1}`, []string{"/a~1\x1b~0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ds, err := Check([]byte(tt.schema), []byte(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range ds {
				got = append(got, d.Pointer)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, ds)
			}
		})
	}
}

func TestCheckDiagnostic(t *testing.T) {
	ds, err := Check([]byte(ticket), []byte("{\n  \"subject\": 7}"))
	if err != nil {
		t.Fatal(err)
	}
	want := agentic.Diagnostics{{Severity: agentic.SeverityError, Code: "input/schema", Document: "input", Pointer: "/subject", Line: 2, Column: 14,
		Problem: `The value is number, and the request schema wants string ("/properties/subject/type").`,
		Remedy:  "Mend the value as the service's OpenAPI document describes it."}}
	if diff := cmp.Diff(want, ds); diff != "" {
		t.Error(diff)
	}
}

// What is reported names the keyword and the place of every kind of refusal, and
// quotes nothing of the input: errors end in logs.
func TestCheckQuotesNoValue(t *testing.T) {
	const secret = "5309125 secret"
	for _, tt := range []struct{ schema, input, pointer, problem string }{
		{`{"properties":{"x":{"maxLength":2}}}`, `{"x":"` + secret + `"}`, "/x", `The value breaks the keyword maxLength of the request schema, which is 2 ("/properties/x/maxLength").`},
		{`{"properties":{"x":{"minItems":2}}}`, `{"x":[1]}`, "/x", `The value breaks the keyword minItems of the request schema, which is 2 ("/properties/x/minItems").`},
		{`{"properties":{"x":{"pattern":"^a+$"}}}`, `{"x":"` + secret + `"}`, "/x", `The value breaks the keyword pattern of the request schema ("/properties/x/pattern").`},
		{`{"properties":{"x":{"maxLength":3}}}`, `{"x":"` + secret + `"}`, "/x", `keyword maxLength of`},
		{`{"properties":{"x":{"minLength":99}}}`, `{"x":"` + secret + `"}`, "/x", `keyword minLength of`},
		{`{"properties":{"x":{"const":"a"}}}`, `{"x":"` + secret + `"}`, "/x", `keyword const of`},
		{`{"properties":{"x":{"enum":["a","b"]}}}`, `{"x":"` + secret + `"}`, "/x", `keyword enum of`},
		{`{"properties":{"x":{"enum":[1]}}}`, `{"x":5309125}`, "/x", `keyword enum of`},
		{`{"properties":{"x":{"maximum":3}}}`, `{"x":5309125}`, "/x", `keyword maximum of`},
		{`{"properties":{"x":{"minimum":9e9}}}`, `{"x":5309125}`, "/x", `keyword minimum of`},
		{`{"properties":{"x":{"exclusiveMaximum":3}}}`, `{"x":5309125}`, "/x", `keyword exclusiveMaximum of`},
		{`{"properties":{"x":{"exclusiveMinimum":9e9}}}`, `{"x":5309125}`, "/x", `keyword exclusiveMinimum of`},
		{`{"properties":{"x":{"multipleOf":2}}}`, `{"x":5309125}`, "/x", `keyword multipleOf of`},
		{`{"properties":{"x":{"type":["array","null"]}}}`, `{"x":"` + secret + `"}`, "/x", `The value is string, and the request schema wants null or array (`},
		{`{"properties":{"x":{"uniqueItems":true}}}`, `{"x":["` + secret + `","` + secret + `"]}`, "/x", `keyword uniqueItems of`},
		{`{"properties":{"x":{"contains":{"const":1}}}}`, `{"x":["` + secret + `"]}`, "/x", `keyword contains of`},
		{`{"properties":{"x":{"maxItems":0}}}`, `{"x":["` + secret + `"]}`, "/x", `keyword maxItems of`},
		{`{"properties":{"x":{"anyOf":[{"const":1},{"const":2}]}}}`, `{"x":"` + secret + `"}`, "/x", `keyword anyOf of`},
		{`{"properties":{"x":{"oneOf":[true,true]}}}`, `{"x":"` + secret + `"}`, "/x", `keyword oneOf of`},
		{`{"properties":{"x":{"not":true}}}`, `{"x":"` + secret + `"}`, "/x", `keyword not of the request schema ("/properties/x`},
		{`{"properties":{"x":false}}`, `{"x":"` + secret + `"}`, "/x", `The request schema allows nothing here ("/properties/x").`},
		{`{"additionalProperties":false}`, `{"x":"` + secret + `"}`, "/x", `The request schema has no such member ("/additionalProperties").`},
		{`{"unevaluatedProperties":false}`, `{"x":"` + secret + `"}`, "/x", `The request schema allows nothing here (`},
		{`{"propertyNames":{"maxLength":3}}`, `{"` + secret + `":1}`, "", `keyword propertyNames of`},
		{`{"required":["a\u001b\"","b"]}`, `{"x":"` + secret + `"}`, "", `requires, "a\u001b\"", "b" ("/required").`},
		{`{"dependentRequired":{"x":["y"]}}`, `{"x":"` + secret + `"}`, "", `keyword dependentRequired of`},
		{`{"maxProperties":0}`, `{"x":"` + secret + `"}`, "", `keyword maxProperties of`},
		{`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"properties":{"x":{"const":1}}}}}`, `{"x":"` + secret + `"}`, "/x", `("/$defs/a b/properties/x/const").`},
	} {
		ds, err := Check([]byte(tt.schema), []byte(tt.input))
		if err != nil || len(ds) != 1 {
			t.Errorf("%s: %v, %v", tt.schema, ds, err)
			continue
		}
		text := (&agentic.InputError{Diagnostics: ds}).Error() + ds[0].Remedy
		if ds[0].Pointer != tt.pointer || !strings.Contains(ds[0].Problem, tt.problem) || strings.Contains(text, "5309125") || strings.Contains(text, "secret") {
			t.Errorf("%s: %q at %q, want %q at %q", tt.schema, ds[0].Problem, ds[0].Pointer, tt.problem, tt.pointer)
		}
	}
}

func TestCheckInputIsNotJSON(t *testing.T) {
	_, err := Check([]byte(ticket), []byte(`{"subject":"a","subject":"a"}`))
	if e, ok := errors.AsType[*strictjson.Error](err); !ok || errors.Is(err, ErrUnsupported) || e.Reason != strictjson.ErrDuplicateMember {
		t.Errorf("error %v", err)
	}
}

func TestCheckUnsupported(t *testing.T) {
	file := t.TempDir() + "/schema.json"
	if err := os.WriteFile(file, []byte(`true`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, schema, input string }{
		{"reference into the document", `{"$ref":"#/components/schemas/Ticket"}`, `{}`},
		{"file", `{"$ref":"file://` + file + `"}`, `{}`},
		{"relative file", `{"$id":"file://` + file + `x","$ref":"schema.json"}`, `{}`},
		{"network", `{"$ref":"http://127.0.0.1:1/schema.json"}`, `{}`},
		{"unknown dialect", `{"$schema":"https://example.com/schema"}`, `{}`},
		{"unknown anchor", `{"$dynamicRef":"#nowhere"}`, `{}`},
		{"not a schema", `{"type":7}`, `{}`},
		{"number as a schema", `7`, `{}`},
		{"reference to itself", `{"$ref":"#"}`, `{}`},
		{"not JSON", `{"type":`, `{}`},
		{"duplicate member", `{"type":"object","type":"array"}`, `{}`},
		{"lookahead", `{"pattern":"^(?=a)b"}`, `{}`},
		{"backreference", `{"patternProperties":{"(a)\\1":true}}`, `{}`},
		{"large pattern", `{"pattern":"` + strings.Repeat("(?:.{1000})", 3) + `"}`, `{}`},
		{"huge exponent in the schema", `{"maximum":1e1000001}`, `{"x":1}`},
		{"tiny exponent", `{"multipleOf":1e-301}`, `{}`},
		{"huge exponent in both", `{"maximum":1e1000001}`, `{"x":1e1000001}`},
		{"size", `{"description":"` + strings.Repeat("a", MaxSchemaBytes) + `"}`, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ds, err := Check([]byte(tt.schema), []byte(tt.input))
			if ds != nil || !errors.Is(err, ErrUnsupported) {
				t.Errorf("diagnostics %v, error %v", ds, err)
			}
		})
	}
}

// An input that cannot be held against a schema is refused: it does not switch its
// own check off.
func TestCheckRefusesWhatItCannotCheck(t *testing.T) {
	digits := strings.Repeat("9", 400)
	for _, tt := range []struct {
		name, schema, input string
		pointer, problem    string
	}{
		{"huge exponent", ticket, `{"subject":"abcdef","x":1e400}`, "/x", "beyond 1e300"},
		{"huge negative", ticket, `{"x":-1e301}`, "/x", "beyond 1e300"},
		{"exponent that no library takes", ticket, `{"x":1e1000001}`, "/x", "beyond 1e300"},
		{"tiny exponent", ticket, `{"x":1e-400}`, "/x", "below 1e-300"},
		{"many digits", ticket, `{"x":` + digits + `}`, "/x", "beyond 1e300"},
		{"many zeros behind the point", ticket, `{"x":0.` + strings.Repeat("0", 400) + `1}`, "/x", "below 1e-300"},
		{"deep inside", `{}`, `{"a/":[0,{"b":1e400}]}`, "/a~1/1/b", "beyond 1e300"},
		{"schema that allows everything", `true`, `{"x":1e400}`, "/x", "beyond 1e300"},
		{"long text under a large pattern", `{"properties":{"x":{"pattern":"^.{0,900}$"}}}`, `{"x":"` + strings.Repeat("a", 16000) + `"}`, "", errCostly.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ds, err := Check([]byte(tt.schema), []byte(tt.input))
			if err != nil || len(ds) != 1 {
				t.Fatalf("diagnostics %v, error %v", ds, err)
			}
			d := ds[0]
			if d.Code != "input/schema" || d.Pointer != tt.pointer || !strings.Contains(d.Problem, tt.problem) || d.Line != 1 || d.Remedy == "" {
				t.Errorf("%+v", d)
			}
			if strings.Contains(d.Problem, "999") {
				t.Errorf("quotes the input: %s", d.Problem)
			}
		})
	}
	ds, err := Check([]byte(ticket), []byte(`{"x":[`+strings.Repeat("1e400,", 50)+`1]}`))
	if err != nil || len(ds) != maxProblems {
		t.Errorf("%d problems, %v", len(ds), err)
	}
}

// TestCheckHostile holds schemas whose work explodes, or nearly so: the check
// must end in time, whatever it says.
func TestCheckHostile(t *testing.T) {
	const ref = `"$ref":"#/$defs/d0"`
	chain := func(n int, link, last, root string) string {
		var b strings.Builder
		b.WriteString(`{` + root + `,"$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(link, "NEXT", fmt.Sprintf("#/$defs/d%d", i+1)))
		}
		fmt.Fprintf(&b, `"d%d":%s}}`, n, last)
		return b.String()
	}
	deep := strings.Repeat(`{"a":`, strictjson.MaxDepth-1) + "{}" + strings.Repeat("}", strictjson.MaxDepth-1)
	long := `{"x":"` + strings.Repeat("a", 16000) + `"}`
	tests := []struct {
		name, schema, input string
		costly              bool // and so the fault of the schema, or of the input with it
	}{
		{"twice at every step", chain(40, `{"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`, `true`, ref), `{}`, true},
		{"twice and failing", chain(40, `{"anyOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`, `false`, ref), `{}`, true},
		{"twice below not", chain(40, `{"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`, `true`, `"not":{"$ref":"#/$defs/d0"}`), `{}`, true},
		{"twice and failing below not", chain(40, `{"anyOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`, `false`, `"not":{"$ref":"#/$defs/d0"}`), `{}`, true},
		{"dependent schemas below not", chain(40, `{"dependentSchemas":{"a":{"$ref":"NEXT"},"b":{"$ref":"NEXT"}}}`, `{"type":"array"}`,
			`"not":{"$ref":"#/$defs/d0"}`), `{"a":1,"b":2}`, true},
		{"older draft", chain(40, `{"dependencies":{"a":{"allOf":[{"$ref":"NEXT"}]},"b":{"$ref":"NEXT"}}}`, `{"type":"array"}`,
			`"$schema":"http://json-schema.org/draft-07/schema#","allOf":[{"$ref":"#/$defs/d0"}]`), `{"a":1,"b":2}`, true},
		{"patterns in the value below not", `{"not":{"$ref":"#/$defs/d0"},"$defs":{"d0":{"patternProperties":{"a":{"$ref":"#/$defs/d0"},"^a":{"$ref":"#/$defs/d0"}},"minProperties":1}}}`,
			deep, true},
		{"twice in the value", `{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"}}}`, deep, true},
		{"patterns on a long value", `{"properties":{"x":{"allOf":[` + strings.Repeat(`{"pattern":"(a?){300}b"},`, 2000) + `true]}}}`, long, true},
		{"long chain in a deep value", chain(1500, `{"$ref":"NEXT"}`, `{"additionalProperties":{"$ref":"#"}}`, ref), deep, true},
		{"many schemas", `{"properties":{` + manyMembers(4500) + `}}`, `{}`, false},
		{"deep schema", strings.Repeat(`{"not":`, 60) + "true" + strings.Repeat("}", 60), `{}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			ds, err := Check([]byte(tt.schema), []byte(tt.input))
			took := time.Since(start)
			t.Logf("%v: %v %v", took, err, ds)
			if costly := strings.Contains(fmt.Sprint(err, ds), errCostly.Error()); costly != tt.costly {
				t.Errorf("costly is %v: %v %v", costly, err, ds)
			}
			if took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d":{}`, i)
	}
	return b.String()
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(ticket), []byte(`{"subject":"a"}`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"pattern":"^a","enum":[1e3]}}}`), []byte(`{"x":[1,2.5e10,null]}`))
	f.Fuzz(func(t *testing.T, schema, input []byte) {
		ds, err := Check(schema, input)
		if err != nil && ds != nil {
			t.Errorf("both %v and %v", ds, err)
		}
		for _, d := range ds {
			if d.Line < 1 || d.Column < 1 {
				t.Errorf("no place in %+v", d)
			}
		}
	})
}
