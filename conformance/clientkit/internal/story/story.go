// Package story holds the checks of one call of a client against a service that keeps
// every promise but for one thing, told as tables: what each operation answers, down to
// the bytes, and which outcome is right.
//
// Not its job: listening, starting the client, or judging it; package clientkit does, and
// gives a reaction what it needs as a Told. It imports the root package, conformance and
// internal/strictjson.
package story

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// Story is one check.
type Story struct {
	conformance.Info
	Terms      Terms
	Input      string // "" is any with a subject alone
	ResourceID string // "" is "T-1"
	Hint       string // of a failure: where to look

	// The n-th arrival of an operation gets the n-th reaction, later ones the last; with
	// none all get the honest one.
	Submit, Status, Resource []Reaction

	Want     agentic.Outcome // "": nothing is sent
	NoRead   bool            // no resource is read
	OneCheck bool            // the status is read once
	Segment  bool            // each read of a resource has ResourceID as one escaped segment
}

// All is every story, in the order of a run.
func All() []Story {
	return slices.Concat(broken(), sizes(), redirects(), informational(), answers(), outcomes(), submissions(),
		evidence(), values(), pointers(), identifiers())
}

// Reaction answers one arrival.
type Reaction func(t *Told, w http.ResponseWriter, r *http.Request)

// Told is what a story is told with: one run against one client. Its fields are set
// before the first reaction.
type Told struct {
	RequestID, ResourceID string
	Input                 []byte
	Timeout               time.Duration // of one exchange, by the profile
	Abroad                string        // another origin, which nobody may talk to
	Closed                <-chan struct{}
	Unanswered            func(http.ResponseWriter) // told when its connection ends without a byte

	taken  atomic.Int64
	mu     sync.Mutex
	stayed []string
}

// ToSpare is what a client may take beyond its time limit before an answer is ended for
// it: it may be slow, and the machine busy.
const ToSpare = 4 * time.Second

// MostTaken is more than 64 KiB and what the systems of both sides may buffer.
const MostTaken = 32 << 20

// Stayed are the requests whose client did not give up in its time and ToSpare.
func (t *Told) Stayed() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.stayed)
}

func (t *Told) stays(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stayed = append(t.stayed, what)
}

// Taken is the most that went into one answer without end, in bytes.
func (t *Told) Taken() int64 { return t.taken.Load() }

// Pick is the reaction to the n-th arrival, from 1.
func Pick(list []Reaction, n int, honest Reaction) Reaction {
	if len(list) == 0 {
		return honest
	}
	return list[min(n, len(list))-1]
}

// The honest answers. In all texts of a story "{key}" is the request ID, "{KEY}" the same
// in upper case and "{id}" the resource's ID, each as a JSON text, and "{members}" the
// input after its opening brace.
var (
	HonestSubmit   = say(http.StatusCreated, resourceText)
	HonestStatus   = say(http.StatusOK, statusText)
	HonestResource = say(http.StatusOK, resourceText)
)

const (
	statusText   = `{"request_id":{key},"status":"succeeded","resource_id":{id}}`
	resourceText = `{"id":{id},"request_id":{key},"status":"open",{members}`
	pendingText  = `{"request_id":{key},"status":"pending","resource_id":null}`
	failedText   = `{"request_id":{key},"status":"failed","resource_id":null}`
	unknownText  = `{"request_id":{key},"status":"unknown","resource_id":null}`
	asJSON       = "application/json"
)

func (t *Told) fill(text string) string {
	quote := func(s string) string { return string(strictjson.Quote(s)) }
	return strings.NewReplacer("{key}", quote(t.RequestID), "{KEY}", quote(strings.ToUpper(t.RequestID)), "{id}", quote(t.ResourceID),
		"{members}", strings.TrimPrefix(string(t.Input), "{")).Replace(text)
}

// role is an operation as stories are told of it.
type role struct {
	id, name string
	text     string                     // of its honest answer
	spoil    func(s *Story, r Reaction) // every answer of it
	want     agentic.Outcome            // when no answer of it is usable
}

