package service

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
)

// status is the status operation of one action.
type status struct {
	*action
	path template
}

func newStatus(a *action, path string) *status { return &status{action: a, path: newTemplate(path)} }

// ServeHTTP answers 200 for every request ID, in one way: absent, of somebody else
// and past its window are the same bytes (D23, D24).
func (s *status) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := Key{Action: s.id}
	s.guard(w, r, &k, func() reply { return s.reply(r, &k) })
}

func (s *status) reply(r *http.Request, k *Key) reply {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed("GET, HEAD")
	}
	var no *reply
	if k.Principal, no = s.authenticate(r); no != nil {
		return *no
	}
	id, ok := s.path.match(r.URL.EscapedPath())
	if !ok {
		return because(Problem{Type: ProblemPath, Title: "No request in the path", Status: http.StatusNotFound,
			Detail: "The path does not hold the ID of a request."})
	}
	k.RequestID = id
	var record *Record
	if validKey(id) { // a store is never asked for what it cannot have
		var err error
		if record, err = s.look(r.Context(), *k); err != nil {
			return s.failure(r, *k, err)
		}
	}
	return reply{code: http.StatusOK, media: mediaJSON, body: statusAnswer{RequestID: id}.of(record)}
}

// look reads what is recorded, within Config.MaxWait.
func (s *server) look(ctx context.Context, k Key) (*Record, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxWait, errWaited)
	defer cancel()
	record, err := s.find(ctx, k)
	if err != nil && context.Cause(ctx) == errWaited {
		err = errors.Join(errWaited, err)
	}
	return record, err
}

// template is a path of the document with one placeholder, which may share its
// segment with other text.
type template struct {
	text     string
	segments []string // the one at index at is not used
	at       int
	pre, suf string // of that segment
}

func newTemplate(path string) template {
	t := template{text: path, segments: strings.Split(path, "/")}
	for i, s := range t.segments {
		if pre, rest, ok := strings.Cut(s, "{"); ok {
			t.at, t.pre = i, pre
			_, t.suf, _ = strings.Cut(rest, "}")
		}
	}
	return t
}

func (t template) String() string { return t.text }

// with is the path with that text in place of the segment of the placeholder.
func (t template) with(segment string) string {
	s := append([]string(nil), t.segments...)
	s[t.at] = segment
	return strings.Join(s, "/")
}

// anonymous is the path without the name of its placeholder.
func (t template) anonymous() string { return t.with(t.pre + "{}" + t.suf) }

// pattern is the path for a ServeMux, whose wildcards are whole segments.
func (t template) pattern() string { return t.with("{id}") }

// sample is a path of the template.
func (t template) sample() string { return t.with(t.pre + "agentic-sample" + t.suf) }

// match takes the ID out of an escaped path: each segment is decoded once, so that
// an ID may hold "/" and "%". It is false for what no client can address as one
// segment (D14).
func (t template) match(escaped string) (id string, ok bool) {
	segments := strings.Split(escaped, "/")
	if len(segments) != len(t.segments) {
		return "", false
	}
	for i, s := range segments {
		s, err := url.PathUnescape(s)
		switch {
		case err != nil:
			return "", false
		case i == t.at:
			id = s
		case s != t.segments[i]:
			return "", false
		}
	}
	if len(id) <= len(t.pre)+len(t.suf) || !strings.HasPrefix(id, t.pre) || !strings.HasSuffix(id, t.suf) {
		return "", false
	}
	id = id[len(t.pre) : len(id)-len(t.suf)]
	return id, id != "." && id != ".." && len(id) <= agentic.MaxIDBytes && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}
