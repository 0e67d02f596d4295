package servicekit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/internal/ticket"
)

// fake is a service over a map that keeps every promise but those of its flaw.
type fake struct {
	flaw   string
	origin string

	mu      sync.Mutex
	records map[string]*record
	tickets []sold

	requests atomic.Int64
}

type record struct {
	fingerprint string
	word        string // succeeded, failed, or "" while the first one runs
	id          string
}

type sold struct{ owner, request, subject string }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (f *fake) has(flaw string) bool { return f.flaw == flaw }

// startFake gives the configuration that checks a fake.
func startFake(t *testing.T, flaw string) servicekit.Config {
	t.Helper()
	return newFake(flaw).start(t, httptest.NewServer)
}

func newFake(flaw string) *fake { return &fake{flaw: flaw, records: map[string]*record{}} }

func (f *fake) start(t *testing.T, serve func(http.Handler) *httptest.Server) servicekit.Config {
	t.Helper()
	ts := serve(f)
	t.Cleanup(ts.Close)
	f.origin = ts.URL
	c := desk{origin: f.origin}.config()
	c.Profile, c.ProfileURL = f.profile(), f.origin+"/agentic.json"
	c.CountURL, c.CountPointer = "/count", ""
	c.Settle = 2 * time.Second
	c.Restart = func(context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.has("forgets on restart") {
			clear(f.records)
		}
		return nil
	}
	return c
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	path := r.URL.EscapedPath()
	switch {
	case f.has("drips"):
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
		return
	case path == "/moved.json" && f.has("moved profile"):
		f.document(w, r, f.profile())
		return
	case path == "/agentic.json":
		f.document(w, r, f.profile())
		return
	case path == "/openapi.json":
		f.document(w, r, ticket.OpenAPI(f.origin))
		return
	case path == "/count":
		f.mu.Lock()
		defer f.mu.Unlock()
		reply(w, 200, "application/json", strconv.Itoa(len(f.tickets)))
		return
	}
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if who == "" && !f.has("anonymous writes") {
		problem(w, 401)
		return
	}
	switch {
	case path == "/tickets" && (r.Method == "POST" || f.has("any method submits")):
		f.submit(w, r, who)
	case strings.HasPrefix(path, "/requests/"):
		f.status(w, r, who, strings.TrimPrefix(path, "/requests/"))
	case strings.HasPrefix(path, "/tickets/"):
		f.resource(w, who, strings.TrimPrefix(path, "/tickets/"))
	default:
		problem(w, 404)
	}
}

func (f *fake) profile() []byte {
	p := ticket.Profile(f.origin)
	if f.has("slow reads") {
		p = bytes.Replace(p, []byte(`"timeoutMs": 3000`), []byte(`"timeoutMs": 100`), 1)
	}
	return p
}

func (f *fake) document(w http.ResponseWriter, r *http.Request, doc []byte) {
	switch {
	case f.has("documents redirect") && r.URL.RawQuery == "":
		http.Redirect(w, r, r.URL.Path+"?v=1", http.StatusFound)
		return
	case f.has("a page at /agentic.json") && r.URL.Path == "/agentic.json":
		reply(w, 200, "text/html", "<!doctype html>")
		return
	case f.has("another origin's profile") && r.URL.Path == "/agentic.json":
		doc = ticket.Profile("https://support.example")
	case f.has("broken profile") && r.URL.Path == "/agentic.json":
		problem(w, 500)
		return
	case f.has("a large document") && r.URL.Path == "/openapi.json":
		doc = append(bytes.TrimSpace(doc), bytes.Repeat([]byte(" "), 300<<10)...)
	case f.has("another profile") && r.URL.Path == "/agentic.json":
		doc = bytes.Replace(doc, []byte("Create a support ticket"), []byte("Create any ticket"), 1)
	case f.has("duplicate members"):
		doc = append([]byte(`{"x-y":1,"x-y":2,`), bytes.TrimSpace(doc)[1:]...)
	}
	if !f.has("no caching") {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", "no-cache")
		if r.Header.Get("If-None-Match") == `"1"` && !f.has("always 200") {
			w.WriteHeader(304)
			return
		}
	}
	media := "application/json"
	if f.has("documents as text") {
		media = "text/plain"
	}
	reply(w, 200, media, string(doc))
}

