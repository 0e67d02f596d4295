package service

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/agentic-go/agentic"
)

// Types of the RFC 9457 problem documents. They are stable, each stands for one
// cause, and each address leads to the line that explains it. What is answered
// with one of them was not recorded by this request, but for ProblemRefused; and
// after a 500 or 503 it may have been, when the answer to the commit was lost: the
// status tells.
const (
	problemBase = "https://pkg.go.dev/github.com/agentic-go/agentic/service#"

	// 401: whose request it is was not established. Nothing else was looked at.
	ProblemUnauthenticated = problemBase + "ProblemUnauthenticated"
	// 405: the operation has another method, which Allow names.
	ProblemMethod = problemBase + "ProblemMethod"
	// 404: the path holds no ID that a URL can carry (D14).
	ProblemPath = problemBase + "ProblemPath"
	// 400: the URL of a submission has a query. The binding of the draft has none
	// (section 4), and a repeat with another one would pass for the same request.
	ProblemQuery = problemBase + "ProblemQuery"
	// 400: there is no Idempotency-Key.
	ProblemMissingKey = problemBase + "ProblemMissingKey"
	// 400: the Idempotency-Key is not one that can be used (D19), or came twice.
	ProblemBadKey = problemBase + "ProblemBadKey"
	// 415: the body is not application/json in UTF-8 without a content coding.
	ProblemMediaType = problemBase + "ProblemMediaType"
	// 413: the body is larger than Config.MaxInputBytes.
	ProblemTooLarge = problemBase + "ProblemTooLarge"
	// 400: the body ended before its length, or could not be read.
	ProblemIncomplete = problemBase + "ProblemIncomplete"
	// 400: the body is not strict JSON (D1). Members pointer, line and column say
	// where.
	ProblemBadJSON = problemBase + "ProblemBadJSON"
	// 400: the body is JSON, but not an object.
	ProblemNotObject = problemBase + "ProblemNotObject"
	// 400: the request schema refuses the body. Member errors says where.
	ProblemSchema = problemBase + "ProblemSchema"
	// 409: the key is bound to other input (D22). It is never used for this one.
	ProblemConflict = problemBase + "ProblemConflict"
	// 409: the key's window is over, and it is never used again (D23). Not 410,
	// which would say that the operation's path is gone.
	ProblemExpired = problemBase + "ProblemExpired"
	// 4xx: the business refused the action for good, and that is recorded (D21).
	// The publisher's own body may have another type.
	ProblemRefused = problemBase + "ProblemRefused"
	// 500: something failed. The status tells what is recorded, if anything is.
	ProblemInternal = problemBase + "ProblemInternal"
	// 503 with Retry-After: the database, or what names the principal, is not
	// there.
	ProblemUnavailable = problemBase + "ProblemUnavailable"
	// 503 with Retry-After: the first request with this key, or what holds the
	// database, took longer than Config.MaxWait or the request's deadline.
	ProblemBusy = problemBase + "ProblemBusy"
)

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	Pointer *string `json:"pointer,omitempty"` // JSON Pointer into the body
	Line    int     `json:"line,omitempty"`    // 1-based
	Column  int     `json:"column,omitempty"`  // 1-based, in code points

	Errors []InputError `json:"errors,omitempty"` // with ProblemSchema
}

// InputError is one place of an input that the request schema refuses.
type InputError struct {
	Pointer string `json:"pointer"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Detail  string `json:"detail"`
}

// Body is the document as RefusedWith and Fail take it.
func (p Problem) Body() []byte { return encode(p) }

// AuthError says more to a client that is not authenticated.
type AuthError struct {
	Challenge string // of WWW-Authenticate; "" is "Bearer"
	Detail    string // for the client; "" says only that credentials are needed
}

func (e *AuthError) Error() string { return "unauthenticated" }

// Seconds of Retry-After with a 503.
const (
	retryBusy        = "1"
	retryUnavailable = "5"
)

// reply is one answer, written at once when everything is known.
type reply struct {
	code   int
	media  string
	body   []byte
	header map[string]string
}

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// write sends the reply. Nothing of these operations may be kept by a cache. A
// peer that has gone needs no answer.
func (a reply) write(w http.ResponseWriter) {
	h := w.Header()
	for name, value := range a.header {
		h.Set(name, value)
	}
	h.Set("Content-Type", a.media)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body)
}

// because is a problem document as an answer. Header names and values follow each
// other.
func because(p Problem, header ...string) reply {
	a := reply{code: p.Status, media: mediaProblem, body: p.Body(), header: map[string]string{}}
	for i := 0; i < len(header); i += 2 {
		a.header[header[i]] = header[i+1]
	}
	return a
}

func methodNotAllowed(allow string) reply {
	return because(Problem{Type: ProblemMethod, Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
		Detail: "The method must be " + allow + "."}, "Allow", allow)
}

func unauthenticated(err error) reply {
	challenge, detail := "Bearer", "Credentials that this service accepts are needed."
	if e, ok := errors.AsType[*AuthError](err); ok {
		if e.Challenge != "" {
			challenge = e.Challenge
		}
		if e.Detail != "" {
			detail = e.Detail
		}
	}
	return because(Problem{Type: ProblemUnauthenticated, Title: "Not authenticated", Status: http.StatusUnauthorized, Detail: detail},
		"WWW-Authenticate", challenge)
}

// Unauthenticated answers an operation of the publisher's own, such as the read, as
// a Tracker answers its own when the principal function returns err, which is not
// nil: with 401, or with 503 when err wraps ErrUnavailable.
func Unauthenticated(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrUnavailable) {
		unavailable().write(w)
		return
	}
	unauthenticated(err).write(w)
}

func unavailable() reply {
	return because(Problem{Type: ProblemUnavailable, Title: "Temporarily unavailable", Status: http.StatusServiceUnavailable,
		Detail: "The service cannot work on this now. The status of the request tells what is recorded."}, "Retry-After", retryUnavailable)
}

func busy() reply {
	return because(Problem{Type: ProblemBusy, Title: "Still busy", Status: http.StatusServiceUnavailable,
		Detail: "The first request with this key, or what the database works on, took too long to wait for. The status of the request tells what is recorded."},
		"Retry-After", retryBusy)
}

func internal() reply {
	return because(Problem{Type: ProblemInternal, Title: "Internal error", Status: http.StatusInternalServerError,
		Detail: "The service failed. The status of the request tells what is recorded."})
}

func refused(status int) []byte {
	return Problem{Type: ProblemRefused, Title: "Refused", Status: status, Detail: "The service refused the action. This is recorded."}.Body()
}

// invalidInput is the answer to an input that its schema refuses.
func invalidInput(ds agentic.Diagnostics) reply {
	p := Problem{Type: ProblemSchema, Title: "Input against the schema", Status: http.StatusBadRequest,
		Detail: "The request schema of the operation refuses the body."}
	for _, d := range ds {
		p.Errors = append(p.Errors, InputError{Pointer: d.Pointer, Line: d.Line, Column: d.Column, Detail: d.Problem})
	}
	return because(p)
}
