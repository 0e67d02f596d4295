package servicekit

import (
	"fmt"
	"net/http"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const (
	groupSubmission = "First submission"
	groupStatus     = "Status and resource"
)

var submissionChecks = []check{
	{info("submission/first", groupSubmission, "a new submission comes to a verified success", conformance.Must,
		"A submission with a new key makes a resource, its status becomes succeeded, and the resource shows the evidence of that very request.", "4", "5"),
		"Compare the status answer with section 4, and the resource with the evidence pointers of the profile.",
		func(t *trial) error {
			return t.counted(1, func() error { _, err := t.make(t.first, t.key()); return err })
		}},
	{info("submission/tracked-at-once", groupSubmission, "what is acknowledged with 200 or 201 is tracked already", conformance.Must,
		"Before it acknowledges a completed action, the service has associated request, principal, action, input and result.", "5"),
		"Write the record of the request in the transaction of the resource, and answer after its commit.",
		trackedAtOnce},
	{info("submission/in-time", groupSubmission, "the reads answer within the profile's own timeout", conformance.Reading,
		"A client gives each exchange recovery.timeoutMs; an answer after that is none.", "3", "6.8", "D15"),
		"Raise recovery.timeoutMs in the profile, or make the reads faster.",
		inTime},
	{info("submission/answer-size", groupSubmission, "no answer is over 64 KiB", conformance.Reading,
		"Clients bound answers; the reference transport limits each to 64 KiB.", "6.8", "D15"),
		"Keep the resource of the verify operation small: evidence and what people need.",
		answerSize},
}

func trackedAtOnce(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	a, err := t.post(t.first, key)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		if _, _, err := t.settle(t.first, key, t.settleTime); err != nil { // or the next check counts its resource
			return err
		}
		return missing("The service acknowledges submissions with " + a.code() + ", which does not say that the action is completed.")
	}
	s, d, err := t.status(t.first, key)
	if err != nil {
		return err
	}
	ok := d.Usable && (d.Outcome == agentic.Succeeded || d.Outcome == agentic.Pending)
	t.expect("status right after the answer", ok, "succeeded, or pending", word(s, d))
	return nil
}

func inTime(t *trial) error {
	m, err := t.made()
	if err != nil {
		return err
	}
	limit := m.plan.Action.Recovery.Timeout
	s, _, err := t.status(m.party, m.key)
	if err != nil {
		return err
	}
	t.expect("time of the status answer", s.took <= limit && s.lost == "", "at most "+limit.String(), s.took.Round(time.Millisecond).String())
	r, _, err := t.resource(m.party, m.key, m.resource)
	if err != nil {
		return err
	}
	t.expect("time of the resource answer", r.took <= limit && r.lost == "", "at most "+limit.String(), r.took.Round(time.Millisecond).String())
	return nil
}

func answerSize(t *trial) error {
	b, err := t.shared()
	if err != nil {
		return err
	}
	none := missing("The service gave no answer whose size could be told; an answer in time would show it.")
	if b.posted.Status == 0 {
		return none
	}
	size := func(what string, a answer) {
		fits := len(a.Body) <= agentic.MaxResponseBytes && a.lost == ""
		found := fmt.Sprintf("%d bytes", len(a.Body))
		if a.lost != "" {
			found = a.code()
		}
		t.expect("size of the "+what, fits, fmt.Sprintf("at most %d bytes", agentic.MaxResponseBytes), found)
	}
	size("submission's answer", b.posted)
	s, _, err := t.status(b.party, b.key)
	if err != nil {
		return err
	}
	if s.Status == 0 {
		return none
	}
	size("status answer", s)
	if b.resource == "" {
		return nil
	}
	r, _, err := t.resource(b.party, b.key, b.resource)
	if err != nil {
		return err
	}
	if r.Status == 0 {
		return none
	}
	size("resource answer", r)
	return nil
}

// neverSent reads the status of a key that was never sent. A service that lets nobody in
// tells nothing about it.
func (t *trial) neverSent() (answer, agentic.StatusDecision, error) {
	a, d, err := t.status(t.first, t.key())
	if err == nil && refuses(a) {
		err = missing(credentials)
	}
	return a, d, err
}

var statusChecks = []check{
	{info("status/answer", groupStatus, "the status answer has the form of the draft", conformance.Must,
		"HTTP 200, application/json, the exact request_id, one of four words, and a resource_id that is a string exactly with succeeded.", "4", "D12"),
		"request_id is the Idempotency-Key byte for byte; resource_id is null unless the status is succeeded.",
		func(t *trial) error {
			b, err := t.shared()
			if err != nil {
				return err
			}
			a, d, err := t.status(b.party, b.key)
			if err != nil {
				return err
			}
			t.take("status", d.Checks, a)
			return nil
		}},
	{info("status/resource", groupStatus, "what the status calls succeeded can be read and is evidence", conformance.Must,
		"Verification evidence identifies the result of the original action, including its request identity.", "5", "3"),
		"The verify operation must show the resource's own ID, the request that made it, its state and the input's values at the profile's pointers.",
		func(t *trial) error {
			b, err := t.shared()
			if err != nil {
				return err
			}
			a, d, err := t.status(b.party, b.key)
			if err != nil {
				return err
			}
			if d.Outcome != agentic.Succeeded {
				return missing("The status of a new submission is not succeeded but " + word(a, d) + "; status/answer and submission/first say more.")
			}
			return t.verified(b.party, b.key, d.ResourceID)
		}},
	{info("status/unknown-key", groupStatus, "a key that was never sent has neither failed nor succeeded", conformance.Must,
		"Missing tracking is an unresolved outcome, never a false statement that no action occurred.", "5", "4"),
		"Answer 200 with status unknown when there is no record; failed is for what the service decided.",
		func(t *trial) error {
			a, d, err := t.neverSent()
			if err != nil {
				return err
			}
			ok := a.whole() && !(d.Usable && d.Outcome.Final())
			t.expect("status", ok, "neither succeeded nor failed", word(a, d))
			return nil
		}},
	{info("status/unknown-key-form", groupStatus, "a key that was never sent is 200 unknown, or 404", conformance.Reading,
		"The draft does not say how an unknown key is answered; 200 with unknown is what clients need least care for.", "4", "5", "D24"),
		"Answer 200 with status unknown and resource_id null.",
		func(t *trial) error {
			a, d, err := t.neverSent()
			if err != nil {
				return err
			}
			ok := a.whole() && a.Status == http.StatusNotFound || d.Usable && d.Outcome == agentic.Unknown
			t.expect("status", ok, "200 unknown, or 404", word(a, d))
			return nil
		}},
}
