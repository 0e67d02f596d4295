package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/sim/durable"
)

// Invariant names a promise that holds after every step of every run.
type Invariant string

// The invariants.
const (
	OnePost       Invariant = "one-post"
	TrueSuccess   Invariant = "true-success"
	TrueFailure   Invariant = "true-failure"
	SavedReceipt  Invariant = "saved-receipt"
	FinalReceipt  Invariant = "final-receipt"
	NothingLost   Invariant = "nothing-lost"
	Bounded       Invariant = "bounded"
	PermittedCall Invariant = "permitted-call"
	SameBinding   Invariant = "same-binding"
	OneWriter     Invariant = "one-writer"
	KnownOutcome  Invariant = "known-outcome"
	NoPanic       Invariant = "no-panic"
)

// Invariants are all of them, each with what it says.
func Invariants() []struct {
	Name Invariant
	Says string
} {
	return []struct {
		Name Invariant
		Says string
	}{
		{OnePost, "A request ID is submitted at most once, over all hosts and restarts (section 6.4)."},
		{TrueSuccess, "A receipt says succeeded only if the service has made the very resource for this request, with its input, in a success state, and the client was shown it; and never after a 409 or 422 that is saved (sections 6.6 and 6.7, D10)."},
		{TrueFailure, "A receipt says failed only if the service has decided so: the resource does not exist and never will; failed and pending are what the last status said (sections 4 and 6.5, D11)."},
		{SavedReceipt, "A receipt that is returned is in the ledger (section 6.7)."},
		{FinalReceipt, "Receipts are appended, never changed; nothing follows succeeded or failed, and whoever asks later gets the same without another read (section 6.10, D11)."},
		{NothingLost, "What is sent was marked as attempted durably before, for ever, and is listed as open until it is final or a person has settled it; a refusal of it is durable before the service is asked again (section 6.3, D10)."},
		{Bounded, "Every execution ends within its checks, exchanges, waiting time and steps (section 6.8)."},
		{PermittedCall, "Nothing is sent without the right to submit, and never by a call that only reads; there is no network call unless the ledger's clock was looked at after the last one, had not gone back, and was within the window; and once it was seen to go back, every receipt says unknown (section 6.9, D16)."},
		{SameBinding, "What a request ID is bound to never changes, and what is sent is what is saved (section 6.2, D8)."},
		{OneWriter, "No hold writes once another one was given on the request, and none is given while one stands (section 6)."},
		{KnownOutcome, "Once everything works again, an execution comes to what the service holds, and after the window to a hand-over (sections 6.5 and 6.9)."},
		{NoPanic, "The engine does not panic."},
	}
}

// Violation is an invariant that does not hold.
type Violation struct {
	Invariant Invariant
	Detail    string
	Stack     string // of a panic; it is in no trace, as it names machines
	Trace     *Trace // of the run, shrunk; nil inside of a run
}

func (v *Violation) Error() string {
	return "simulation: " + string(v.Invariant) + " does not hold: " + v.Detail
}

// oracle is the plain model that a run is held against: what it has seen of each
// request.
type oracle struct {
	w        *world
	requests [maxRequests]seen
	ledger   int // store.Changes at the last audit
	service  int
}

// seen is what the oracle knows of one request.
type seen struct {
	input   *input // that the hosts want for it
	posts   int
	saved   *durable.Request // in the ledger; nil before
	binding client.Binding
	created time.Time

	attempted bool
	receipts  []agentic.Receipt
	purged    bool
}

func (o *oracle) input(i int) *input { return o.requests[i].input }

func index(id string) int { return int(id[len(id)-1] - '1') }

// audit compares the ledger and the service with what was seen of them before.
func (o *oracle) audit() {
	w := o.w
	if o.ledger == w.store.Changes && o.service == w.service.changes {
		return
	}
	o.ledger, o.service = w.store.Changes, w.service.changes
	for i := range o.requests {
		s := &o.requests[i]
		r := w.store.Get(durable.Key{Scope: scope, ID: requestID(i)})
		switch {
		case r == nil && s.saved != nil:
			w.fail(NothingLost, "%s is not in the ledger any more", requestID(i))
		case r != nil:
			o.auditRequest(s, r)
		}
	}
	for _, t := range w.service.tickets {
		if i := index(t.request); o.requests[i].has(agentic.Failed) {
			w.fail(TrueFailure, "%s has a receipt that says failed, and the service made %s for it", t.request, t.id)
		}
	}
}

