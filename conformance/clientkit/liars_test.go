package clientkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// wish is what a client reads from standard input.
type wish struct {
	Profile   json.RawMessage `json:"profile"`
	OpenAPI   json.RawMessage `json:"openapi"`
	RequestID string          `json:"request_id"`
	Input     json.RawMessage `json:"input"`
	Ledger    string          `json:"ledger_path"`
	Crash     bool            `json:"test_crash_after_submit"`
}

// lying is a client that is right but for one thing. Its ledger is a file that is there
// once the request was attempted, with the receipt in it when there is one.
type lying struct {
	madeUp       bool // prints a receipt and talks to nobody
	resends      bool // sends again when the answer is lost
	sendsAnew    bool // sends again when it is called again
	trustsPost   bool // takes the answer to the POST for the outcome
	anyResource  bool // does not look at the resource's own ID
	anyRequest   bool // does not look at the resource's request ID
	skips        bool // reads no resource when the status is succeeded
	blind        bool // reads the resource and takes whatever it is
	chatty       bool // writes more than the receipt to standard output
	follows      bool // follows redirects
	marksLate    bool // marks the attempt after it
	goesByNew    bool // forgets what the request was bound to
	forgetsInput bool // sends the input that it was given first in another form: empty
	hangs        bool // never ends
	hurries      bool // waits for nothing between two checks
	datesBack    bool // dates its receipts an hour back
	credentials  bool // sends a credential that nobody gave
	readsFirst   bool // asks for the status before it submits
	firstAction  bool // takes the first action of a profile, whichever is asked for
}

var liars = map[string]lying{
	"made-up": {madeUp: true}, "resends": {resends: true}, "sends-anew": {sendsAnew: true}, "trusts-post": {trustsPost: true},
	"any-resource": {anyResource: true}, "any-request": {anyRequest: true}, "skips": {skips: true}, "blind": {blind: true},
	"chatty": {chatty: true}, "follows": {follows: true}, "marks-late": {marksLate: true}, "goes-by-new": {goesByNew: true},
	"other-body": {forgetsInput: true}, "hangs": {hangs: true}, "hurries": {hurries: true}, "dates-back": {datesBack: true},
	"credentials": {credentials: true}, "reads-first": {readsFirst: true}, "first-action": {firstAction: true}, "right": {},
}

// asLiar is the client that the test binary's last argument names.
func asLiar(args []string) (lying, bool) {
	if len(args) != 3 || args[1] != "as-client" {
		return lying{}, false
	}
	l, ok := liars[args[2]]
	return l, ok
}

