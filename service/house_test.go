package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/storetest"
)

type (
	tx      = *storetest.MemoryTx
	handler = service.HandlerFunc[tx]
	config  = service.Config[tx]
	act     = service.Action[tx]
)

const window = 24 * time.Hour

// documents describe actions with the paths /ID, /ID-requests/{requestId} and
// /ID/{ticketId}.
func documents(ids ...string) (profile, openapi []byte) {
	var actions, paths []string
	for _, id := range ids {
		actions = append(actions, fmt.Sprintf(`{"id":%[1]q,"description":"Create a ticket.","openapi":"/openapi.json",
			"submit":"submit-%[1]s","status":"status-%[1]s","verify":"verify-%[1]s",
			"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":86400},
			"bindings":{"statusRequestId":"requestId","verifyResourceId":"ticketId"},
			"evidence":{"resourceIdPointer":"/id","requestIdPointer":"/request_id","statePointer":"/status","successValues":["open"],
				"inputBindings":[{"inputPointer":"/subject","resourcePointer":"/subject"}]},
			"recovery":{"maxChecks":3,"checkDelayMs":1100,"timeoutMs":3000,"retry":"never-automatically"}}`, id))
		read := `{"get":{"operationId":%q,"parameters":[{"name":%q,"in":"path","required":true,"schema":{"type":"string"}}],"responses":{}}}`
		paths = append(paths, fmt.Sprintf(`"/%[1]s":{"post":{"operationId":"submit-%[1]s","parameters":[{"name":"Idempotency-Key","in":"header","required":true}],
			"requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["subject"],
				"properties":{"subject":{"type":"string","maxLength":20}}}}}},"responses":{}}}`, id),
			fmt.Sprintf(`"/%s-requests/{requestId}":`+read, id, "status-"+id, "requestId"),
			fmt.Sprintf(`"/%s/{ticketId}":`+read, id, "verify-"+id, "ticketId"))
	}
	return []byte(`{"agentic":"0.1.0-draft","origin":"https://support.example","actions":[` + strings.Join(actions, ",") + `]}`),
		[]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{` + strings.Join(paths, ",") + `}}`)
}

// house is a publisher with a tracker, whose principal is the name after
// "Bearer " in Authorization.
type house struct {
	t       *testing.T
	store   *storetest.MemoryStore
	tracker *service.Tracker[tx]
	mux     *http.ServeMux
	log     *strings.Builder

	mu     sync.Mutex
	events []service.Event
	clock  time.Time // zero is the real one
}

// open makes a house with the actions "ticket" and "invoice", both served by h.
// adjust changes the configuration; it may be nil.
func open(t *testing.T, h handler, adjust func(*config, *[]act)) *house {
	t.Helper()
	b := &house{t: t, log: &strings.Builder{}}
	b.store = storetest.NewMemoryStore(b.now)
	profile, openapi := documents("ticket", "invoice")
	cfg := config{Store: b.store, Principal: bearer, Profile: profile, OpenAPI: openapi, Observer: b.observe,
		Logger: slog.New(slog.NewTextHandler(&locked{b: b.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	actions := []act{{ID: "ticket", Handle: h}, {ID: "invoice", Handle: h}}
	if adjust != nil {
		adjust(&cfg, &actions)
	}
	var err error
	if b.tracker, err = service.New(cfg, actions...); err != nil {
		t.Fatal(err)
	}
	b.mux = http.NewServeMux()
	verify := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	b.mux.Handle("GET /ticket/{id}", verify)
	b.mux.Handle("GET /invoice/{id}", verify)
	if err := b.tracker.Register(b.mux); err != nil {
		t.Fatal(err)
	}
	return b
}

func bearer(r *http.Request) (string, error) {
	switch who := r.Header.Get("Authorization"); who {
	case "":
		return "", errors.New("secret reason")
	case "Basic":
		return "", fmt.Errorf("no: %w", &service.AuthError{Challenge: `Bearer realm="tickets"`, Detail: "Bring a token."})
	case "Down":
		return "", fmt.Errorf("%w: %w", service.ErrUnavailable, &url.Error{Op: "Get", URL: "https://id:secret@id.example/?token=secret", Err: errors.New("refused")})
	case "Panic":
		panic("secret in the panic of the principal function")
	default:
		return strings.TrimPrefix(who, "Bearer "), nil
	}
}

type locked struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (b *house) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clock.IsZero() {
		return time.Now()
	}
	return b.clock
}

func (b *house) set(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = t
}

func (b *house) observe(e service.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// took gives the names of the events since the last call.
func (b *house) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, e := range b.events {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", e), "service."), "Event"))
	}
	b.events = nil
	return strings.Join(names, " ")
}

// call is one request. Header names and values follow each other; an empty value
// takes the header away.
func (b *house) call(ctx context.Context, method, path, body string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer ann")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "key-1")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	return w
}

func (b *house) post(body string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.call(b.t.Context(), http.MethodPost, "/ticket", body, header...)
}

// status is the word and the resource of a status answer.
func (b *house) status(key string, header ...string) string {
	b.t.Helper()
	w := b.call(b.t.Context(), http.MethodGet, "/ticket-requests/"+key, "", header...)
	v := b.parse(w)
	id, _ := v.Member("request_id")
	if text, _ := id.Text(); w.Code != http.StatusOK || text != key {
		b.t.Errorf("status of %q: %d %s", key, w.Code, w.Body)
	}
	s, _ := v.Member("status")
	word, _ := s.Text()
	if resource, _ := v.Member("resource_id"); resource.Kind() == strictjson.String {
		text, _ := resource.Text()
		return word + " " + text
	}
	return word
}

func (b *house) parse(w *httptest.ResponseRecorder) strictjson.Value {
	b.t.Helper()
	v, err := strictjson.Parse(w.Body.Bytes())
	if err != nil {
		b.t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// problem reads a problem document, and checks what all of them have.
func (b *house) problem(w *httptest.ResponseRecorder) service.Problem {
	b.t.Helper()
	var p service.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		b.t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if p.Status != w.Code || p.Title == "" || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
		b.t.Errorf("not a whole problem document: %d %v %s", w.Code, w.Header(), w.Body)
	}
	return p
}

// want compares an answer: its code, its problem type or "", and the events.
func (b *house) want(w *httptest.ResponseRecorder, code int, problem, events string) {
	b.t.Helper()
	got := ""
	if w.Code >= 400 {
		got = b.problem(w).Type
	}
	if took := b.took(); w.Code != code || got != problem || took != events {
		b.t.Errorf("got %d %q and the events %q, want %d %q and %q\n%s", w.Code, got, took, code, problem, events, w.Body)
	}
}

const ticket = `{"subject":"printer"}`

// insert makes a row of the input, and is done.
func insert(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
	if err := tx.Insert(ctx, string(r.Input)); err != nil {
		return service.Result{}, err
	}
	return service.DoneWith("T-"+r.Key.Principal, []byte(`{"id":"T-1"}`)), nil
}
