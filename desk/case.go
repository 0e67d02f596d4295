package desk

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Kind names what a request waits for, or why it waits for nothing. It is stable.
type Kind string

// The kinds. Of what was attempted and is open, all but Pending and Running end with
// an unknown outcome unless a later reading says more.
const (
	Final        Kind = "final"        // a receipt says succeeded or failed
	Settled      Kind = "settled"      // a person settled it
	Purged       Kind = "purged"       // a tombstone
	Unsent       Kind = "unsent"       // prepared, provably never sent
	Running      Kind = "running"      // attempted so short a time ago that the execution may go on
	NoTrace      Kind = "no-trace"     // attempted, and nothing was saved of any exchange
	Interrupted  Kind = "interrupted"  // the POST was made or tried; no status was read since
	Pending      Kind = "pending"      // the service says that it is not resolved
	Forgotten    Kind = "forgotten"    // the service says that it does not know
	Unreadable   Kind = "unreadable"   // a status or resource could not be read, or the answer does not count
	Mismatch     Kind = "mismatch"     // the resource that the service names does not have the evidence
	Refused      Kind = "refused"      // the service refused this submission and reports a success (D10)
	Contradicted Kind = "contradicted" // the service said two things that exclude each other (D11)
	ClockBack    Kind = "clock-back"   // the host's clock moved backwards (D16)
	NothingSent  Kind = "nothing-sent" // the clock stopped the execution before the POST (D16)
)

// Case is what a person needs to judge a request. Its texts are this package's own;
// nothing that a publisher, a service or a person wrote is in them, but for the
// names in Wrong, which are untrusted (D6).
type Case struct {
	Kind        Kind          `json:"kind"`
	Open        bool          `json:"open"`         // as client.Summary
	NeedsPerson bool          `json:"needs_person"` // as client.Summary
	Left        time.Duration `json:"-"`            // of the tracking window; 0 once it has ended
	Why         string        `json:"why"`
	Post        string        `json:"post,omitempty"`  // what is known about the one POST
	Wrong       []string      `json:"wrong,omitempty"` // names of the checks that failed in the last answer
	Look        []string      `json:"look,omitempty"`  // what to look for at the service
	Choices     []Choice      `json:"choices"`         // empty when there is nothing to do
}

// Choice is one thing that a person can do.
type Choice struct {
	Name string `json:"name"` // "send", or the verb as the command has it
	Does string `json:"does"`
	Risk string `json:"risk"`
}

// CaseOf judges a request by what its ledger holds and by the time, which should be
// the ledger's. It reads nothing else.
func CaseOf(rec *client.Record, now time.Time) Case {
	sum := rec.Summary()
	c := Case{Open: sum.Open(), NeedsPerson: sum.NeedsPerson(now), Left: max(0, sum.WindowEnds.Sub(now)), Choices: []Choice{}}
	settled := sum.Settled != "" || rec.Settled() != nil
	switch {
	case !rec.PurgedAt.IsZero():
		c.Kind, c.Why = Purged, "It was purged. Its ID stays used, and nothing more is kept of it."
		return c
	case sum.Outcome.Final():
		c.Kind, c.Why = Final, "A receipt says "+string(sum.Outcome)+". That is final."
		return c
	case rec.State == client.Prepared && settled:
		c.Kind, c.Why = Settled, "A person settled it before it was sent, so it is never sent."
		if Successor(rec) == "" {
			c.Choices = append(c.Choices, anew(rec))
		}
		return c
	case rec.State == client.Prepared:
		c.Kind, c.Why = Unsent, "It was prepared and provably never sent."
		switch {
		case c.Left == 0:
			c.Why += " Its tracking window has ended, so the service need not know it any more, and it is not sent any more: prepare a new one."
		case rec.Supersedes == "":
			c.Choices = append(c.Choices, send)
		default:
			c.Choices = append(c.Choices, sendInstead)
		}
		c.Choices = append(c.Choices, abandonUnsent, anew(rec))
		return c
	}
	c.Kind, c.Why, c.Wrong = attempted(rec, now)
	c.Post = post(rec, c.Kind)
	ended := c.Left == 0
	if ended {
		c.Why = "The tracking window has ended, so the service may have forgotten the request, and its status is not read any more. Before that: " + c.Why
	}
	if settled {
		c.Kind, c.Why = Settled, "A person settled it. Before that: "+c.Why
	} else {
		c.Look = look(rec)
	}
	c.Choices = choices(rec, c.Kind, ended)
	return c
}

