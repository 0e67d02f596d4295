package clientkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

func init() {
	programs["heedless"] = heedless
}

// heedless is a client that acts on documents as they come: it checks nothing, goes where
// they send it, and does what they say by its rules. What a careful client refuses has to
// be seen where it arrives.
func heedless() int {
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
	data, err := io.ReadAll(os.Stdin)
	if err != nil || json.Unmarshal(data, &w) != nil || len(w.Profile.Actions) == 0 {
		return 1
	}
	send := func(method, address string, body []byte) {
		r, err := http.NewRequest(method, address, bytes.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", w.RequestID)
		if res, err := (&http.Client{Timeout: 2 * time.Second}).Do(r); err == nil {
			_ = res.Body.Close()
		}
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
	fmt.Printf(`{"agentic":"0.1.0-draft","request_id":%q,"action_id":%q,"origin":%q,"outcome":"unknown","observed_at":%q,"resource_id":null,"reason":"It is not known."}`+"\n",
		w.RequestID, action.ID, w.Profile.Origin, time.Now().UTC().Format(time.RFC3339))
	return 0
}

// TestHeedless: a client that acts on whatever it is given, and says unknown of it, fails
// every check of documents and input by what arrived.
func TestHeedless(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := Adapter{Name: "heedless", Authorship: AuthorshipProject, Command: []string{self, "as-program", "heedless"}}
	for _, c := range run(t, Config{Adapter: client, Parallel: 4, Match: []string{"documents/*", "pointers/missing-input*"}}).Checks {
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
