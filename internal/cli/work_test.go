package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/place"
)

// blind is a ledger that cannot read one request.
type blind struct {
	desk.Ledger
	id string
}

func (l blind) Load(ctx context.Context, s client.Scope, id string) (*client.Record, error) {
	if id == l.id {
		return nil, &client.LedgerError{Op: "load", Err: errors.New("the page is damaged")}
	}
	return l.Ledger.Load(ctx, s, id)
}

// What a pass could not do is an error beside what it did, and one JSON value; a
// terminal sees how far it is.
func TestReconcileInPart(t *testing.T) {
	s := startTestTickets(t, "pending")
	path := filepath.Join(t.TempDir(), "ledger.db")
	reach := []string{"--approve", s.Origin, "--allow-loopback", "--ledger", path}
	for _, id := range []string{"request-1", "request-2"} {
		code, out, diag := runHere(t, append([]string{"run", s.Origin + "/agentic.json", "--input", `{"subject":"` + id + `"}`, "--yes", "--request-id", id}, reach...)...)
		if code != exitPending {
			t.Fatal(code, out, diag)
		}
	}
	for _, asJSON := range []bool{true, false} {
		var out, diag bytes.Buffer
		a := testApp(&out, &diag)
		a.live = func() bool { return true }
		a.open = func(ctx context.Context, p place.Place, o place.Options) (ledger, error) {
			l, err := openPlace(ctx, p, o)
			l.Ledger = blind{l.Ledger, "request-2"}
			return l, err
		}
		args := append([]string{"reconcile"}, reach...)
		if asJSON {
			args = append(args, "--json")
		}
		if code := a.run(t.Context(), args); code != exitError {
			t.Errorf("exit code %d: %s", code, diag.String())
		}
		for _, want := range []string{"\r[###############               ] 1 of 2", "\r\x1b[K", "could not do its work for 1 request\n", "mend the ledger"} {
			if !strings.Contains(diag.String(), want) {
				t.Errorf("no %q in %q", want, diag.String())
			}
		}
		if !asJSON {
			if !strings.Contains(out.String(), "request-1  still-pending  pending  pending") || !strings.Contains(out.String(), "request-2: ledger unavailable: load: the page is damaged") {
				t.Errorf("stdout %s", out.String())
			}
			continue
		}
		var got struct {
			Requests []struct{ Result string }
			Error    failure
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Requests) != 2 || got.Error.Code != "ledger" {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}

// A worker's credential goes to the one origin that it is for.
func TestWorkerCredentials(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{}
	service := func(name string) string {
		return between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/requests/") {
				mu.Lock()
				seen[name] = append(seen[name], r.Header.Get("Authorization")+r.Header.Get("X-Key"))
				mu.Unlock()
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	one, two := service("one"), service("two")
	path := filepath.Join(t.TempDir(), "ledger.db")
	reach := []string{"--approve", one, "--approve", two, "--allow-loopback", "--ledger", path}
	for _, origin := range []string{one, two} {
		code, out, diag := runHere(t, append([]string{"run", origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes"}, reach...)...)
		if code != exitUnknown {
			t.Fatal(code, out, diag)
		}
	}
	t.Setenv("KEY_ONE", "first-secret")
	t.Setenv("KEY_TWO", "second-secret")
	clear(seen)
	code, out, diag := runHere(t, append([]string{"reconcile", "--header-from-env", one + " Authorization=KEY_ONE", "--header-from-env", two + " X-Key=KEY_TWO"}, reach...)...)
	if code != exitUnknown || strings.Contains(out+diag, "-secret") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	mu.Lock()
	for name, want := range map[string]string{"one": "first-secret", "two": "second-secret"} {
		if got := slices.Compact(slices.Clone(seen[name])); !slices.Equal(got, []string{want}) {
			t.Errorf("%s got %q, want %s", name, got, want)
		}
	}
	clear(seen)
	mu.Unlock()
	code, out, diag = runHere(t, "reconcile", "--header-from-env", "Authorization=KEY_ONE", "--approve", one, "--allow-loopback", "--ledger", path)
	if code != exitUnknown || !strings.Contains(out, "not-approved") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen["two"]) != 0 || !slices.Contains(seen["one"], "first-secret") {
		t.Errorf("with one approved: %q", seen)
	}
	for _, args := range [][]string{{"resume", "request-1", "--approve", one}, {"run", "absent.json", "--input", "{}", "--yes"}} {
		code, _, diag := runHere(t, append(args, "--header-from-env", one+" Authorization=KEY_ONE", "--allow-loopback", "--ledger", path)...)
		if code != exitUsage || !strings.Contains(diag, "it is not NAME=VARIABLE") {
			t.Errorf("%s: exit code %d, stderr %s", args[0], code, diag)
		}
	}
}

// That nothing is due is said to whoever watches, and not into the mail of cron.
func TestNothingIsDue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if code, out, diag := runHere(t, "ledger", "migrate", "--ledger", path); code != exitOK {
		t.Fatal(out, diag)
	}
	for live, want := range map[bool]string{true: "nothing is due\n", false: ""} {
		var out, diag bytes.Buffer
		a := testApp(&out, &diag)
		a.live = func() bool { return live }
		if code := a.run(t.Context(), []string{"reconcile", "--due", "--ledger", path}); code != exitOK || out.String() != "" || !strings.HasSuffix(diag.String(), want) || !live && diag.Len() > 0 {
			t.Errorf("on a terminal %t: exit code %d, stdout %q, stderr %q", live, code, out.String(), diag.String())
		}
	}
}
