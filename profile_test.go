package agentic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// edit replaces the first occurrence of each old text by its new one.
func edit(t testing.TB, document string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(document, oldnew[i]) {
			t.Fatalf("the document does not hold %q", oldnew[i])
		}
		document = strings.Replace(document, oldnew[i], oldnew[i+1], 1)
	}
	return document
}

// codesAt are diagnostics as "code pointer".
func codesAt(ds Diagnostics) []string {
	var got []string
	for _, d := range ds {
		got = append(got, strings.TrimSpace(d.Code+" "+d.Pointer))
	}
	return got
}

// documentCase is a document made from the example by edits, and the diagnostics
// that it gets.
type documentCase struct {
	name   string
	oldnew []string
	want   []string
}

// textCases are what every document is refused for, whatever it describes (D1).
func textCases(document string, limit int) []documentCase {
	is := func(name, whole, code string) documentCase {
		return documentCase{name, []string{"*", whole}, []string{document + "/" + code}}
	}
	return []documentCase{
		is("too large", "{}"+strings.Repeat(" ", limit-1), "too-large"),
		is("not JSON", "{agentic}", "not-json"),
		is("comment", "// a\n{}", "not-json"),
		is("unfinished", `{"a":[1`, "not-json /a"),
		is("empty", " \n", "empty"),
		is("byte order mark", "\ufeff{}", "not-json"),
		is("Latin-1", "{\"a\":\"\xe9\"}", "not-utf8 /a"),
		is("half a surrogate pair", `{"a":"\ud800"}`, "not-utf8 /a"),
		is("too deep", strings.Repeat("[", 65)+strings.Repeat("]", 65), "too-deep "+strings.Repeat("/0", 64)),
		is("second value", "{} {}", "trailing-data"),
		is("duplicate", `{"a":1,"a":2}`, "duplicate-member /a"),
		is("duplicate by escape", `{"a":{"b":1,"\u0062":2}}`, "duplicate-member /a/b"),
		is("number", `{"a":1e9999999999999999}`, "number-range /a"),
	}
}