func (s *seen) has(outcome agentic.Outcome) bool {
	n := len(s.receipts)
	return n > 0 && s.receipts[n-1].Outcome == outcome
}

func (o *oracle) auditRequest(s *seen, r *durable.Request) {
	w, rec := o.w, &r.Record
	if s.attempted && rec.State != client.Attempted {
		w.fail(NothingLost, "%s was attempted, and is %s now", rec.RequestID, rec.State)
	}
	s.attempted = rec.State == client.Attempted
	if s.purged = !rec.PurgedAt.IsZero(); s.purged {
		if n := len(s.receipts); n > 0 && rec.Purged != s.receipts[n-1].Outcome {
			w.fail(FinalReceipt, "%s was %s when it was purged, and its tombstone says %s", rec.RequestID, s.receipts[n-1].Outcome, rec.Purged)
		}
		return
	}
	if s.saved == nil {
		s.saved, s.binding, s.created = r, rec.Binding, rec.CreatedAt
		s.binding.Input = append([]byte(nil), rec.Input...)
	}
	if b := &s.binding; string(b.Input) != string(rec.Input) || b.InputDigest != rec.InputDigest || b.Origin != rec.Origin || b.ActionID != rec.ActionID ||
		b.Profile.Digest != rec.Profile.Digest || b.OpenAPI.Digest != rec.OpenAPI.Digest || !s.created.Equal(rec.CreatedAt) {
		w.fail(SameBinding, "%s is bound to something else than before", rec.RequestID)
	}
	if len(rec.Receipts) < len(s.receipts) {
		w.fail(FinalReceipt, "%s had %d receipts, and has %d now", rec.RequestID, len(s.receipts), len(rec.Receipts))
		return
	}
	for i := range s.receipts {
		if !sameReceipt(&s.receipts[i], &rec.Receipts[i]) {
			w.fail(FinalReceipt, "receipt %d of %s said %s, and says %s now", i+1, rec.RequestID, s.receipts[i].Outcome, rec.Receipts[i].Outcome)
		}
	}
	for i := len(s.receipts); i < len(rec.Receipts); i++ {
		if i > 0 && rec.Receipts[i-1].Outcome.Final() {
			w.fail(FinalReceipt, "%s said %s, and then %s", rec.RequestID, rec.Receipts[i-1].Outcome, rec.Receipts[i].Outcome)
		}
		o.judge(rec, &rec.Receipts[i])
		s.receipts = append(s.receipts, rec.Receipts[i].Clone())
	}
}

func sameReceipt(a, b *agentic.Receipt) bool {
	same := a.Outcome == b.Outcome && a.ObservedAt == b.ObservedAt && a.Reason == b.Reason && (a.ResourceID == nil) == (b.ResourceID == nil) &&
		(a.Evidence == nil) == (b.Evidence == nil)
	return same && (a.ResourceID == nil || *a.ResourceID == *b.ResourceID)
}

// judge holds a new receipt against what the service has.
func (o *oracle) judge(rec *client.Record, r *agentic.Receipt) {
	w := o.w
	switch r.Outcome {
	case agentic.Succeeded:
		w.count.add(cSucceeded)
		if status := refusal(rec); status != 0 {
			w.fail(TrueSuccess, "%s has a receipt that says succeeded, though its submission was refused with %d", rec.RequestID, status)
		}
		if problem := o.unlike(rec, r); problem != "" {
			w.fail(TrueSuccess, "%s has a receipt that says succeeded, and %s", rec.RequestID, problem)
		}
	case agentic.Failed:
		w.count.add(cFailedReceipt)
		if e := w.service.entries[rec.RequestID]; e == nil || e.state != agentic.Failed {
			state := "nothing"
			if e != nil {
				state = string(e.state)
			}
			w.fail(TrueFailure, "%s has a receipt that says failed, and the service has decided: %s", rec.RequestID, state)
		}
	case agentic.Pending:
		w.count.add(cPendingReceipt)
	default:
		w.count.add(cUnknownReceipt)
	}
}

