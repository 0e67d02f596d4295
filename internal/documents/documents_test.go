package documents

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/transport"
)

// publisher serves the documents of the ticket service, changed by the test.
func publisher(t *testing.T, change func(path, body string) string) (origin string) {
	t.Helper()
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := ticket.Profile(srv.URL)
		if r.URL.Path != "/agentic.json" {
			body = ticket.OpenAPI(srv.URL)
		}
		_, _ = w.Write([]byte(change(r.URL.Path, string(body))))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func same(_, body string) string { return body }

func source(t *testing.T, approved ...string) Source {
	t.Helper()
	tr, err := transport.New(transport.Config{Origins: approved, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return Source{Transport: tr, Options: agentic.Options{AllowLoopback: true}}
}

// Both documents come from a URL, a file or standard input.
func TestPlan(t *testing.T) {
	origin := publisher(t, same)
	dir := t.TempDir()
	profile, openapi := filepath.Join(dir, "agentic.json"), filepath.Join(dir, "openapi.json")
	for name, body := range map[string][]byte{profile: ticket.Profile(origin), openapi: ticket.OpenAPI(origin)} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ profile, openapi string }{{origin + "/agentic.json", ""}, {profile, ""}, {profile, openapi}, {"-", openapi}, {"-", ""}} {
		s := source(t, origin)
		s.Stdin = strings.NewReader(string(ticket.Profile(origin)))
		plan, err := s.Plan(t.Context(), tt.profile, tt.openapi, "")
		if err != nil || plan.Origin != origin || plan.Action.ID != "create-ticket" {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	plan, err := source(t).Plan(t.Context(), profile, openapi, "create-ticket")
	if err != nil || plan.Origin != origin {
		t.Errorf("files need no approval: %v", err)
	}
}

// A refusal says what it is about, and what to do.
func TestPlanRefuses(t *testing.T) {
	origin := publisher(t, same)
	speaksForOthers := publisher(t, func(_, _ string) string { return string(ticket.Profile(origin)) })
	invalid := publisher(t, func(path, body string) string {
		if path == "/agentic.json" {
			return strings.Replace(body, `"create-ticket"`, `"?"`, 1)
		}
		return body
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is := func(code string) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*advice.Error](err)
			return ok && e.Code == code && e.Remedy != ""
		}
	}
	for _, tt := range []struct {
		name             string
		ctx              context.Context
		profile, openapi string
		action           string
		approved         []string
		want             func(error) bool
	}{
		{"another origin", t.Context(), speaksForOthers + "/agentic.json", "", "", []string{speaksForOthers, origin}, is("origin-mismatch")},
		{"not approved", t.Context(), origin + "/agentic.json", "", "", []string{speaksForOthers}, func(err error) bool { _, ok := errors.AsType[*client.OriginError](err); return ok }},
		{"credentials in the URL", t.Context(), strings.Replace(origin, "//", "//a@", 1) + "/agentic.json", "", "", []string{origin}, is(advice.Usage)},
		{"fragment", t.Context(), origin + "/agentic.json#a", "", "", []string{origin}, is(advice.Usage)},
		{"unreachable", t.Context(), "http://127.0.0.1:1/agentic.json", "", "", []string{"http://127.0.0.1:1"}, is("fetch")},
		{"interrupted", ended, origin + "/agentic.json", "", "", []string{origin}, func(err error) bool { return err == context.Canceled }},
		{"no file", t.Context(), "absent.json", "", "", nil, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"no OpenAPI file", t.Context(), origin + "/agentic.json", "absent.json", "", []string{origin}, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"no such action", t.Context(), origin + "/agentic.json", "", "nope", []string{origin}, func(err error) bool { _, ok := errors.AsType[*agentic.UnknownActionError](err); return ok }},
		{"invalid", t.Context(), invalid + "/agentic.json", "", "", []string{invalid}, func(err error) bool { _, ok := errors.AsType[*agentic.InvalidError](err); return ok }},
	} {
		if _, err := source(t, tt.approved...).Plan(tt.ctx, tt.profile, tt.openapi, tt.action); !tt.want(err) {
			t.Errorf("%s: %T %v", tt.name, err, err)
		}
	}
}

func TestRead(t *testing.T) {
	if data, err := Read(t.Context(), strings.NewReader("abcdef"), "-", 3); err != nil || string(data) != "abcd" {
		t.Errorf("Read = %q, %v; want one byte more than the limit", data, err)
	}
}

// A read that cannot end is left when the context ends.
func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe() // nobody writes
	defer w.Close()
	time.AfterFunc(10*time.Millisecond, cancel)
	if data, err := Read(ctx, r, "-", 3); data != nil || err != context.Canceled {
		t.Errorf("Read = %q, %v", data, err)
	}
}

// Only of what was cut is the size unknown.
func TestTruthful(t *testing.T) {
	for _, tt := range []struct {
		size int
		code string
		want string
	}{
		{4, "profile/too-large", "There are more than 3 bytes, and that is the most."},
		{3, "profile/too-large", "x"},
		{4, "profile/not-json", "x"},
	} {
		found := agentic.Diagnostics{{Document: "profile", Code: tt.code, Problem: "x"}}
		if got := Truthful(found, make([]byte, tt.size), 3)[0].Problem; got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// Plan writes down where a document came from, also one that it refuses.
func TestNames(t *testing.T) {
	origin := publisher(t, same)
	s := source(t, origin)
	s.Names = Names{}
	if _, err := s.Plan(t.Context(), origin+"/agentic.json", "", ""); err != nil {
		t.Fatal(err)
	}
	if a, b, c := s.Names.Of("profile"), s.Names.Of("openapi"), s.Names.Of("input"); a != origin+"/agentic.json" || b != origin+"/openapi.json" || c != "input" {
		t.Errorf("names %s, %s and %s", a, b, c)
	}
	s.Stdin = strings.NewReader("{")
	if _, err := s.Plan(t.Context(), "-", "", ""); err == nil || s.Names.Of("profile") != "profile" {
		t.Errorf("standard input is called %s (%v)", s.Names.Of("profile"), err)
	}
}
