package servicekit

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const (
	groupLost     = "Lost answers"
	groupKept     = "What is kept"
	hintLost      = "Commit resource and record together; work that was cancelled leaves neither."
	hintHalf      = "Read and parse the whole body before the key is claimed; a body that ends early is no input."
	asksLost      = "Whether the first one was done or not, the status says nothing false and a repeat gets one outcome with one resource."
	asksHalf      = "A submission that never arrived whole is not an action with that input: it is not done; that the key stays free for it, and is not failed, is this project's reading."
	titleLost     = "the connection ends %s: one resource, and a status that agrees"
	titleHalfLost = "the connection ends %s: nothing is made, and the key stays usable"
)

var lostChecks = []check{
	lostCheck("lost/unread", "after the whole submission", afterBody, false),
	lostCheck("lost/unread-reset", "by a reset after the whole submission", afterBody, true),
	lostCheck("lost/in-answer", "in the middle of the answer", inAnswer, true),
	halfCheck("lost/after-header", "after the header of the submission", afterHeader, false),
	halfCheck("lost/in-body", "in the middle of the submission's body", inBody, false),
	halfCheck("lost/in-body-reset", "by a reset in the middle of the submission's body", inBody, true),
}

func lostCheck(id, when string, at cutAt, reset bool) check {
	return check{info(id, groupLost, fmt.Sprintf(titleLost, when), conformance.Must, asksLost, "5", "4"), hintLost,
		func(t *trial) error { return lostAnswer(t, cut{at, reset}) }}
}

func halfCheck(id, when string, at cutAt, reset bool) check {
	return check{info(id, groupLost, fmt.Sprintf(titleHalfLost, when), conformance.Reading, asksHalf, "5", "D21"), hintHalf,
		func(t *trial) error { return lostRequest(t, cut{at, reset}) }}
}

// grace is how long a submission that lost its client is watched before it is repeated.
func (r *run) grace() time.Duration { return min(r.settleTime/4, 1500*time.Millisecond) }

// lostAnswer submits and drops the connection, looks what became of it, and repeats.
func lostAnswer(t *trial, c cut) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	return t.counted(1, func() error {
		q := submission(t.first, key)
		q.cut = c
		if _, err := t.send(t.first.plan, q); err != nil {
			return err
		}
		if err := wait(t.ctx, t.grace()/5); err != nil { // until it has arrived
			return err
		}
		a, before, err := t.settle(t.first, key, t.grace())
		if err != nil {
			return err
		}
		ok := a.whole() && !(before.Usable && before.Outcome == agentic.Failed)
		t.expect("status before the repeat", ok, "succeeded, pending or unknown", word(a, before))
		m, err := t.again(key)
		if err != nil {
			return err
		}
		if before.Usable && before.Outcome == agentic.Succeeded {
			t.expect("resource after the repeat", m.resource == before.ResourceID, "the one of before, "+shorten(before.ResourceID), shorten(m.resource))
		}
		return t.stands(m)
	})
}

// again repeats a submission whose first one may still run, a few times while the
// service says so, and expects success.
func (t *trial) again(key string) (made, error) {
	a, err := t.post(t.first, key)
	for range 3 {
		if err != nil || !busy(a) {
			break
		}
		if err := wait(t.ctx, t.grace()/3); err != nil {
			return made{}, err
		}
		a, err = t.post(t.first, key)
	}
	if err != nil {
		return made{}, err
	}
	t.expect("answer to the repeat", a.is2xx(), "2xx", a.code())
	return t.succeeds(t.first, key)
}

// lostRequest sends a part of a submission, expects that nothing came of it, and then
// sends it whole.
func lostRequest(t *trial, c cut) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	return t.counted(1, func() error {
		err := t.counted(0, func() error {
			q := submission(t.first, key)
			q.cut = c
			if _, err := t.send(t.first.plan, q); err != nil {
				return err
			}
			if err := wait(t.ctx, t.grace()/5); err != nil {
				return err
			}
			a, d, err := t.status(t.first, key)
			if err != nil {
				return err
			}
			ok := a.whole() && !(d.Usable && d.Outcome.Final())
			t.expect("status before the whole submission", ok, "neither succeeded nor failed", word(a, d))
			return nil
		})
		if err != nil {
			return err
		}
		m, err := t.again(key)
		if err != nil {
			return err
		}
		return t.stands(m)
	})
}

var keptChecks = []check{
	{info("restart/remembers", groupKept, "after a restart requests are tracked as before", conformance.Must,
		"The service preserves tracking and deduplication for its window; a restart does not end that.", "5"),
		"Keep the records in the database, beside the resources, and not in memory.",
		restart},
	{info("retention/window", groupKept, "requests are tracked until the end of the advertised window", conformance.Must,
		"The service preserves tracking and deduplication for request.retentionSeconds.", "3", "5"),
		"", func(t *trial) error {
			return t.later("shortly before the end of the window of %s, a repeat with the same input must still get 2xx without making a resource, and the status must still be succeeded with the resource %s")
		}},
	{info("retention/expiry", groupKept, "after the window nothing false is said", conformance.Must,
		"Expiry of tracking yields an unresolved outcome or an explicit expiry response, not a false statement.", "5", "D23"),
		"", func(t *trial) error {
			return t.later("after the window of %s, the status must not be failed (unknown or an explicit expiry), and a repeat must not make a second resource beside %s")
		}},
	{info("atomicity/crash", groupKept, "a crash in the middle of the transaction leaves resource and record, or neither", conformance.Must,
		"Request ID, principal, action, input and result are associated atomically before a completed action is acknowledged.", "5", "D21"),
		"", func(*trial) error {
			return missing("No client can end the service between two statements. A test beside the service that kills its process there, restarts it and then counts resources and records would show it.")
		}},
}

// later says how the check is made by hand with the shared request.
func (t *trial) later(how string) error {
	m, err := t.made()
	if err != nil {
		return err
	}
	return missing(fmt.Sprintf("A run does not last as long as the window. Keep the key %s of the input of this run: "+how+".",
		m.key, m.plan.Action.Retention, strconv.Quote(shorten(m.resource))))
}

func restart(t *trial) error {
	if t.config.Restart == nil {
		return missing("The run cannot restart the service: a restart command would show it.")
	}
	m, err := t.made()
	if err != nil {
		return err
	}
	fresh, err := t.make(t.first, t.key())
	if err != nil {
		return err
	}
	if err := t.config.Restart(t.ctx); err != nil {
		return fmt.Errorf(restarting+"%w", err)
	}
	if err := t.reachable(); err != nil {
		return err
	}
	for _, m := range []made{m, fresh} {
		err := t.counted(0, func() error {
			if err := t.stands(m); err != nil {
				return err
			}
			if t.other != nil {
				a, err := t.post(m.with(*t.other), m.key)
				if err != nil {
					return err
				}
				t.expect("answer to other input", a.is4xx(), "4xx", a.code())
			}
			if err := t.repeat(m); err != nil {
				return err
			}
			return t.stands(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reachable waits until the service takes connections again.
func (t *trial) reachable() error {
	for range 20 {
		a, _, err := t.status(t.first, t.key())
		if err == nil && a.Status != 0 || errors.Is(err, errSpent) {
			return err
		}
		if e := wait(t.ctx, 250*time.Millisecond); e != nil {
			return e
		}
	}
	return errors.New("the service cannot be reached after the restart")
}
