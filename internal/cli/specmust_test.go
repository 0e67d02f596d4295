package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/internal/ticket"
)

// Tests of single sentences of section 2 that only the whole command can show.
// docs/SPEC-MAP.md names them.

// testApp is the command in this process, without a terminal.
func testApp(stdout, stderr io.Writer) *app {
	return &app{stdout: stdout, stderr: stderr, lookupEnv: os.LookupEnv, terminal: func() bool { return false },
		forget: func() error { return nil }, open: openPlace, live: func() bool { return false }}
}

// runHere runs the command in this process.
func runHere(t *testing.T, args ...string) (code int, out, diag string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = testApp(&stdout, &stderr).run(t.Context(), args)
	return code, stdout.String(), stderr.String()
}

// decoy is an approved origin that nothing may be read from.
func decoy(t *testing.T) (origin string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, hits
}

// A profile has no authority over another origin, also when the host has approved
// both: what one origin publishes about another is refused, and the other never
// hears of it.
func TestProfileOfAnotherOrigin(t *testing.T) {
	other, hits := decoy(t)
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := ticket.Profile(other)
		if r.URL.Path != "/agentic.json" {
			body = ticket.OpenAPI(other)
		}
		_, _ = w.Write(body)
	}))
	defer publisher.Close()
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	for _, command := range []string{"run", "prepare"} {
		code, out, diag := runHere(t, command, publisher.URL+"/agentic.json", "--approve", publisher.URL, "--approve", other, "--allow-loopback",
			"--input", `{"subject":"Printer"}`, "--ledger", ledger, "--yes", "--json")
		if code != exitError || !strings.Contains(out, `"code":"origin-mismatch"`) || hits.Load() != 0 {
			t.Errorf("%s: exit code %d, %d requests to the other origin, stdout %s, stderr %s", command, code, hits.Load(), out, diag)
		}
	}
	if _, err := os.Stat(ledger); err == nil {
		t.Error("something was saved")
	}
}

// No schema that a publisher names is fetched, neither that of the profile nor one
// that the request schema refers to; a whole run asks for five things and no more.
func TestNothingElseIsFetched(t *testing.T) {
	elsewhere, hits := decoy(t)
	var mu sync.Mutex
	var asked []string
	replace := map[string][2]string{
		"/agentic.json": {"https://ruagentic.org", elsewhere},
		"/openapi.json": {`"subject": {`, `"subject": { "$ref": "` + elsewhere + `/subject.json",`},
	}
	origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		change, ok := replace[r.URL.Path]
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		body := strings.Replace(rec.Body.String(), change[0], change[1], 1)
		if body == rec.Body.String() {
			t.Errorf("%s has no %s", r.URL.Path, change[0])
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	})
	code, out, diag := runHere(t, "run", origin+"/agentic.json", "--approve", origin, "--approve", elsewhere, "--allow-loopback",
		"--input", `{"subject":"Printer"}`, "--ledger", filepath.Join(t.TempDir(), "ledger.db"), "--request-id", "request-1", "--yes", "--json")
	if code != exitOK || hits.Load() != 0 {
		t.Errorf("exit code %d, %d requests elsewhere, stdout %s, stderr %s", code, hits.Load(), out, diag)
	}
	want := []string{"GET /agentic.json", "GET /openapi.json", "POST /tickets", "GET /requests/request-1", "GET /tickets/T-1"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
