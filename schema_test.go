package agentic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// denyAll is a loader that gives nothing: a pinned schema refers to itself only.
type denyAll struct{}

func (denyAll) Load(url string) (any, error) { return nil, errors.New("refused: " + url) }

func compileSchema(t testing.TB, source string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	id := doc.(map[string]any)["$id"].(string)
	c := jsonschema.NewCompiler()
	c.UseLoader(denyAll{})
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// schemaVerdict is what the compiled schema says of a document.
func schemaVerdict(t testing.TB, schema *jsonschema.Schema, document string) bool {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return schema.Validate(v) == nil
}

// profileVerdict is what the hand-written check says of a document's structure.
func profileVerdict(t testing.TB, document string) bool {
	t.Helper()
	root, ds := parseDocument("profile", []byte(document))
	if ds != nil {
		t.Fatalf("%v in %s", ds, document)
	}
	c := &checker{document: "profile", source: []byte(document)}
	c.profile(root)
	return !c.found.HasErrors()
}

// raw is JSON text that a mutation puts in as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// strangers are values of every type, at and around what the limits tell apart.
func strangers() []any {
	values := []any{nil, true, false, []any{}, map[string]any{}, []any{nil}, map[string]any{"$ref": "x"}}
	for _, n := range []string{"0", "-0", "-0.0", "-1", "0.5", "1", "1.0", "1e0", "10e-1", "3.0", "3e0", "3.5", "1e2", "1E+3", "1e400", "1e-400",
		"0e400", "123456789012345678901234567890", "-1e400"} {
		values = append(values, raw(n))
	}
	for _, bound := range []int{0, 1, 10, 60, 100, 5000, 10000, 604800} {
		for _, delta := range []int{-1, 0, 1} {
			n := bound + delta
			for _, form := range []string{"%d", "%d.0", "%d.5", "%d.000000000000000000000000001", "%de0"} {
				values = append(values, raw(fmt.Sprintf(form, n)))
			}
			values = append(values, raw(fmt.Sprintf("%de-1", 10*n)))
		}
	}
	for _, unit := range []string{"a", "é", "😀", "/", "~", "/a", "~0", " "} {
		for _, n := range []int{1, 63, 64, 65, 199, 200, 201, 255, 256, 257, 299, 300, 301} {
			values = append(values, strings.Repeat(unit, n), "/"+strings.Repeat(unit, n-1), "https://"+strings.Repeat(unit, max(0, n-8)))
		}
	}
	for _, s := range []string{"", "a", "A", "z", "Z", "@", "[", "`", "{", "a0", "0a", "a_", "_a", "a-", "-a", "a.b", "a\n", "\na", "a b", "ſ", "K", "ａ", "a\u0000",
		"/", "//", "/a", "/a/", "a/", "/a//b", "//a", "/a/b", "/~", "/~0", "/~1", "/~2", "/~01", "/~~0", "/a~", "/\n", "/a\n", "/\u0000", "/\\", "/a\\b", "/a?b", "/?", "/a#b", "/#", "/.",
		"/..", "/%2e", "/a b", "/é", "/\u2028",
		"http://", "https://", "http://a", "https://a", "HTTPS://a", "https:/a", "https:///", "https://a/", "https://a/b", "https://\n", "https://a\n", " https://a", "https://é", "httpss://a",
		"http:s//a", "https://a\\b", "https://a?b", "ftp://a",
		Version, Version + " ", "0.1.0", "Idempotency-Key", "idempotency-key", "Idempotency-Key\n", "principal-action", "principal", "never-automatically", "never", "true", "1", "null"} {
		values = append(values, s)
	}
	for _, n := range []int{1, 2, 9, 10, 11, 19, 20, 21, 31, 32, 33} {
		distinct, same := make([]any, n), make([]any, n)
		for i := range n {
			distinct[i], same[i] = fmt.Sprintf("v%d", i), "v"
		}
		values = append(values, distinct, same)
	}
	return append(values, []any{"é", "e\u0301"}, []any{"a", "A"}, []any{"a", raw(`"\u0061"`)}, []any{raw("1"), raw("1.0")}, []any{"a", raw("1")}, []any{""},
		[]any{strings.Repeat("😀", 64)}, []any{strings.Repeat("😀", 65)})
}

// mutate calls try with every document that differs from doc in one place: every
// value replaced by every stranger, every member removed, an unknown member in
// every object, a known one of elsewhere too, and every array at every length of
// its own elements around the limits.
func mutate(doc any, try func(what string, mutated any)) {
	replacements := strangers()
	var walk func(at string, v any, put func(any) any)
	walk = func(at string, v any, put func(any) any) {
		for _, s := range replacements {
			try(at, put(s))
		}
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				without := maps.Clone(v)
				delete(without, name)
				try(at+" without "+name, put(without))
				walk(at+"/"+name, member, func(m any) any {
					changed := maps.Clone(v)
					changed[name] = m
					return put(changed)
				})
			}
			for _, name := range []string{"extra", "", "$schema", "id", "Id", "agentic", "x-extension", "$comment"} {
				if _, ok := v[name]; !ok {
					more := maps.Clone(v)
					more[name] = "a"
					try(at+" with "+name, put(more))
				}
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s/%d", at, i), e, func(m any) any {
					changed := slices.Clone(v)
					changed[i] = m
					return put(changed)
				})
			}
			for _, n := range []int{0, 1, 2, 9, 10, 11, 19, 20, 21, 31, 32, 33} {
				repeated := make([]any, n)
				for i := range repeated {
					repeated[i] = v[i%len(v)]
				}
				try(fmt.Sprintf("%s with %d elements", at, n), put(repeated))
			}
		}
	}
	walk("", doc, func(m any) any { return m })
}

// encode is a document as JSON text, without HTML escapes.
func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compareVerdicts holds a hand-written check against the compiled schema over
// all mutations of some documents.
func compareVerdicts(t *testing.T, source string, documents []string, verdict func(testing.TB, string) bool) {
	t.Helper()
	schema := compileSchema(t, source)
	count := map[bool]int{}
	for _, document := range documents {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		mutate(v, func(what string, mutated any) {
			text := encode(t, mutated)
			want, got := schemaVerdict(t, schema, text), verdict(t, text)
			if got != want {
				t.Errorf("%s: hand-written %v, schema %v: %.300s", what, got, want, text)
			}
			count[want]++
		})
	}
	if count[true] < 100 || count[false] < 1000 {
		t.Errorf("%d accepted and %d refused mutations are too few to compare", count[true], count[false])
	}
	t.Logf("%d accepted, %d refused", count[true], count[false])
}

func TestProfileSchemaDifferential(t *testing.T) {
	compareVerdicts(t, ProfileSchema(), []string{string(readTestdata(t, "profile.json"))}, profileVerdict)
}

// TestProfileHugeNumbers holds what the compiled schema cannot be asked: the
// library panics on such exponents.
func TestProfileHugeNumbers(t *testing.T) {
	example := string(readTestdata(t, "profile.json"))
	for _, number := range []string{"1e1000001", "-1e999999999", "1e-1000001", "1e999999999999999"} {
		if profileVerdict(t, strings.Replace(example, "86400", number, 1)) {
			t.Errorf("retentionSeconds %s is accepted", number)
		}
	}
	if !profileVerdict(t, strings.Replace(example, `"checkDelayMs": 100`, `"checkDelayMs": 0e1000001`, 1)) {
		t.Error("checkDelayMs 0e1000001 is zero and is refused")
	}
}
