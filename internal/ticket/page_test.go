package ticket

import (
	"strings"
	"testing"
	"time"
)

func TestPage(t *testing.T) {
	s := start(t, Config{Retention: 90 * time.Minute})
	g := s.get("/")
	equal(t, "media type", g.header.Get("Content-Type"), "text/html; charset=utf-8")
	equal(t, "policy", g.header.Get("Content-Security-Policy"), "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	for _, want := range []string{
		s.origin, "create-ticket", "createTicket", "POST /tickets", "GET /requests/{requestId}", "GET /tickets/{ticketId}", "1h30m0s",
		"curl -i '" + s.origin + "/tickets'", "agentic run '" + s.origin + "/agentic.json' --approve '" + s.origin + "' --allow-loopback", "no accounts",
	} {
		if !strings.Contains(g.body, want) {
			t.Errorf("the page does not tell %q", want)
		}
	}
	for _, never := range []string{"<script", "javascript:", "<style", "style=", "<form", "Authorization", "one promise"} {
		if strings.Contains(strings.ToLower(g.body), strings.ToLower(never)) {
			t.Errorf("the page has %q", never)
		}
	}
	s.wantState(State{})
}

func TestPageOfTokensAndFaults(t *testing.T) {
	g := start(t, Config{Principal: tokens(t), Fault: "dot-resource-id"}).get("/")
	for _, want := range []string{"needs a bearer token", "--header-from-env Authorization=AUTHORIZATION", "Authorization: Bearer $TOKEN",
		"<code>dot-resource-id</code>", "the resource ID &#34;..&#34;."} {
		if !strings.Contains(g.body, want) {
			t.Errorf("the page does not tell %q", want)
		}
	}
}
