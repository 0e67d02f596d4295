package agentic

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type ecmaPattern struct {
	*regexp.Regexp
}

// compileECMA gives the dot of a pattern the meaning of ECMA-262, which JSON
// Schema names: it stops at U+000D, U+2028 and U+2029 as well as U+000A.
func compileECMA(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(strings.ReplaceAll(pattern, ".*", `[^\n\r\x{2028}\x{2029}]*`))
	return ecmaPattern{re}, err
}

func compileReceiptSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(ReceiptSchema()))
	if err != nil {
		t.Fatal(err)
	}
	const id = "https://ruagentic.org/schemas/receipt-0.1.schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(denyAll{})
	c.UseRegexpEngine(compileECMA)
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(id)
}

// receiptVerdicts asks both the schema and the hand-written check, and fails
// where they differ.
func receiptVerdicts(t testing.TB, schema *jsonschema.Schema, doc []byte) bool {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	schemaErr := schema.Validate(instance)
	r, ds := ParseReceipt(doc)
	if (schemaErr == nil) != (r != nil) {
		t.Errorf("%.300s\nschema: %v\ncheck: %v", doc, schemaErr, ds)
	}
	if r != nil {
		validates(t, *r)
	}
	var loose Receipt // whatever fits the fields
	if json.Unmarshal(doc, &loose) == nil {
		validates(t, loose)
	}
	return r != nil
}

// validates asks Validate, and fails where it differs from ParseReceipt on what
// Encode makes: of text that is UTF-8 they accept the same.
func validates(t testing.TB, r Receipt) {
	t.Helper()
	want := !slices.ContainsFunc(r.texts(), func(f placedText) bool { return !utf8.ValidString(f.text) })
	if parsed, _ := ParseReceipt(r.Encode()); parsed == nil {
		want = false
	}
	if ds := r.Validate(); (ds == nil) != want || r.valid() != want {
		t.Errorf("%+v\nvalid: %v, want %v, diagnostics: %v", r, r.valid(), want, ds)
	}
}

// What Validate accepts is what ParseReceipt accepts, every text in every field.
func TestValidateAgainstParse(t *testing.T) {
	texts := []string{"\xff", "/\xff", "a\xff", "2026-09-07T\xffZ", "\xed\xa0\x80"}
	for _, v := range receiptValues() {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	for _, outcome := range []Outcome{Succeeded, Failed, Pending, Unknown} {
		for _, s := range texts {
			for _, change := range []func(*Receipt){
				func(r *Receipt) { r.Agentic = s },
				func(r *Receipt) { r.RequestID = s },
				func(r *Receipt) { r.ActionID = s },
				func(r *Receipt) { r.Origin = s },
				func(r *Receipt) { r.Outcome = Outcome(s) },
				func(r *Receipt) { r.ObservedAt = s },
				func(r *Receipt) { r.ResourceID = &s },
				func(r *Receipt) { r.Reason = s },
				func(r *Receipt) { r.Evidence.URL = s },
				func(r *Receipt) { r.Evidence.ResourceID = s },
				func(r *Receipt) { r.Evidence.RequestID = s },
				func(r *Receipt) { r.Evidence.State = s },
				func(r *Receipt) { r.Evidence.Matched[0].InputPointer = s },
				func(r *Receipt) { r.Evidence.Matched[0].ResourcePointer = s },
				func(r *Receipt) { r.Evidence.Matched = append(r.Evidence.Matched, Pair{s, s}) },
				func(r *Receipt) { r.Evidence, r.Reason = nil, s },
				func(r *Receipt) { r.ResourceID, r.Reason = nil, s },
				func(r *Receipt) { r.Evidence.Matched, r.Reason = nil, s },
			} {
				r := sampleReceipt()
				r.Outcome = outcome
				change(&r)
				validates(t, r)
			}
		}
	}
}

// slots are the places of a document where a value can stand: every member and
// element, at any depth.
func slots(v any, visit func(set func(any), drop func())) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			old := v[name]
			visit(func(x any) { v[name] = x }, func() { delete(v, name) })
			v[name] = old
			slots(old, visit)
		}
	case []any:
		for i := range v {
			old := v[i]
			visit(func(x any) { v[i] = x }, func() {})
			v[i] = old
			slots(old, visit)
		}
	}
}