// shown remembers what an execution was shown last, if it is fit to be believed: text and
// all, as this service writes it.
func (o *oracle) shown(x *execution, id string, isStatus bool, ex client.Exchange) {
	body := ""
	if ex.Class == "" && ex.Answer.Status == 200 && ex.Answer.ContentType == jsonMedia {
		body = string(ex.Answer.Body)
	}
	if !isStatus {
		x.ticket = body
		return
	}
	x.status = ""
	if strings.HasPrefix(body, `{"request_id":"`+id+`","status":"`) {
		x.status = body
		x.claimed = x.claimed || strings.Contains(body, `"succeeded"`)
	}
}

// grounds judges whether an execution was shown what its receipt says.
func (o *oracle) grounds(x *execution, rec *client.Record, r *agentic.Receipt) {
	w := o.w
	switch r.Outcome {
	case agentic.Succeeded:
		in := inputOf(string(rec.Input))
		for _, urgent := range []bool{false, true} { // not part of the evidence
			if r.ResourceID != nil && r.Evidence != nil && x.ticket == fmt.Sprintf(ticketForm, *r.ResourceID, fmt.Sprintf(requestForm, rec.RequestID), in.subject, urgent, r.Evidence.State) {
				return
			}
		}
		w.fail(TrueSuccess, "%s has a receipt that says succeeded, and the resource that was read is %s", rec.RequestID, orNone(x.ticket))
	case agentic.Failed, agentic.Pending:
		if !strings.Contains(x.status, `"`+string(r.Outcome)+`"`) {
			w.fail(TrueFailure, "%s has a receipt that says %s, and the status that was read is %s", rec.RequestID, r.Outcome, orNone(x.status))
		}
		if r.Outcome == agentic.Failed && x.claimed {
			w.fail(TrueFailure, "%s has a receipt that says failed, though the service said succeeded before (D11)", rec.RequestID)
		}
	}
}

// unlike is in what the service has nothing like a receipt says, or "".
func (o *oracle) unlike(rec *client.Record, r *agentic.Receipt) string {
	want := inputOf(string(rec.Input))
	for _, t := range o.w.service.tickets {
		if r.ResourceID == nil || t.id != *r.ResourceID {
			continue
		}
		e := o.w.service.entries[t.request]
		foreign := e != nil && e.foreign // then evidence is all that a client can compare
		success := false
		for _, state := range t.states {
			success = success || (state == "open" || state == "closed") && r.Evidence != nil && r.Evidence.State == state
		}
		switch {
		case t.request != rec.RequestID:
			return t.id + " belongs to " + t.request
		case t.subject != want.subject || t.input != want && !foreign:
			return t.id + " was made from another input"
		case !success:
			return t.id + " was never in that state"
		}
		return ""
	}
	return "the service has no such resource"
}

// posting is asked when a POST is about to leave.
func (o *oracle) posting(p *process, s *client.Submission) {
	w := o.w
	x := p.exec
	i := index(s.RequestID)
	seen := &o.requests[i]
	seen.posts++
	x.posts++
	if seen.posts > 1 {
		w.fail(OnePost, "%s is submitted for the second time", s.RequestID)
	}
	r := w.store.Get(durable.Key{Scope: scope, ID: s.RequestID})
	switch {
	case r == nil:
		w.fail(NothingLost, "%s is submitted, and is not in the ledger", s.RequestID)
	case r.Record.State != client.Attempted:
		w.fail(NothingLost, "%s is submitted, and is durably only %s", s.RequestID, r.Record.State)
	case string(s.Body) != string(r.Record.Input) || s.URL != origin+"/tickets" || i != x.request:
		w.fail(SameBinding, "what is submitted for %s is not what is saved: %s", s.RequestID, s.Body)
	}
	h := p.hold
	if h == nil || !h.asked || !h.grant.MaySubmit || !h.stands() {
		w.fail(PermittedCall, "%s is submitted by %s, which has not the right to at this moment", s.RequestID, p.name)
	}
	if x.reads {
		w.fail(PermittedCall, "%s is submitted by a call that only reads", s.RequestID)
	}
	if h != nil {
		h.asked = false
	}
	o.permitted(p, "submission")
	p.unwindIfBad()
}

