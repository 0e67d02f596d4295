package clientkit

import (
	"context"
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const hintMark = "The mark that the request is attempted has to be durable, and made by one process only, before the connection is opened."

// crashScenarios kill the client where the judge sees it stand.
func crashScenarios() []scenario {
	const group = "Crashes"
	return []scenario{
		{Info: must("crash/before-submission", group, "killed when its first connection is accepted, with nothing read: never sent again, and unknown", "6.2 6.3 6.9",
			"The attempt is marked durably before the network call, so a request found in the ledger after a restart is not submitted."),
			hint: hintMark, run: crash(accepted, "", agentic.Unknown, 0)},
		{Info: must("crash/during-submission", group, "killed while the POST is being read: never sent again, and unknown", "6.3 6.4 6.9",
			"Whether a submission that was interrupted arrived is unknown, and it is not repeated."),
			hint: hintMark, run: crash(headers, submit, agentic.Unknown, 0)},
		{Info: must("crash/after-submission", group, "killed after the service made the ticket, before its answer: succeeded, without a second POST", "6.3 6.4 6.5",
			"The next call reconciles through the status under the same ID."),
			hint: hintMark, run: crash(handled, submit, agentic.Succeeded, 1)},
		{Info: must("crash/status", group, "killed while it reads the status: succeeded, without a second POST", "6.3 6.4 6.5",
			"The next call reads again and does not submit."),
			hint: hintMark, run: crash(headers, status, agentic.Succeeded, 1)},
		{Info: must("crash/resource", group, "killed while it reads the resource: succeeded, without a second POST", "6.3 6.4 6.6",
			"The next call reads again and does not submit."),
			hint: hintMark, run: crash(headers, resource, agentic.Succeeded, 1)},
		{Info: must("crash/twice", group, "killed after the submission and again while it resumes: succeeded, without a second POST", "6.3 6.4 6.5",
			"A request stays attempted however often the client is interrupted."),
			hint: hintMark, run: crashTwice},
		{Info: must("together/one-identity", "Two processes", "two processes are given the same request at once: one POST, and every receipt is true", "6 6.4",
			"Concurrent executions of a request are serialized, or coordinated as strictly; a process may refuse while the other has it."),
			hint: hintMark, run: together},
		{Info: must("together/two-identities", "Two processes", "two requests with one ledger place at once: each is sent once, under its own ID", "6.2 6.4",
			"A request ID is associated with its own input, and no request takes another's place; a process may refuse while another has the ledger."),
			run: twoIdentities},
	}
}

// interrupt calls the client once and has it killed at the gate.
func (t *trial) interrupt(ctx context.Context, s stage, op operation) error {
	a := t.ask()
	a.kill = t.judge.hold(s, op)
	rep, err := t.call(ctx, a)
	if err != nil {
		return err
	}
	where := "a request for the " + string(op) + " operation"
	if s == accepted {
		where = "a connection"
	}
	t.expect(whatReached, rep.killed, where, "the client ended before: exit code "+rep.code()+rep.outcome())
	conformance.Equal(t.Recorder, "standard output of the killed call", "", string(rep.stdout))
	return nil
}

func crash(s stage, op operation, want agentic.Outcome, tickets int) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.ticket(ctx, "normal"); err != nil {
			return err
		}
		if err := t.interrupt(ctx, s, op); err != nil {
			return err
		}
		before := t.requests(t.ask())
		t.Expect("POSTs before the crash", before == 1 || before == 0 && s == accepted, "1", fmt.Sprint(before))
		rep, err := t.call(ctx, t.ask())
		if err != nil {
			return err
		}
		t.received(rep, want)
		t.sent(rep.ask, before)
		t.tickets(ctx, tickets)
		return nil
	}
}

func crashTwice(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	if err := t.interrupt(ctx, handled, submit); err != nil {
		return err
	}
	if err := t.interrupt(ctx, headers, status); err != nil {
		return err
	}
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return err
	}
	t.finished(rep, agentic.Succeeded)
	t.tickets(ctx, 1)
	return nil
}

// meeting is how long the first submission is held, for the other process to come to
// the same place.
const meeting = 300 * time.Millisecond

// meet runs the client for all asks at once and holds the first submission a while.
func (t *trial) meet(ctx context.Context, asks ...ask) ([]reply, error) {
	g := t.judge.hold(headers, submit)
	ended, opened := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(opened)
		select {
		case <-g.reached:
			wait := time.NewTimer(meeting)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-ended:
			}
		case <-ended:
		}
		t.judge.open(g, false)
	}()
	replies, err := t.together(ctx, asks...)
	close(ended)
	<-opened
	return replies, err
}

func together(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	replies, err := t.meet(ctx, t.ask(), t.ask())
	if err != nil {
		return err
	}
	t.bounded(replies...)
	succeeded := 0
	for _, rep := range replies {
		if rep.receipt == nil {
			t.refused(rep)
			continue
		}
		t.printed(rep)
		t.means(rep, agentic.Succeeded, agentic.Unknown, agentic.Pending)
		if rep.receipt.Outcome == agentic.Succeeded {
			succeeded++
		}
	}
	t.Expect("receipts of succeeded", succeeded > 0, "at least 1", fmt.Sprint(succeeded))
	t.sent(t.ask(), 1)
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return err
	}
	t.finished(rep, agentic.Succeeded)
	t.tickets(ctx, 1)
	return nil
}

func twoIdentities(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	first, second := t.ask(), t.ask()
	second.requestID, second.input = t.freshID(), []byte(`{"subject":"Paper jam in the basement"}`)
	asks := []ask{first, second}
	replies, err := t.meet(ctx, asks...)
	if err != nil {
		return err
	}
	for i, rep := range replies {
		if rep.receipt == nil { // it may refuse while the other has the ledger, and not later
			t.refused(rep)
			if rep, err = t.call(ctx, asks[i]); err != nil {
				return err
			}
		}
		t.input = asks[i].input // what the receipt has to be true of
		if t.printed(rep) {
			t.means(rep, agentic.Succeeded)
		}
	}
	keys := map[string]int{}
	for _, a := range t.judge.record() {
		if a.op == submit {
			keys[a.header.Get("Idempotency-Key")]++
			for _, own := range asks {
				if own.requestID == a.header.Get("Idempotency-Key") {
					t.post(own, a, keys[own.requestID])
				}
			}
		}
	}
	for i, a := range asks {
		conformance.Equal(t.Recorder, fmt.Sprintf("POSTs of request %d", i+1), 1, keys[a.requestID])
	}
	conformance.Equal(t.Recorder, "request IDs that were sent", 2, len(keys))
	t.tickets(ctx, 2)
	return nil
}