func receiptValues() []any {
	values := []any{nil, true, false, json.Number("0"), json.Number("1.0"), json.Number("-7"), json.Number("1e400"),
		[]any{}, []any{nil}, []any{"x"}, map[string]any{}, map[string]any{"x": 1},
		[]any{map[string]any{"inputPointer": "/a", "resourcePointer": "/b"}},
		[]any{map[string]any{"inputPointer": "/a", "resourcePointer": "/b"}, map[string]any{"inputPointer": "/a", "resourcePointer": "/b"}},
		[]any{map[string]any{"inputPointer": "/a"}},
		[]any{map[string]any{"inputPointer": "/a", "resourcePointer": "/b", "x": "/c"}},
	}
	for _, n := range []int{1, 2, 63, 64, 65, 199, 200, 201} {
		values = append(values, strings.Repeat("a", n), strings.Repeat("é", n), strings.Repeat("😀", n), "/"+strings.Repeat("a", n-1), "/"+strings.Repeat("😀", n-1), strings.Repeat("/", n))
	}
	for _, s := range []string{"", " ", "a", "Z", "é", "-a", "_a", "9a", "a-", "a_9", "a b", "a.b", "a\n", "\na", "a\u212a",
		"/", "//", "/a/b", "a/", "/~", "/~0", "/~1", "/~2", "/~01", "/~~0", "/~0~", "/a~/b", "/\n", "/\u2028", "/\x00", "#/a", " /a", "/a\n",
		"0.1.0-draft", "0.1.0-draft ", "0.1.0", "succeeded", "failed", "pending", "unknown", "Succeeded", "unknown\n",
		"2026-09-07T10:00:00Z", "2026-09-07TZ", "2026-09-07T", "2026-09-07Z", "2026-09-07tZ", "2026-09-07Tz", "9999-99-99TTTZZ", "2026-9-07TZ", "02026-09-07TZ",
		"2026-09-07T Z", "2026-09-07T\nZ", "2026-09-07T\rZ", "2026-09-07T\u2028Z", "2026-09-07T\u2029Z", "2026-09-07T\u0085Z", "2026-09-07T\vZ", "2026-09-07T\x00Z", "2026-09-07TZ\n",
		" 2026-09-07TZ", "2026-09-07T😀Z", "２026-09-07TZ", "٢٠٢٦-09-07TZ", "2026-09-07T10:00:00+00:00", "2026-09-07TéZ", "2026/09/07TZ"} {
		values = append(values, s)
	}
	return values
}

// The hand-written check accepts and rejects what the schema file does: every
// value at every place of every kind of receipt.
func TestReceiptAgainstSchema(t *testing.T) {
	schema := compileReceiptSchema(t)
	accepted, rejected := 0, 0
	try := func(doc any) {
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if receiptVerdicts(t, schema, b) {
			accepted++
		} else {
			rejected++
		}
	}
	for _, outcome := range []Outcome{Succeeded, Failed, Pending, Unknown} {
		for _, evidence := range []bool{true, false} {
			r := sampleReceipt()
			r.Outcome = outcome
			if !evidence {
				r.Evidence = nil
			}
			var doc map[string]any
			if err := json.Unmarshal(r.Encode(), &doc); err != nil {
				t.Fatal(err)
			}
			try(doc)
			slots(doc, func(set func(any), drop func()) {
				for _, v := range receiptValues() {
					set(v)
					try(doc)
				}
				set(map[string]any{"x": nil})
				try(doc)
				drop()
				try(doc)
			})
			addMembers(doc, func() { try(doc) })
			for _, id := range []any{nil, "", "T", json.Number("1"), true, []any{}} {
				doc["resource_id"] = id
				try(doc)
			}
		}
	}
	for _, v := range receiptValues() {
		try(v)
	}
	if accepted < 300 || rejected < 3000 {
		t.Errorf("%d accepted and %d rejected documents are too few to tell anything", accepted, rejected)
	}
	t.Logf("%d accepted, %d rejected", accepted, rejected)
}