// The beginnings of reasons in receipts of package client that no exchange shows.
const (
	reasonClock       = "The host's clock moved backwards"
	reasonNothingSent = "Nothing was sent. "
)

// attempted says why an attempted request has no final receipt, and which checks of
// the last answer failed.
func attempted(rec *client.Record, now time.Time) (k Kind, why string, wrong []string) {
	last := rec.Last()
	obs := rec.Observations
	submitted := false
	for _, o := range obs {
		submitted = submitted || o.Kind == client.ExchangeSubmit
	}
	switch {
	case last == nil && now.Before(client.AfterAttempt(rec.SeenAt, rec.Term)):
		return Running, fmt.Sprintf("It was attempted, and the execution may still be running: it takes %s at most.", rec.Term), nil
	case last != nil && strings.HasPrefix(last.Reason, reasonNothingSent) && !submitted:
		return NothingSent, "The host took the right to send it, and then a clock that could not be trusted stopped it before the POST.", nil
	case last != nil && strings.HasPrefix(last.Reason, reasonClock):
		return ClockBack, "The host's clock moved backwards, so the tracking window cannot be judged.", nil
	case len(obs) == 0:
		return NoTrace, "The host stopped after it had marked the request as attempted, and before it saved anything about an exchange.", nil
	}
	o := obs[len(obs)-1]
	at := agentic.FormatTime(o.At)
	for _, check := range o.Checks {
		if !check.OK {
			wrong = append(wrong, check.Name)
		}
	}
	what := "status"
	if o.Kind == client.ExchangeVerify {
		what = "resource"
	}
	switch {
	case o.Kind == client.ExchangeSubmit:
		return Interrupted, "The host stopped after the POST and before it had read a status.", nil
	case o.Class != "":
		return Unreadable, fmt.Sprintf("At %s the %s could not be read (%s).", at, what, o.Class), wrong
	case o.Kind == client.ExchangeVerify && len(wrong) > 0:
		return Mismatch, fmt.Sprintf("The service said that it succeeded, and at %s its resource (HTTP status %d) did not have the evidence: %d of %d checks failed.", at, o.Status, len(wrong), len(o.Checks)), wrong
	case o.Kind == client.ExchangeVerify:
		return Interrupted, fmt.Sprintf("At %s the resource had the evidence, and the host stopped before it had written a receipt.", at), nil
	case len(wrong) > 0:
		return Unreadable, fmt.Sprintf("The answer to the status read of %s, with HTTP status %d, does not count: %d of %d checks failed.", at, o.Status, len(wrong), len(o.Checks)), wrong
	}
	return said(rec, o.Outcome, at)
}

// said is what the last status answer makes of a request, when it counts.
func said(rec *client.Record, o agentic.Outcome, at string) (k Kind, why string, wrong []string) {
	switch o {
	case agentic.Pending:
		return Pending, fmt.Sprintf("At %s the service said that it is not resolved yet.", at), nil
	case agentic.Succeeded:
		if status := refused(rec); status != 0 {
			return Refused, fmt.Sprintf("The service refused this submission with HTTP status %d, so the success that it reports may be that of an earlier request under the same ID.", status), nil
		}
		return Mismatch, fmt.Sprintf("At %s the service said that it succeeded, and its resource was not read.", at), nil
	case agentic.Failed:
		return Contradicted, fmt.Sprintf("At %s the service said that it failed, and before that, that it succeeded.", at), nil
	}
	for _, earlier := range rec.Observations {
		if earlier.Outcome == agentic.Pending || earlier.Outcome == agentic.Succeeded {
			return Forgotten, fmt.Sprintf("At %s the service said that it does not know the outcome; earlier it said %s.", at, earlier.Outcome), nil
		}
	}
	return Forgotten, fmt.Sprintf("At %s the service said that it does not know the outcome: it never got the request, or has forgotten it.", at), nil
}

// refused is the HTTP status with which the service refused the submission (D10).
func refused(rec *client.Record) int {
	for _, o := range rec.Observations {
		if o.Kind == client.ExchangeSubmit && (o.Status == 409 || o.Status == 422) {
			return o.Status
		}
	}
	return 0
}

