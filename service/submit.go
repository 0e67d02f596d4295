package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/inputschema"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// maxKeyBytes is the longest Idempotency-Key (D19).
const maxKeyBytes = 128

// submission is the submit operation of one action.
type submission struct {
	*action
	path string
}

// ServeHTTP looks at things in this order: method, principal, query, key, media
// type, body, and only then, inside that scope, at what is recorded. So nobody learns
// anything without authentication, and nothing of another principal or action
// with it.
func (s *submission) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := Key{Action: s.id}
	s.guard(w, r, &k, func() reply { return s.reply(w, r, &k) })
}

func (s *submission) reply(w http.ResponseWriter, r *http.Request, k *Key) reply {
	if r.Method != http.MethodPost {
		return methodNotAllowed(http.MethodPost)
	}
	var no *reply
	if k.Principal, no = s.authenticate(r); no != nil {
		return *no
	}
	if r.URL.RawQuery != "" {
		return because(Problem{Type: ProblemQuery, Title: "Query in the URL", Status: http.StatusBadRequest,
			Detail: "The operation has no query: what it does is told by the body alone."})
	}
	if k.RequestID, no = requestKey(r.Header); no != nil {
		return *no
	}
	body, no := s.body(w, r)
	if no != nil {
		return *no
	}
	input, no := parseInput(body)
	if no != nil {
		return *no
	}
	req := Request{Key: *k, Fingerprint: input.Digest(), Input: body, HTTP: r}
	if a, decided := s.checkSchema(r.Context(), req); decided {
		return a
	}
	o, err := s.run(r.Context(), req)
	if err != nil {
		return s.failure(r, *k, err)
	}
	return s.answer(r, req, o)
}

// guard answers 500 when code of the publisher panics, without its content, and
// writes the reply otherwise.
func (s *server) guard(w http.ResponseWriter, r *http.Request, k *Key, f func() reply) {
	a, err := func() (a reply, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = newPanic(v)
			}
		}()
		return f(), nil
	}()
	if err != nil {
		a = s.failure(r, *k, err)
	}
	a.write(w)
}

// authenticate names the principal.
func (s *server) authenticate(r *http.Request) (string, *reply) {
	principal, err := s.principal(r)
	switch {
	case errors.Is(err, ErrUnavailable):
		a := s.failure(r, Key{}, &foreignError{"Config.Principal", err})
		return "", &a
	case err != nil:
		a := unauthenticated(err)
		return "", &a
	case principal == "" || len(principal) > agentic.MaxIDBytes || !utf8.ValidString(principal) || strings.ContainsFunc(principal, unicode.IsControl):
		s.log.LogAttrs(r.Context(), slog.LevelError, "agentic: Config.Principal gave a name that cannot be, and no error")
		a := unauthenticated(nil)
		return "", &a
	}
	return principal, nil
}

// requestKey is the one Idempotency-Key of the headers.
func requestKey(h http.Header) (string, *reply) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		a := because(Problem{Type: ProblemMissingKey, Title: "Missing Idempotency-Key", Status: http.StatusBadRequest,
			Detail: "The header Idempotency-Key must be given."})
		return "", &a
	}
	if len(values) > 1 || !validKey(values[0]) {
		a := because(Problem{Type: ProblemBadKey, Title: "Bad Idempotency-Key", Status: http.StatusBadRequest,
			Detail: `The header Idempotency-Key must be given once, with 1 to 128 visible ASCII characters, and not be "." or "..".`})
		return "", &a
	}
	return values[0], nil
}

// validKey is D19.
func validKey(key string) bool {
	if key == "" || len(key) > maxKeyBytes || key == "." || key == ".." {
		return false
	}
	for _, b := range []byte(key) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

func (s *submission) body(w http.ResponseWriter, r *http.Request) ([]byte, *reply) {
	if !isPlainJSON(r.Header) {
		a := because(Problem{Type: ProblemMediaType, Title: "Wrong media type", Status: http.StatusUnsupportedMediaType,
			Detail: "The body must be application/json in UTF-8 without a content coding."}, "Accept-Post", mediaJSON)
		return nil, &a
	}
	tooLarge := func() *reply {
		a := because(Problem{Type: ProblemTooLarge, Title: "Body too large", Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("The body may have %d bytes.", s.maxInput)})
		return &a
	}
	if r.ContentLength > int64(s.maxInput) {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.maxInput)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge()
	}
	if err != nil {
		a := because(Problem{Type: ProblemIncomplete, Title: "Body incomplete", Status: http.StatusBadRequest,
			Detail: "The body could not be read to its end."})
		return nil, &a
	}
	return body, nil
}

