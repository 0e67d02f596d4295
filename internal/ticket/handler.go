package ticket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// Limits of an input and a key (section 4, D19, limits.md).
const (
	maxSubject = 200 // code points
	maxKey     = 128
)

// The words of a status answer (section 4).
const (
	statusSucceeded = "succeeded"
	statusFailed    = "failed"
	statusPending   = "pending"
	statusUnknown   = "unknown"
)

// Path prefixes of the two reads. What follows is one segment, percent-encoded.
const (
	pathSubmit   = "/tickets"
	pathStatus   = "/requests/"
	pathResource = "/tickets/"
)

// statusAnswer is the answer of getRequestStatus.
type statusAnswer struct {
	RequestID  string  `json:"request_id"`
	Status     string  `json:"status"`
	ResourceID *string `json:"resource_id"`
}

// ticketAnswer is the answer of getTicket, and of createTicket once the ticket
// exists.
type ticketAnswer struct {
	ID        string `json:"id"`
	RequestID string `json:"request_id"`
	Subject   string `json:"subject"`
	Status    string `json:"status"`
}

// problem is an RFC 9457 problem document of the type about:blank.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// decision is what the business makes of a new submission. It is a pure function
// of key and input; only store.submit makes it true.
type decision struct {
	status  string // succeeded, failed or pending
	subject string // with succeeded
	reason  string // with failed, for people, without the input
}

// decide is the business of the ticket service: exactly {"subject": string of 1
// to 200 code points} makes a ticket, anything else is a definite refusal (D21).
func decide(_ string, input strictjson.Value) decision {
	refuse := func(reason string) decision { return decision{status: statusFailed, reason: reason} }
	if input.Kind() != strictjson.Object {
		return refuse("the body must be an object, not " + input.Kind().String())
	}
	v, ok := input.Member("subject")
	if !ok {
		return refuse("the member /subject is missing")
	}
	if input.Len() != 1 {
		return refuse("the body must have the member /subject and no other")
	}
	subject, ok := v.Text()
	if !ok {
		return refuse("/subject must be a string, not " + v.Kind().String())
	}
	if n := utf8.RuneCountInString(subject); n < 1 || n > maxSubject {
		return refuse("/subject must have 1 to " + strconv.Itoa(maxSubject) + " code points, not " + strconv.Itoa(n))
	}
	return decision{status: statusSucceeded, subject: subject}
}

// core is the service of limits.md, without faults.
type core struct {
	store     *store
	decide    func(key string, input strictjson.Value) decision
	clock     func() time.Time
	retention time.Duration
	log       *slog.Logger
	host      string // of the origin, with its port
	profile   document
	openapi   document
	inspect   func(context.Context) (State, error) // nil without Inspect
}

// ServeHTTP routes on the path as it was sent: a mux would decode and fold it,
// and an ID may hold "%2F".
func (c *core) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.EscapedPath(); {
	case path == pathSubmit:
		if allow(w, r, http.MethodPost) {
			c.submit(w, r)
		}
	case isStatus(r):
		if allow(w, r, http.MethodGet) {
			c.status(w, r)
		}
	case isResource(r):
		if allow(w, r, http.MethodGet) {
			c.resource(w, r)
		}
	case path == "/agentic.json":
		if allow(w, r, http.MethodGet) {
			c.profile.serve(w, r)
		}
	case path == "/openapi.json":
		if allow(w, r, http.MethodGet) {
			c.openapi.serve(w, r)
		}
	case path == "/health":
		if allow(w, r, http.MethodGet) {
			c.health(w, r)
		}
	case path == "/__state" && c.inspect != nil:
		if allow(w, r, http.MethodGet) {
			c.state(w, r)
		}
	default:
		refuse(w, http.StatusNotFound, "nothing is here")
	}
}

// submit is createTicket.
func (c *core) submit(w http.ResponseWriter, r *http.Request) {
	key, ok := requestKey(r.Header)
	if !ok {
		refuse(w, http.StatusBadRequest, `the header Idempotency-Key must be given once, with 1 to 128 visible ASCII characters, and not be "." or ".."`)
		return
	}
	if !isPlainJSON(r.Header) {
		w.Header().Set("Accept", "application/json")
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json in UTF-8 without a content coding")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, agentic.MaxInputBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refuse(w, http.StatusRequestEntityTooLarge, "the body is longer than 16384 bytes")
			return
		}
		refuse(w, http.StatusBadRequest, "the body ended too early")
		return
	}
	input, err := strictjson.Parse(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not strict JSON: "+err.Error())
		return
	}
	digest, now := input.Digest(), c.clock()
	rec, first, err := c.store.submit(r.Context(), key, digest, c.decide(key, input), now)
	switch {
	case err != nil:
		c.broken(w, r, "submit", err)
	case !first && c.expired(rec, now):
		refuse(w, http.StatusConflict, "the tracking window of this Idempotency-Key is over; the key is never used again")
	case rec.digest != digest:
		refuse(w, http.StatusConflict, "this Idempotency-Key is bound to another input")
	case rec.status == statusFailed:
		refuse(w, http.StatusUnprocessableEntity, rec.reason)
	case rec.status == statusPending:
		w.Header().Set("Location", pathStatus+url.PathEscape(key))
		answer(w, http.StatusAccepted, statusAnswer{RequestID: key, Status: statusPending})
	default:
		id := ticketID(rec.ticket)
		// The digest is that of the original input, so its subject is this one.
		subject, _ := input.Member("subject")
		text, _ := subject.Text()
		w.Header().Set("Location", pathResource+id)
		code := http.StatusOK
		if first {
			code = http.StatusCreated
		}
		answer(w, code, ticketAnswer{ID: id, RequestID: key, Subject: text, Status: "open"})
	}
}