// post is what is known about the one POST.
func post(rec *client.Record, k Kind) string {
	for _, o := range rec.Observations {
		switch {
		case o.Kind != client.ExchangeSubmit:
		case o.Reach == client.Answered:
			return fmt.Sprintf("It was answered with HTTP status %d, which proves nothing by itself.", o.Status)
		case o.Reach == client.NotSent:
			return fmt.Sprintf("It did not leave this host (%s).", o.Class)
		default:
			return fmt.Sprintf("It had no answer (%s), so nobody can tell whether it arrived.", o.Class)
		}
	}
	switch k {
	case Running:
		return "Nothing is saved about it yet."
	case NothingSent:
		return "It was not made."
	}
	return "Nothing is saved about it. A host that died before the POST and a POST whose traces were lost look the same, and nobody can tell them apart."
}

// look is what a person looks for at the service.
func look(rec *client.Record) []string {
	return []string{
		"Anything that the service keeps under this request ID, which the POST carries as its Idempotency-Key.",
		fmt.Sprintf("A result of this input that was made at %s or later.", agentic.FormatTime(rec.AttemptedAt)),
	}
}

// What people can do. The texts are stable enough for a guide, and no contract.
var (
	send = Choice{"send", "Sends it, for the only time.",
		"None beyond the action itself: it was never sent before."}
	sendInstead = Choice{"send", send.Does,
		"The request that it supersedes may have happened; then this does it a second time."}
	abandonUnsent = Choice{"abandon", "Takes it off the desk. It is never sent from then on.",
		"None: it was never sent."}
	recheck = Choice{"recheck", "Reads the status once more, and the evidence if the service says that it succeeded. It sends nothing.",
		"None: it only reads."}
	closeWindow = Choice{"recheck", "Writes down in a receipt that the window has ended. Nothing is sent or read.",
		"None."}
	attestSucceeded = Choice{"attest succeeded", "Records that you looked at the service and found it done, and as which resource.",
		"If the resource belongs to another request, work that was not done counts as done."}
	attestFailed = Choice{"attest failed", "Records that you looked at the service and it did not happen. A new request may be made.",
		"If it happened after all, or still does, a new request does it a second time."}
	abandon = Choice{"abandon", "Takes it off the desk as it is. Nothing reads its status any more.",
		"Nobody will know whether it happened, and a new request may do it a second time."}
	supersede = Choice{"supersede", "Makes a new request with the same input, linked to this one. It is sent by a command of its own.",
		"The first request may have happened; the new one may do it a second time."}
	supersedeUnsent  = Choice{"supersede", supersede.Does, "None that this ledger knows of: nothing was sent under this ID."}
	supersedeInstead = Choice{"supersede", supersede.Does, sendInstead.Risk}
)

// anew is to supersede a request that was never sent.
func anew(rec *client.Record) Choice {
	if rec.Supersedes != "" {
		return supersedeInstead
	}
	return supersedeUnsent
}

// choices are those for an attempted request without a final receipt, and all that
// Admits lets a person do but to abandon again.
func choices(rec *client.Record, k Kind, ended bool) []Choice {
	list := []Choice{}
	switch {
	case !ended:
		list = append(list, recheck)
	case k == NoTrace || k == Interrupted || k == Running:
		list = append(list, closeWindow)
	}
	list = append(list, attestSucceeded, attestFailed)
	n := rec.Settled()
	if Admits(rec, client.Abandon) == nil && (n == nil || n.Verb != client.Abandon) {
		list = append(list, abandon)
	}
	if Admits(rec, client.Supersede) == nil {
		if k == NothingSent {
			return append(list, supersedeUnsent)
		}
		return append(list, supersede)
	}
	return list
}

// Admits says whether a person may do this to a request: nil, or a *client.NoteError.
// Beyond what a ledger refuses (client.Summary.Admits) it keeps a request that was
// superseded in the hands of its successor, and makes no second one of what a person
// found done. A later note counts instead of an earlier one, so attest failed takes a
// wrong attest succeeded back.
func Admits(rec *client.Record, v client.Verb) error {
	sum := rec.Summary()
	if err := sum.Admits(v); err != nil {
		return err
	}
	refuse := func(reason string) error { return &client.NoteError{RequestID: rec.RequestID, Verb: v, Reason: reason} }
	n, next := rec.Settled(), Successor(rec)
	switch {
	case v == client.Supersede && n != nil && n.Verb == client.AttestSucceeded:
		return refuse("a person attested that it succeeded; if that was wrong, attest first that it failed")
	case v == client.Supersede && next != "":
		return refuse("it was superseded by request " + next + " already; supersede that one")
	case v == client.Abandon && next != "":
		return refuse("it was superseded by request " + next + "; abandon that one")
	}
	return nil
}