func isPlainJSON(h http.Header) bool {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != mediaJSON || len(h.Values("Content-Type")) > 1 || len(h.Values("Content-Encoding")) > 0 {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func parseInput(body []byte) (strictjson.Value, *reply) {
	v, err := strictjson.Parse(body)
	if err != nil {
		p := Problem{Type: ProblemBadJSON, Title: "Bad JSON", Status: http.StatusBadRequest, Detail: "The body is not strict JSON."}
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			p.Detail = "The body is not strict JSON: " + e.Reason.Error() + "."
			p.Pointer, p.Line, p.Column = &e.Pointer, e.Line, e.Column
		}
		a := because(p)
		return v, &a
	}
	if v.Kind() != strictjson.Object {
		a := because(Problem{Type: ProblemNotObject, Title: "Not an object", Status: http.StatusBadRequest,
			Detail: "The body must be a JSON object, and is of the kind " + v.Kind().String() + "."})
		return v, &a
	}
	return v, nil
}

// checkSchema checks the input against the request schema, when that was asked
// for. What the schema refuses may have been accepted under an earlier one; then
// what is recorded answers it (D22).
func (s *submission) checkSchema(ctx context.Context, req Request) (reply, bool) {
	if s.schema == nil {
		return reply{}, false
	}
	ds, err := inputschema.Check(s.schema, req.Input)
	if err == nil && !ds.HasErrors() {
		return reply{}, false
	}
	record, findErr := s.look(ctx, req.Key)
	switch {
	case findErr != nil:
		return s.failure(req.HTTP, req.Key, findErr), true
	case record != nil:
		return s.answer(req.HTTP, req, outcome{record: *record}), true
	case err != nil:
		return because(Problem{Type: ProblemSchema, Title: "Input against the schema", Status: http.StatusBadRequest,
			Detail: "The body cannot be checked against the request schema: a number is out of all bounds, or it is too costly."}), true
	}
	return invalidInput(ds), true
}

// answer gives what stands for the key: the first answer, or its repeat.
func (s *submission) answer(r *http.Request, req Request, o outcome) reply {
	rec, head := o.record, EventHead{req.Key}
	switch {
	case rec.State == Expired:
		s.notify(r.Context(), ExpiredEvent{head})
		return because(Problem{Type: ProblemExpired, Title: "Tracking expired", Status: http.StatusConflict,
			Detail: "The tracking window of this Idempotency-Key is over. The key is never used again."})
	case rec.Fingerprint != req.Fingerprint:
		s.notify(r.Context(), ConflictEvent{head})
		return because(Problem{Type: ProblemConflict, Title: "Key bound to other input", Status: http.StatusConflict,
			Detail: "This Idempotency-Key is bound to other input. Nothing was done with this one."})
	case rec.State == Refused && !definite(rec.Status), rec.State != Done && rec.State != Refused && rec.State != Pending:
		return s.failure(r, req.Key, fmt.Errorf("a damaged record: state %q, status %d", rec.State, rec.Status))
	}
	a := reply{media: mediaJSON, body: o.body, header: map[string]string{}}
	if !o.first {
		a.header["Idempotency-Replayed"] = "true"
		var err error
		if a.body, err = s.storedBody(r.Context(), rec); err != nil {
			return s.failure(r, req.Key, err)
		}
	}
	if len(a.body) == 0 {
		a.body = defaultBody(rec)
	}
	var e Event
	switch rec.State {
	case Done:
		url, err := s.plan.ResourceURL(rec.ResourceID)
		if err != nil {
			return s.failure(r, req.Key, fmt.Errorf("a damaged record: %w", err))
		}
		a.code, e = http.StatusOK, FirstEvent{head, rec.ResourceID}
		if o.first {
			a.code = http.StatusCreated
		}
		a.header["Location"] = strings.TrimPrefix(url, s.plan.Origin)
	case Refused:
		a.code, a.media, e = rec.Status, mediaProblem, RefusedEvent{head, rec.Status}
	case Pending:
		a.code, e = http.StatusAccepted, PendingEvent{head}
		a.header["Retry-After"] = s.checkDelay()
		if url, err := s.plan.StatusURL(req.Key.RequestID); err == nil {
			a.header["Location"] = strings.TrimPrefix(url, s.plan.Origin)
		}
	}
	if !o.first {
		e = ReplayEvent{head, rec.State}
	}
	s.notify(r.Context(), e)
	return a
}

// storedBody is the body of the first answer: as it was stored, or read again.
func (s *submission) storedBody(ctx context.Context, rec Record) ([]byte, error) {
	if !rec.BodyOmitted {
		return rec.Body, nil
	}
	if s.read == nil {
		return nil, errors.New("the body was too large to store, and the action has no Read any more")
	}
	body, err := s.read(ctx, rec.Key, rec.ResourceID)
	if err != nil {
		return nil, &foreignError{"Action.Read", err}
	}
	if _, err := strictjson.Parse(body); err != nil {
		return nil, errors.New("Action.Read gave a body that is not strict JSON")
	}
	return body, nil
}

// defaultBody is the body of an answer for which the publisher gave none.
func defaultBody(rec Record) []byte {
	if rec.State == Refused {
		return refused(rec.Status)
	}
	return statusAnswer{RequestID: rec.Key.RequestID}.of(&rec)
}

// checkDelay is the profile's delay between two status checks, in whole seconds.
func (a *action) checkDelay() string {
	d := a.plan.Action.Recovery.CheckDelay
	return strconv.Itoa(int(max(time.Second, d+time.Second-1) / time.Second))
}

// failure answers an error. What it does not know it does not say: whatever was
// recorded, the status tells.
func (s *server) failure(r *http.Request, k Key, err error) reply {
	if e, ok := errors.AsType[*panicError](err); ok && e.aborts() {
		panic(http.ErrAbortHandler)
	}
	gone := r.Context().Err()
	level, a := slog.LevelError, internal()
	switch {
	case errors.Is(gone, context.Canceled):
		level, a = slog.LevelDebug, unavailable() // nobody is there to read it
	case errors.Is(err, errWaited), gone != nil:
		level, a = slog.LevelWarn, busy()
	case errors.Is(err, ErrUnavailable):
		a = unavailable()
	}
	s.logFailure(r.Context(), level, k, a.code, err)
	s.observe(ErrorEvent{EventHead{k}, err})
	return a
}
