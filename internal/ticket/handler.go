package ticket

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
)

// maxSubject is the longest subject, in code points (limits.md).
const maxSubject = 200

// Paths of the operations. What follows a prefix is one segment, percent-encoded.
const (
	pathSubmit   = "/tickets"
	pathStatus   = "/requests/"
	pathResource = "/tickets/"
)

// ticketAnswer is the answer of getTicket, and of createTicket once the ticket
// exists.
type ticketAnswer struct {
	ID        string `json:"id"`
	RequestID string `json:"request_id"`
	Subject   string `json:"subject"`
	Status    string `json:"status"`
}

// newTicket is the answer that tells of a ticket when it is made.
func newTicket(id int64, k service.Key, subject string) []byte {
	return encode(ticketAnswer{ID: ticketID(id), RequestID: k.RequestID, Subject: subject, Status: statusOpen})
}

// decision is what the business makes of a new submission.
type decision struct {
	state   service.State // Done, Refused or Pending
	subject string        // with Done
	reason  string        // with Refused, for people, without the input
}

// problem is how a refusal is told.
func (d decision) problem() service.Problem {
	return service.Problem{Type: service.ProblemRefused, Title: "Refused", Status: http.StatusUnprocessableEntity, Detail: d.reason}
}

// decide is the business of the ticket service: exactly {"subject": string of 1
// to 200 code points} makes a ticket, any other object is a definite refusal (D21).
func decide(input strictjson.Value) decision {
	refuse := func(reason string) decision { return decision{state: service.Refused, reason: reason} }
	v, ok := input.Member("subject")
	if !ok {
		return refuse("The member /subject is missing.")
	}
	if input.Len() != 1 {
		return refuse("The body must have the member /subject and no other.")
	}
	subject, ok := v.Text()
	if !ok {
		return refuse("The member /subject must be a string, not " + v.Kind().String() + ".")
	}
	if n := utf8.RuneCountInString(subject); n < 1 || n > maxSubject {
		return refuse("The member /subject must have 1 to " + strconv.Itoa(maxSubject) + " code points, not " + strconv.Itoa(n) + ".")
	}
	return decision{state: service.Done, subject: subject}
}

// core is the service of limits.md, without faults.
type core struct {
	submit, status, profile, openapi http.Handler // of package service
	page                             http.Handler

	principal func(*http.Request) (string, error)
	desk      reads
	log       *slog.Logger
	host      string                               // of the origin, with its port
	inspect   func(context.Context) (State, error) // nil without Inspect

	// complete makes the ticket of a pending request, both together; it does
	// nothing when the request is not pending.
	complete func(ctx context.Context, k service.Key, subject string) error
}

// ServeHTTP routes on the path as it was sent: a mux would fold it, and an ID may
// hold "%2F".
func (c *core) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := c.route(r.URL.EscapedPath()); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	refuse(w, http.StatusNotFound, "Nothing is here.")
}

// route says who serves a path, or nil. Each handler refuses other methods itself.
func (c *core) route(path string) http.Handler {
	switch {
	case path == pathSubmit:
		return c.submit
	case strings.HasPrefix(path, pathStatus):
		return c.status
	case strings.HasPrefix(path, pathResource):
		return get(c.resource)
	case path == "/agentic.json":
		return c.profile
	case path == "/openapi.json":
		return c.openapi
	case path == "/health":
		return get(c.health)
	case path == "/__state" && c.inspect != nil:
		return get(c.state)
	case path == "/":
		return get(c.page.ServeHTTP)
	}
	return nil
}

// resource is getTicket. A ticket of somebody else is not there.
func (c *core) resource(w http.ResponseWriter, r *http.Request) {
	owner, err := c.principal(r)
	if err != nil {
		service.Unauthenticated(w, err)
		return
	}
	var t row
	found := false
	id, err := segment(r, pathResource)
	if n, ok := ticketNumber(id); ok && err == nil {
		if t, found, err = c.desk.find(r.Context(), owner, n); err != nil {
			c.broken(w, r, "ticket", err)
			return
		}
	}
	if !found {
		refuse(w, http.StatusNotFound, "There is no such ticket.")
		return
	}
	answer(w, ticketAnswer{ID: id, RequestID: t.requestID, Subject: t.subject, Status: t.status})
}

func (c *core) health(w http.ResponseWriter, r *http.Request) {
	if err := c.desk.ping(r.Context()); err != nil {
		c.broken(w, r, "health", err)
		return
	}
	answer(w, map[string]string{"status": "ok"})
}

func (c *core) state(w http.ResponseWriter, r *http.Request) {
	s, err := c.inspect(r.Context())
	if err != nil {
		c.broken(w, r, "state", err)
		return
	}
	answer(w, s)
}

// broken answers an error of the database to a read, which may be tried again.
func (c *core) broken(w http.ResponseWriter, r *http.Request, operation string, err error) {
	if r.Context().Err() == nil {
		c.log.LogAttrs(r.Context(), slog.LevelError, "ticket service: database", slog.String("operation", operation), slog.Any("error", err))
	}
	w.Header().Set("Retry-After", "5")
	write(w, http.StatusServiceUnavailable, mediaProblem, service.Problem{
		Type: service.ProblemUnavailable, Title: "Temporarily unavailable", Status: http.StatusServiceUnavailable, Detail: "The database does not answer.",
	}.Body())
}

// guardHost refuses a Host that is neither the origin's nor a loopback name: a
// page of a rebound name must not reach a service on this machine.
func (c *core) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Host, c.host) || isLoopback(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, http.StatusMisdirectedRequest, "The Host is not that of this service.")
	})
}

func ticketID(n int64) string { return "T-" + strconv.FormatInt(n, 10) }

// ticketNumber is the inverse of ticketID, for its own spellings only.
func ticketNumber(id string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "T-"), 10, 64)
	return n, err == nil && n > 0 && ticketID(n) == id
}

// get refuses every method but GET and HEAD.
func get(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "The method must be GET or HEAD.")
			return
		}
		h(w, r)
	})
}

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

func answer(w http.ResponseWriter, v any) { write(w, http.StatusOK, mediaJSON, encode(v)) }

// refuse answers with a problem of no type of its own (RFC 9457, about:blank).
func refuse(w http.ResponseWriter, code int, detail string) {
	write(w, code, mediaProblem, service.Problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: detail}.Body())
}

// encode writes one JSON value and a line feed. Structs of strings and numbers
// always marshal.
func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return append(b, '\n')
}

// write sends an answer that nobody may keep. A peer that has gone needs none.
func write(w http.ResponseWriter, code int, media string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
