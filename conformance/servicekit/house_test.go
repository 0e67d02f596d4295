package servicekit_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/ticket"
)

// Tokens of the two principals of the tests.
const (
	annToken = "ann-token-0123456789"
	bobToken = "bob-token-9876543210"
)

func bearer(token string) *servicekit.Principal {
	return &servicekit.Principal{Header: http.Header{"Authorization": {"Bearer " + token}}}
}

// desk is the ticket service behind a real listener.
type desk struct {
	origin  string
	restart func(context.Context) error
}

// startDesk serves the ticket service; postgres is "" for SQLite.
func startDesk(t *testing.T, postgres string, fault ticket.Fault) desk {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(ts.Close)
	tokens := fmt.Sprintf("ann %x\nbob %x\n", sha256.Sum256([]byte(annToken)), sha256.Sum256([]byte(bobToken)))
	principal, err := ticket.ReadTokens(strings.NewReader(tokens))
	if err != nil {
		t.Fatal(err)
	}
	cfg := ticket.Config{Origin: ts.URL, Principal: principal, Inspect: true, Fault: fault, Postgres: postgres}
	if postgres == "" {
		cfg.Path = filepath.Join(t.TempDir(), "tickets.db")
	}
	var svc *ticket.Service
	open := func(ctx context.Context) error {
		if svc, err = ticket.Open(ctx, cfg); err != nil {
			return err
		}
		h := svc.Handler()
		handler.Store(&h)
		return nil
	}
	if err := open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	return desk{ts.URL, func(ctx context.Context) error {
		if err := svc.Close(); err != nil {
			return err
		}
		return open(ctx)
	}}
}

// config checks everything that can be checked of the ticket service.
func (d desk) config() servicekit.Config {
	return servicekit.Config{
		Profile: ticket.Profile(d.origin), OpenAPI: ticket.OpenAPI(d.origin),
		Input: []byte(`{"subject":"Printer on fire"}`), OtherInput: []byte(`{"subject":"Printer \"still\" on fire"}`),
		RefusedInput: []byte(`{"subject":""}`),
		First:        bearer(annToken), Second: bearer(bobToken),
		CountURL: "/__state", CountPointer: "/tickets",
		Restart: d.restart, Owned: true, AllowLoopback: true,
	}
}

// check runs the kit.
func check(t *testing.T, c servicekit.Config) *conformance.Report {
	t.Helper()
	rep, err := servicekit.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// show logs what a report says of everything that did not pass.
func show(t *testing.T, rep *conformance.Report) {
	t.Helper()
	for _, c := range rep.Checks {
		if c.Status == conformance.Passed {
			continue
		}
		t.Logf("%s %s %s", c.Status, c.ID, c.Missing)
		for _, try := range c.Tries {
			for _, e := range try.Expectations {
				if !e.OK {
					t.Logf("    %s: want %s, got %s", e.What, e.Expected, e.Found)
				}
			}
			if try.Error != "" {
				t.Logf("    error: %s", try.Error)
			}
		}
	}
}
