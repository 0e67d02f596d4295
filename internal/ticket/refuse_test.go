package ticket

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
)

func TestSubmissionsThatAreRefused(t *testing.T) {
	s := start(t, Config{})
	long := strings.Repeat("x", 129)
	const key = "Idempotency-Key: k"
	for _, c := range []struct {
		name, body string
		headers    []string
		code       int
		detail     string
	}{
		{"no key", subject, nil, 400, "Idempotency-Key"},
		{"two keys", subject, []string{key, key}, 400, "once"},
		{"dot", subject, []string{"Idempotency-Key: ."}, 400, "Idempotency-Key"},
		{"dots", subject, []string{"Idempotency-Key: .."}, 400, "Idempotency-Key"},
		{"blank inside", subject, []string{"Idempotency-Key: a b"}, 400, "Idempotency-Key"},
		{"not ASCII", subject, []string{"Idempotency-Key: kä"}, 400, "Idempotency-Key"},
		{"129 characters", subject, []string{"Idempotency-Key: " + long}, 400, "128"},
		{"no media type", subject, []string{key, "Content-Type:"}, 415, "application/json"},
		{"other media type", subject, []string{key, "Content-Type:", "Content-Type: text/plain"}, 415, "application/json"},
		{"other charset", subject, []string{key, "Content-Type:", "Content-Type: application/json; charset=latin1"}, 415, "UTF-8"},
		{"content coding", subject, []string{key, "Content-Encoding: gzip"}, 415, "coding"},
		{"one byte too many", subject + strings.Repeat(" ", agentic.MaxInputBytes+1-len(subject)), []string{key}, 413, "16384"},
		{"no body", "", []string{key}, 400, "no JSON value"},
		{"duplicate member", "{\"subject\":\"a\",\n\"subject\":\"b\"}", []string{key}, 400, "duplicate"},
		{"trailing", subject + "1", []string{key}, 400, "after the JSON value"},
		{"lone surrogate", `{"subject":"\ud800"}`, []string{key}, 400, "UTF-8"},
		{"array", `["subject"]`, []string{key}, 400, "object"},
		{"not UTF-8", "{\"subject\":\"\xff\"}", []string{key}, 400, "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := s.do(http.MethodPost, "/tickets", c.body, c.headers...)
			wantProblem(t, g, c.code, c.detail)
		})
	}
	equal(t, "status", s.get("/requests/k").member("status"), "unknown")
	s.wantState(State{Posts: 18, Reads: 1})
}

func wantProblem(t *testing.T, g got, code int, detail string) {
	t.Helper()
	equal(t, "code", g.code, code)
	equal(t, "media type", g.header.Get("Content-Type"), "application/problem+json")
	equal(t, "Cache-Control", g.header.Get("Cache-Control"), "no-store")
	if g.member("type") == "" || g.member("title") == "" {
		t.Errorf("a problem without type or title: %s", g.body)
	}
	if d := g.member("detail"); !strings.Contains(d, detail) || d == "" {
		t.Errorf("detail %q does not name %q", d, detail)
	}
}

// An invalid subject is a definite refusal of the business (D21): it is tracked,
// repeated, and binds its key.
func TestInvalidInputIsRecordedAsFailed(t *testing.T) {
	s := start(t, Config{})
	for _, c := range []struct{ key, body, detail string }{
		{"empty", `{"subject":""}`, "code points"},
		{"long", `{"subject":"` + strings.Repeat("é", 201) + `"}`, "200"},
		{"number", `{"subject":1}`, "string"},
		{"missing", `{}`, "missing"},
		{"case", `{"Subject":"x"}`, "missing"},
		{"more", `{"subject":"x","status":"closed"}`, "no other"},
	} {
		t.Run(c.key, func(t *testing.T) {
			first := s.post(c.key, c.body)
			wantProblem(t, first, 422, c.detail)
			equal(t, "repeat", s.post(c.key, " "+c.body).body, first.body)
			equal(t, "status", s.get("/requests/"+c.key).body, `{"request_id":"`+c.key+`","status":"failed","resource_id":null}`+"\n")
			wantProblem(t, s.post(c.key, subject), 409, "other input")
		})
	}
	s.wantState(State{Posts: 18, Requests: 6, Reads: 6})
	equal(t, "200 code points", s.post("k", `{"subject":"`+strings.Repeat("😀", 200)+`"}`).code, 201)
}

func TestOddKeysArriveOnceDecoded(t *testing.T) {
	s := start(t, Config{})
	for _, key := range []string{
		"a/b", "a%2Fb", "%", "%41", "a?b=c#d", "...", "a;b,c", `quote"back\slash`, "a+b", "~!@$&'()*=:", "<b>&", "x/../y", "//",
		strings.Repeat("k", 128),
	} {
		t.Run(key, func(t *testing.T) {
			g := s.post(key, subject)
			equal(t, "code", g.code, 201)
			path := "/requests/" + url.PathEscape(key)
			equal(t, "status", s.get(path).member("status"), "succeeded")
			equal(t, "request_id", s.get(path).member("request_id"), key)
			equal(t, "ticket", s.get(g.header.Get("Location")).member("request_id"), key)
		})
	}
}

