package story

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
)

// TestStoriesAgree: what each story wants is what the library's own decisions make of its
// answers, without sockets. A connection that is taken over is no answer.
func TestStoriesAgree(t *testing.T) {
	const requestID = "3f6a1c9e-0000-4000-8000-abcdefabcdef"
	closed := make(chan struct{})
	close(closed)
	for _, s := range All() {
		t.Run(s.ID, func(t *testing.T) {
			profile := strings.ReplaceAll(s.Terms.Profile(), "{origin}", "http://127.0.0.1:1")
			plan, err := agentic.Load([]byte(profile), []byte(s.Terms.OpenAPI()), "", agentic.Options{AllowLoopback: true})
			if err != nil {
				t.Fatal(err)
			}
			told := &Told{RequestID: requestID, ResourceID: cmp.Or(s.ResourceID, "T-1"), Input: []byte(cmp.Or(s.Input, `{"subject":"s"}`)),
				Timeout: time.Millisecond, Abroad: "http://127.0.0.1:2", Closed: closed, Unanswered: func(http.ResponseWriter) {}}
			in, err := plan.CheckInput(told.Input)
			if s.Want == "" || err != nil {
				if s.Want != "" || err == nil {
					t.Fatalf("wants %q, and the input's check gives %v", s.Want, err)
				}
				return
			}
			posted := answer(told, Pick(s.Submit, 1, HonestSubmit))
			refused := posted.Status == http.StatusConflict || posted.Status == http.StatusUnprocessableEntity
			if got := decide(plan, in, s, told, refused); got != s.Want {
				t.Errorf("wants %s, and the answers make it %s", s.Want, got)
			}
		})
	}
}

// decide is the client of section 6.5 to 6.9 and D10, D11 in a few lines.
func decide(plan *agentic.Plan, in agentic.Input, s Story, told *Told, refused bool) agentic.Outcome {
	outcome, claimed, reads := agentic.Unknown, false, 0
	for n := range plan.Action.Recovery.MaxChecks {
		d := agentic.DecideStatus(told.RequestID, answer(told, Pick(s.Status, n+1, HonestStatus)))
		switch outcome = d.Outcome; {
		case outcome == agentic.Failed && claimed, outcome == agentic.Succeeded && refused:
			return agentic.Unknown
		case outcome == agentic.Failed:
			return outcome
		case outcome == agentic.Succeeded:
			reads, claimed, outcome = reads+1, true, agentic.Unknown
			if plan.DecideResource(told.RequestID, d.ResourceID, in, answer(told, Pick(s.Resource, reads, HonestResource))).Verified {
				return agentic.Succeeded
			}
		}
	}
	return outcome
}

// final passes over informational answers.
type final struct{ http.ResponseWriter }

func (f final) WriteHeader(code int) {
	if code >= 200 {
		f.ResponseWriter.WriteHeader(code)
	}
}

// answer is what a client may conclude from.
func answer(told *Told, r Reaction) (a agentic.Answer) {
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { // it wanted the connection
			panic(p)
		}
	}()
	r(told, final{w}, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/x", http.NoBody))
	if w.Header().Get("Content-Encoding") != "" || w.Body.Len() > agentic.MaxResponseBytes {
		return agentic.Answer{Status: w.Code}
	}
	return agentic.Answer{Status: w.Code, ContentType: strings.Join(w.Header().Values("Content-Type"), ", "), Body: w.Body.Bytes()}
}