// getting is asked when a GET is about to leave.
func (o *oracle) getting(p *process, id string, isStatus bool) {
	x := p.exec
	if isStatus {
		if x.statuses++; id != requestID(x.request) {
			o.w.fail(SameBinding, "the status of %s is read for %s", id, requestID(x.request))
		}
		o.permitted(p, "status check")
	} else {
		x.verifies++
		o.permitted(p, "resource read")
	}
	switch {
	case x.finished != nil:
		o.w.fail(FinalReceipt, "the service is asked about %s, whose final receipt is saved", requestID(x.request))
	case x.refused && p.hold != nil && refusal(&p.hold.grant.Request.Record) == 0 && p.hold.stands():
		o.w.fail(NothingLost, "the submission of %s was refused, and the service is asked again before that is durable", requestID(x.request))
	}
	o.bounded(x)
	p.unwindIfBad()
}

// refusal is the 409 or 422 that is saved of a submission, or 0 (D10).
func refusal(rec *client.Record) int {
	for i := range rec.Observations {
		if ob := &rec.Observations[i]; ob.Kind == client.ExchangeSubmit && (ob.Status == 409 || ob.Status == 422) {
			return ob.Status
		}
	}
	return 0
}

// unwindIfBad ends a process whose run has come to its point.
func (p *process) unwindIfBad() {
	if p.w.bad != nil {
		p.dead = true
		panic(halt{})
	}
}

// permitted judges a network call by what the ledger's clock showed last.
func (o *oracle) permitted(p *process, what string) {
	w, h := o.w, p.hold
	if h == nil {
		w.fail(PermittedCall, "a %s is made without a hold", what)
		return
	}
	rec := h.record
	switch {
	case !h.looked:
		w.fail(PermittedCall, "a %s is made without a look at the clock since the last exchange", what)
	case h.shown.Before(rec.CreatedAt) || h.shown.Before(rec.SeenAt) || h.shown.Before(h.top):
		w.fail(PermittedCall, "a %s is made though the clock, at %s, has gone back", what, agentic.FormatTime(h.shown))
	case h.shown.Sub(rec.CreatedAt) >= w.limits.window:
		w.fail(PermittedCall, "a %s is made though the window ended %s ago", what, h.shown.Sub(rec.CreatedAt)-w.limits.window)
	}
	h.looked = false
}

// bounded judges how much an execution does.
func (o *oracle) bounded(x *execution) {
	w, l := o.w, o.w.limits
	took, most := w.now-x.start-x.excused, x.wait+l.term+time.Second
	switch {
	case x.posts > 1 || x.statuses > l.checks || x.verifies > l.checks:
		w.fail(Bounded, "an execution made %d submissions, %d status checks and %d resource reads with maxChecks %d", x.posts, x.statuses, x.verifies, l.checks)
	case took > most:
		w.fail(Bounded, "an execution lasts %s, and may last %s", took, most)
	case x.steps > 150+40*l.checks:
		w.fail(Bounded, "an execution makes %d steps", x.steps)
	}
}

// wrote is asked after every write of a hold.
func (o *oracle) wrote(h *hold) {
	if r := h.grant.Request; h.grant != r.Holder && r.Holder != nil {
		o.w.fail(OneWriter, "%s writes to %s, which another hold was given on", h.p.name, r.Record.RequestID)
	}
}

// returned judges what a call of the engine came to.
func (o *oracle) returned(x *execution, res *client.Result, err error) {
	w := o.w
	id := requestID(x.request)
	r := w.store.Get(durable.Key{Scope: scope, ID: id})
	o.count(res, err)
	if err != nil && !errors.Is(err, errPrepared) {
		return
	}
	switch {
	case r == nil:
		w.fail(NothingLost, "a call about %s ends well, and the ledger does not have it", id)
		return
	case o.requests[x.request].purged: // meanwhile
		return
	}
	if x.asked != nil && inputOf(string(r.Record.Input)) != x.asked {
		w.fail(SameBinding, "%s is bound to %s, and was asked for with %s", id, r.Record.Input, x.asked.body)
	}
	if err != nil {
		return
	}
	saved := false
	for i := range r.Record.Receipts {
		saved = saved || sameReceipt(&r.Record.Receipts[i], &res.Receipt)
	}
	switch {
	case !saved:
		w.fail(SavedReceipt, "the receipt %s of %s is returned, and is not in the ledger", res.Receipt.Outcome, id)
	case x.finished != nil && !sameReceipt(x.finished, &res.Receipt):
		w.fail(FinalReceipt, "%s was %s before, and %s is returned", id, x.finished.Outcome, res.Receipt.Outcome)
	}
}

