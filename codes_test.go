package agentic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestCodes holds that Codes lists exactly the codes that come out, with their
// severities: none is missing, and none is never given.
func TestCodes(t *testing.T) {
	got := map[string]Severity{}
	collect := func(ds Diagnostics) {
		for _, d := range ds {
			if s, ok := got[d.Code]; ok && s != d.Severity {
				t.Errorf("%s is %s and %s", d.Code, s, d.Severity)
			}
			got[d.Code] = d.Severity
		}
	}
	profile, openapi := readTestdata(t, "profile.json"), readTestdata(t, "openapi.json")
	many := strings.Repeat("7,", 2*maxDiagnostics) + "7"

	for _, c := range append(textCases("profile", MaxProfileBytes), profileCases...) {
		_, ds := ParseProfile(c.whole(t, profile), Options{})
		collect(ds)
	}
	_, ds := ParseProfile([]byte(edit(t, string(profile), `"actions": [`, `"actions": [`+many+",", `"create-ticket"`, `"id"`)), Options{})
	collect(ds)
	twice := strings.TrimSpace(string(profile))
	start, end := strings.Index(twice, `    {`), strings.LastIndex(twice, "\n  ]")
	_, ds = ParseProfile([]byte(twice[:end]+","+twice[start:]), Options{})
	collect(ds)

	for _, c := range append(textCases("openapi", MaxOpenAPIBytes), openAPICases...) {
		_, ds := ParseOpenAPI(c.whole(t, openapi))
		collect(ds)
	}
	for _, c := range bindCases {
		_, ds := bindExample(t, c.whole(t, openapi))
		collect(ds)
	}
	_, ds = bindExample(t, []byte(edit(t, string(openapi), statusParameter, many)))
	collect(ds)
	_, ds = bindExample(t, []byte(edit(t, string(openapi), "getTicket", "createTicket")))
	collect(ds)
	valid, _ := ParseProfile(profile, Options{})
	doc, _ := ParseOpenAPI(openapi)
	_, ds = Bind(valid, "delete-ticket", doc)
	collect(ds)

	plan, _ := Bind(valid, "create-ticket", doc)
	for _, c := range append(textCases("input", maxRawInputBytes), documentCase{oldnew: []string{"*", "[]"}}, documentCase{oldnew: []string{"*", "{}"}}) {
		if _, err := plan.CheckInput(c.whole(t, nil)); err != nil {
			collect(err.(*InputError).Diagnostics)
		}
	}

	for _, c := range textCases("receipt", 1) {
		_, ds := ParseReceipt(c.whole(t, nil))
		collect(ds)
	}
	for _, evidence := range []string{`{"url":"","matched":[],"x":1}`, `{"matched":[` + many + `]}`,
		`{"matched":[{"inputPointer":"a","resourcePointer":"/` + strings.Repeat("a", 200) + `"}]}`} {
		_, ds := ParseReceipt(fmt.Appendf(nil, `{"agentic":"1","evidence":%s}`, evidence))
		collect(ds)
	}

	listed := map[string]Severity{}
	for _, c := range Codes() {
		if _, ok := listed[c.Code]; ok || !strings.HasSuffix(c.Meaning, ".") {
			t.Errorf("%s is listed twice, or means no sentence: %q", c.Code, c.Meaning)
		}
		listed[c.Code] = c.Severity
	}
	for _, code := range slices.Sorted(maps.Keys(listed)) {
		if got[code] != listed[code] {
			t.Errorf("%s is listed as %q and given as %q", code, listed[code], got[code])
		}
	}
	for _, code := range slices.Sorted(maps.Keys(got)) {
		if listed[code] == "" {
			t.Errorf("%s is not listed", code)
		}
	}
}
