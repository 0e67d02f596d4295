package servicekit

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/ticket"
)

func TestRedact(t *testing.T) {
	const origin = "http://127.0.0.1:4318"
	plan, err := agentic.Load(ticket.Profile(origin), ticket.OpenAPI(origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	post := request{method: "POST", target: "/tickets", header: [][2]string{{"Content-Type", "application/json"}, {"Idempotency-Key", "k-1"}},
		who:  &Principal{Header: http.Header{"Authorization": {"Bearer hidden"}, "X-Api-Key": {"hidden"}}},
		body: []byte(`{"subject":"hidden","status":"hidden","n":123,"list":["hidden"],"o":{"id":"hidden"},"no":null}`)}
	const sent = "POST /tickets\nContent-Type: application/json\nIdempotency-Key: k-1\nAuthorization: (redacted)\nX-Api-Key: (redacted)\n\n" +
		`{"subject": (string of 6 bytes), "status": (string of 6 bytes), "n": (number of 3 characters), "list": (array of 1), "o": {"id": (string of 6 bytes)}, "no": null}`
	answered := func(code int, media, body string) answer {
		return answer{Answer: agentic.Answer{Status: code, ContentType: media, Body: []byte(body)},
			header: http.Header{"Content-Type": {media}, "Set-Cookie": {"hidden"}, "Retry-After": {"1"}}}
	}
	for name, c := range map[string]struct {
		a    answer
		want string
	}{
		"resource": {answered(200, "application/json", `{"id":"T-1","request_id":"k-1","subject":"hidden","status":"open","title":"hidden","deep":{"status":"hidden"}}`),
			`{"id": "T-1", "request_id": "k-1", "subject": (string of 6 bytes), "status": "open", "title": (string of 6 bytes), "deep": {"status": (string of 6 bytes)}}`},
		"status":    {answered(200, "application/json", `{"request_id":"k-1","status":"unknown","resource_id":null}`), `{"request_id": "k-1", "status": "unknown", "resource_id": null}`},
		"problem":   {answered(409, "application/problem+json", `{"title":"Conflict","status":409,"detail":"hidden"}`), `{"title": "Conflict", "status": 409, "detail": (string of 6 bytes)}`},
		"no object": {answered(200, "application/json", `"hidden"`), "(string of 6 bytes)"},
		"no JSON":   {answered(200, "text/html", "<p>hidden"), "(9 bytes that are not strict JSON)"},
		"hostile":   {answered(200, "application/json", `{"id":"`+strings.Repeat("x", 300)+`"}`), `{"id": "` + strings.Repeat("x", 256) + `…"}`},
	} {
		got := redact(plan, post, c.a)
		want := conformance.Exchange{Request: sent, Response: strings.Join([]string{codeLine(c.a.Status), "Content-Type: " + c.a.ContentType, "Retry-After: 1", "Set-Cookie: (redacted)", "", c.want}, "\n")}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if got := redact(plan, request{method: "GET", target: "/x"}, answer{lost: "no answer in time"}); got.Response != "" || got.Note != "no answer in time" || got.Request != "GET /x" {
		t.Errorf("%+v", got)
	}
}

func codeLine(code int) string {
	return map[int]string{200: "200 OK", 409: "409 Conflict"}[code]
}

// A body of any form and size takes a bounded place in a report.
func TestOutlineIsBounded(t *testing.T) {
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`"k%d":"value"`, i))
	}
	for _, body := range []string{
		"{" + strings.Join(many, ",") + "}",
		strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60),
		`{"` + strings.Repeat("n", 100<<10) + `":1}`,
	} {
		var b strings.Builder
		if writeBody(&b, []byte(body), nil); b.Len() > 4<<10 {
			t.Errorf("%d bytes", b.Len())
		}
	}
}
