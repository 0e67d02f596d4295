package clientkit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

// heedless is a client that acts on documents as they come: it checks nothing, goes where
// they send it, and does what they say by its rules. What a careful client refuses has to
// be seen where it arrives.
func heedless(ctx context.Context, stdin io.Reader, stdout io.Writer) (int, error) {
	var w struct {
		Profile struct {
			Schema  string `json:"$schema"`
			Origin  string
			Actions []struct {
				ID             string
				Submit, Status string
			}
		}
		OpenAPI struct {
			Servers []struct{ URL string }
			Paths   map[string]map[string]struct{ OperationID string }
		}
		RequestID string `json:"request_id"`
		Input     json.RawMessage
	}
	if err := json.NewDecoder(stdin).Decode(&w); err != nil || len(w.Profile.Actions) == 0 {
		return 1, err
	}
	send := func(method, address string, body []byte) {
		_, _ = exchange(ctx, &http.Client{Timeout: 2 * time.Second}, method, address,
			map[string]string{"Content-Type": "application/json", "Idempotency-Key": w.RequestID}, body, 1<<10)
	}
	base, action := w.Profile.Origin, w.Profile.Actions[0]
	if len(w.OpenAPI.Servers) > 0 && !strings.HasPrefix(w.OpenAPI.Servers[0].URL, "/") {
		base = w.OpenAPI.Servers[0].URL
	}
	if u, err := url.Parse(w.Profile.Schema); err == nil && u.Scheme == "http" {
		send(http.MethodGet, w.Profile.Schema, nil)
	}
	for path, operations := range w.OpenAPI.Paths {
		for method, operation := range operations {
			if operation.OperationID == action.Submit {
				send(strings.ToUpper(method), base+path, w.Input)
			}
		}
	}
	_, err := fmt.Fprintf(stdout, `{"agentic":"0.1.0-draft","request_id":%q,"action_id":%q,"origin":%q,"outcome":"unknown","observed_at":%q,"resource_id":null,"reason":"It is not known."}`+"\n",
		w.RequestID, action.ID, w.Profile.Origin, time.Now().UTC().Format(time.RFC3339))
	return 0, err
}

// heedlessFails has the checks in which nothing may be sent.
var heedlessFails = []string{"documents/*", "pointers/missing-input*"}

func ofHeedless(id string) bool {
	return slices.ContainsFunc(heedlessFails, func(p string) bool { ok, _ := path.Match(p, id); return ok })
}

// TestHeedless: a client that acts on whatever it is given, and says unknown of it, fails
// every check of documents and input by what arrived.
func TestHeedless(t *testing.T) {
	for _, c := range inside(heedless).try(t, Config{Parallel: 8, Match: heedlessFails}).Checks {
		if untriable(c) {
			continue
		}
		what := whatActs
		if c.ID == "documents/schema-not-fetched" {
			what = "requests for the schema"
		}
		if c.Status != conformance.Failed || !slices.ContainsFunc(c.Tries[0].Expectations, func(e conformance.Expectation) bool { return !e.OK && e.What == what }) {
			t.Errorf("%s is %s, and not by %q:\n  %s", c.ID, c.Status, what, failures(c))
		}
	}
}