// status is getRequestStatus. A key that was never seen is unknown (D24), like one
// whose window is over (D23).
func (c *core) status(w http.ResponseWriter, r *http.Request) {
	key, ok := segment(r, pathStatus)
	if !ok {
		refuse(w, http.StatusNotFound, "the path names no request")
		return
	}
	rec, found, err := c.store.request(r.Context(), key)
	if err != nil {
		c.broken(w, r, "status", err)
		return
	}
	a := statusAnswer{RequestID: key, Status: statusUnknown}
	if found && !c.expired(rec, c.clock()) {
		a.Status = rec.status
		if rec.status == statusSucceeded {
			id := ticketID(rec.ticket)
			a.ResourceID = &id
		}
	}
	answer(w, http.StatusOK, a)
}

// resource is getTicket.
func (c *core) resource(w http.ResponseWriter, r *http.Request) {
	id, _ := segment(r, pathResource)
	n, ok := ticketNumber(id)
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such ticket")
		return
	}
	t, found, err := c.store.find(r.Context(), n)
	switch {
	case err != nil:
		c.broken(w, r, "ticket", err)
	case !found:
		refuse(w, http.StatusNotFound, "there is no such ticket")
	default:
		answer(w, http.StatusOK, ticketAnswer{ID: id, RequestID: t.requestID, Subject: t.subject, Status: t.status})
	}
}

func (c *core) health(w http.ResponseWriter, r *http.Request) {
	if err := c.store.ping(r.Context()); err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelError, "ticket service: database", slog.String("operation", "health"), slog.Any("error", err))
		refuse(w, http.StatusServiceUnavailable, "the database does not answer")
		return
	}
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (c *core) state(w http.ResponseWriter, r *http.Request) {
	s, err := c.inspect(r.Context())
	if err != nil {
		c.broken(w, r, "state", err)
		return
	}
	answer(w, http.StatusOK, s)
}

func (c *core) expired(rec record, now time.Time) bool {
	return now.Sub(rec.created) >= c.retention
}

// broken answers an error of the database: nothing is known to be recorded, so
// the status decides (D21).
func (c *core) broken(w http.ResponseWriter, r *http.Request, operation string, err error) {
	if r.Context().Err() == nil {
		c.log.LogAttrs(r.Context(), slog.LevelError, "ticket service: database", slog.String("operation", operation), slog.Any("error", err))
	}
	refuse(w, http.StatusInternalServerError, "the database failed; the status of the request tells what is recorded")
}

// guardHost refuses a Host that is neither the origin's nor a loopback name: a
// page of a rebound name must not reach a service on this machine.
func (c *core) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		ip := net.ParseIP(strings.Trim(name, "[]"))
		if strings.EqualFold(r.Host, c.host) || strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback() {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, http.StatusMisdirectedRequest, "the Host is not that of this service")
	})
}

// requestKey is the one valid Idempotency-Key of the headers (D19).
func requestKey(h http.Header) (string, bool) {
	values := h.Values("Idempotency-Key")
	if len(values) != 1 {
		return "", false
	}
	key := values[0]
	if key == "" || len(key) > maxKey || key == "." || key == ".." {
		return "", false
	}
	for _, b := range []byte(key) {
		if b <= ' ' || b > '~' {
			return "", false
		}
	}
	return key, true
}

func isPlainJSON(h http.Header) bool {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" || len(h.Values("Content-Encoding")) > 0 {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func isStatus(r *http.Request) bool   { return strings.HasPrefix(r.URL.EscapedPath(), pathStatus) }
func isResource(r *http.Request) bool { return strings.HasPrefix(r.URL.EscapedPath(), pathResource) }

// segment is the one path segment after the prefix, decoded exactly once. ok is
// false for what no client can address as a segment (D14) and for what is not
// UTF-8, which no answer could repeat.
func segment(r *http.Request, prefix string) (id string, ok bool) {
	escaped := strings.TrimPrefix(r.URL.EscapedPath(), prefix)
	if strings.Contains(escaped, "/") {
		return "", false
	}
	id, err := url.PathUnescape(escaped)
	if err != nil || id == "" || id == "." || id == ".." || len(id) > agentic.MaxIDBytes || !utf8.ValidString(id) {
		return "", false
	}
	return id, true
}

func ticketID(n int64) string { return "T-" + strconv.FormatInt(n, 10) }

// ticketNumber is the inverse of ticketID, for its own spellings only.
func ticketNumber(id string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "T-"), 10, 64)
	return n, err == nil && n > 0 && ticketID(n) == id
}

// allow refuses every other method with 405; a GET allows HEAD.
func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	allowed := method
	if method == http.MethodGet {
		allowed = "GET, HEAD"
	}
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, "the method must be "+allowed)
	return false
}

func answer(w http.ResponseWriter, code int, v any) { write(w, code, "application/json", v) }

func refuse(w http.ResponseWriter, code int, detail string) {
	write(w, code, "application/problem+json", problem{Title: http.StatusText(code), Status: code, Detail: detail})
}

// write sends one JSON value. Structs of strings and numbers always marshal, and a
// peer that has gone needs no answer.
func write(w http.ResponseWriter, code int, contentType string, v any) {
	body, _ := json.Marshal(v)
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