var profileCases = []documentCase{
	{"unchanged", nil, nil},
	{"no $schema", []string{`"$schema": "https://ruagentic.org/schemas/agentic-0.1.schema.json",`, ""}, nil},
	{"another $schema is never fetched", []string{"https://ruagentic.org/schemas/", "http://127.0.0.1:1/"}, nil},
	{"not an object", []string{"*", "[]"}, []string{"profile/wrong-type"}},
	{"empty object", []string{"*", "{}"}, []string{"profile/missing-member", "profile/missing-member", "profile/missing-member"}},
	{"other version", []string{"0.1.0-draft", "0.2.0-draft"}, []string{"profile/wrong-value /agentic"}},
	{"unknown member", []string{`"retentionSeconds"`, `"ttl": 1, "retentionSeconds"`}, []string{"profile/unknown-member /actions/0/request/ttl"}},
	{"member in another case", []string{`"origin"`, `"Origin"`}, []string{"profile/missing-member", "profile/unknown-member /Origin"}},
	{"duplicate deep inside", []string{`"inputPointer": "/subject",`, `"inputPointer": "/subject", "inputPointer": "/x",`},
		[]string{"profile/duplicate-member /actions/0/evidence/inputBindings/0/inputPointer"}},

	{"origin with a path", []string{"support.example", "support.example/api"}, []string{"profile/wrong-form /origin"}},
	{"origin with a trailing slash", []string{"support.example", "support.example/"}, []string{"profile/wrong-form /origin"}},
	{"origin with a trailing dot", []string{"support.example", "support.example."}, []string{"profile/origin-not-canonical /origin"}},
	{"origin with the default port", []string{"support.example", "support.example:443"}, []string{"profile/origin-not-canonical /origin"}},
	{"origin with credentials", []string{"support.example", "me@support.example"}, []string{"profile/origin-not-canonical /origin"}},
	{"origin with a query", []string{"support.example", "support.example?a"}, []string{"profile/origin-not-canonical /origin"}},
	{"origin with a fragment", []string{"support.example", "support.example#a"}, []string{"profile/origin-not-canonical /origin"}},
	{"origin over HTTP", []string{"https://support.example", "http://support.example"}, []string{"profile/origin-insecure /origin"}},
	{"loopback over HTTP", []string{"https://support.example", "http://127.0.0.1:4318"}, []string{"profile/origin-insecure /origin"}},

	{"no action", []string{"*", `{"agentic":"0.1.0-draft","origin":"https://a","actions":[]}`}, []string{"profile/too-few /actions"}},
	{"action ID", []string{"create-ticket", "create ticket"}, []string{"profile/wrong-form /actions/0/id"}},
	{"empty description", []string{"Create a support ticket and verify the original result.", ""}, []string{"profile/too-short /actions/0/description"}},
	{"long description", []string{"Create", strings.Repeat("é", 300)}, []string{"profile/too-long /actions/0/description"}},
	{"header", []string{"Idempotency-Key", "X-Idempotency-Key"}, []string{"profile/wrong-value /actions/0/request/header"}},
	{"scope", []string{"principal-action", "action"}, []string{"profile/wrong-value /actions/0/request/scope"}},
	{"retention too short", []string{"86400", "59"}, []string{"profile/out-of-range /actions/0/request/retentionSeconds"}},
	{"retention as a fraction", []string{"86400", "86400.5"}, []string{"profile/not-integer /actions/0/request/retentionSeconds"}},
	{"retention as text", []string{"86400", `"86400"`}, []string{"profile/wrong-type /actions/0/request/retentionSeconds"}},
	{"retention in another spelling", []string{"86400", "8640e1"}, nil},
	{"retry", []string{"never-automatically", "once"}, []string{"profile/wrong-value /actions/0/recovery/retry"}},
	{"pointer", []string{`"/id"`, `"id"`}, []string{"profile/wrong-form /actions/0/evidence/resourceIdPointer"}},
	{"pointer escape", []string{`"/id"`, `"/i~2d"`}, []string{"profile/wrong-form /actions/0/evidence/resourceIdPointer"}},
	{"success value twice", []string{`"closed"`, `"open"`}, []string{"profile/duplicate-element /actions/0/evidence/successValues/1"}},
	{"many success values", []string{`"closed"`, `"1","2","3","4","5","6","7","8","9","10"`}, []string{"profile/too-many /actions/0/evidence/successValues"}},

	{"operation for submit and status", []string{"getRequestStatus", "createTicket"}, []string{"profile/operation-repeated /actions/0/status"}},
	{"operation for status and verify", []string{"getTicket", "getRequestStatus"}, []string{"profile/operation-repeated /actions/0/verify"}},
	{"operation for all three", []string{"getTicket", "createTicket", "getRequestStatus", "createTicket"},
		[]string{"profile/operation-repeated /actions/0/status", "profile/operation-repeated /actions/0/verify"}},
	{"traversal", []string{"/openapi.json", "/a/../openapi.json"}, []string{"profile/path-not-allowed /actions/0/openapi"}},
	{"traversal by a tab", []string{"/openapi.json", `/.\t./openapi.json`}, []string{"profile/path-not-allowed /actions/0/openapi"}},
	{"other host by a tab", []string{"/openapi.json", `/\t/evil.example`}, []string{"profile/path-not-allowed /actions/0/openapi"}},
	{"escape", []string{"/openapi.json", "/%2e%2e/openapi.json"}, []string{"profile/path-not-allowed /actions/0/openapi"}},
	{"placeholder", []string{"/openapi.json", "/{version}/openapi.json"}, []string{"profile/path-not-allowed /actions/0/openapi"}},
	{"network path", []string{"/openapi.json", "//evil.example"}, []string{"profile/wrong-form /actions/0/openapi"}},
	{"absolute URL", []string{"/openapi.json", "https://evil.example/a"}, []string{"profile/wrong-form /actions/0/openapi"}},
	{"backslash", []string{"/openapi.json", `/\\evil.example`}, []string{"profile/wrong-form /actions/0/openapi"}},
	{"query", []string{"/openapi.json", "/openapi.json?a"}, []string{"profile/wrong-form /actions/0/openapi"}},

	{"everything at once", []string{"https://support", "http://support", `"id": "create-ticket"`, `"id": "create ticket"`, "getRequestStatus", "createTicket", "86400", "1"}, []string{
		"profile/wrong-form /actions/0/id", "profile/out-of-range /actions/0/request/retentionSeconds",
		"profile/origin-insecure /origin", "profile/operation-repeated /actions/0/status"}},
}

// whole makes the document of a case; "*" stands for the example as a whole.
func (c documentCase) whole(t testing.TB, example []byte) []byte {
	t.Helper()
	if len(c.oldnew) == 2 && c.oldnew[0] == "*" {
		return []byte(c.oldnew[1])
	}
	return []byte(edit(t, string(example), c.oldnew...))
}

func TestParseProfile(t *testing.T) {
	example := readTestdata(t, "profile.json")
	for _, tt := range append(textCases("profile", MaxProfileBytes), profileCases...) {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.whole(t, example)
			p, ds := ParseProfile(data, Options{})
			if diff := cmp.Diff(tt.want, codesAt(ds)); diff != "" {
				t.Error(diff)
			}
			if (p != nil) != (tt.want == nil) {
				t.Errorf("profile is %v", p)
			}
			checkDiagnostics(t, ds, data)
		})
	}
}

// checkDiagnostics holds what is promised of every diagnostic.
func checkDiagnostics(t *testing.T, ds Diagnostics, source []byte) {
	t.Helper()
	for _, d := range ds {
		if !strings.HasSuffix(d.Problem, ".") || !strings.HasSuffix(d.Remedy, ".") || len(d.Problem) > 1000 {
			t.Errorf("not two bounded sentences: %q %q", d.Problem, d.Remedy)
		}
		if !strings.HasSuffix(d.Code, "/too-large") && (d.Line < 1 || d.Column < 1 || d.Line > 1+strings.Count(string(source), "\n")) {
			t.Errorf("%s is at %d:%d", d.Code, d.Line, d.Column)
		}
	}
}