// main is a client's.
func (l lying) main() int {
	if l.hangs {
		select {}
	}
	data, err := io.ReadAll(os.Stdin)
	var w wish
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	var r agentic.Receipt
	if err == nil {
		r, err = l.execute(w)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if l.chatty {
		fmt.Println("done:")
	}
	fmt.Println(string(r.Encode()))
	return 0
}

func (l lying) execute(w wish) (agentic.Receipt, error) {
	action := ""
	if l.firstAction {
		action = "create-ticket"
	}
	plan, err := agentic.Load(w.Profile, w.OpenAPI, action, agentic.Options{AllowLoopback: true})
	if err != nil {
		return agentic.Receipt{}, err
	}
	in, err := plan.CheckInput(w.Input)
	if err != nil {
		return agentic.Receipt{}, err
	}
	bound := []byte(plan.Profile.Digest() + plan.OpenAPI.Digest() + in.Digest())
	receipt := func(o agentic.Outcome, e *agentic.ReceiptEvidence) (agentic.Receipt, error) {
		r := agentic.Receipt{Agentic: agentic.Version, RequestID: w.RequestID, ActionID: plan.Action.ID, Origin: plan.Origin,
			Outcome: o, ObservedAt: agentic.FormatTime(time.Now()), Reason: "It is so.", Evidence: e}
		if l.datesBack {
			r.ObservedAt = agentic.FormatTime(time.Now().Add(-time.Hour))
		}
		if e != nil {
			r.ResourceID = &e.ResourceID
		}
		return r, nil
	}
	invent := func(id string) (agentic.Receipt, error) {
		url, err := plan.ResourceURL(id)
		if err != nil {
			return agentic.Receipt{}, err
		}
		return receipt(agentic.Succeeded, &agentic.ReceiptEvidence{URL: url, ResourceID: id, RequestID: w.RequestID, State: "open",
			Matched: plan.Action.Evidence.InputBindings})
	}
	if l.madeUp {
		return invent("T-1")
	}
	path := w.Ledger + "-" + w.RequestID
	saved, err := os.ReadFile(path)
	attempted := err == nil
	if attempted && !bytes.Equal(saved, bound) && !l.goesByNew {
		return agentic.Receipt{}, errors.New("bound to something else")
	}
	if !attempted && !l.marksLate {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return agentic.Receipt{}, err
		}
		_, err = f.Write(bound)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return agentic.Receipt{}, err
		}
	}
	client := &http.Client{Timeout: plan.Action.Recovery.Timeout, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	if !l.follows {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	if l.readsFirst {
		url, _ := plan.StatusURL(w.RequestID)
		l.exchange(client, http.MethodGet, url, "", nil)
	}
	if !attempted || l.sendsAnew {
		a := l.exchange(client, http.MethodPost, plan.SubmitURL(), w.RequestID, w.Input)
		if a.Status == 0 && l.resends {
			a = l.exchange(client, http.MethodPost, plan.SubmitURL(), w.RequestID, w.Input)
		}
		if w.Crash {
			os.Exit(exitCrashed)
		}
		if l.marksLate {
			if err := os.WriteFile(path, bound, 0o600); err != nil {
				return agentic.Receipt{}, err
			}
		}
		if l.trustsPost && a.Status/100 == 2 {
			var made struct{ ID string }
			if json.Unmarshal(a.Body, &made) == nil && made.ID != "" {
				return invent(made.ID)
			}
		}
	}
	outcome := agentic.Unknown
	for n := range plan.Action.Recovery.MaxChecks {
		if n > 0 && !l.hurries {
			time.Sleep(plan.Action.Recovery.CheckDelay)
		}
		url, _ := plan.StatusURL(w.RequestID)
		d := agentic.DecideStatus(w.RequestID, l.exchange(client, http.MethodGet, url, "", nil))
		outcome = d.Outcome
		if outcome == agentic.Failed {
			break
		}
		if outcome != agentic.Succeeded {
			continue
		}
		outcome = agentic.Unknown
		if l.skips {
			return invent(d.ResourceID)
		}
		url, err := plan.ResourceURL(d.ResourceID)
		if err != nil {
			continue
		}
		a := l.exchange(client, http.MethodGet, url, "", nil)
		a.Body = l.overlook(a.Body, d.ResourceID, w)
		if r := plan.DecideResource(w.RequestID, d.ResourceID, in, a); r.Verified {
			return receipt(agentic.Succeeded, r.Evidence)
		}
	}
	return receipt(outcome, nil)
}

// overlook makes of a resource what the client takes it for.
func (l lying) overlook(body []byte, resourceID string, w wish) []byte {
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil {
		return body
	}
	if l.anyResource || l.blind {
		doc["id"] = resourceID
	}
	if l.anyRequest || l.blind {
		doc["request_id"] = w.RequestID
	}
	if l.blind {
		var in map[string]any
		_ = json.Unmarshal(w.Input, &in)
		doc["subject"], doc["status"] = in["subject"], "open"
	}
	made, err := json.Marshal(doc)
	if err != nil {
		return body
	}
	return made
}

func (l lying) exchange(client *http.Client, method, url, key string, body []byte) agentic.Answer {
	if l.forgetsInput && body != nil {
		body = []byte(`{"subject":"something else"}`)
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return agentic.Answer{}
	}
	r.GetBody = nil
	if l.credentials {
		r.Header.Set("Authorization", "Bearer found-somewhere")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		return agentic.Answer{}
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, agentic.MaxResponseBytes+1))
	if err != nil || len(data) > agentic.MaxResponseBytes || res.Header.Get("Content-Encoding") != "" {
		return agentic.Answer{}
	}
	return agentic.Answer{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Body: data}
}

func liar(t *testing.T, name string) Adapter {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Adapter{Name: name, Authorship: AuthorshipProject, Command: []string{self, "as-client", name}}
}

