package agentic

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCheckerVerdicts(t *testing.T) {
	integer := func(c *checker, n node) { c.integer(n, 0, 5000) }
	text := func(c *checker, n node) { c.text(n, 1, 3) }
	array := func(c *checker, n node) { c.array(n, 1, 2) }
	unique := func(c *checker, n node) { c.unique(n.elements()) }
	tests := []struct {
		doc   string
		check func(*checker, node)
		code  string // "" is accepted
	}{
		{`0`, integer, ""}, {`-0`, integer, ""}, {`0e999`, integer, ""}, {`3.0`, integer, ""}, {`3e0`, integer, ""}, {`30e-1`, integer, ""},
		{`5e3`, integer, ""}, {`5000.000`, integer, ""}, {`5001`, integer, "out-of-range"}, {`5000.0001`, integer, "not-integer"},
		{`-1`, integer, "out-of-range"}, {`-1e-1`, integer, "not-integer"}, {`1e1000000`, integer, "out-of-range"}, {`1e-1000000`, integer, "not-integer"},
		{`18446744073709551617`, integer, "out-of-range"}, {`"3"`, integer, "wrong-type"}, {`true`, integer, "wrong-type"}, {`null`, integer, "wrong-type"},
		{`""`, text, "too-short"}, {`"a"`, text, ""}, {`"😀😀😀"`, text, ""}, {`"\ud83d\ude00ab"`, text, ""}, {`"abcd"`, text, "too-long"}, {`1`, text, "wrong-type"},
		{`[]`, array, "too-few"}, {`[1]`, array, ""}, {`[1,1]`, array, ""}, {`[1,1,1]`, array, "too-many"}, {`{}`, array, "wrong-type"},
		{`["a","b"]`, unique, ""}, {`["a","\u0061"]`, unique, "duplicate-element"}, {`[1,"1",true,null]`, unique, ""}, {`[1,1.0]`, unique, "duplicate-element"},
		{`[{"a":1,"b":2},{"b":2,"a":1}]`, unique, "duplicate-element"}, {`[["a"],["a","a"]]`, unique, ""},
	}
	for _, tt := range tests {
		root, ds := parseDocument("profile", []byte(tt.doc))
		if ds != nil {
			t.Fatalf("%s: %v", tt.doc, ds)
		}
		c := checker{document: "profile", source: []byte(tt.doc)}
		tt.check(&c, root)
		var want []string
		if tt.code != "" {
			want = []string{"profile/" + tt.code}
		}
		if diff := cmp.Diff(want, codes(c.found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.doc, diff)
		}
	}
}

func TestNames(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "Z": true, "a-_9Z": true, "": false, "9": false, "-": false, "_a": false, "a b": false, "a\n": false, "é": false, "aé": false,
		"@": false, "[": false, "`": false, "{": false, "a@": false, "a`": false, "a{": false, "\xc1": false, "a\xe1": false, "\u212a": false, "a\u017f": false,
	} {
		if isName(s) != want {
			t.Errorf("%q: got %v", s, !want)
		}
	}
}

// A missing node has been reported by its object; nothing else may be said of it.
func TestCheckerPassesOverMissing(t *testing.T) {
	c := checker{document: "profile"}
	n := node{}.member("x")
	c.object(n, []string{"a"}, nil)
	c.array(n, 1, 1)
	c.text(n, 1, 1)
	c.name(n)
	c.pointer(n)
	c.oneOf(n, "a")
	c.integer(n, 1, 1)
	if c.found != nil {
		t.Errorf("got %v", c.found)
	}
}

func TestDiagnosticsAreBounded(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{`)
	for i := range 5000 {
		fmt.Fprintf(&doc, `"%s%d":1,`, strings.Repeat("é", 300), i)
	}
	doc.WriteString(`"agentic":"` + strings.Repeat("\\u001b", 1000) + `"}`)
	_, ds := ParseReceipt([]byte(doc.String()))
	if len(ds) != maxDiagnostics+1 || ds[maxDiagnostics].Code != "receipt/more-problems" {
		t.Fatalf("%d diagnostics", len(ds))
	}
	for _, d := range ds {
		if n := utf8.RuneCountInString(d.String()); n > 1000 {
			t.Errorf("a diagnostic of %d code points", n)
		}
	}
	c := checker{document: "profile"}
	for range 2 * maxDiagnostics {
		c.warn(node{}, "x", "x", "x")
	}
	if len(c.found) != maxDiagnostics || c.found.HasErrors() {
		t.Errorf("%d diagnostics of warnings", len(c.found))
	}
	if c.fail(node{}, "y", "y", "y"); !c.found.HasErrors() {
		t.Error("an error is lost behind the warnings")
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"ééé", 3, "ééé"}, {"éééé", 3, "éé…"}, {"😀😀", 1, "…"}, {"a\xff\xffb", 4, "a\xff\xffb"},
	} {
		if got := shorten(tt.s, tt.limit); got != tt.want {
			t.Errorf("%q to %d: got %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}