// scope is the place of a key among all records.
func (f *fake) scope(who, key string) string {
	if f.has("keyed without principal") {
		who = ""
	}
	if f.has("folds case") {
		key = strings.ToLower(key)
	}
	return who + " " + key
}

// key is the request ID of a submission, and whether it can be one.
func (f *fake) key(r *http.Request) (string, bool) {
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) == 0 && f.has("makes keys"):
		return "made-" + strconv.FormatInt(time.Now().UnixNano(), 10), true
	case len(keys) == 0, len(keys) > 1 && !f.has("takes the first key"):
		return "", false
	}
	key := keys[0]
	if key == "" {
		return key, f.has("takes the empty key")
	}
	if f.has("takes UUIDs only") {
		return key, uuid.MatchString(key)
	}
	bad := len(key) > 128 || key == "." || key == ".." || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
	return key, !bad || f.has("takes any key")
}

func (f *fake) submit(w http.ResponseWriter, r *http.Request, who string) {
	key, ok := f.key(r)
	if !ok {
		problem(w, 400)
		return
	}
	loose := f.has("any method submits") && r.Method != "POST"
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "application/json" && !f.has("takes any media type") && !loose {
		problem(w, 415)
		return
	}
	limit := int64(16 << 10)
	if f.has("takes any size") {
		limit = 64 << 20
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil && !f.has("acts on half a body") {
		problem(w, 413)
		return
	}
	input, err := strictjson.Parse(body)
	subject := "none" // of a body without one that the flaw takes
	switch {
	case err == nil && input.Kind() == strictjson.Object:
		v, _ := input.Member("subject")
		subject, _ = v.Text()
	case !f.has("takes any body") && !f.has("acts on half a body") && !loose:
		problem(w, 400)
		return
	}
	fingerprint := string(body)
	if err == nil && !f.has("fingerprints bytes") {
		fingerprint = input.Digest()
	}
	f.once(w, r, who, key, fingerprint, subject)
}

// once is section 5 of the draft, with the flaws against it.
func (f *fake) once(w http.ResponseWriter, r *http.Request, who, key, fingerprint, subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rec, known := f.records[f.scope(who, key)]
	if f.has("runs twice under concurrency") && !known {
		f.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
		f.mu.Lock()
	}
	if known && rec.fingerprint != fingerprint {
		switch {
		case f.has("accepts other input"):
		case f.has("rejects other input without 409"):
			problem(w, 422)
			return
		case f.has("overwrites with other input"):
			f.tickets[number(rec.id)-1].subject = subject
			problem(w, 409)
			return
		default:
			problem(w, 409)
			return
		}
	}
	if known && !(f.has("second resource on repeat") && rec.word == "succeeded") {
		f.repeat(w, key, rec)
		return
	}
	if f.has("says failed when the client is gone") {
		time.Sleep(200 * time.Millisecond)
	}
	if subject == "" && f.has("refuses without a record") {
		problem(w, 422)
		return
	}
	if subject == "" {
		if f.has("makes what it refuses") {
			f.tickets = append(f.tickets, sold{who, key, subject})
		}
		rec = &record{fingerprint: fingerprint, word: "failed"}
		f.records[f.scope(who, key)] = rec
		problem(w, 422)
		return
	}
	if f.has("409 while the first one runs") || f.has("503 while the first one runs") {
		rec = &record{fingerprint: fingerprint}
		f.records[f.scope(who, key)] = rec
		f.mu.Unlock()
		time.Sleep(150 * time.Millisecond)
		f.mu.Lock()
	}
	if f.has("asynchronous") {
		rec = &record{fingerprint: fingerprint, word: "pending"}
		f.records[f.scope(who, key)] = rec
		time.AfterFunc(150*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.tickets = append(f.tickets, sold{who, key, subject})
			*rec = record{fingerprint, "succeeded", fmt.Sprintf("T-%d", len(f.tickets))}
		})
		reply(w, 202, "text/plain", "")
		return
	}
	f.tickets = append(f.tickets, sold{who, key, subject})
	made := record{fingerprint, "succeeded", fmt.Sprintf("T-%d", len(f.tickets))}
	switch {
	case f.has("acknowledges before it tracks"):
		time.AfterFunc(400*time.Millisecond, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.records[f.scope(who, key)] = &made
		})
	case f.has("says failed when the client is gone") && r.Context().Err() != nil:
		f.records[f.scope(who, key)] = &record{fingerprint: fingerprint, word: "failed"}
	case rec != nil && !known:
		*rec = made
	default:
		f.records[f.scope(who, key)] = &made
	}
	f.answer(w, 201, key, &made)
}