// TestLiars: each lie fails the checks it is a lie in, for the reason it is one.
func TestLiars(t *testing.T) {
	for _, c := range []struct{ liar, check, what, found string }{
		{"made-up", "normal", whatPosts, "0"},
		{"made-up", "normal", whatRead, "the client reports succeeded but never read the resource"},
		{"made-up", "normal", whatStatus, "the client reports succeeded; the status was never asked for"},
		{"made-up", "status-unavailable", whatOutcome, "succeeded"},
		{"made-up", "crash/after-submission", whatReached, "the client ended before"},
		{"resends", "response-lost", whatPosts, "2"},
		{"sends-anew", "restart-after-submit", whatPosts, "2"},
		{"sends-anew", "resume/pending-succeeded", whatPosts, "2"},
		{"sends-anew", "crash/after-submission", whatPosts, "2"},
		{"sends-anew", "receipt/again", whatPosts, "2"},
		{"trusts-post", "normal", whatRead, "the client reports succeeded but never read the resource"},
		{"trusts-post", "wrong-evidence", whatOutcome, "succeeded"},
		{"any-resource", "service/wrong-resource", whatOutcome, "succeeded"},
		{"any-resource", "service/wrong-resource", whatEvidence, "what it read is no evidence"},
		{"any-request", "service/other-request", whatOutcome, "succeeded"},
		{"any-request", "service/other-request", whatEvidence, "what it read is no evidence"},
		{"skips", "normal", whatRead, "the client reports succeeded but never read the resource"},
		{"blind", "wrong-evidence", whatEvidence, "what it read is no evidence"},
		{"blind", "service/wrong-state", whatEvidence, "what it read is no evidence"},
		{"blind", "service/wrong-input", whatEvidence, "what it read is no evidence"},
		{"chatty", "pending", whatStdout, "not strict JSON"},
		{"follows", "service/redirect", whatFollowed, "/moved"},
		{"marks-late", "crash/after-submission", whatPosts, "2"},
		{"marks-late", "crash/during-submission", whatPosts, "2"},
		{"marks-late", "together/one-identity", whatPosts, "2"},
		{"goes-by-new", "change/profile", whatEvidence, "what it read is no evidence"},
		{"goes-by-new", "change/input", whatEvidence, "what it read is no evidence"},
		{"goes-by-new", "change/openapi", whatElsewhere, "/moved/"},
		{"goes-by-new", "change/action", whatAction, "file-ticket"},
		{"goes-by-new", "change/origin", "requests at the other origin", ""},
		{"goes-by-new", "change/profile-refused", whatRefusal, "a receipt of succeeded"},
		{"other-body", "normal", whatBody, "something else"},
		{"hangs", "normal", whatTime, "still running"},
		{"hurries", "wire/delay", "time between two status checks", "ms"},
		{"dates-back", "receipt/observed-at", "observed_at", "T"},
		{"credentials", "wire/credentials", "Authorization of POST /tickets", "it is there"},
		{"reads-first", "wire/order", "first request", "GET /requests/"},
		{"right", "receipt/kept", whatOutcome, "unknown"}, // it reads again, where it could return what it saved
		// It does not look at the time, which it says it can be told.
		{"right", "clock/back", whatOutcome, "succeeded"},
		{"right", "clock/back-silent", whatSilent, "2"},
		{"right", "clock/back-from-highest", whatOutcome, "succeeded"},
		{"right", "clock/expired", whatOutcome, "succeeded"},
		{"right", "clock/expired-silent", whatSilent, "2"},
		{"right", "clock/window-end", whatOutcome, "succeeded"},
		{"first-action", "actions/second", whatAction, "create-ticket"},
		{"first-action", "actions/unknown", whatActs, "POST "},
	} {
		t.Run(c.liar+" "+strings.ReplaceAll(c.check, "/", "-")+" "+c.what, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Adapter: liar(t, c.liar), Match: []string{c.check}}
			if c.liar == "hangs" {
				cfg.Timeout = time.Second
			}
			cfg.Adapter.Features = []string{FeatureTestNow, FeatureActionID}
			res := run(t, cfg).Checks[0]
			if res.Status != conformance.Failed {
				t.Fatalf("%s is %s:\n  %s", res.ID, res.Status, failures(res))
			}
			if !slices.ContainsFunc(res.Tries[0].Expectations, func(e conformance.Expectation) bool {
				return !e.OK && e.What == c.what && strings.Contains(e.Found, c.found)
			}) {
				t.Errorf("%s did not fail by %q, found %q, but by:\n  %s", res.ID, c.what, c.found, failures(res))
			}
		})
	}
}

// TestLittleClient: what the liars are without their lie passes, so nothing but the lie
// fails them. It reads again where it could return what it saved, and cannot be told
// the time.
func TestLittleClient(t *testing.T) {
	rep := run(t, Config{Adapter: liar(t, "right"), Parallel: 4, Match: []string{
		"Scenarios of the draft", "Faults of the service", "What is sent", "Crashes", "Two processes", "Resuming", "Changes under one request ID", "Time",
		"Documents and input"}})
	for _, c := range rep.Checks {
		want := conformance.Passed
		if c.Group == "Time" {
			want = conformance.NotExercised
		}
		if c.Status != want && !untriable(c) {
			t.Errorf("%s is %s: %s\n  %s", c.ID, c.Status, c.Missing, failures(c))
		}
	}
}