// roles: a broken answer to the POST is reconciled (section 6.5), a broken read
// establishes nothing (section 6.9).
var (
	theSubmit   = role{"submit", "the POST", resourceText, func(s *Story, r Reaction) { s.Submit = always(r) }, agentic.Succeeded}
	theStatus   = role{"status", "every status read", statusText, func(s *Story, r Reaction) { s.Status = always(r) }, agentic.Unknown}
	theResource = role{"resource", "every resource read", resourceText, func(s *Story, r Reaction) { s.Resource = always(r) }, agentic.Unknown}
	roles       = []role{theSubmit, theStatus, theResource}
)

// must is the Info of a check of a binding sentence of the draft; sections are parted by
// blanks.
func must(id, group, title, sections, asks string) conformance.Info {
	return conformance.Info{ID: id, Group: group, Title: title, Level: conformance.Must, Sections: strings.Fields(sections), Asks: asks}
}

// reading is must for this project's reading; its sections name a decision.
func reading(id, group, title, sections, asks string) conformance.Info {
	i := must(id, group, title, sections, asks)
	i.Level = conformance.Reading
	return i
}

// always is one reaction to every arrival.
func always(r Reaction) []Reaction { return []Reaction{r} }

// say answers with application/json.
func say(code int, text string) Reaction { return sayAs(code, asJSON, text) }

// sayAs answers with a media type of its own, none with "".
func sayAs(code int, media, text string) Reaction {
	return func(t *Told, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if media != "" {
			w.Header().Set("Content-Type", media)
		}
		body := t.fill(text)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// tell answers 200 with application/json.
func tell(text string) Reaction { return say(http.StatusOK, text) }

// Terms are what a story's documents say; each zero value has a meaning.
type Terms struct {
	checks, delay, timeout int      // 0: 2 checks, no delay, 3000 ms
	id, request, state     string   // pointers; "": /id, /request_id, /status
	pairs                  []string // input and resource pointers in turn; none: /subject, /subject
	path                   string   // of the resource; "" is /tickets/{ticketId}
}

// Profile is a profile with one action, create-ticket; "{origin}" stands in it for the
// origin.
func (s Terms) Profile() string {
	quote := func(p, or string) string { return string(strictjson.Quote(cmp.Or(p, or))) }
	pairs := s.pairs
	if len(pairs) == 0 {
		pairs = []string{"/subject", "/subject"}
	}
	var bindings []string
	for i := 0; i+1 < len(pairs); i += 2 {
		bindings = append(bindings, `{"inputPointer":`+quote(pairs[i], "")+`,"resourcePointer":`+quote(pairs[i+1], "")+`}`)
	}
	return fmt.Sprintf(`{"agentic":"0.1.0-draft","origin":"{origin}","actions":[{"id":"create-ticket","description":"Create a ticket.",`+
		`"openapi":"/openapi.json","submit":"createTicket","status":"getRequestStatus","verify":"getTicket",`+
		`"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":3600},`+
		`"bindings":{"statusRequestId":"requestId","verifyResourceId":"ticketId"},`+
		`"evidence":{"resourceIdPointer":%s,"requestIdPointer":%s,"statePointer":%s,"successValues":["open","closed"],"inputBindings":[%s]},`+
		`"recovery":{"maxChecks":%d,"checkDelayMs":%d,"timeoutMs":%d,"retry":"never-automatically"}}]}`,
		quote(s.id, "/id"), quote(s.request, "/request_id"), quote(s.state, "/status"), strings.Join(bindings, ","),
		cmp.Or(s.checks, 2), s.delay, cmp.Or(s.timeout, 3000))
}

// OpenAPI is the document of that action.
func (s Terms) OpenAPI() string {
	return strings.ReplaceAll(openapiText, "{resource}", cmp.Or(s.path, "/tickets/{ticketId}"))
}

const openapiText = `{"openapi":"3.1.0","info":{"title":"Tickets","version":"1"},"paths":{` +
	`"/tickets":{"post":{"operationId":"createTicket",` +
	`"parameters":[{"name":"Idempotency-Key","in":"header","required":true,"schema":{"type":"string"}}],` +
	`"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{"201":{"description":"Created."}}}},` +
	`"/requests/{requestId}":{"get":{"operationId":"getRequestStatus",` +
	`"parameters":[{"name":"requestId","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"Status."}}}},` +
	`"{resource}":{"get":{"operationId":"getTicket",` +
	`"parameters":[{"name":"ticketId","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"Ticket."}}}}}}`
