package servicekit_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
)

type failures map[string]string

// Each flaw of the fake fails these checks and no others, for these reasons: the
// first expectation that did not hold, and what was found begins so. Flaws that fail
// nothing are ways to conform that differ from this project's own.
var flaws = map[string]failures{
	"":                         {},
	"asynchronous":             {},
	"204 without a body":       {},
	"operation IDs in answers": {},
	"404 for unknown keys":     {},
	"takes UUIDs only":         {},
	"refuses without a record": {},

	"another profile":   {"documents/profile": "digest of the document"},
	"documents as text": {"documents/profile": "media type: text/plain", "documents/openapi": "media type: text/plain"},
	"documents redirect": {"documents/profile": "HTTP status: 302", "documents/openapi": "HTTP status: 302", "documents/valid": "documents: invalid",
		"documents/caching": "cache controls of /agentic.json"},
	"duplicate members":        {"documents/profile": "document: ", "documents/openapi": "document: ", "documents/valid": "documents: invalid document: profile:1:10 /x-y: error: The document is not strict JSON: duplicate"},
	"a page at /agentic.json":  {"documents/profile": "media type: text/html", "documents/valid": "documents: invalid", "documents/caching": "cache controls of /agentic.json"},
	"another origin's profile": {"documents/profile": "digest of the document"},
	"broken profile":           {"documents/profile": "HTTP status: 500", "documents/valid": "documents: invalid", "documents/caching": "cache controls of /agentic.json"},
	"a large document":         {"documents/size": "size of /openapi.json: 3", "documents/valid": "documents: invalid"},
	"no caching":               {"documents/caching": "cache controls of /agentic.json: none"},
	"always 200":               {"documents/caching": "If-None-Match on /agentic.json: 200"},

	"acknowledges before it tracks": {"submission/tracked-at-once": "status right after the answer: unknown",
		"repeat/concurrent-new": "resource in answer", "conflict/concurrent": "answer"},
	"slow reads": {"submission/in-time": "time of the status answer: "},
	"oversized answers": {"submission/first": "status: size: 7", "submission/answer-size": "size of the status answer: 7", "status/answer": "status: size: 7",
		"status/unknown-key-form": "status: no usable status"},
	"status of another request": {"submission/first": `status: request_id: "another"`, "status/answer": `status: request_id: "another"`,
		"status/unknown-key-form": "status: no usable status"},
	"evidence missing": {"submission/first": "resource: request id /request_id: nothing", "status/resource": "resource: request id /request_id: nothing"},
	"failed for unknown keys": {"status/unknown-key": "status: failed", "status/unknown-key-form": "status: failed",
		"body/malformed": "status of the key: failed", "body/media-type": "status of the key: failed", "body/oversized": "status of the key: failed",
		"key/case": "status of the key: failed", "key/escaped": "status of the key: failed", "key/malformed": "status of the key: failed", "key/twice": "status of the key: failed",
		"lost/after-header": "status before the whole submission: failed", "lost/in-body": "status before the whole submission: failed", "lost/in-body-reset": "status before the whole submission: failed",
		"scope/foreign-status": "status of the key: failed", "scope/no-credentials": "status of the key: failed", "scope/principal": "status of the key: failed"},
	"500 for unknown keys": {"status/unknown-key-form": "status: no usable status (500)"},

	"second resource on repeat": {"repeat/same": "resource in the answer: T-", "repeat/concurrent-old": "resource in the answer: T-", "repeat/concurrent-new": "resource in answer",
		"repeat/reformatted": "status afterwards: succeeded", "conflict/concurrent": "resources made: 8",
		"lost/unread": "resource after the repeat", "lost/unread-reset": "resource after the repeat", "lost/in-answer": "resource after the repeat", "restart/remembers": "resource in the answer"},
	"runs twice under concurrency": {"repeat/concurrent-new": "resource in answer", "conflict/concurrent": "answer"},
	"409 while the first one runs": {"repeat/concurrent-wait": "answer"},
	"503 while the first one runs": {"repeat/concurrent-wait": "answer"},
	"fingerprints bytes":           {"repeat/reformatted": "answer with white space and members in another order: 409"},
	"makes what it refuses":        {"repeat/refused": "resources made: 1"},
	"accepts other input": {"conflict/rejected": "answer to other input: 200", "conflict/form": "HTTP status: 200", "conflict/concurrent": "answer",
		"restart/remembers": "answer to other input: 200"},
	"overwrites with other input": {"conflict/rejected": "resource: input /subject: another value", "conflict/form": "resource: input /subject", "conflict/concurrent": "answer",
		"restart/remembers": "resource: input /subject"},
	"rejects other input without 409": {"conflict/form": "HTTP status: 422"},

	"makes keys":          {"key/missing": "answer to no key: 201"},
	"takes the empty key": {"key/empty": `answer to the key "": 201`},
	"takes the first key": {"key/twice": "answer to 2 keys: 201"},
	"takes any key":       {"key/malformed": "answer to the key"},
	"folds case":          {"key/case": "status of the key: succeeded"},
	"decodes twice":       {"key/escaped": "status: request_id: "},

	"takes any media type": {"body/media-type": "answer to a body of text/plain: 201"},
	"takes any body":       {"body/malformed": "answer to no body: 201"},
	"takes any size":       {"body/oversized": "answer: 201"},

	"keyed without principal": {"scope/principal": "status of the key: succeeded", "scope/foreign-status": "status of the key: succeeded", "scope/indistinguishable": "body but for the key"},
	"leaks foreign status":    {"scope/principal": "status of the key: succeeded", "scope/foreign-status": "status of the key: succeeded", "scope/indistinguishable": "body but for the key"},
	"tells of foreign keys":   {"scope/indistinguishable": "HTTP status: 403"},
	"shows foreign resources": {"scope/foreign-resource": "answer: 200"},
	"anonymous writes":        {"scope/no-credentials": "answer to the submission: 201"},

	"status streams for ever": {"redirect/none": "status: 200, the answer has more", "status/answer": "status: json: 200, the answer has more", "status/unknown-key": "status: no usable status (200, the answer has more",
		"status/unknown-key-form": "status: no usable status (200", "submission/answer-size": "size of the status answer: 200, the answer has more", "submission/first": "status: json: 200, the answer has more"},
	"status redirects": {"redirect/none": "status: 307", "submission/first": "status: http status: 307", "status/answer": "status: http status: 307",
		"status/unknown-key-form": "status: no usable status (307)"},
	"any method submits":    {"method/safe": "resources made: 2"},
	"status can be deleted": {"method/status": "DELETE on the status: 200"},

	"acts on half a body": {"lost/after-header": "status before the whole submission: succeeded", "lost/in-body": "status before the whole submission: succeeded",
		"lost/in-body-reset": "status before the whole submission: succeeded", "body/malformed": "answer to ", "body/oversized": "answer: 201"},
	"says failed when the client is gone": {"lost/unread": "status before the repeat: failed", "lost/unread-reset": "status before the repeat: failed"},
	"forgets on restart":                  {"restart/remembers": "status afterwards: unknown"},
}

