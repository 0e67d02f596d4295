package clientkit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit/internal/excerpt"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// What the standard expectations are called. A failed check is told by them.
const (
	whatTime      = "end within its time"
	whatExit      = "exit code"
	whatCrash     = "exit code of the crash"
	whatStdout    = "standard output"
	whatRequestID = "request_id"
	whatAction    = "action_id"
	whatOrigin    = "origin"
	whatOutcome   = "outcome"
	whatStatus    = "status read that says so"
	whatRead      = "resource read before succeeded"
	whatEvidence  = "evidence in the resource that was read"
	whatResource  = "resource_id"
	whatURL       = "evidence.url"
	whatEvID      = "evidence.resource_id"
	whatEvRequest = "evidence.request_id"
	whatState     = "evidence.state"
	whatMatched   = "evidence.matched"
	whatPosts     = "POSTs"
	whatSubmitted = "path of the POST"
	whatKey       = "Idempotency-Key"
	whatMedia     = "Content-Type"
	whatBody      = "body of the POST"
	whatFollowed  = "redirects followed"
	whatElsewhere = "requests elsewhere"
	whatChecks    = "status reads of one call"
	whatReads     = "resource reads of one call"
	whatTickets   = "tickets"
	whatReached   = "the place of the interruption"
	whatSilent    = "requests in that call"
	whatRefusal   = "a refusal"
	whatActs      = "requests beyond documents"
)

// finished takes down what a call has to hold that submits, alone in its trial, and ends
// with a receipt of one of the outcomes.
func (t *trial) finished(rep reply, want ...agentic.Outcome) {
	t.received(rep, want...)
	t.sent(rep.ask, 1)
}

// received is finished without the submission: for a call that resumes.
func (t *trial) received(rep reply, want ...agentic.Outcome) {
	t.bounded(rep)
	if t.printed(rep) {
		t.means(rep, want...)
	}
}

// printed: exit 0 and exactly one receipt, whatever its outcome (limits.md).
func (t *trial) printed(rep reply) bool {
	t.inTime(rep)
	t.Expect(whatExit, rep.exit == 0, "0", rep.code())
	return t.expect(whatStdout, rep.receipt != nil, "one valid receipt and nothing else", rep.wrong)
}

// expect is Expect for a failure in words of its own: what holds is found as expected.
func (t *trial) expect(what string, ok bool, expected, otherwise string) bool {
	if ok {
		otherwise = expected
	}
	return t.Expect(what, ok, expected, otherwise)
}

func (t *trial) inTime(rep reply) {
	t.expect(whatTime, !rep.late, "within "+t.limit.String(), "still running then")
}

// means: the receipt is of this request, and the judge knows it to be true.
func (t *trial) means(rep reply, want ...agentic.Outcome) {
	r := rep.receipt
	conformance.Equal(t.Recorder, whatRequestID, rep.ask.requestID, r.RequestID)
	conformance.Equal(t.Recorder, whatAction, t.plan.Action.ID, r.ActionID)
	conformance.Equal(t.Recorder, whatOrigin, t.plan.Origin, r.Origin)
	t.Expect(whatOutcome, slices.Contains(want, r.Outcome), joined(want), string(r.Outcome)+": "+r.Reason)
	t.truth(rep.ask.requestID, r)
}

// truth takes down whether the answers that were served let a client come to the
// receipt. Nothing can be wrong with unknown.
func (t *trial) truth(requestID string, r *agentic.Receipt) {
	k := t.known(requestID)
	switch r.Outcome {
	case agentic.Failed:
		t.Expect(whatStatus, k.failed, "a status answer of failed", k.last)
	case agentic.Pending:
		t.Expect(whatStatus, k.pending, "a status answer of pending", k.last)
	case agentic.Succeeded:
		t.expect(whatStatus, k.succeeded, "a status answer of succeeded", "the client reports succeeded; "+k.last)
		if !t.expect(whatRead, k.read, "a GET of the resource", "the client reports succeeded but never read the resource") ||
			!t.expect(whatEvidence, len(k.evidence) > 0, "a resource that is the result of this request",
				"the client reports succeeded, and what it read is no evidence: "+k.reason) {
			return
		}
		t.evidence(r, k)
	}
}

