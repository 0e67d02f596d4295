package clientkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
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
	Action    string          `json:"action_id"`
	Crash     bool            `json:"test_crash_after_submit"`
}

// lying is a client that is right but for one thing. Its ledger is a file that is there
// once the request was attempted, with the receipt in it when there is one.
type lying struct {
	madeUp       bool            // prints a receipt and talks to nobody
	resends      bool            // sends again when the answer is lost
	sendsAnew    bool            // sends again when it is called again
	trustsPost   bool            // takes the answer to the POST for the outcome
	anyResource  bool            // does not look at the resource's own ID
	anyRequest   bool            // does not look at the resource's request ID
	skips        bool            // reads no resource when the status is succeeded
	blind        bool            // reads the resource and takes whatever it is
	chatty       bool            // writes more than the receipt to standard output
	follows      bool            // follows redirects
	marksLate    bool            // marks the attempt after it
	goesByNew    bool            // forgets what the request was bound to
	forgetsInput bool            // sends the input that it was given first in another form: empty
	hangs        bool            // never ends
	hurries      bool            // waits for nothing between two checks
	datesBack    bool            // dates its receipts an hour back
	credentials  bool            // sends a credential that nobody gave
	readsFirst   bool            // asks for the status before it submits
	firstAction  bool            // takes the first action of a profile, whichever is asked for
	lastAction   bool            // takes the last one
	actionApart  bool            // takes a request under another action for another request
	oneSlot      bool            // keeps one request, whatever its ID is
	asksOnce     bool            // reads nothing when it is called again
	keepsAlive   bool            // leaves it to its HTTP library to repeat a read
	rereads      bool            // reads a resource twice where it asks for the status once
	takesCookies bool            // gives cookies back
	compresses   bool            // asks for compressed answers
	says         agentic.Outcome // does all that it should, and then reports this
}

var liars = map[string]lying{
	"made-up": {madeUp: true}, "resends": {resends: true}, "sends-anew": {sendsAnew: true}, "trusts-post": {trustsPost: true},
	"any-resource": {anyResource: true}, "any-request": {anyRequest: true}, "skips": {skips: true}, "blind": {blind: true},
	"chatty": {chatty: true}, "follows": {follows: true}, "marks-late": {marksLate: true}, "goes-by-new": {goesByNew: true},
	"other-body": {forgetsInput: true}, "hangs": {hangs: true}, "hurries": {hurries: true}, "dates-back": {datesBack: true},
	"credentials": {credentials: true}, "reads-first": {readsFirst: true}, "first-action": {firstAction: true}, "right": {},
	"last-action": {lastAction: true}, "action-apart": {actionApart: true}, "one-slot": {oneSlot: true}, "asks-once": {asksOnce: true},
	"keeps-alive": {keepsAlive: true}, "rereads": {rereads: true}, "takes-cookies": {takesCookies: true}, "compresses": {compresses: true},
}

func (l lying) main(ctx context.Context, stdin io.Reader, stdout io.Writer) (int, error) {
	if l.hangs {
		<-ctx.Done()
		panic(gone{})
	}
	var w wish
	if err := json.NewDecoder(stdin).Decode(&w); err != nil {
		return 1, err
	}
	r, err := l.execute(ctx, w)
	switch {
	case errors.Is(err, errCrash):
		return exitCrashed, nil
	case err != nil:
		return 1, err
	case l.chatty:
		_, _ = fmt.Fprintln(stdout, "done:")
	}
	_, err = fmt.Fprintln(stdout, string(r.Encode()))
	return 0, err
}

// errCrash ends a client that was told to crash.
var errCrash = errors.New("told to crash")

