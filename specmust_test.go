package agentic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tests of single sentences of the draft, without the schema files beside them.
// docs/SPEC-MAP.md names them.

// Section 2: a profile of 64 KiB and an OpenAPI document of 256 KiB are still
// read, one byte more is not.
func TestDocumentSizes(t *testing.T) {
	sized := func(name string, size int) []byte {
		data := readTestdata(t, name)
		return append(data, strings.Repeat(" ", size-len(data))...)
	}
	for _, more := range []int{0, 1} {
		_, profile := ParseProfile(sized("profile.json", 64<<10+more), Options{})
		_, openapi := ParseOpenAPI(sized("openapi.json", 256<<10+more))
		var want []string
		if more > 0 {
			want = []string{"profile/too-large", "openapi/too-large"}
		}
		if diff := cmp.Diff(want, codesAt(append(profile, openapi...))); diff != "" {
			t.Errorf("%d bytes over the limit (-want +got):\n%s", more, diff)
		}
	}
}

// Section 3: every field of the table is required, wherever it stands.
func TestEveryFieldIsRequired(t *testing.T) {
	const action, pair = "/actions/0", "/actions/0/evidence/inputBindings/0"
	for holder, names := range map[string]string{
		"":                   "agentic origin actions",
		action:               "id description openapi submit status verify request bindings evidence recovery",
		action + "/request":  "header scope retentionSeconds",
		action + "/bindings": "statusRequestId verifyResourceId",
		action + "/evidence": "resourceIdPointer requestIdPointer statePointer successValues inputBindings",
		action + "/recovery": "maxChecks checkDelayMs timeoutMs retry",
		pair:                 "inputPointer resourcePointer",
	} {
		for name := range strings.FieldsSeq(names) {
			// Renamed, it is missing there and unknown under its new name.
			member := fmt.Sprintf("%q:", name)
			example := string(readTestdata(t, "profile.json"))
			data := strings.Replace(example, member, fmt.Sprintf("%q:", "x-"+name), 1)
			if data == example {
				t.Fatalf("the example has no %s", member)
			}
			_, ds := ParseProfile([]byte(data), Options{})
			got := codesAt(ds)
			want := []string{strings.TrimSpace("profile/missing-member " + holder), "profile/unknown-member " + holder + "/x-" + name}
			if diff := cmp.Diff(want, got[:min(2, len(got))]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// Section 3: the limits of the table, at both ends. TestProfileSchemaDifferential
// holds the checks against the schema file; this holds both against the numbers.
func TestProfileBounds(t *testing.T) {
	integers := func(name string, least, most int) (cases [][3]string) {
		for _, n := range []int{least, most} {
			cases = append(cases, [3]string{name, fmt.Sprint(n), ""})
		}
		for _, n := range []int{least - 1, most + 1} {
			cases = append(cases, [3]string{name, fmt.Sprint(n), "out-of-range"})
		}
		return cases
	}
	text := func(name, first string, most int, code string) [][3]string {
		fill := func(n int) string { return fmt.Sprintf("%q", first+strings.Repeat("a", n-len(first))) }
		return [][3]string{{name, fill(most), ""}, {name, fill(most + 1), code}, {name, `""`, "too-short"}}
	}
	list := func(name, element string, most int) [][3]string {
		fill := func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, element+",", i)
			}
			return "[" + strings.TrimSuffix(b.String(), ",") + "]"
		}
		return [][3]string{{name, fill(0), "too-few"}, {name, fill(1), ""}, {name, fill(most), ""}, {name, fill(most + 1), "too-many"}}
	}
	example := string(readTestdata(t, "profile.json"))
	action := example[strings.Index(example, "    {"):strings.LastIndex(example, "\n  ]")]
	numbered := strings.Replace(action, `"create-ticket"`, `"a%d"`, 1)
	var cases [][3]string
	for _, group := range [][][3]string{
		integers("retentionSeconds", 60, 604800), integers("maxChecks", 1, 10), integers("checkDelayMs", 0, 5000), integers("timeoutMs", 100, 10000),
		text("id", "a", 64, "too-long"), text("description", "", 300, "too-long"), text("openapi", "/", 256, "too-long"),
		text("submit", "a", 64, "too-long"), text("status", "a", 64, "too-long"), text("verify", "a", 64, "too-long"),
		text("statusRequestId", "a", 64, "too-long"), text("verifyResourceId", "a", 64, "too-long"),
		text("resourceIdPointer", "/", 200, "too-long"), text("requestIdPointer", "/", 200, "too-long"), text("statePointer", "/", 200, "too-long"),
		text("inputPointer", "/", 200, "too-long"), text("resourcePointer", "/", 200, "too-long"),
		list("successValues", `"v%d"`, 10), list("inputBindings", `{"inputPointer":"/%[1]d","resourcePointer":"/%[1]d"}`, 20), list("actions", numbered, 32),
		{{"successValues", `["` + strings.Repeat("é", 64) + `"]`, ""}, {"successValues", `["` + strings.Repeat("é", 65) + `"]`, "too-long"}, {"successValues", `[""]`, "too-short"}},
		{{"agentic", `"0.1.0-draft"`, ""}, {"agentic", `"0.1.0"`, "wrong-value"}, {"retry", `"never-automatically"`, ""}, {"retry", `"never"`, "wrong-value"}},
	} {
		cases = append(cases, group...)
	}
	for _, c := range cases {
		at := strings.Index(example, `"`+c[0]+`":`) + len(c[0]) + 3
		end := at + valueLength(example[at:])
		_, ds := ParseProfile([]byte(example[:at]+c[1]+example[end:]), Options{})
		got := ""
		if len(ds) > 0 {
			got = strings.TrimPrefix(ds[0].Code, "profile/")
		}
		if got != c[2] {
			t.Errorf("%s %.80s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// valueLength is how long the JSON value is that follows a colon, up to the comma
// or bracket after it.
func valueLength(s string) int {
	depth, quoted := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case (c == ',' || c == ']' || c == '}') && depth == 0:
			return i
		case c == ']' || c == '}':
			depth--
		}
	}
	return len(s)
}

// Section 3: pointers of the evidence are RFC 6901, escapes and array indexes too;
// what they do not find is no match, whichever of them it is.
func TestEvidencePointers(t *testing.T) {
	p := evidencePlan()
	p.Action.Evidence = Evidence{ResourceIDPointer: "/a~1b/id", RequestIDPointer: "/m~0n", StatePointer: "/~01/0", SuccessValues: []string{"open"},
		InputBindings: []Pair{{"/in~1put", "/list/1/é"}}}
	in, err := p.CheckInput([]byte(`{"in/put":{"y":2,"x":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"a/b":{"id":"T"},"m~n":"r","~1":["open"],"list":[0,{"é":{"x":[1.0],"y":2}}]}`
	if d := p.DecideResource("r", "T", in, jsonAnswer(good)); !d.Verified {
		t.Fatalf("%+v", d)
	}
	for name, oldnew := range map[string][2]string{
		"resource id /a~1b/id": {`"a/b"`, `"a~1b"`},
		"request id /m~0n":     {`"m~n"`, `"m~0n"`},
		"state /~01/0":         {`["open"]`, `[]`},
		"input /in~1put":       {`"list":[0,`, `"list":[`},
	} {
		d := p.DecideResource("r", "T", in, jsonAnswer(strings.Replace(good, oldnew[0], oldnew[1], 1)))
		if diff := cmp.Diff([]string{name}, failedChecks(d.Checks)); diff != "" || d.Verified || d.Evidence != nil {
			t.Errorf("%s is missing (-want +got):\n%s", name, diff)
		}
	}
}