// evidence compares the receipt's with what was served.
func (t *trial) evidence(r *agentic.Receipt, k knowledge) {
	e, have := k.evidence[0], r.Evidence
	for _, each := range k.evidence { // the one that the receipt is about, or the first
		if each.ResourceID == have.ResourceID && each.State == have.State {
			e = each
		}
	}
	conformance.Equal(t.Recorder, whatResource, e.ResourceID, *r.ResourceID)
	t.Expect(whatURL, slices.Contains(k.urls, have.URL) || have.URL == e.URL, e.URL, have.URL)
	conformance.Equal(t.Recorder, whatEvID, e.ResourceID, have.ResourceID)
	conformance.Equal(t.Recorder, whatEvRequest, e.RequestID, have.RequestID)
	conformance.Equal(t.Recorder, whatState, e.State, have.State)
	missing := slices.ContainsFunc(e.Matched, func(p agentic.Pair) bool { return !slices.Contains(have.Matched, p) })
	added := slices.ContainsFunc(have.Matched, func(p agentic.Pair) bool { return !slices.Contains(e.Matched, p) })
	t.Expect(whatMatched, !missing && !added, fmt.Sprint(e.Matched), fmt.Sprint(have.Matched))
}

// knowledge is what the answers to the requests so far let a client say of one request.
type knowledge struct {
	succeeded, failed, pending bool
	read                       bool   // a resource, with any answer
	last                       string // what the last status answer was
	reason                     string // why the last resource read was no evidence
	evidence                   []agentic.ReceiptEvidence
	urls                       []string // of resource reads, as they were sent
}

func (t *trial) known(requestID string) knowledge {
	k := knowledge{last: "the status was never asked for"}
	named := map[string]bool{} // resources that a status answer named
	in, inputErr := t.plan.CheckInput(t.input)
	for _, a := range t.judge.record() {
		switch {
		case a.op == status && a.id == requestID:
			d := agentic.DecideStatus(requestID, a.answer.asAnswer())
			k.last = "the last status answer: " + d.Reason
			if !d.Usable {
				continue
			}
			k.last = "the last status answer was " + string(d.Outcome)
			switch d.Outcome {
			case agentic.Succeeded:
				k.succeeded, named[d.ResourceID] = true, true
			case agentic.Failed:
				k.failed = true
			case agentic.Pending:
				k.pending = true
			}
		case a.op == resource:
			k.read = true
			k.urls = append(k.urls, t.plan.Origin+a.path)
			if inputErr != nil {
				continue
			}
			if d := t.plan.DecideResource(requestID, a.id, in, a.answer.asAnswer()); !d.Verified {
				k.reason = d.Reason
			} else if named[a.id] {
				k.evidence = append(k.evidence, *d.Evidence)
			} else {
				k.reason = "no status answer named this resource"
			}
		}
	}
	return k
}

// sent: so many POSTs in the whole trial, each of the ask's own, and no request to where
// none belongs.
func (t *trial) sent(a ask, posts int) {
	conformance.Equal(t.Recorder, whatPosts, posts, t.requests(a))
}

// requests takes down that every POST is the ask's own, and that no request went to where
// none belongs. It gives the number of POSTs.
func (t *trial) requests(a ask) (posts int) {
	record := t.judge.record()
	redirected, elsewhere := []string{}, []string{}
	locations := map[string]bool{}
	for _, r := range record {
		if r.method == http.MethodPost {
			posts++
			t.post(a, r, posts)
		}
		where := r.method + " " + r.path
		switch {
		case locations[r.path] || locations[t.judge.origin+r.path]:
			redirected = append(redirected, where)
		case r.op == other && !(r.method == http.MethodGet && slices.Contains(documents, r.path)):
			elsewhere = append(elsewhere, where)
		}
		if r.answer.code >= 300 && r.answer.code < 400 {
			locations[r.answer.header.Get("Location")] = true
		}
	}
	t.Expect(whatFollowed, len(redirected) == 0, "none", listed(redirected))
	t.Expect(whatElsewhere, len(elsewhere) == 0, "none", listed(elsewhere))
	return posts
}

// silent: nothing arrived in that call.
func (t *trial) silent(rep reply) {
	conformance.Equal(t.Recorder, whatSilent, 0, rep.to-rep.from)
}

// refused: the client says that it does not do this, and gives no receipt.
func (t *trial) refused(rep reply) {
	t.inTime(rep)
	t.Expect(whatRefusal, rep.exit != 0 && rep.receipt == nil, "an exit code that is not 0, and no receipt",
		"exit code "+rep.code()+rep.outcome())
}

// held: whatever else the client was given, a receipt is of the trial's own request and
// true of it; a refusal is as good, and so is unknown, which claims nothing of an action
// or an origin.
func (t *trial) held(rep reply) {
	t.bounded(rep)
	if rep.receipt == nil {
		t.refused(rep)
		return
	}
	if rep.receipt.Outcome == agentic.Unknown {
		conformance.Equal(t.Recorder, whatRequestID, rep.ask.requestID, rep.receipt.RequestID)
		return
	}
	t.means(rep, agentic.Succeeded, agentic.Failed, agentic.Pending)
}

// outcome is a clause about the receipt.
func (r reply) outcome() string {
	if r.receipt == nil {
		return ", no receipt"
	}
	return ", a receipt of " + string(r.receipt.Outcome)
}

