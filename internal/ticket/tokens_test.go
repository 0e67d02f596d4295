package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// tokens is the principal function of ann (two tokens) and bob.
func tokens(t *testing.T) func(*http.Request) (string, error) {
	t.Helper()
	file := "# who may\n\nann " + hashOf("ann-token") + "\nbob\t" + strings.ToUpper(hashOf("bob-token")) + "  \r\n  ann " + hashOf("ann-token-2")
	principal, err := ReadTokens(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return principal
}

func bearer(token string) string { return "Authorization: Bearer " + token }

func TestReadTokensRefuses(t *testing.T) {
	hash := hashOf("x")
	for _, c := range []struct{ name, file, want string }{
		{"nothing", "", "no token"},
		{"comments alone", "# ann " + hash + "\n\n", "no token"},
		{"the hash of no token", "ann " + hashOf(""), "no token at all"},
		{"no hash", "ann " + hash + "\nbob\n", "line 2"},
		{"a token in place of its hash", "ann secret-token\n", "64 hexadecimal"},
		{"a short hash", "ann " + hash[1:], "64 hexadecimal"},
		{"a long hash", "ann " + hash + "00", "64 hexadecimal"},
		{"three words", "ann smith " + hash, "line 1"},
		{"one token for two", "ann " + hash + "\nbob " + hash, "line 2: the token is there twice"},
		{"not UTF-8", "a\xff " + hash, "UTF-8"},
		{"a control character", "a\x00b " + hash, "control"},
		{"a long principal", strings.Repeat("a", 1025) + " " + hash, "1024"},
		{"a long line", "ann " + hash + "\n" + strings.Repeat("a", 3000), "after line 1"},
		{"too many", manyTokens(maxTokens + 1), "more than"},
	} {
		_, err := ReadTokens(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), hash) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ReadTokens(strings.NewReader(manyTokens(maxTokens))); err != nil {
		t.Error(err)
	}
}

func manyTokens(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, "ann", hashOf(fmt.Sprint(i)))
	}
	return b.String()
}

// Without a known token everything but the documents, the page and the health is
// 401 with a challenge, whatever else may be wrong with it.
func TestTokensAreNeeded(t *testing.T) {
	s := start(t, Config{Principal: tokens(t)})
	equal(t, "with a token", s.do("POST", "/tickets", subject, "Idempotency-Key: k", bearer("ann-token")).code, 201)
	for _, c := range []struct {
		name      string
		headers   []string
		challenge string
	}{
		{"none", nil, `Bearer realm="tickets"`},
		{"unknown", []string{bearer("ann-token-3")}, `Bearer realm="tickets", error="invalid_token"`},
		{"the hash", []string{bearer(hashOf("ann-token"))}, `Bearer realm="tickets", error="invalid_token"`},
		{"empty", []string{"Authorization: Bearer"}, `Bearer realm="tickets", error="invalid_request"`},
		{"other scheme", []string{"Authorization: Basic ann-token"}, `Bearer realm="tickets", error="invalid_request"`},
		{"two", []string{bearer("ann-token"), bearer("ann-token")}, `Bearer realm="tickets", error="invalid_request"`},
		{"two tokens", []string{bearer("ann-token ann-token")}, `Bearer realm="tickets", error="invalid_token"`},
		{"other case", []string{bearer("Ann-token")}, `Bearer realm="tickets", error="invalid_token"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, g := range []got{
				s.do("POST", "/tickets", subject, append(c.headers, "Idempotency-Key: k")...), s.do("POST", "/tickets", "", c.headers...),
				s.do("GET", "/requests/k", "", c.headers...), s.do("GET", "/requests/", "", c.headers...),
				s.do("GET", "/tickets/T-1", "", c.headers...), s.do("GET", "/tickets/T-2", "", c.headers...), s.do("GET", "/tickets/", "", c.headers...),
			} {
				wantProblem(t, g, 401, "token")
				equal(t, "challenge", g.header.Get("WWW-Authenticate"), c.challenge)
			}
		})
	}
	for _, path := range []string{"/", "/agentic.json", "/openapi.json", "/health"} {
		equal(t, path, s.get(path).code, 200)
	}
	equal(t, "the scheme in any case", s.do("GET", "/tickets/T-1", "", "Authorization: bearer ann-token-2").code, 200)
}

// A ticket, a key and what became of it are of one principal; what is somebody
// else's looks as if it were not there (D24).
func TestPrincipalsAreApart(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.Principal = tokens(t)
		s := start(t, cfg)
		post := func(token, body string) got {
			return s.do("POST", "/tickets", body, "Idempotency-Key: k", bearer(token))
		}
		ann, bob := post("ann-token", subject), post("bob-token", `{"subject":"another"}`)
		equal(t, "ann", []any{ann.code, ann.member("id")}, []any{201, "T-1"})
		equal(t, "bob, the same key and another input", []any{bob.code, bob.member("id")}, []any{201, "T-2"})
		equal(t, "ann again, with another token", post("ann-token-2", subject).body, ann.body)

		read := func(token, path string) got { return s.do("GET", path, "", bearer(token)) }
		equal(t, "ann's status", read("ann-token", "/requests/k").member("resource_id"), "T-1")
		equal(t, "bob's status", read("bob-token", "/requests/k").member("resource_id"), "T-2")
		equal(t, "ann's ticket", read("ann-token-2", "/tickets/T-1").code, 200)
		foreign, absent := read("bob-token", "/tickets/T-1"), read("bob-token", "/tickets/T-3")
		wantProblem(t, foreign, 404, "no such ticket")
		absent.header.Set("Date", foreign.header.Get("Date"))
		equal(t, "a ticket of somebody else", []any{absent.code, absent.header, absent.body}, []any{foreign.code, foreign.header, foreign.body})

		s.do("POST", "/tickets", subject, "Idempotency-Key: of-ann", bearer("ann-token"))
		status := read("bob-token", "/requests/of-ann")
		equal(t, "a request of somebody else", status.body, `{"request_id":"of-ann","status":"unknown","resource_id":null}`+"\n")
	})
}

// A pending request of one principal is not moved on by the checks of another.
func TestLateKeepsPrincipalsApart(t *testing.T) {
	s := start(t, Config{Principal: tokens(t), Fault: "late"})
	equal(t, "accepted", s.do("POST", "/tickets", subject, "Idempotency-Key: k", bearer("ann-token")).code, 202)
	for range 4 {
		equal(t, "bob", s.do("GET", "/requests/k", "", bearer("bob-token")).member("status"), "unknown")
		equal(t, "nobody", s.get("/requests/k").code, 401)
	}
	var words []string
	for range 3 {
		words = append(words, s.do("GET", "/requests/k", "", bearer("ann-token")).member("status"))
	}
	equal(t, "ann", words, []string{"pending", "pending", "succeeded"})
	equal(t, "ann's ticket", s.do("GET", "/tickets/T-1", "", bearer("ann-token")).code, 200)
	equal(t, "bob's look at it", s.do("GET", "/tickets/T-1", "", bearer("bob-token")).code, 404)
}
