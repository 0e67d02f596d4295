package clientkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAdapter(t *testing.T) {
	a, err := ParseAdapter([]byte(`{"name":"A client","authorship":"external-self-declared","command":["./run","a b","$(x)"],"features":["test_now"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Adapter{Name: "A client", Authorship: AuthorshipExternal, Command: []string{"./run", "a b", "$(x)"}, Features: []string{FeatureTestNow}}
	if d := cmp.Diff(want, a); d != "" {
		t.Errorf("adapter (-want +got):\n%s", d)
	}
	if a.knows("other") || !a.knows(FeatureTestNow) {
		t.Error("knows what it does not list, or not what it lists")
	}
}

func TestParseAdapterRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"nothing":         {``, "no JSON value"},
		"array":           {`[]`, "not a JSON object but an array"},
		"duplicate":       {`{"name":"a","name":"b","authorship":"project","command":["a"]}`, "duplicate"},
		"unknown member":  {`{"name":"a","authorship":"project","command":["a"],"shell":true}`, `no member "shell"`},
		"no name":         {`{"authorship":"project","command":["a"]}`, `"name" is missing`},
		"empty name":      {`{"name":"","authorship":"project","command":["a"]}`, `"name" is not a text`},
		"authorship":      {`{"name":"a","authorship":"mine","command":["a"]}`, `authorship is "mine"`},
		"shell line":      {`{"name":"a","authorship":"project","command":"a b"}`, `"command" is not an array`},
		"no program":      {`{"name":"a","authorship":"project","command":[]}`, "names no program"},
		"empty program":   {`{"name":"a","authorship":"project","command":[""]}`, "names no program"},
		"number":          {`{"name":"a","authorship":"project","command":["a",1]}`, "no text"},
		"unknown feature": {`{"name":"a","authorship":"project","command":["a"],"features":["time_travel"]}`, `no feature "time_travel"`},
		"too long":        {`{"name":"` + strings.Repeat("a", MaxAdapterBytes) + `"}`, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAdapter([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want one that says %s", err, c.says)
			}
		})
	}
}

// FuzzParseAdapter: what is accepted can be started and shown, and nothing panics.
func FuzzParseAdapter(f *testing.F) {
	f.Add([]byte(`{"name":"a","authorship":"project","command":["a","b"],"features":["test_now"]}`))
	f.Add([]byte(`{"name":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseAdapter(data)
		if err == nil && (a.check() != nil || a.Name == "" || len(a.Command) == 0) || err != nil && a.Command != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