// acts are the requests that do more than to read a document, in words.
func acts(record []arrival) []string {
	var all []string
	for _, a := range record {
		if a.method != http.MethodGet || !slices.Contains(documents, a.path) {
			all = append(all, a.method+" "+a.host+a.path)
		}
	}
	return all
}

// idle: of these requests, and at the other origins of the trial, nothing was asked for but
// documents of its own.
func (t *trial) idle(record []arrival) {
	found := acts(record)
	for _, j := range t.strangers {
		for _, a := range j.record() {
			found = append(found, a.method+" "+a.host+a.path)
		}
	}
	t.Expect(whatActs, len(found) == 0, "none", listed(found))
}

// documents may be read by anybody.
var documents = []string{"/agentic.json", "/openapi.json", "/health"}

// numbered begins what tells the expectations of further POSTs from those of the first.
const numbered = " (POST "

// post: the n-th POST, from 1, as the binding has it (section 4).
func (t *trial) post(a ask, r arrival, n int) {
	of := ""
	if n > 1 {
		of = fmt.Sprintf("%s%d)", numbered, n)
	}
	conformance.Equal(t.Recorder, whatSubmitted+of, t.judge.paths.submit, r.path)
	if !r.whole {
		return // it was interrupted
	}
	conformance.Equal(t.Recorder, whatKey+of, a.requestID, strings.Join(r.header.Values("Idempotency-Key"), ", "))
	media, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	conformance.Equal(t.Recorder, whatMedia+of, "application/json", strings.ToLower(strings.TrimSpace(media)))
	want, err := strictjson.Parse(a.input)
	have, err2 := strictjson.Parse(r.body)
	same := err == nil && err2 == nil && strictjson.Equal(want, have) && len(have.Compact()) <= agentic.MaxInputBytes
	t.Expect(whatBody+of, same, string(a.input), string(r.body))
}

// bounded: one execution checks the status at most maxChecks times, and reads no more
// resources than that (sections 3 and 6.8). HTTP itself may repeat a GET once whose
// connection ended without a byte of an answer (RFC 9110, 9.2.2): that is one attempt.
func (t *trial) bounded(reps ...reply) {
	count, silent := map[operation]int{}, map[operation]int{}
	record := t.judge.record()
	for _, a := range record[reps[0].from:reps[len(reps)-1].to] {
		if a.answer.silent {
			silent[a.op]++
		} else {
			count[a.op]++
		}
	}
	checks, reads := count[status]+(silent[status]+1)/2, count[resource]+(silent[resource]+1)/2
	most := len(reps) * t.plan.Action.Recovery.MaxChecks
	t.Expect(whatChecks, checks <= most, fmt.Sprint("at most ", most), fmt.Sprint(checks))
	t.Expect(whatReads, reads <= most, fmt.Sprint("at most ", most), fmt.Sprint(reads))
}

// tickets: what the service of trial.ticket holds in the end.
func (t *trial) tickets(ctx context.Context, want int) {
	state, err := t.service.State(ctx)
	if err != nil {
		t.Expect(whatTickets, false, fmt.Sprint(want), err.Error())
		return
	}
	conformance.Equal(t.Recorder, whatTickets, want, state.Tickets)
}

// exchange is an arrival for the report, without what could be a credential.
// reused says that its connection had a request before.
func (a arrival) exchange(reused bool) conformance.Exchange {
	e := conformance.Exchange{Request: a.method + " " + a.path + excerpt.Header(a.header) + "\n\n" + excerpt.Begin(a.body)}
	var notes []string
	if reused {
		notes = append(notes, "on a connection that had a request before")
	}
	switch {
	case a.answer.hijacked:
		e.Response = string(a.answer.wire)
		notes = append(notes, fmt.Sprintf("the check took the connection over and wrote %d bytes", a.answer.written))
		if kept := len(a.answer.wire); a.answer.written > int64(kept) {
			notes = append(notes, fmt.Sprintf("the first %d are shown", kept))
		}
	case a.answer.code != 0:
		e.Response = fmt.Sprint(a.answer.code, excerpt.Header(a.answer.header), "\n\n", excerpt.Begin(a.answer.body))
	default:
		notes = append(notes, "it was not answered")
	}
	e.Note = strings.Join(notes, "; ")
	return e
}

func joined(outcomes []agentic.Outcome) string {
	words := make([]string, len(outcomes))
	for i, o := range outcomes {
		words[i] = string(o)
	}
	return strings.Join(words, " or ")
}

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func withOrigin(profile, origin string) string {
	return strings.ReplaceAll(profile, "{origin}", origin)
}

// counter counts by operation.
type counter struct {
	mu sync.Mutex
	n  map[operation]int
}

func (c *counter) next(op operation) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[operation]int{}
	}
	c.n[op]++
	return c.n[op]
}
