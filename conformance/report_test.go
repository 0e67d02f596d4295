package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"golang.org/x/net/html"
)

var allStatuses = []Status{Passed, Failed, Flaky, Expected, Unexpected, NotExercised, Broken}

// every is a report that has each status and fills each member; text is what a subject
// said wherever one can.
func every(text string) *Report {
	at := time.Date(2026, 9, 7, 12, 0, 0, 123456000, time.UTC)
	r := &Report{
		Format: Format, Statement: Statement, Kind: Service, Draft: "0.1.0-draft", Seed: 1<<64 - 1, Repeat: 3, Started: at, Finished: at.Add(1500 * time.Millisecond),
		Subject: Subject{Name: "n" + text, Authorship: "project" + text, Version: "1" + text, Origin: "o" + text, Action: "a" + text},
		Tool:    Tool{"agentic", "v1", "go1.26", "linux/amd64"},
	}
	bad := Try{
		Status: Failed, Duration: 12 * time.Millisecond,
		Expectations: []Expectation{{"POSTs", true, "1", "1"}, {"outcome", false, "unknown" + text, "f" + text}},
		Exchanges:    []Exchange{{"POST /tickets\nIdempotency-Key: " + text, "201\n" + text, "lost" + text}, {"GET /requests/1", "", ""}},
		Notes:        []string{"stderr: " + text + "\nsecond line"}, Hint: "look" + text, Error: "the connection" + text,
	}
	good := Try{Status: Passed, Duration: time.Millisecond, Expectations: bad.Expectations[:1]}
	for i, s := range allStatuses {
		c := Result{Info: info("check/" + string(s)), Status: s, Tries: []Try{good, bad}}
		c.Level = []Level{Must, Should, Reading}[i%3]
		c.Sections = []string{"6.4", "D10"}
		switch s {
		case Passed:
			c.Tries = []Try{good}
		case NotExercised:
			c.Missing, c.Tries = "no second principal"+text, []Try{}
		case Expected, Unexpected:
			c.Reason = "known" + text
		case Broken:
			c.Tries = []Try{{Status: Broken, Error: "no port" + text}, good}
		}
		r.Checks = append(r.Checks, c)
	}
	r.Checks[1].Group = "Another" // so that groups are not in one piece
	r.count()
	return r
}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile is what a subject may say to whoever reads a report.
var hostile = []string{
	"", "plain", "\x1b[31mred\x1b]0;title\a", "a\rb", "</pre><script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]><failure/>", "&lt;&#27;",
	"\u202egnp.exe\u2066", "\u0085\u009b31m", "\x00\x01\ufffe\uffff", "\u2028\u2029\ufeff\u200b\u00ad", "e" + strings.Repeat("\u0301", 9),
	"\n  PASSED           everything: it holds\n", "{{.}}", "\xff\xed\xa0\x80", "</style><!--", "javascript:alert(1)", "\U000e0041\ue000", `\x1b \u202e`,
}

func FuzzWriters(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := every(bound(s))
		text := written(t, r.WriteText)
		junit := written(t, r.WriteJUnit)
		page := written(t, r.WriteHTML)
		doc := written(t, r.WriteJSON)
		for name, out := range map[string]string{"text": text, "JUnit": junit, "HTML": page, "JSON": doc} {
			for _, c := range out {
				if c != '\n' && c != '\ufffd' && !unicode.IsPrint(c) {
					t.Fatalf("%s has %U of %q", name, c, s)
				}
			}
		}
		checkText(t, text, s)
		checkJUnit(t, junit)
		checkHTML(t, page)
		back, err := ParseReport([]byte(doc))
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("%q comes back as another (-want +got):\n%s", s, diff)
		}
	})
}

// checkText: a line that begins like a check is one.
func checkText(t *testing.T, text, s string) {
	t.Helper()
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "      ") {
			n++
		}
	}
	if n != len(allStatuses) || !strings.HasSuffix(text, "\n"+Statement+"\n") {
		t.Fatalf("%d lines of checks with %q:\n%s", n, s, text)
	}
}

func checkJUnit(t *testing.T, doc string) {
	t.Helper()
	var got junitSuites
	d := xml.NewDecoder(strings.NewReader(doc))
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	if got.Tests != 7 || got.Failures != 3 || got.Errors != 1 || got.Skipped != 2 || len(got.Suite.Cases) != 7 {
		t.Fatalf("tests %d, failures %d, errors %d, skipped %d, cases %d", got.Tests, got.Failures, got.Errors, got.Skipped, len(got.Suite.Cases))
	}
}