func (l lying) execute(ctx context.Context, w wish) (result agentic.Receipt, err error) {
	switch {
	case l.firstAction && w.Action != "":
		w.Action = "create-ticket"
	case l.lastAction && w.Action != "":
		w.Action = "create-note"
	}
	plan, err := agentic.Load(w.Profile, w.OpenAPI, w.Action, agentic.Options{AllowLoopback: true})
	if err != nil {
		return agentic.Receipt{}, err
	}
	in, err := plan.CheckInput(w.Input)
	if err != nil {
		return agentic.Receipt{}, err
	}
	bound := []byte(plan.Profile.Digest() + plan.OpenAPI.Digest() + in.Digest() + plan.Action.ID)
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
	if l.says != "" {
		defer func() {
			if err == nil && l.says == agentic.Succeeded {
				result, err = invent("T-1")
			} else if err == nil {
				result, err = receipt(l.says, nil)
			}
		}()
	}
	if l.madeUp {
		return invent("T-1")
	}
	path := w.Ledger
	if !l.oneSlot {
		path += "-" + w.RequestID
	}
	if l.actionApart {
		path += "-" + plan.Action.ID
	}
	saved, err := os.ReadFile(path)
	attempted := err == nil
	if attempted && !bytes.Equal(saved, bound) && !l.goesByNew {
		return agentic.Receipt{}, errors.New("bound to something else")
	}
	if attempted && l.asksOnce {
		return receipt(agentic.Unknown, nil)
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
	client := &http.Client{Timeout: plan.Action.Recovery.Timeout, Transport: &http.Transport{DisableKeepAlives: !l.keepsAlive, DisableCompression: !l.compresses}}
	defer client.CloseIdleConnections()
	if l.takesCookies {
		client.Jar, _ = cookiejar.New(nil) // it never fails
	}
	if !l.follows {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	if l.readsFirst {
		url, _ := plan.StatusURL(w.RequestID)
		l.exchange(ctx, client, http.MethodGet, url, "", nil)
	}
	if !attempted || l.sendsAnew {
		a := l.exchange(ctx, client, http.MethodPost, plan.SubmitURL(), w.RequestID, w.Input)
		if a.Status == 0 && l.resends {
			a = l.exchange(ctx, client, http.MethodPost, plan.SubmitURL(), w.RequestID, w.Input)
		}
		if w.Crash {
			return agentic.Receipt{}, errCrash
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
			pause(ctx, plan.Action.Recovery.CheckDelay)
		}
		url, _ := plan.StatusURL(w.RequestID)
		d := agentic.DecideStatus(w.RequestID, l.exchange(ctx, client, http.MethodGet, url, "", nil))
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
		a := l.exchange(ctx, client, http.MethodGet, url, "", nil)
		if l.rereads {
			a = l.exchange(ctx, client, http.MethodGet, url, "", nil)
		}
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

func (l lying) exchange(ctx context.Context, client *http.Client, method, url, key string, body []byte) agentic.Answer {
	if l.forgetsInput && body != nil {
		body = []byte(`{"subject":"something else"}`)
	}
	header := map[string]string{}
	if key != "" {
		header = map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"}
	}
	if l.credentials {
		header["Authorization"] = "Bearer found-somewhere"
	}
	a, err := exchange(ctx, client, method, url, header, body, agentic.MaxResponseBytes+1)
	if err != nil || len(a.Body) > agentic.MaxResponseBytes {
		return agentic.Answer{}
	}
	return a
}

// liarFails are the checks that each lie fails, and the reason it is one: an expectation,
// and what was found.
var liarFails = []fails{
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
	{"first-action", "actions/unknown", whatActs, "POST "},
	{"first-action", "actions/second", whatAction, "create-ticket"},
	{"last-action", "actions/first", whatAction, "create-note"},
	{"action-apart", "actions/other-on-resume", whatPosts, "2"},
	{"sends-anew", "resume/pending-pending", whatPosts, "2"},
	{"asks-once", "resume/pending-succeeded", whatOutcome, "unknown"},
	{"asks-once", "resume/pending-failed", whatOutcome, "unknown"},
	{"asks-once", "resume/pending-pending", whatOutcome, "unknown"},
	{"asks-once", "resume/unknown-succeeded", whatOutcome, "unknown"},
	{"asks-once", "resume/evidence-later", whatOutcome, "unknown"},
	{"asks-once", "clock/inside-window", whatOutcome, "unknown"},
	{"asks-once", "receipt/failed-again", whatOutcome, "unknown"},
	{"sends-anew", "receipt/failed-again", whatPosts, "2"},
	{"marks-late", "crash/before-submission", whatOutcome, "succeeded"},
	{"marks-late", "crash/twice", whatPosts, "2"},
	{"sends-anew", "crash/status", whatPosts, "2"},
	{"sends-anew", "crash/resource", whatPosts, "2"},
	{"one-slot", "together/two-identities", whatExit, "1"},
	{"keeps-alive", "wire/check-broken", "status checks that arrived", "4"},
	{"rereads", "wire/reads", "status check before GET /tickets/T-1", "none since the last read"},
	{"takes-cookies", "wire/cookies", "Cookie of GET /tickets/T-1", "it is there"},
	{"compresses", "wire/compression", "Accept-Encoding of POST /tickets", "gzip"},
	{"goes-by-new", "change/openapi-refused", whatRefusal, "a receipt of"},
	{"goes-by-new", "change/input-refused", whatRefusal, "a receipt of"},
	{"goes-by-new", "change/action-refused", whatRefusal, "a receipt of"},
	{"goes-by-new", "change/origin-refused", whatRefusal, "a receipt of"},
}

// TestLiars: each lie fails the checks it is a lie in, for the reason it is one.
func TestLiars(t *testing.T) {
	atOnce(t, liarFails, func(t *testing.T, c fails) {
		cfg := Config{Match: []string{c.check}}
		if c.client == "hangs" {
			cfg.Timeout = time.Second
		}
		cfg.Adapter.Features = []string{FeatureTestNow, FeatureActionID}
		c.hold(t, inside(liars[c.client].main).try(t, cfg).Checks[0])
	})
}

// TestLittleClient: what the liars are without their lie passes, so nothing but the lie
// fails them. It reads again where it could return what it saved, and cannot be told
// the time.
func TestLittleClient(t *testing.T) {
	rep := inside(lying{}.main).try(t, Config{Parallel: 16, Match: []string{
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