func TestFlaws(t *testing.T) {
	t.Parallel()
	atOnce(t, flaws, func(t *testing.T, flaw string, want failures) {
		rep := check(t, startFake(t, flaw))
		found := failures(reasons(t, rep))
		for id, reason := range want {
			if got, ok := found[id]; ok && strings.HasPrefix(got, reason) {
				found[id] = reason
			}
		}
		if d := cmp.Diff(want, found); d != "" {
			t.Error(d)
		}
		tellsNothing(t, rep)
	})
}

// A publisher who has one place for the keys of all actions.
func TestKeyedWithoutAction(t *testing.T) {
	c := startShop(t, "", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.Replace(r.URL.Path, "/refund", "/order", 1)
			h.ServeHTTP(w, r)
		})
	})
	c.Match = []string{"scope"}
	want := failures{"scope/action": "status of the key: succeeded "}
	found := failures(reasons(t, check(t, c)))
	for id, reason := range want {
		if strings.HasPrefix(found[id], reason) {
			found[id] = reason
		}
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Error(d)
	}
}

// There is no check that nothing fails, but for those that no run makes.
func TestEveryCheckFails(t *testing.T) {
	failed := map[string]bool{"scope/action": true} // TestKeyedWithoutAction
	for _, f := range flaws {
		for id := range f {
			failed[id] = true
		}
	}
	for _, c := range servicekit.Checks() {
		if failed[c.ID] == slices.Contains(never, c.ID) {
			t.Errorf("%s: failed by a flaw: %t", c.ID, failed[c.ID])
		}
	}
}

// atOnce runs a subtest of each case, several at once: most of their time is waiting.
func atOnce[C any](t *testing.T, cases map[string]C, f func(*testing.T, string, C)) {
	t.Helper()
	slots := make(chan struct{}, 24)
	var all sync.WaitGroup
	for name, c := range cases {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, func(t *testing.T) { f(t, name, c) })
		})
	}
	all.Wait()
}

// reasons are the checks of a report that failed, each with the first expectation
// that did not hold and what was found.
func reasons(t *testing.T, rep *conformance.Report) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, c := range rep.Checks {
		switch c.Status {
		case conformance.Passed, conformance.NotExercised:
			continue
		case conformance.Failed:
		default:
			t.Errorf("%s: %s: %s", c.ID, c.Status, c.Tries[0].Error)
		}
		for _, e := range c.Tries[0].Expectations {
			if !e.OK {
				found[c.ID] = e.What + ": " + e.Found
				break
			}
		}
		if c.Tries[0].Hint == "" || len(c.Tries[0].Exchanges) == 0 {
			t.Errorf("%s failed without a hint, or without what was sent and came back", c.ID)
		}
	}
	return found
}

// tellsNothing expects that no credential and no value of an input is in a report.
func tellsNothing(t *testing.T, rep *conformance.Report) {
	t.Helper()
	text, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Printer", "on fire", annToken, bobToken} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in the report", secret)
		}
	}
}
