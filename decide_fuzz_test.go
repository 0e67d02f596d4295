package agentic

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/google/go-cmp/cmp"
)

// looseStatus reads a status answer the plain way. It knows nothing of strict
// JSON; FuzzDecideStatus asks the parser for that.
type looseStatus map[string]json.RawMessage

func (s looseStatus) is(name, literal string) bool {
	var got, want any
	raw, ok := s[name]
	return ok && json.Unmarshal(raw, &got) == nil && json.Unmarshal([]byte(literal), &want) == nil && reflect.DeepEqual(got, want)
}

func FuzzDecideStatus(f *testing.F) {
	for _, status := range []string{`"succeeded"`, `"failed"`, `"pending"`, `"unknown"`, `"done"`, `1`} {
		for _, id := range []string{`"T-1"`, `null`, `""`, `7`} {
			f.Add("req-12345", 200, "application/json", []byte(`{"request_id":"req-12345","status":`+status+`,"resource_id":`+id+`}`))
		}
	}
	f.Add("r", 200, "application/json; charset=utf-8", []byte(`{"request_id":"r","status":"failed","resource_id":null,"request_id":"r"}`))
	f.Add("r", 503, "text/html", []byte(`<html>`))
	f.Add("", 0, "", []byte(nil))
	f.Fuzz(func(t *testing.T, requestID string, status int, contentType string, body []byte) {
		d := DecideStatus(requestID, Answer{Status: status, ContentType: contentType, Body: body})
		checkBounds(t, d.Checks, d.Reason)
		if (len(failedChecks(d.Checks)) == 0) != d.Usable || (d.ResourceID != "") != (d.Outcome == Succeeded) || !d.Outcome.Valid() {
			t.Fatalf("at odds with itself: %+v", d)
		}
		if !d.Usable {
			if d.Outcome != Unknown {
				t.Fatalf("an unusable answer says %s", d.Outcome)
			}
			return
		}
		var s looseStatus
		if err := json.Unmarshal(body, &s); err != nil {
			t.Fatal(err)
		}
		resource := "null"
		if d.Outcome == Succeeded {
			resource = quotedWhole(d.ResourceID)
		}
		_, strict := strictjson.Parse(body)
		media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
		if status != 200 || strings.TrimSpace(media) != "application/json" || strict != nil || len(body) > MaxResponseBytes ||
			!s.is("request_id", quotedWhole(requestID)) || !s.is("status", quotedWhole(string(d.Outcome))) || !s.is("resource_id", resource) {
			t.Fatalf("%d %q %s counts as %+v", status, contentType, body, d)
		}
	})
}

func FuzzDecideResource(f *testing.F) {
	const good = `{"id":"T/1","request_id":"req-12345","status":"open","subject":{"a":1},"data":{"n":[1e0]}}`
	const input = `{"subject":{"a":1.0},"n":[[1]]}`
	f.Add("req-12345", "T/1", input, 200, "application/json", []byte(good))
	f.Add("req-12345", "T/1", input, 200, "application/hal+json", []byte(strings.Replace(good, "open", "closed", 1)))
	f.Add("req-12345", "T/1", input, 200, "application/json", []byte(strings.Replace(good, "1e0", "2", 1)))
	f.Add("req-12345", "..", input, 200, "application/json", []byte(strings.Replace(good, "T/1", "..", 1)))
	f.Add("r", "T", `{"subject":null,"n":[9007199254740993]}`, 200, "application/json",
		[]byte(`{"id":"T","request_id":"r","status":"open","subject":null,"data":{"n":9007199254740992}}`))
	f.Fuzz(func(t *testing.T, requestID, resourceID, input string, status int, contentType string, body []byte) {
		plan := evidencePlan()
		in, err := plan.CheckInput([]byte(input))
		if err != nil {
			return
		}
		d := plan.DecideResource(requestID, resourceID, in, Answer{Status: status, ContentType: contentType, Body: body})
		checkBounds(t, d.Checks, d.Reason)
		if (len(failedChecks(d.Checks)) == 0) != d.Verified || (d.Evidence != nil) != d.Verified {
			t.Fatalf("at odds with itself: %+v", d)
		}
		if !d.Verified {
			return
		}
		given, received := plainJSON(t, []byte(input)), plainJSON(t, body)
		data, _ := received["data"].(map[string]any)
		list, _ := given["n"].([]any)
		if status != 200 || !strings.Contains(strings.ToLower(contentType), "json") || !slices.Contains([]string{"open", "closed"}, fmt.Sprint(received["status"])) ||
			received["id"] != resourceID || received["request_id"] != requestID || len(list) == 0 ||
			!reflect.DeepEqual(given["subject"], received["subject"]) || !reflect.DeepEqual(list[0], data["n"]) {
			t.Fatalf("%s against %s counts as %+v", body, input, d)
		}
		r := Receipt{Agentic: Version, RequestID: requestID, ActionID: "a", Origin: "o", Outcome: Succeeded,
			ObservedAt: "2026-09-07T10:00:00Z", ResourceID: &resourceID, Reason: d.Reason, Evidence: d.Evidence}
		if ds := r.Validate(); ds != nil {
			t.Fatalf("evidence that no receipt takes: %v", ds)
		}
	})
}