// addMembers adds one unknown member to each object of the document in turn.
func addMembers(v any, visit func()) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"x", "", "$schema", "Agentic", "reason ", "toString"} {
			v[name] = "/x"
			visit()
			delete(v, name)
		}
		for _, e := range v {
			addMembers(e, visit)
		}
	case []any:
		for _, e := range v {
			addMembers(e, visit)
		}
	}
}

// The bounds of limits.md, stated once more without the schema.
func TestReceiptBounds(t *testing.T) {
	schema := compileReceiptSchema(t)
	tests := []struct {
		old, new string
		accept   bool
	}{
		{`"0.1.0-draft"`, `"0.1.1-draft"`, false},
		{`"request_id":"req-12345","a`, `"request_id":"","a`, false},
		{`"request_id":"req-12345","a`, `"request_id":" ","a`, true},
		{`"create-ticket"`, `"` + strings.Repeat("a", 64) + `"`, true},
		{`"create-ticket"`, `"` + strings.Repeat("a", 65) + `"`, false},
		{`"create-ticket"`, `"1a"`, false},
		{`"create-ticket"`, `"a\n"`, false},
		{`"https://support.example"`, `"anything"`, true},
		{`"https://support.example"`, `""`, false},
		{`"succeeded"`, `"unknown"`, true},
		{`"succeeded"`, `"SUCCEEDED"`, false},
		{`"2026-09-07T10:00:00.000000Z"`, `"0000-00-00TZ"`, true},
		{`"2026-09-07T10:00:00.000000Z"`, `"2026-09-07T10:00:00"`, false},
		{`"2026-09-07T10:00:00.000000Z"`, `"2026-09-07T\u2028Z"`, false},
		{`"2026-09-07T10:00:00.000000Z"`, `"2026-09-07TZ\n"`, false},
		{`"reason":"Verified."`, `"reason":""`, false},
		{`"resource_id":"T-1","reason"`, `"resource_id":"","reason"`, false},
		{`"resource_id":"T-1","reason"`, `"resource_id":null,"reason"`, false},
		{`"succeeded","observed_at":"2026-09-07T10:00:00.000000Z","resource_id":"T-1"`, `"pending","observed_at":"2026-09-07T10:00:00.000000Z","resource_id":""`, true},
		{`"inputPointer":"/subject"`, `"inputPointer":"/` + strings.Repeat("é", 199) + `"`, true},
		{`"inputPointer":"/subject"`, `"inputPointer":"/` + strings.Repeat("é", 200) + `"`, false},
		{`"inputPointer":"/subject"`, `"inputPointer":""`, false},
		{`"inputPointer":"/subject"`, `"inputPointer":"/~2"`, false},
		{`"matched":[{"inputPointer":"/subject","resourcePointer":"/subject"}]`, `"matched":[]`, false},
		{`"state":"open"`, `"state":"open","extra":1`, false},
	}
	good := string(sampleReceipt().Encode())
	for _, tt := range tests {
		if strings.Count(good, tt.old) != 1 {
			t.Fatalf("%s is not once in the receipt", tt.old)
		}
		doc := strings.Replace(good, tt.old, tt.new, 1)
		if got := receiptVerdicts(t, schema, []byte(doc)); got != tt.accept {
			t.Errorf("%.80s: accepted %v, want %v", tt.new, got, tt.accept)
		}
	}
}
