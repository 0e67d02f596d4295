package agentic

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func jsonAnswer(body string) Answer {
	return Answer{Status: 200, ContentType: "application/json", Body: []byte(body)}
}

// failedChecks are the names of the checks that did not pass.
func failedChecks(list []Check) []string {
	var names []string
	for _, c := range list {
		if !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}

func checkBounds(t *testing.T, list []Check, reason string) {
	t.Helper()
	if reason == "" || !strings.HasSuffix(reason, ".") || utf8.RuneCountInString(reason) > 500 {
		t.Errorf("reason %q is not one bounded sentence", reason)
	}
	if len(list) == 0 {
		t.Error("a decision without checks")
	}
	for _, c := range list {
		for _, s := range []string{c.Name, c.Expected, c.Found} {
			if s == "" || utf8.RuneCountInString(s) > maxShown || !utf8.ValidString(s) {
				t.Errorf("check %q: text of %d code points: %.200q", c.Name, utf8.RuneCountInString(s), s)
			}
		}
	}
}

func TestDecideStatus(t *testing.T) {
	const good = `{"request_id":"req-12345","status":"succeeded","resource_id":"T-1"}`
	body := func(status, resource string) string {
		return fmt.Sprintf(`{"request_id":"req-12345","status":%s,"resource_id":%s}`, status, resource)
	}
	with := func(change func(*Answer)) Answer {
		a := jsonAnswer(good)
		change(&a)
		return a
	}
	media := func(s string) Answer { return with(func(a *Answer) { a.ContentType = s }) }
	tests := []struct {
		name    string
		answer  Answer
		outcome Outcome
		failed  []string // nil: usable
		reason  string   // part of it
	}{
		{"succeeded", jsonAnswer(good), Succeeded, nil, "not verified yet"},
		{"failed", jsonAnswer(body(`"failed"`, `null`)), Failed, nil, "did not complete"},
		{"pending", jsonAnswer(body(`"pending"`, `null`)), Pending, nil, "not resolved yet"},
		{"unknown", jsonAnswer(body(`"unknown"`, `null`)), Unknown, nil, "does not know"},
		{"other members", jsonAnswer(`{"x":{},"request_id":"req-12345","status":"failed","resource_id":null,"y":1}`), Failed, nil, "did not complete"},
		{"spaces and escapes", jsonAnswer("\n {\"request\\u005fid\":\"req\\u002d12345\",\"status\":\"failed\",\"resource_id\":null} \r\n"), Failed, nil, "did not complete"},
		{"charset", media("application/json; charset=utf-8"), Succeeded, nil, ""},
		{"media type in upper case", media("Application/JSON;Charset=\"UTF-8\""), Succeeded, nil, ""},

		{"no answer", Answer{}, Unknown, []string{"http status"}, "There was no status answer."},
		{"503", with(func(a *Answer) { a.Status = 503 }), Unknown, []string{"http status"}, "The status answer had HTTP status 503 instead of 200."},
		{"201", with(func(a *Answer) { a.Status = 201 }), Unknown, []string{"http status"}, "201"},
		{"503 html", Answer{Status: 503, ContentType: "text/html", Body: []byte("<p>")}, Unknown, []string{"http status", "media type", "json"}, "503"},
		{"no media type", media(""), Unknown, []string{"media type"}, "media type"},
		{"+json", media("application/problem+json"), Unknown, []string{"media type"}, "media type"},
		{"text/json", media("text/json"), Unknown, []string{"media type"}, "media type"},
		{"two media types", media("application/json, text/html"), Unknown, []string{"media type"}, "media type"},
		{"broken parameter", media("application/json; charset"), Unknown, []string{"media type"}, "media type"},
		{"longer name", media("application/jsonp"), Unknown, []string{"media type"}, "media type"},
		{"empty body", jsonAnswer(""), Unknown, []string{"json"}, "no JSON value"},
		{"duplicate member", jsonAnswer(good[:len(good)-1] + `,"status":"failed"}`), Unknown, []string{"json"}, "duplicate member name in line 1"},
		{"duplicate deep inside", jsonAnswer(good[:len(good)-1] + `,"x":[{"a":1,"\u0061":2}]}`), Unknown, []string{"json"}, "duplicate member name"},
		{"trailing data", jsonAnswer(good + "{}"), Unknown, []string{"json"}, "data after"},
		{"byte order mark", jsonAnswer("\uFEFF" + good), Unknown, []string{"json"}, "not strict JSON"},
		{"too long", jsonAnswer(good + strings.Repeat(" ", MaxResponseBytes)), Unknown, []string{"size"}, "65536"},
		{"array", jsonAnswer("[" + good + "]"), Unknown, []string{"object"}, "not a JSON object"},
		{"other request", jsonAnswer(strings.Replace(good, "req-12345", "REQ-12345", 1)), Unknown, []string{"request_id"}, "another request_id"},
		{"request id is a number", jsonAnswer(strings.Replace(good, `"req-12345"`, "12345", 1)), Unknown, []string{"request_id"}, "request_id"},
		{"no request id", jsonAnswer(`{"status":"failed","resource_id":null}`), Unknown, []string{"request_id"}, "request_id"},
		{"member name in other case", jsonAnswer(strings.Replace(good, "request_id", "Request_ID", 1)), Unknown, []string{"request_id"}, "request_id"},
		{"no status", jsonAnswer(`{"request_id":"req-12345","resource_id":null}`), Unknown, []string{"status"}, "no status"},
		{"other status", jsonAnswer(body(`"done"`, `null`)), Unknown, []string{"status"}, "no status"},
		{"status in other case", jsonAnswer(body(`"Succeeded"`, `"T-1"`)), Unknown, []string{"status"}, "no status"},
		{"status null", jsonAnswer(body(`null`, `null`)), Unknown, []string{"status"}, "no status"},
		{"succeeded without resource", jsonAnswer(body(`"succeeded"`, `null`)), Unknown, []string{"resource_id"}, "resource_id"},
		{"succeeded with empty resource", jsonAnswer(body(`"succeeded"`, `""`)), Unknown, []string{"resource_id"}, "resource_id"},
		{"succeeded with a number", jsonAnswer(body(`"succeeded"`, `7`)), Unknown, []string{"resource_id"}, "resource_id"},
		{"failed with resource", jsonAnswer(body(`"failed"`, `"T-1"`)), Unknown, []string{"resource_id"}, "says failed"},
		{"pending with empty resource", jsonAnswer(body(`"pending"`, `""`)), Unknown, []string{"resource_id"}, "says pending"},
		{"resource_id missing", jsonAnswer(`{"request_id":"req-12345","status":"failed"}`), Unknown, []string{"resource_id"}, "says failed"},
		{"all wrong", jsonAnswer(`{"request_id":1,"status":2,"resource_id":3}`), Unknown, []string{"request_id", "status"}, "request_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := DecideStatus("req-12345", tt.answer)
			if d.Outcome != tt.outcome || d.Usable != (tt.failed == nil) || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("got %+v", d)
			}
			if want := map[bool]string{true: "T-1"}[d.Outcome == Succeeded]; d.ResourceID != want {
				t.Errorf("resource ID %q, want %q", d.ResourceID, want)
			}
			if diff := cmp.Diff(tt.failed, failedChecks(d.Checks)); diff != "" {
				t.Errorf("failed checks (-want +got):\n%s", diff)
			}
			checkBounds(t, d.Checks, d.Reason)
		})
	}
}