func (f *fake) repeat(w http.ResponseWriter, key string, rec *record) {
	switch rec.word {
	case "succeeded":
		f.answer(w, 200, key, rec)
	case "failed":
		problem(w, 422)
	case "pending":
		reply(w, 202, "text/plain", "")
	case "":
		code := 409
		if f.has("503 while the first one runs") {
			code = 503
		}
		problem(w, code)
	}
}

func (f *fake) answer(w http.ResponseWriter, code int, key string, rec *record) {
	switch {
	case f.has("204 without a body"):
		w.WriteHeader(204)
		return
	case f.has("operation IDs in answers"):
		reply(w, 202, "application/json", fmt.Sprintf(`{"id":"op-%d"}`, time.Now().UnixNano()))
		return
	}
	reply(w, code, "application/json", fmt.Sprintf(`{"id":%q,"request_id":%s}`, rec.id, strictjson.Quote(key)))
}

func (f *fake) status(w http.ResponseWriter, r *http.Request, who, segment string) {
	if r.Method != "GET" && r.Method != "HEAD" && !(f.has("status can be deleted") && r.Method == "DELETE") {
		problem(w, 405)
		return
	}
	key, _ := url.PathUnescape(segment)
	if f.has("decodes twice") {
		key, _ = url.PathUnescape(key)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rec, known := f.records[f.scope(who, key)]
	if r.Method == "DELETE" {
		delete(f.records, f.scope(who, key))
	}
	for place, foreign := range f.records {
		_, name, _ := strings.Cut(place, " ")
		if known || name != key {
			continue
		}
		if f.has("leaks foreign status") {
			rec, known = foreign, true
		}
		if f.has("tells of foreign keys") {
			problem(w, 403)
			return
		}
	}
	word, id := "unknown", "null"
	switch {
	case known && rec.word != "":
		word = rec.word
		if word == "succeeded" {
			id = strconv.Quote(rec.id)
		}
	case f.has("failed for unknown keys"):
		word = "failed"
	case f.has("404 for unknown keys"), f.has("refuses without a record"):
		problem(w, 404)
		return
	case f.has("500 for unknown keys"):
		problem(w, 500)
		return
	}
	switch {
	case f.has("status streams for ever"):
		w.Header().Set("Content-Type", "application/json")
		for blanks := strings.Repeat(" ", 1<<16); ; {
			if _, err := io.WriteString(w, blanks); err != nil {
				return
			}
		}
	case f.has("status redirects"):
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return
	case f.has("status of another request"):
		key = "another"
	}
	pad := ""
	if f.has("oversized answers") {
		pad = strings.Repeat(" ", 70<<10)
	}
	if f.has("slow reads") && len(f.tickets) < 4 {
		time.Sleep(150 * time.Millisecond)
	}
	reply(w, 200, "application/json", fmt.Sprintf(`{"request_id":%s,"status":%q,"resource_id":%s}`, strictjson.Quote(key), word, id)+pad)
}

func (f *fake) resource(w http.ResponseWriter, who, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := number(id)
	if n < 1 || n > len(f.tickets) || f.tickets[n-1].owner != who && !f.has("shows foreign resources") {
		problem(w, 404)
		return
	}
	s := f.tickets[n-1]
	if f.has("evidence missing") {
		reply(w, 200, "application/json", fmt.Sprintf(`{"id":%q,"subject":%s,"status":"open"}`, id, strictjson.Quote(s.subject)))
		return
	}
	reply(w, 200, "application/json", fmt.Sprintf(`{"id":%q,"request_id":%s,"subject":%s,"status":"open"}`, id, strictjson.Quote(s.request), strictjson.Quote(s.subject)))
}

func number(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "T-"))
	return n
}

func reply(w http.ResponseWriter, code int, media, body string) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

func problem(w http.ResponseWriter, code int) {
	reply(w, code, "application/problem+json", fmt.Sprintf(`{"title":%q,"status":%d}`, http.StatusText(code), code))
}