// plainJSON is an object as plain Go values, so that reflect.DeepEqual compares
// what the code under test compares with strictjson.Equal.
func plainJSON(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	v, err := strictjson.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := plain(v).(map[string]any)
	return m
}

func plain(v strictjson.Value) any {
	switch v.Kind() {
	case strictjson.Object:
		m := map[string]any{}
		for _, x := range v.Members() {
			m[x.Name] = plain(x.Value)
		}
		return m
	case strictjson.Array:
		list := []any{}
		for _, x := range v.Elements() {
			list = append(list, plain(x))
		}
		return list
	case strictjson.Number:
		d, _ := v.Decimal()
		return d
	case strictjson.String:
		s, _ := v.Text()
		return s
	case strictjson.Bool:
		return v.Truth()
	}
	return nil
}

// smallNumbers reports whether the schema library can be asked: it expands
// exponents.
func smallNumbers(v strictjson.Value) bool {
	if d, ok := v.Decimal(); ok {
		return -1000 < d.Magnitude() && d.Magnitude() < 1000
	}
	for _, x := range v.Elements() {
		if !smallNumbers(x) {
			return false
		}
	}
	for _, x := range v.Members() {
		if !smallNumbers(x.Value) {
			return false
		}
	}
	return true
}

func FuzzReceipt(f *testing.F) {
	r := sampleReceipt()
	f.Add(r.Encode())
	r.Outcome, r.Evidence, r.ResourceID = Pending, nil, nil
	f.Add(r.Encode())
	f.Add([]byte(`{"agentic":"0.1.0-draft","request_id":"\u0000","action_id":"a","origin":"<","outcome":"failed","observed_at":"2026-09-07TZ","resource_id":"","reason":"\ud83d\ude00"}`))
	f.Add([]byte(`{"agentic":1,"x":[]}`))
	schema := compileReceiptSchema(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, ds := ParseReceipt(doc)
		if (got == nil) != ds.HasErrors() {
			t.Fatalf("%s: %v, %v", doc, got, ds)
		}
		v, err := strictjson.Parse(doc)
		if err == nil && smallNumbers(v) {
			receiptVerdicts(t, schema, doc)
		}
		if got == nil {
			return
		}
		if ds := got.Validate(); ds != nil {
			t.Fatalf("%s is accepted, and not valid: %v", doc, ds)
		}
		again, ds := ParseReceipt(got.Encode())
		if ds != nil || !cmp.Equal(got, again) {
			t.Fatalf("%s comes back as %s: %v", doc, got.Encode(), ds)
		}
		w, _ := strictjson.Parse(got.Encode())
		if !strictjson.Equal(v, w) {
			t.Fatalf("%s was encoded as %s", doc, got.Encode())
		}
	})
}