// Without a request ID there is nothing to reconcile: an answer that repeats the
// emptiness proves nothing.
func TestDecideWithoutRequestID(t *testing.T) {
	d := DecideStatus("", jsonAnswer(`{"request_id":"","status":"failed","resource_id":null}`))
	if d.Usable || d.Outcome != Unknown {
		t.Errorf("got %+v", d)
	}
}

func TestDecisionTextIsBounded(t *testing.T) {
	long := strings.Repeat("é\u202e", MaxResponseBytes/10)
	for _, a := range []Answer{
		{Status: 200, ContentType: long, Body: []byte(`{"request_id":"` + long + `","status":"` + long + `"}`)},
		{Status: 200, ContentType: "text/\x1b[2J", Body: []byte(`{"` + long + `":1,"` + long + `":1}`)},
		{Status: 200, ContentType: "\xff", Body: []byte(strings.Repeat(`[`, 70))},
	} {
		d := DecideStatus(long, a)
		checkBounds(t, d.Checks, d.Reason)
		r := evidencePlan().DecideResource(long, "T-1", Input{}, a)
		checkBounds(t, r.Checks, r.Reason)
	}
}

// evidencePlan is a plan as Bind would make it, with two evidence pairs.
func evidencePlan() *Plan {
	return &Plan{
		Origin: "https://support.example",
		Action: Action{ID: "create-ticket", Evidence: Evidence{
			ResourceIDPointer: "/id", RequestIDPointer: "/request_id", StatePointer: "/status",
			SuccessValues: []string{"open", "closed"},
			InputBindings: []Pair{{"/subject", "/subject"}, {"/n/0", "/data/n"}},
		}},
		statusPath: pathTemplate{prefix: "/requests/"},
		verifyPath: pathTemplate{prefix: "/tickets/", suffix: "/full"},
	}
}

