//go:build unix

package hosts

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// kind is how the service treats a request, which its ID decides.
type kind string

const (
	plain   kind = "plain"   // makes it and says so
	lost    kind = "lost"    // makes it, and the connection dies without an answer
	late    kind = "late"    // is pending for a while, then makes it
	sick    kind = "sick"    // makes it, and cannot tell for a while
	refused kind = "refused" // definitely refuses
	wrong   kind = "wrong"   // shows a resource with another input
	forgets kind = "forgets" // makes it, and knows nothing of it
)

// kinds has each kind as often as it comes up in twenty requests.
var kinds = []kind{plain, plain, plain, plain, plain, plain, plain, plain, plain, plain, lost, lost, lost, late, late, sick, sick, refused, wrong, forgets}

func kindOf(id string) kind {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return kinds[h.Sum32()%uint32(len(kinds))]
}

// submission is what arrived for one request ID.
type submission struct {
	posts   int
	subject string
	at      time.Time
}

// service is a service as the draft has it, in memory, which keeps count: it
// forgives nothing. while is how long it is late or sick.
type service struct {
	origin string
	while  time.Duration

	mu   sync.Mutex
	seen map[string]*submission
}

func serve(t testing.TB, while time.Duration) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{origin: "http://" + ln.Addr().String(), while: while, seen: map[string]*submission{}}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

func resourceID(id string) string { return "T-" + id }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/tickets":
		s.submit(w, r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/requests/"):
		s.status(w, strings.TrimPrefix(r.URL.Path, "/requests/"))
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/tickets/T-"):
		s.resource(w, strings.TrimPrefix(r.URL.Path, "/tickets/T-"))
	default:
		http.NotFound(w, r)
	}
}

func (s *service) submit(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(r.Body)
	var input struct{ Subject string }
	if err == nil {
		err = json.Unmarshal(body, &input)
	}
	if err != nil {
		return // it did not arrive: the connection ended before the body did
	}
	s.mu.Lock()
	e := s.seen[id]
	if e == nil {
		e = &submission{subject: input.Subject, at: time.Now()}
		s.seen[id] = e
	}
	e.posts++
	s.mu.Unlock()
	switch kindOf(id) {
	case lost:
		panic(http.ErrAbortHandler)
	case refused:
		answer(w, http.StatusUnprocessableEntity, map[string]any{"title": "refused"})
	case late:
		answer(w, http.StatusAccepted, map[string]any{})
	default:
		answer(w, http.StatusCreated, map[string]any{"id": resourceID(id)})
	}
}

// arrived is a copy of what arrived for an ID.
func (s *service) arrived(id string) (submission, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.seen[id]; e != nil {
		return *e, true
	}
	return submission{}, false
}

func (s *service) status(w http.ResponseWriter, id string) {
	say := func(status string, resource, reason any) {
		answer(w, http.StatusOK, map[string]any{"request_id": id, "status": status, "resource_id": resource, "reason": reason})
	}
	e, ok := s.arrived(id)
	early := time.Since(e.at) < s.while
	switch k := kindOf(id); {
	case !ok, k == forgets:
		say("unknown", nil, "Nothing is known of this request.")
	case k == sick && early:
		answer(w, http.StatusServiceUnavailable, map[string]any{"title": "sick"})
	case k == late && early:
		say("pending", nil, "It waits.")
	case k == refused:
		say("failed", nil, "It was refused.")
	default:
		say("succeeded", resourceID(id), "It was made.")
	}
}

func (s *service) resource(w http.ResponseWriter, id string) {
	e, ok := s.arrived(id)
	if !ok {
		answer(w, http.StatusNotFound, map[string]any{"title": "not found"})
		return
	}
	subject := e.subject
	if kindOf(id) == wrong {
		subject = "another subject"
	}
	answer(w, http.StatusOK, map[string]any{"id": resourceID(id), "request_id": id, "subject": subject, "status": "open"})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // whoever has gone does not need it
}

func requestID(n int) string { return fmt.Sprintf("fleet-%06d", n) }

func inputOf(id string) string { return fmt.Sprintf(`{"subject":"subject of %s"}`, id) }