func TestReadsOfWhatIsNotThere(t *testing.T) {
	s := start(t, Config{})
	s.post("k", subject)
	for path, id := range map[string]string{
		"nobody": "nobody", "K": "K", "%6b%20": "k ", "%C3%A9": "é", "k%2F": "k/", "%256B": "%6B",
	} {
		g := s.get("/requests/" + path)
		equal(t, path, g.code, 200)
		equal(t, path, []string{g.member("request_id"), g.member("status"), g.member("resource_id")}, []string{id, "unknown", "null"})
	}
	equal(t, "an escaped letter", s.get("/requests/%6B").member("status"), "succeeded")
	for _, path := range []string{
		"/requests/", "/requests/%2E", "/requests/%2e%2E", "/requests/k/", "/requests/k/k", "/requests/%FF", "/requests/%00", "/requests/" + strings.Repeat("a", 1025),
		"/tickets/", "/tickets/T-2", "/tickets/T-01", "/tickets/T-0", "/tickets/T--1", "/tickets/1", "/tickets/t-1", "/tickets/T-1/", "/tickets/%2E%2E",
		"/tickets/T-99999999999999999999", "/index.html", "/Tickets", "/agentic.json/", "/__state", "//tickets", "/requests",
	} {
		if g := s.get(path); g.code != 404 || g.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, g.code, g.body)
		}
	}
}

func TestMethods(t *testing.T) {
	s := start(t, Config{Inspect: true})
	for path, allow := range map[string]string{
		"/tickets": "POST", "/requests/k": "GET, HEAD", "/tickets/T-1": "GET, HEAD", "/agentic.json": "GET, HEAD",
		"/openapi.json": "GET, HEAD", "/": "GET, HEAD", "/health": "GET, HEAD", "/__state": "GET, HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			if strings.Contains(allow, method) {
				continue
			}
			g := s.do(method, path, "")
			equal(t, method+" "+path, g.code, 405)
			equal(t, method+" "+path+" Allow", g.header.Get("Allow"), allow)
		}
	}
	equal(t, "health", s.get("/health").body, `{"status":"ok"}`+"\n")
	head := s.do("HEAD", "/requests/k", "")
	equal(t, "HEAD", head.code, 200)
	equal(t, "HEAD body", head.body, "")
	equal(t, "state", s.get("/__state").body, `{"posts":7,"tickets":0,"requests":0,"reads":0}`+"\n")
}

func TestHostMustBeOurs(t *testing.T) {
	s := start(t, Config{})
	for host, code := range map[string]int{
		"localhost:1": 200, "127.0.0.1": 200, "[::1]:9": 200, "LOCALHOST": 200,
		"evil.example": 421, "127.0.0.1.evil.example:80": 421, "10.0.0.1": 421,
	} {
		equal(t, host, s.do("GET", "/health", "", "Host: "+host).code, code)
	}
}

func TestDocuments(t *testing.T) {
	s := start(t, Config{Retention: time.Hour})
	doc := s.get("/agentic.json")
	equal(t, "profile", doc.body, string(profile(s.origin, time.Hour, exampleTimeout)))
	equal(t, "openapi", s.get("/openapi.json").body, string(OpenAPI(s.origin)))
	plan, err := agentic.Load([]byte(doc.body), OpenAPI(s.origin), "create-ticket", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "retention", plan.Action.Retention, time.Hour)
	equal(t, "submit", plan.SubmitURL(), s.origin+"/tickets")
	status, err := plan.StatusURL("a/b")
	equal(t, "status", status, s.origin+"/requests/a%2Fb")
	equal(t, "error", err, nil)
	parsed, _ := agentic.ParseOpenAPI(OpenAPI(s.origin))
	_, problems := agentic.Bind(plan.Profile, "create-ticket", parsed)
	equal(t, "warnings", len(problems), 0)

	etag := doc.header.Get("ETag")
	equal(t, "strong", strings.HasPrefix(etag, `"`), true)
	for _, path := range []string{"/agentic.json", "/openapi.json"} {
		g := s.get(path)
		equal(t, "media type", g.header.Get("Content-Type"), "application/json")
		equal(t, "Cache-Control", g.header.Get("Cache-Control"), "no-cache")
		equal(t, "unchanged", s.do("GET", path, "", "If-None-Match: "+g.header.Get("ETag")).code, 304)
		equal(t, "changed", s.do("GET", path, "", `If-None-Match: "x"`).code, 200)
		head := s.do("HEAD", path, "")
		equal(t, "HEAD", []any{head.code, head.body, head.header.Get("ETag")}, []any{200, "", g.header.Get("ETag")})
	}
	equal(t, "origins differ in ETag", start(t, Config{}).get("/agentic.json").header.Get("ETag") != etag, true)
}

func TestWindowEndsInATombstone(t *testing.T) {
	var seconds atomic.Int64
	path := filepath.Join(t.TempDir(), "t.db")
	clock := func() time.Time { return time.Unix(1_000_000+seconds.Load(), 0) }
	s := start(t, Config{Path: path, Retention: time.Minute, Clock: clock})
	s.post("k", subject)
	s.post("refused", `{}`)
	seconds.Store(59)
	equal(t, "before", s.get("/requests/k").member("status"), "succeeded")
	equal(t, "repeat", s.post("k", subject).code, 200)
	seconds.Store(60)
	for range 2 { // the refused reuse must not start another window
		for key, body := range map[string]string{"k": subject, "refused": `{}`} {
			g := s.get("/requests/" + key)
			equal(t, "after", []string{g.member("status"), g.member("resource_id")}, []string{"unknown", "null"})
			wantProblem(t, s.post(key, body), 409, "window")
		}
		seconds.Store(1_000_000)
	}
	equal(t, "the ticket stays", s.get("/tickets/T-1").code, 200)
	s.wantState(State{Posts: 7, Tickets: 1, Requests: 2, Reads: 6})
}