// checkHTML: the elements are those of the template, whatever the subject said.
func checkHTML(t *testing.T, page string) {
	t.Helper()
	known := map[string]bool{}
	for name := range strings.FieldsSeq("html head meta title style body h1 h2 p dl dt dd strong div label input section span details summary table tbody tr th td pre") {
		known[name] = true
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	checks := 0
	for n := range root.Descendants() {
		if n.Type == html.CommentNode || n.Type == html.ElementNode && !known[n.Data] {
			t.Fatalf("the page has <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" || a.Key == "style" {
				t.Fatalf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
			if a.Key == "class" && strings.HasPrefix(a.Val, "check ") {
				checks++
			}
		}
	}
	if checks != len(allStatuses) {
		t.Fatalf("%d checks on the page", checks)
	}
}

// The page's policy allows the page's own style and nothing else.
func TestHTMLPolicy(t *testing.T) {
	page := written(t, every("x").WriteHTML)
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := `content="default-src &#39;none&#39;; style-src &#39;sha256-` + html.EscapeString(base64.StdEncoding.EncodeToString(sum[:])) + `&#39;; base-uri`
	if !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), want) {
		t.Errorf("the page has no %s", want)
	}
	for _, s := range allStatuses {
		if !strings.Contains(page, `id="show-`+string(s)+`"`) || !strings.Contains(style, "#show-"+string(s)+":not(:checked)) .is-"+string(s)+"{") || !strings.Contains(page, "is-"+string(s)+`"`) {
			t.Errorf("nothing filters %s", s)
		}
	}
}

func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ReportSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	valid := written(t, every("x").WriteJSON)
	_, plain := one(t, Options{Repeat: 2}, absent)
	small := &Report{Format: Format, Statement: Statement, Kind: Client, Repeat: 1, Checks: []Result{plain, {Info: info("b"), Status: Expected, Reason: "r", Tries: []Try{{Status: Failed}}}}}
	small.count()
	for _, text := range []string{valid, written(t, small.WriteJSON), written(t, (&Report{Format: Format, Statement: Statement, Kind: Client, Repeat: 1}).WriteJSON)} {
		if err := check(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if _, err := ParseReport([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	for _, change := range [][2]string{
		{Format, "agentic-conformance-report/2"}, {`"service"`, `"server"`}, {`"flaky": 1`, `"flaky": -1`}, {`"status": "flaky"`, `"status": "green"`},
		{`"reason"`, `"raison"`}, {`"missing"`, `"misses"`}, {`"level": "must"`, `"level": "may"`}, {`"2026-09-07T12:00:00.123456Z"`, `"yesterday"`},
		{`"tries": []`, `"tries": null`}, {`"6.4"`, `6.4`},
	} {
		text := strings.Replace(valid, change[0], change[1], 1)
		if text == valid || check(text) == nil {
			t.Errorf("%s in the place of %s is accepted", change[1], change[0])
		}
	}
}

// ParseReport says what is wrong and where.
func TestParseReportRefuses(t *testing.T) {
	valid := written(t, every("x").WriteJSON)
	if _, err := ParseReport([]byte(strings.Replace(valid, `"kind"`, `"newer": [1], "kind"`, 1))); err != nil {
		t.Errorf("a member that is not known: %v", err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{Format, "agentic-conformance-report/2", `it is "agentic-conformance-report/2"`},
		{`"format": "` + Format + `",`, "", `has no member "format"`},
		{`"kind": "service"`, `"kind": "x"`, `/kind is "x"`},
		{`"draft"`, `"draft": "", "draft"`, "duplicate member"},
		{`"passed": 1`, `"passed": 2`, "/summary does not count"},
		{`"check/failed"`, `"check/passed"`, `/checks/1 is the check "check/passed" a second time`},
		{`"duration": 1000000`, `"duration": 1.5`, "/checks/0/tries/0/duration is no whole number"},
		{`"duration": 1000000`, `"duration": -1`, "/checks/0/tries/0/duration is no whole number"},
		{`18446744073709551615`, `18446744073709551616`, "/seed is no whole number of 64 bits"},
		{`"repeat": 3`, `"repeat": 3000000000`, "/repeat is more than"},
		{`"2026-09-07T12:00:00.123456Z"`, `"noon"`, "/started is no time"},
		{`"ok": true`, `"ok": 1`, "/checks/0/tries/0/expectations/0/ok is a number, not a boolean"},
		{`"6.4"`, `6.4`, "/checks/0/sections/0 is a number, not a string"},
		{`"tries": []`, `"tries": {}`, "/checks/5/tries is an object, not an array"},
		{valid, "[]", "the document is an array, not an object"},
		{valid, "", "no JSON value"},
	} {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if _, err := ParseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.new, err, tt.want)
		}
	}
}

const wantText = `Conformance of a service: nx, version 1x, authorship projectx, origin ox, action ax
draft 0.1.0-draft, tried by agentic v1 go1.26 linux/amd64
2026-09-07T12:00:00Z, 1.5s, seed 18446744073709551615, each check 3 times

Group
  passed           check/passed: it holds
  FLAKY            check/flaky: it holds
      the draft is silent, and the safe reading asks (section 6.4, D10): It holds.
      1 of 2 tries did not pass; this is try 2
      NOT HELD  outcome: expected unknownx, found fx
      held      POSTs: 1
      error: the connectionx
      exchange 1: lostx
        > POST /tickets
        > Idempotency-Key: x
        < 201
        < x
      exchange 2
        > GET /requests/1
        < (no answer)
      note: stderr: x
      note: second line
      hint: lookx
  expected-failure check/expected-failure: it holds
      the baseline: knownx
`

func TestText(t *testing.T) {
	text := written(t, every("x").WriteText)
	if diff := cmp.Diff(wantText, text[:min(len(text), len(wantText))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"  UNEXPECTED-PASS  check/unexpected-pass: it holds\n      the baseline expects a failure: knownx\n",
		"  not-exercised    check/not-exercised: it holds\n      no second principalx\n",
		"  ERROR            check/error: it holds\n      the draft demands (section 6.4, D10): It holds.\n      1 of 2 tries did not pass; this is try 1\n      error: no portx\n",
		"\nAnother\n  FAILED           check/failed: it holds\n      the draft recommends",
		"\n7 checks, 5 observed: 1 passed, 1 failed (1 should), 1 flaky, 1 failed as expected, 1 passed unexpectedly, 1 not exercised, 1 could not be tried\n" +
			"did not pass, must: check/error (error)\ndid not pass, should: check/failed, check/unexpected-pass (unexpected-pass)\ndid not pass, reading: check/flaky (flaky)\n" + Statement + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q:\n%s", want, text)
		}
	}
}

// Whoever opens the page sees what failed: first, open, and what did not hold above what did.
func TestHTMLShowsFailuresFirst(t *testing.T) {
	check := func(id, group string, s Status) Result {
		return Result{Info: Info{ID: id, Group: group}, Status: s, Tries: []Try{{Status: s, Expectations: []Expectation{{"yes-" + id, true, "e", "f"}, {"no-" + id, s != Failed, "e", "f"}}}}}
	}
	page := written(t, (&Report{Checks: []Result{check("a1", "A", Passed), check("b1", "B", Passed), check("b2", "B", Failed), check("b3", "B", NotExercised)}}).WriteHTML)
	at := -1
	for _, want := range []string{"<h2>B</h2>", `is-failed" open>`, "b2", "no-b2", "yes-b2", `is-passed">`, "b1", "yes-b1", "no-b1", `is-not-exercised">`, ">b3<", "<h2>A</h2>", "a1"} {
		i := strings.Index(page, want)
		if i <= at {
			t.Errorf("%q is not in its place", want)
		}
		at = i
	}
	// A section that has nothing to show has no heading.
	for _, s := range []Status{Passed, Failed, NotExercised} {
		if want := fmt.Sprintf("body:has(#show-%s:checked) section:has(.is-%[1]s){display:block}", s); !strings.Contains(page, want) {
			t.Errorf("no rule %s", want)
		}
	}
}

// JSON in a title is shown as it is written: its backslashes begin escapes already.
func TestTitleIsNotEscapedTwice(t *testing.T) {
	r := &Report{Checks: []Result{{Info: Info{ID: "a", Title: "the input's \"a\\u0000\\\\\" \x1b"}, Status: Failed}}}
	const text, markup = `"a\u0000\\" \x1b`, `&#34;a\u0000\\&#34; \x1b`
	for name, w := range map[string]func(io.Writer) error{text: r.WriteText, markup: r.WriteHTML, markup + " ": r.WriteJUnit} {
		var b strings.Builder
		if err := w(&b); err != nil || !strings.Contains(b.String(), strings.TrimSpace(name)) {
			t.Errorf("no %s in\n%s, %v", name, b.String(), err)
		}
	}
}

func TestJUnit(t *testing.T) {
	doc := written(t, every("x").WriteJUnit)
	for _, want := range []string{
		`<testsuites name="agentic conformance" tests="7" failures="3" errors="1" skipped="2" time="1.500">`,
		`<testsuite name="service: nx" tests="7" failures="3" errors="1" skipped="2" time="1.500" timestamp="2026-09-07T12:00:00">`,
		`<property name="seed" value="18446744073709551615"></property>`, `<property name="tool.version" value="v1"></property>`,
		`<property name="started" value="2026-09-07T12:00:00.123456Z"></property>`,
		`<testcase classname="service.Group" name="check/passed" time="0.001"></testcase>`,
		`<failure message="it holds" type="flaky">`, `<failure message="it holds" type="unexpected-pass">`, `<error message="it holds" type="error">`,
		`<skipped message="expected failure: knownx"></skipped>`, `<skipped message="no second principalx"></skipped>`,
		"NOT HELD  outcome: expected unknownx, found fx&#xA;",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s in\n%s", want, doc)
		}
	}
}

// A writer whose place is full says so.
func TestWritersTellErrors(t *testing.T) {
	r := every("x")
	for name, write := range map[string]func(io.Writer) error{"text": r.WriteText, "JSON": r.WriteJSON, "JUnit": r.WriteJUnit, "HTML": r.WriteHTML, "baseline": r.Baseline(Baseline{}).Write} {
		if err := write(full{}); err != io.ErrShortWrite {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
