package agentic

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/google/go-cmp/cmp"
)

func quotedWhole(s string) string { return string(strictjson.Quote(s)) }

func codes(ds Diagnostics) []string {
	var list []string
	for _, d := range ds {
		list = append(list, d.Code)
	}
	return list
}

func TestCheckInput(t *testing.T) {
	padded := func(n int) string { // an input of exactly n bytes without white space
		const frame = `{"subject":"","n":[1]}`
		return `{"subject":"` + strings.Repeat("x", n-len(frame)) + `","n":[1]}`
	}
	tests := []struct {
		name, doc string
		codes     []string
	}{
		{"least", `{"subject":null,"n":[0]}`, nil},
		{"spaces and more members", " {\"z\":{},\"subject\":\"a\",\r\n\"n\":[1,2]}\n", nil},
		{"at the limit", padded(MaxInputBytes), nil},
		{"at the limit, spaces not counted", padded(MaxInputBytes) + strings.Repeat(" ", 1000), nil},
		{"past the limit", padded(MaxInputBytes + 1), []string{"input/too-large"}},
		{"past it without white space only", `{"subject":1.` + strings.Repeat("0", MaxInputBytes) + `,"n":[1]}`, []string{"input/too-large"}},
		{"past the raw limit", strings.Repeat(" ", maxRawInputBytes) + `{"subject":1,"n":[1]}`, []string{"input/too-large"}},
		{"nothing", ``, []string{"input/empty"}},
		{"not JSON", `{subject:1}`, []string{"input/not-json"}},
		{"duplicate", `{"subject":1,"n":[1],"x":{"a":1,"a":1}}`, []string{"input/duplicate-member"}},
		{"not UTF-8", "{\"subject\":\"\xff\",\"n\":[1]}", []string{"input/not-utf8"}},
		{"lone surrogate", `{"subject":"\ud800","n":[1]}`, []string{"input/not-utf8"}},
		{"trailing", `{"subject":1,"n":[1]},`, []string{"input/trailing-data"}},
		{"exponent", `{"subject":1e1000000000000001,"n":[1]}`, []string{"input/number-range"}},
		{"array", `[{"subject":1,"n":[1]}]`, []string{"input/not-object"}},
		{"null", `null`, []string{"input/not-object"}},
		{"one missing", `{"subject":1,"n":[]}`, []string{"input/evidence-missing"}},
		{"both missing", `{"Subject":1,"n":{}}`, []string{"input/evidence-missing", "input/evidence-missing"}},
		{"too large and missing", `{"x":"` + strings.Repeat("x", MaxInputBytes) + `"}`, []string{"input/too-large", "input/evidence-missing", "input/evidence-missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := evidencePlan().CheckInput([]byte(tt.doc))
			if tt.codes == nil {
				if err != nil || in.Digest() == "" {
					t.Fatalf("got %v", err)
				}
				want, _ := strictjson.Parse([]byte(tt.doc))
				if diff := cmp.Diff(string(want.Compact()), string(in.Body())); diff != "" {
					t.Error(diff)
				}
				return
			}
			e, ok := errors.AsType[*InputError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.codes, codes(e.Diagnostics)); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			for _, d := range e.Diagnostics {
				if d.Severity != SeverityError || d.Document != "input" || d.Line < 1 || d.Column < 1 || d.Problem == "" || d.Remedy == "" {
					t.Errorf("incomplete: %+v", d)
				}
			}
			if in.Body() != nil {
				t.Error("a refused input has a body")
			}
		})
	}
}

func TestInputDigest(t *testing.T) {
	same := []string{`{"subject":1,"n":[1e3]}`, `{ "n":[1000.0], "subject":10e-1 }`, `{"\u006e":[1000],"subject":1}`}
	want := evidenceInput(t, same[0]).Digest()
	for _, doc := range same {
		if got := evidenceInput(t, doc).Digest(); got != want {
			t.Errorf("%s: an equal input has another digest", doc)
		}
	}
	for _, doc := range []string{`{"subject":true,"n":[1e3]}`, `{"subject":1,"n":[1e3,1]}`, `{"subject":"1","n":[1e3]}`, `{"subject":1,"n":[1001]}`} {
		if got := evidenceInput(t, doc).Digest(); got == want {
			t.Errorf("%s: another input has the same digest", doc)
		}
	}
}