func evidenceInput(t testing.TB, doc string) Input {
	t.Helper()
	in, err := evidencePlan().CheckInput([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestDecideResource(t *testing.T) {
	const good = `{"id":"T/1","request_id":"req-12345","status":"closed","subject":{"a":1,"b":[null]},"data":{"n":9007199254740993}}`
	in := evidenceInput(t, `{"subject":{"b":[null],"a":1.0},"n":[9007199254740993]}`)
	replace := func(old, new string) Answer {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in the answer", old)
		}
		return jsonAnswer(strings.Replace(good, old, new, 1))
	}
	media := func(s string) Answer { return Answer{Status: 200, ContentType: s, Body: []byte(good)} }
	tests := []struct {
		name   string
		answer Answer
		failed []string
		reason string
	}{
		{"all match", jsonAnswer(good), nil, "expected"},
		{"+json", media("application/vnd.ticket+json; v=1"), nil, "expected"},
		{"+json in another tree", media("IMAGE/svg+JSON"), nil, "expected"},
		{"number spelled otherwise", replace(`9007199254740993`, `900719925474099.30e1`), nil, "expected"},
		{"no answer", Answer{}, []string{"http status"}, "There was no resource answer."},
		{"404", Answer{Status: 404, ContentType: "application/json", Body: []byte(good)}, []string{"http status"}, "The resource answer had HTTP status 404 instead of 200."},
		{"html", media("text/html"), []string{"media type"}, "media type"},
		{"only a suffix", media("+json"), []string{"media type"}, "media type"},
		{"suffix without a name", media("application/+json"), []string{"media type"}, "media type"},
		{"no slash", media("x+json"), []string{"media type"}, "media type"},
		{"duplicate member", replace(`"subject":{"a":1,`, `"subject":{"a":1,"a":1,`), []string{"json"}, "duplicate member name"},
		{"other resource", replace("T/1", "T/2"), []string{"resource id /id"}, "resource ID"},
		{"resource id missing", replace(`"id"`, `"ID"`), []string{"resource id /id"}, "resource ID"},
		{"other request", replace("req-12345", "req-12346"), []string{"request id /request_id"}, "request ID"},
		{"request id null", replace(`"req-12345"`, "null"), []string{"request id /request_id"}, "request ID"},
		{"other state", replace("closed", "draft"), []string{"state /status"}, "state"},
		{"state not a string", replace(`"closed"`, `["closed"]`), []string{"state /status"}, "state"},
		{"one bit of a big number", replace("740993", "740992"), []string{"input /n/0"}, "The resource's /data/n is not the input's /n/0."},
		{"number as text", replace("9007199254740993", `"9007199254740993"`), []string{"input /n/0"}, "/data/n"},
		{"input value missing", replace(`"data"`, `"date"`), []string{"input /n/0"}, "/data/n"},
		{"null is not nothing", replace("[null]", "[]"), []string{"input /subject"}, "/subject"},
		{"true is not 1", replace(`"a":1`, `"a":true`), []string{"input /subject"}, "/subject"},
		{"one member more", replace(`"a":1`, `"a":1,"c":null`), []string{"input /subject"}, "/subject"},
		{"not an object", jsonAnswer(`"T/1"`), []string{"resource id /id", "request id /request_id", "state /status", "input /subject", "input /n/0"}, "resource ID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := evidencePlan().DecideResource("req-12345", "T/1", in, tt.answer)
			if d.Verified != (tt.failed == nil) || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("got %+v", d)
			}
			if diff := cmp.Diff(tt.failed, failedChecks(d.Checks)); diff != "" {
				t.Errorf("failed checks (-want +got):\n%s", diff)
			}
			checkBounds(t, d.Checks, d.Reason)
			var want *ReceiptEvidence
			if tt.failed == nil {
				want = &ReceiptEvidence{URL: "https://support.example/tickets/T%2F1/full", ResourceID: "T/1",
					RequestID: "req-12345", State: "closed", Matched: evidencePlan().Action.Evidence.InputBindings}
			}
			if diff := cmp.Diff(want, d.Evidence); diff != "" {
				t.Errorf("evidence (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideResourceShowsBothSides(t *testing.T) {
	in := evidenceInput(t, `{"subject":"a","n":[9007199254740993]}`)
	d := evidencePlan().DecideResource("r", "T", in, jsonAnswer(`{"id":"T","request_id":"r","status":"open","subject":"a","data":{"n":9007199254740992}}`))
	want := Check{Name: "input /n/0", Expected: "9007199254740993", Found: "9007199254740992"}
	if got := d.Checks[len(d.Checks)-1]; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// An ID that no URL can carry is not verified even by a resource that bears it.
func TestDecideResourceUnaddressable(t *testing.T) {
	in := evidenceInput(t, `{"subject":"a","n":[1]}`)
	for _, id := range []string{"", ".", "..", "a\nb", "a\u0085b", strings.Repeat("x", MaxIDBytes+1), "\xff"} {
		body := fmt.Sprintf(`{"id":%s,"request_id":"r","status":"open","subject":"a","data":{"n":1}}`, quotedWhole(id))
		d := evidencePlan().DecideResource("r", id, in, jsonAnswer(body))
		if d.Verified || d.Evidence != nil || !strings.Contains(d.Reason, "no URL can carry") {
			t.Errorf("%.20q: got %+v", id, d)
		}
		checkBounds(t, d.Checks, d.Reason)
	}
	for _, id := range []string{"...", "a/b", "%2e%2e", "é", "a b", strings.Repeat("x", MaxIDBytes)} {
		body := fmt.Sprintf(`{"id":%s,"request_id":"r","status":"open","subject":"a","data":{"n":1}}`, quotedWhole(id))
		if d := evidencePlan().DecideResource("r", id, in, jsonAnswer(body)); !d.Verified {
			t.Errorf("%.20q: got %+v", id, d)
		}
	}
}

func TestMissingInputNeverMatches(t *testing.T) {
	body := `{"id":"T","request_id":"r","status":"open"}`
	if d := evidencePlan().DecideResource("r", "T", Input{}, jsonAnswer(body)); d.Verified || d.Evidence != nil {
		t.Errorf("nothing on either side counts as a match: %+v", d)
	}
}
