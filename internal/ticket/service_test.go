package ticket

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/google/go-cmp/cmp"
)

// server is a Service behind a real loopback listener.
type server struct {
	t      testing.TB
	svc    *Service
	origin string
	client *http.Client
}

func start(t testing.TB, cfg Config) *server {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	cfg.Origin = ts.URL
	svc, err := Open(t.Context(), cfg)
	if err != nil {
		ts.Close()
		t.Fatal(err)
	}
	h := svc.Handler()
	handler.Store(&h)
	t.Cleanup(func() {
		ts.Close()
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{
		Timeout:       20 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return &server{t: t, svc: svc, origin: ts.URL, client: client}
}

// got is an answer as it was seen on the wire.
type got struct {
	code   int
	header http.Header
	body   string
}

// member is a string member of the body, "null" for null and "" for nothing.
func (g got) member(name string) string {
	v, err := strictjson.Parse([]byte(g.body))
	if err != nil {
		return ""
	}
	m, _ := v.Member(name)
	if m.Kind() == strictjson.Null {
		return "null"
	}
	s, _ := m.Text()
	return s
}

// try sends one request; headers are "Name: value" lines, and "Name:" removes one.
func (s *server) try(method, path, body string, headers ...string) (got, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, s.origin+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.GetBody = nil // a POST with a key would be sent again by net/http
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		switch value = strings.TrimSpace(value); {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Add(name, value)
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return got{res.StatusCode, res.Header, string(b)}, err
}

func (s *server) do(method, path, body string, headers ...string) got {
	s.t.Helper()
	g, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return g
}

func (s *server) post(key, body string) got {
	s.t.Helper()
	return s.do(http.MethodPost, "/tickets", body, "Idempotency-Key: "+key)
}

func (s *server) get(path string) got {
	s.t.Helper()
	return s.do(http.MethodGet, path, "")
}

func (s *server) wantState(want State) {
	s.t.Helper()
	have, err := s.svc.State(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	if d := cmp.Diff(want, have); d != "" {
		s.t.Errorf("state (-want +got):\n%s", d)
	}
}

func equal(t testing.TB, what string, have, want any) {
	t.Helper()
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// onBoth runs a test on each kind of database.
func onBoth(t *testing.T, f func(*testing.T, Config)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, Config{}) })
	t.Run("postgres", func(t *testing.T) { f(t, Config{Postgres: pgtest.Shared(t).NewDatabase(t)}) })
}

const subject = `{"subject":"Printer on fire"}`

func TestLifeOfATicket(t *testing.T) { onBoth(t, testLife) }

func testLife(t *testing.T, cfg Config) {
	s := start(t, cfg)
	first := s.post("req-00000001", subject)
	equal(t, "code", first.code, http.StatusCreated)
	equal(t, "body", first.body, `{"id":"T-1","request_id":"req-00000001","subject":"Printer on fire","status":"open"}`+"\n")
	equal(t, "Location", first.header.Get("Location"), "/tickets/T-1")
	equal(t, "Cache-Control", first.header.Get("Cache-Control"), "no-store")

	repeat := s.post("req-00000001", " {\n\"subject\" : \"\\u0050rinter on fire\" }\n")
	equal(t, "repeat code", repeat.code, http.StatusOK)
	equal(t, "repeat body", repeat.body, first.body)
	equal(t, "repeat Location", repeat.header.Get("Location"), "/tickets/T-1")
	equal(t, "replays", []string{first.header.Get("Idempotency-Replayed"), repeat.header.Get("Idempotency-Replayed")}, []string{"", "true"})

	status := s.get("/requests/req-00000001")
	equal(t, "status code", status.code, http.StatusOK)
	equal(t, "status media type", status.header.Get("Content-Type"), "application/json")
	equal(t, "status body", status.body, `{"request_id":"req-00000001","status":"succeeded","resource_id":"T-1"}`+"\n")
	ticket := s.get("/tickets/T-1")
	equal(t, "ticket code", ticket.code, http.StatusOK)
	equal(t, "ticket body", ticket.body, first.body)

	other := s.post("req-00000001", `{"subject":"Printer on Fire"}`)
	equal(t, "other input", other.code, http.StatusConflict)
	equal(t, "problem", other.header.Get("Content-Type"), "application/problem+json")
	equal(t, "a key of another case", s.post("REQ-00000001", subject).member("id"), "T-2")
	s.wantState(State{Posts: 4, Tickets: 2, Requests: 2, Reads: 2})
}

func TestConcurrentRepeatsMakeOneTicket(t *testing.T) { onBoth(t, testConcurrentRepeats) }

func testConcurrentRepeats(t *testing.T, cfg Config) {
	s := start(t, cfg)
	var wg sync.WaitGroup
	var created, repeated atomic.Int64
	for range 64 {
		wg.Go(func() {
			g, err := s.try(http.MethodPost, "/tickets", subject, "Idempotency-Key: one")
			switch {
			case err != nil || g.member("id") != "T-1":
				t.Errorf("%v %+v", err, g)
			case g.code == http.StatusCreated:
				created.Add(1)
			case g.code == http.StatusOK:
				repeated.Add(1)
			}
		})
	}
	wg.Wait()
	equal(t, "created", created.Load(), int64(1))
	equal(t, "repeated", repeated.Load(), int64(63))
	s.wantState(State{Posts: 64, Tickets: 1, Requests: 1})
}

func TestRestartKeepsEverything(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		if cfg.Postgres == "" {
			cfg.Path = filepath.Join(t.TempDir(), "a ?#%25 name.db")
		}
		t.Run("before", func(t *testing.T) {
			equal(t, "code", start(t, cfg).post("kept", subject).code, http.StatusCreated)
		})
		s := start(t, cfg)
		equal(t, "status", s.get("/requests/kept").member("status"), "succeeded")
		equal(t, "subject", s.get("/tickets/T-1").member("subject"), "Printer on fire")
		equal(t, "repeat", s.post("kept", subject).code, http.StatusOK)
		equal(t, "next ticket", s.post("new", subject).member("id"), "T-2")
		s.wantState(State{Posts: 2, Tickets: 2, Requests: 2, Reads: 2})
	})
}

// Any text that JSON can hold is a subject, in both databases.
func TestOddSubjects(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		s := start(t, cfg)
		for i, text := range []string{"a\x00b", "\x00", "😀\u2028", `"\`, "'; DROP TABLE ticket; --", "<b>&", " trailing "} {
			body, err := json.Marshal(map[string]string{"subject": text})
			equal(t, "error", err, nil)
			g := s.post(fmt.Sprint("k", i), string(body))
			equal(t, text, []any{g.code, g.member("subject")}, []any{201, text})
			equal(t, text, s.get(g.header.Get("Location")).member("subject"), text)
			equal(t, text, s.post(fmt.Sprint("k", i), string(body)).body, g.body)
		}
	})
}
