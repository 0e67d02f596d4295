package servicekit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
)

// A service that lets nobody in passes no check about its requests, and the hint of what
// fails is the credentials.
func TestDenied(t *testing.T) {
	c := startFake(t, "")
	c.First, c.Second, c.CountURL = nil, nil, ""
	c.Match = []string{"submission/*", "status/*", "repeat/*", "key/*"}
	rep, err := servicekit.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	hints := 0
	for _, r := range rep.Checks {
		switch r.Status {
		case conformance.Failed:
			hints++
			if !strings.Contains(r.Tries[0].Hint, "--header-from-env") {
				t.Errorf("%s: hint %q", r.ID, r.Tries[0].Hint)
			}
		case conformance.NotExercised:
		default:
			if r.ID != "submission/in-time" && r.ID != "submission/answer-size" { // about any answer
				t.Errorf("%s is %s: %v", r.ID, r.Status, r.Tries)
			}
		}
	}
	if hints == 0 {
		t.Error("nothing failed")
	}
}

// Without an answer there is no size of one.
func TestAnswerSizeNeedsAnAnswer(t *testing.T) {
	f := newFake("")
	c := f.start(t, func(h http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/requests/") || r.Method == http.MethodPost {
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		}))
	})
	c.Match = []string{"submission/answer-size"}
	rep, err := servicekit.Run(t.Context(), c)
	if err != nil || rep.Checks[0].Status != conformance.NotExercised || !strings.Contains(rep.Checks[0].Missing, "no answer") {
		t.Errorf("%+v, %v", rep, err)
	}
}

// A restart that fails is the run's, and says what to try.
func TestRestartFails(t *testing.T) {
	c := startFake(t, "")
	c.Restart = func(context.Context) error { return errors.New("exit status 1") }
	c.Match = []string{"restart/remembers"}
	rep, err := servicekit.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Checks[0]; r.Status != conformance.Broken || !strings.Contains(r.Tries[0].Hint, "by hand") {
		t.Errorf("%+v", r)
	}
}