// count counts what calls come to.
func (o *oracle) count(res *client.Result, err error) {
	c := o.w.count
	switch {
	case err == nil:
		if res.FromSaved {
			c.add(cFromSaved)
		}
		if res.WindowEnded {
			c.add(cWindowEnded)
		}
	case is[*client.BindingError](err):
		c.add(cErrBinding)
	case is[*client.DuplicateError](err):
		c.add(cErrDuplicate)
	case is[*client.NotFoundError](err):
		c.add(cErrNotFound)
	case is[*client.PreparedError](err):
		c.add(cErrPrepared)
	case is[*client.ExpiredError](err):
		c.add(cErrExpired)
	case is[*client.SettledError](err):
		c.add(cErrSettled)
	case is[*client.PurgedError](err):
		c.add(cErrPurged)
	case is[*client.InterruptedError](err):
		c.add(cErrInterrupted)
	case errors.Is(err, client.ErrLedger):
		c.add(cErrLedger)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// listed judges whether the ledger still shows what is open.
func (o *oracle) listed() {
	w := o.w
	open := w.list(client.Filter{Open: true}.In(scope))
	var ids strings.Builder
	for i := range open {
		ids.WriteString(open[i].RequestID + " ")
	}
	for i := range o.requests {
		s := &o.requests[i]
		if s.posts == 0 || s.has(agentic.Succeeded) || s.has(agentic.Failed) || s.saved == nil || s.purged || s.saved.Record.Settled() != nil {
			continue
		}
		if !strings.Contains(ids.String(), requestID(i)) {
			w.fail(NothingLost, "%s was submitted, is not final, and is not listed as open", requestID(i))
		}
	}
}

// settles has one host go on with every request once nothing fails any more, and
// judges what that comes to.
func (o *oracle) settles(p *process) {
	w := o.w
	for i := range o.requests {
		if s := &o.requests[i]; s.saved == nil || !s.attempted || s.purged {
			continue
		}
		rec := &o.requests[i].saved.Record
		settled, changes := rec.Settled() != nil, w.service.changes
		want := o.expected(rec)
		res, err := p.reconcile(i, true)
		switch {
		case err != nil:
			w.fail(KnownOutcome, "nothing fails any more, and %s gives an error: %v", requestID(i), err)
		case want == "" || settled || changes != w.service.changes:
		case res.Receipt.Outcome != want:
			w.fail(KnownOutcome, "nothing fails any more, the service says %s of %s, and its receipt says %s: %s", want, requestID(i), res.Receipt.Outcome, res.Receipt.Reason)
		default:
			w.count.add(cKnown)
		}
	}
	o.listed()
}

// expected is what the next execution has to come to, or "" when the oracle does not
// know.
func (o *oracle) expected(rec *client.Record) agentic.Outcome {
	w := o.w
	now := w.clock()
	if durable.Final(rec) {
		return rec.Last().Outcome
	}
	latest := now.Add(2 * w.limits.term) // of waiting and executing
	switch {
	case latest.Before(rec.SeenAt), now.Sub(rec.CreatedAt) >= rec.Window:
		return agentic.Unknown
	case w.service.breaks != keepsAll, now.Before(rec.SeenAt), latest.Sub(rec.CreatedAt) >= rec.Window:
		return ""
	}
	e := w.service.entries[rec.RequestID]
	switch {
	case e == nil || w.service.forgotten(e):
		return agentic.Unknown
	case w.now+2*w.limits.term-e.since >= w.limits.window:
		return ""
	}
	if e.state != agentic.Succeeded {
		return e.state
	}
	if refusal(rec) != 0 {
		return agentic.Unknown
	}
	state := e.ticket.states[len(e.ticket.states)-1]
	if e.ticket.subject != inputOf(string(rec.Input)).subject || state != "open" && state != "closed" {
		return agentic.Unknown
	}
	return agentic.Succeeded
}
