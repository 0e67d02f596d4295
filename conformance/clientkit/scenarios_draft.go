package clientkit

import (
	"context"
	"strconv"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// exitCrashed is how a client ends with test_crash_after_submit (limits.md).
const exitCrashed = 86

// draftScenarios are the seven of the draft's own runner, under their names.
func draftScenarios() []scenario {
	const group = "Scenarios of the draft"
	return []scenario{
		{Info: must("normal", group, "a service that keeps every promise ends in succeeded, with evidence", "6.4 6.6 6.7",
			"Submit once, ask for the status, read the resource, and report succeeded only after its evidence was checked."),
			hint: "Compare the order of what arrived with section 6: POST, status, resource.", run: oneCall("normal", agentic.Succeeded, 1)},
		{Info: must("response-lost", group, "the answer to the POST is lost after the ticket was made: succeeded, without a second POST", "6.4 6.5",
			"An ambiguous answer is reconciled through the status operation under the same ID; a timeout proves no failure."),
			hint: "A second POST often comes from the HTTP library: some repeat a POST that carries Idempotency-Key when its connection breaks.", run: oneCall("response-lost", agentic.Succeeded, 1)},
		{Info: must("status-unavailable", group, "every status check answers 503: unknown", "4 6.9",
			"Only HTTP 200 establishes an outcome, and a status that stays unavailable is preserved as unknown."),
			hint: "Only HTTP 200 makes an outcome; an error page is neither failed nor pending.", run: oneCall("status-unavailable", agentic.Unknown, 1)},
		{Info: must("stale-read", group, "the resource is missing, then old, then right: succeeded within the checks", "3 6.6 6.8",
			"Checks go on, bounded by maxChecks, until the resource shows the evidence."),
			hint: "Go on with the next status check when the evidence does not match yet, until maxChecks.", run: oneCall("stale-read", agentic.Succeeded, 1)},
		{Info: must("wrong-evidence", group, "the resource is that of another request: unknown", "6.6 6.7 6.9",
			"Succeeded is reported only after resource ID, request ID, state and all input pairs match; otherwise the outcome is unknown."),
			hint: "Compare resource ID, request ID, state and each input pair, and let a missing value match nothing.", run: oneCall("wrong-evidence", agentic.Unknown, 1)},
		{Info: must("pending", group, "the status stays pending: pending", "6.9",
			"A status that stays pending is preserved as pending."),
			hint: "The last usable status decides between pending and unknown.", run: oneCall("pending", agentic.Pending, 0)},
		{Info: must("restart-after-submit", group, "the client crashes after the submission and is called again: succeeded, without a second POST", "6.2 6.3 6.4",
			"A request that is in the ledger after a restart is reconciled and never submitted again."),
			hint: "Mark the attempt durably before the POST, and look for the mark before sending.", run: restartAfterSubmit},
	}
}

func restartAfterSubmit(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	a := t.ask()
	a.crash = true
	rep, err := t.call(ctx, a)
	if err != nil {
		return err
	}
	t.Expect(whatCrash, rep.exit == exitCrashed, strconv.Itoa(exitCrashed), rep.code())
	conformance.Equal(t.Recorder, "standard output of the crash", "", string(rep.stdout))
	t.sent(a, 1)
	if rep, err = t.call(ctx, t.ask()); err != nil {
		return err
	}
	t.finished(rep, agentic.Succeeded)
	t.tickets(ctx, 1)
	return nil
}
