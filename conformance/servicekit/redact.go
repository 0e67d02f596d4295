package servicekit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// shownHeaders are the headers whose values a report may hold.
const shownHeaders = " Accept Allow Cache-Control Content-Encoding Content-Length Content-Type Etag Expires Idempotency-Key Idempotency-Replayed If-None-Match Location Retry-After "

// redact is an exchange for a report: no credential, no value of an input and none of
// a resource but what ties it to its request.
func redact(plan *agentic.Plan, q request, a answer) conformance.Exchange {
	var req, resp strings.Builder
	fmt.Fprintf(&req, "%s %s\n", q.method, q.target)
	for _, h := range q.header {
		writeHeader(&req, h[0], h[1])
	}
	if q.who != nil {
		for _, name := range sorted(q.who.Header) {
			writeHeader(&req, name, "")
		}
	}
	writeBody(&req, q.body, nil)
	note := ""
	if a.Status != 0 {
		fmt.Fprintf(&resp, "%d %s\n", a.Status, http.StatusText(a.Status))
		for _, name := range sorted(a.header) {
			for _, v := range a.header[name] {
				writeHeader(&resp, name, v)
			}
		}
		writeBody(&resp, a.Body, shownMembers(plan, a))
	}
	if a.lost != "" {
		note = a.lost
	}
	return conformance.Exchange{Request: strings.TrimSpace(req.String()), Response: strings.TrimSpace(resp.String()), Note: note}
}

// shownMembers are the pointers of an answer whose strings may be shown: identity and
// state, and of a problem document its title. What the input decides never is.
func shownMembers(plan *agentic.Plan, a answer) []string {
	ev := plan.Action.Evidence
	shown := []string{"/request_id", "/status", "/resource_id", ev.ResourceIDPointer, ev.RequestIDPointer, ev.StatePointer}
	if a.Status >= 400 && strings.HasPrefix(a.ContentType, "application/problem+json") {
		shown = append(shown, "/title")
	}
	return slices.DeleteFunc(shown, func(pointer string) bool {
		return slices.ContainsFunc(ev.InputBindings, func(p agentic.Pair) bool { return p.ResourcePointer == pointer })
	})
}

func sorted(h http.Header) []string {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func writeHeader(b *strings.Builder, name, value string) {
	if !strings.Contains(shownHeaders, " "+http.CanonicalHeaderKey(name)+" ") {
		value = "(redacted)"
	}
	fmt.Fprintf(b, "%s: %s\n", name, shorten(value))
}

// writeBody writes a JSON body with the values of all members replaced by their kind
// and length, but for strings at the pointers; any other body is only measured.
func writeBody(b *strings.Builder, body []byte, shown []string) {
	if len(body) == 0 {
		return
	}
	v, err := strictjson.Parse(body)
	if err != nil {
		fmt.Fprintf(b, "\n(%d bytes that are not strict JSON)\n", len(body))
		return
	}
	b.WriteByte('\n')
	outline(b, v, "", shown)
	b.WriteByte('\n')
}

// maxOutline bounds what is written of one body.
const maxOutline = 2 << 10

func outline(b *strings.Builder, v strictjson.Value, at string, shown []string) {
	if b.Len() > maxOutline {
		b.WriteString("…")
		return
	}
	switch v.Kind() {
	case strictjson.Object:
		b.WriteByte('{')
		for i, m := range v.Members() {
			if i > 0 {
				b.WriteString(", ")
			}
			if b.Len() > maxOutline {
				b.WriteString("…")
				break
			}
			b.Write(strictjson.Quote(shorten(m.Name)))
			b.WriteString(": ")
			outline(b, m.Value, at+"/"+strictjson.EscapeToken(m.Name), shown)
		}
		b.WriteByte('}')
	case strictjson.Array:
		fmt.Fprintf(b, "(array of %d)", v.Len())
	case strictjson.String:
		text, _ := v.Text()
		if slices.Contains(shown, at) {
			b.Write(strictjson.Quote(shorten(text)))
			return
		}
		fmt.Fprintf(b, "(string of %d bytes)", len(text))
	case strictjson.Number:
		text, _ := v.Literal()
		if at == "/status" && slices.Contains(shown, at) {
			b.WriteString(shorten(text))
			return
		}
		fmt.Fprintf(b, "(number of %d characters)", len(text))
	default:
		b.WriteString(v.Kind().String())
	}
}

// shorten bounds text of the service.
func shorten(s string) string {
	const most = 256
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