func TestParseProfileLoopback(t *testing.T) {
	for _, origin := range []string{"http://localhost:4318", "http://127.0.0.1:4318", "http://[::1]:4318"} {
		data := edit(t, string(readTestdata(t, "profile.json")), "https://support.example", origin)
		p, ds := ParseProfile([]byte(data), Options{AllowLoopback: true})
		if ds != nil || p.Origin != origin {
			t.Errorf("%s: %v", origin, ds)
		}
	}
}

func TestParseProfileSameActionID(t *testing.T) {
	example := string(readTestdata(t, "profile.json"))
	start, end := strings.Index(example, `    {`), strings.LastIndex(example, "\n  ]")
	action := example[start:end]
	two := edit(t, example, action, action+",\n"+action)
	_, ds := ParseProfile([]byte(two), Options{})
	if diff := cmp.Diff([]string{"profile/duplicate-action /actions/1/id"}, codesAt(ds)); diff != "" {
		t.Fatal(diff)
	}
	if want := `The action ID "create-ticket" is that of /actions/0 too.`; ds[0].Problem != want || ds[0].Line != 45 || ds[0].Column != 13 {
		t.Errorf("%+v", ds[0])
	}
	other := edit(t, example, action, action+",\n"+strings.Replace(action, "create-ticket", "Create-Ticket", 1))
	if p, ds := ParseProfile([]byte(other), Options{}); ds != nil || len(p.Actions) != 2 {
		t.Errorf("IDs that differ in case: %v", ds)
	}
}

func TestParseProfileManyProblems(t *testing.T) {
	var members strings.Builder
	for i := range 2 * maxDiagnostics {
		fmt.Fprintf(&members, `"x%d":1,`, i)
	}
	_, ds := ParseProfile([]byte(edit(t, string(readTestdata(t, "profile.json")), `"agentic"`, members.String()+`"agentic"`)), Options{})
	if last := ds[len(ds)-1]; len(ds) != maxDiagnostics+1 || last.Code != "profile/more-problems" {
		t.Errorf("%d diagnostics, the last is %v", len(ds), last)
	}
}

func TestParseProfilePlace(t *testing.T) {
	data := edit(t, string(readTestdata(t, "profile.json")), `"statePointer": "/status",`, `"statePointer": "/status", "stätePointer": 1, "statePointer": "/status",`)
	_, ds := ParseProfile([]byte(data), Options{})
	want := Diagnostics{{Severity: SeverityError, Code: "profile/duplicate-member", Document: "profile",
		Pointer: "/actions/0/evidence/statePointer", Line: 25, Column: 55,
		Problem: `The document is not strict JSON: duplicate member name: "statePointer".`,
		Remedy:  "Keep one of the members of that name and delete the others."}}
	if diff := cmp.Diff(want, ds); diff != "" {
		t.Error(diff)
	}
}

func TestProfileSnapshot(t *testing.T) {
	data := readTestdata(t, "profile.json")
	p, _ := ParseProfile(data, Options{})
	before := string(data)
	clear(data)
	if string(p.Source()) != before {
		t.Error("the snapshot changes with the caller's buffer")
	}
	reordered := edit(t, before, `"agentic": "0.1.0-draft",`, "", `"https://support.example",`, `"https://support.example", "agentic": "0.1.0-draft",`, "86400", "86400.0")
	q, ds := ParseProfile([]byte(reordered), Options{})
	if ds != nil || q.Digest() != p.Digest() {
		t.Errorf("a reformatted profile has another digest: %v", ds)
	}
	changed, _ := ParseProfile([]byte(edit(t, before, "86400", "86401")), Options{})
	if changed.Digest() == p.Digest() || len(p.Digest()) != 64 {
		t.Errorf("digests %s and %s", p.Digest(), changed.Digest())
	}
}

// FuzzProfile holds that an accepted profile is within the limits of the draft,
// and that its canonical form is accepted too, with the same digest.
func FuzzProfile(f *testing.F) {
	example := readTestdata(f, "profile.json")
	f.Add(example)
	for _, c := range profileCases {
		f.Add(c.whole(f, example))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ds := ParseProfile(data, Options{AllowLoopback: true})
		if (p == nil) != ds.HasErrors() {
			t.Fatalf("profile %v with %v", p, ds)
		}
		checkDiagnostics(t, ds, data)
		if p == nil {
			return
		}
		v, err := strictjson.Parse(p.Source())
		if err != nil {
			t.Fatal(err)
		}
		again, ds := ParseProfile(v.Canonical(), Options{AllowLoopback: true})
		if len(v.Canonical()) <= MaxProfileBytes && (ds != nil || again.Digest() != p.Digest() || fmt.Sprint(again.Actions) != fmt.Sprint(p.Actions)) {
			t.Errorf("the canonical form differs: %v", ds)
		}
		if err := CheckOrigin(p.Origin, Options{AllowLoopback: true}); err != nil || len(p.Actions) < 1 || len(p.Actions) > 32 {
			t.Errorf("origin %q with %d actions: %v", p.Origin, len(p.Actions), err)
		}
	})
}
