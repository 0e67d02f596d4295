package clientkit

import (
	"context"
	"net/http"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// resumeScenarios call the client again with the same identity.
func resumeScenarios() []scenario {
	const resume, receipts = "Resuming", "Receipts"
	return []scenario{
		{Info: must("resume/pending-succeeded", resume, "pending, and the service has decided when the client is called again: succeeded, by reading only", "6.4 6.9",
			"A pending request can be resumed later by reads, with no second submission."),
			run: resumed("normal", agentic.Succeeded, 1)},
		{Info: must("resume/pending-failed", resume, "pending, and then the service says failed: failed, by reading only", "4 6.4 6.9",
			"What the service determined authoritatively is reported when the request is resumed."),
			run: resumed("failed", agentic.Failed, 0)},
		{Info: must("resume/pending-pending", resume, "pending both times: pending, with one POST", "6.4 6.9",
			"A status that stays pending is preserved as pending."),
			run: resumed("pending", agentic.Pending, 0)},
		{Info: reading("resume/unknown-succeeded", resume, "unknown while the status was unavailable, then called again: succeeded, by reading only", "6.9 D11",
			"A request whose outcome is unknown is read again when it is resumed, and never sent again."),
			run: resumedUnknown},
		{Info: reading("resume/evidence-later", resume, "wrong evidence, and the right one when the client is called again: succeeded, by reading only", "6.9 D11",
			"An outcome that could not be verified is not final: it is read again when the request is resumed."),
			run: resumedEvidence},
		{Info: must("receipt/again", receipts, "called again after succeeded: the saved receipt or a fresh read, and no POST", "6.3 6.4 6.10",
			"A saved successful receipt may be returned without a read; its observed_at is then that of the earlier observation."),
			run: receiptAgain},
		{Info: reading("receipt/kept", receipts, "called again after succeeded while the service is out of order: succeeded still", "6.7 6.10 D11",
			"The receipt was persisted before it was returned, and a final one needs no read."),
			run: receiptKept},
		{Info: reading("receipt/failed-again", receipts, "called again after failed: failed still, and no POST", "6.4 D11",
			"failed is final and is no leave to send the same request again."),
			run: failedAgain},
		{Info: must("receipt/observed-at", receipts, "observed_at is the time of this observation", "7",
			"A receipt has its observation time."),
			run: observedAt},
	}
}

// begin makes the first call against the reference service with a pending status; decide
// lets the service's own status through.
func (t *trial) begin(ctx context.Context, fault string) (decide func(), err error) {
	if err := t.ticket(ctx, fault); err != nil {
		return nil, err
	}
	decide = t.undecided()
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return nil, err
	}
	t.finished(rep, agentic.Pending)
	return decide, nil
}

// again calls the client once more: a receipt of that outcome, and still one POST.
func (t *trial) again(ctx context.Context, want agentic.Outcome) (reply, error) {
	rep, err := t.call(ctx, t.ask())
	if err == nil {
		t.finished(rep, want)
	}
	return rep, err
}

func resumed(fault string, want agentic.Outcome, tickets int) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		decide, err := t.begin(ctx, fault)
		if err != nil {
			return err
		}
		decide()
		if _, err = t.again(ctx, want); err != nil {
			return err
		}
		t.tickets(ctx, tickets)
		return nil
	}
}

// outOfOrder answers every operation with 503 while on reports true.
func (t *trial) outOfOrder(on func() bool) {
	refuse := func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		if on() {
			writeJSON(w, http.StatusServiceUnavailable, `{}`)
		}
		return on()
	}
	t.script(script{status: refuse, resource: refuse})
}

func resumedUnknown(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	t.outOfOrder(func() bool { return len(t.replies) == 0 })
	if _, err := t.again(ctx, agentic.Unknown); err != nil {
		return err
	}
	if _, err := t.again(ctx, agentic.Succeeded); err != nil {
		return err
	}
	t.tickets(ctx, 1)
	return nil
}

func resumedEvidence(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	t.script(script{resource: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		wrong := len(t.replies) == 0
		if wrong {
			writeJSON(w, http.StatusOK, `{"id":"T-1","request_id":"another-request","subject":"another subject","status":"open"}`)
		}
		return wrong
	}})
	if _, err := t.again(ctx, agentic.Unknown); err != nil {
		return err
	}
	_, err := t.again(ctx, agentic.Succeeded)
	return err
}

func receiptAgain(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	first, err := t.again(ctx, agentic.Succeeded)
	if err != nil {
		return err
	}
	second, err := t.again(ctx, agentic.Succeeded)
	if err != nil {
		return err
	}
	if first.receipt != nil && second.receipt != nil && second.from == second.to {
		conformance.Equal(t.Recorder, "observed_at of a receipt without another read", first.receipt.ObservedAt, second.receipt.ObservedAt)
	}
	t.tickets(ctx, 1)
	return nil
}

func receiptKept(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	t.outOfOrder(func() bool { return len(t.replies) > 0 })
	if _, err := t.again(ctx, agentic.Succeeded); err != nil {
		return err
	}
	_, err := t.again(ctx, agentic.Succeeded)
	return err
}

func failedAgain(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "failed"); err != nil {
		return err
	}
	for range 2 {
		if _, err := t.again(ctx, agentic.Failed); err != nil {
			return err
		}
	}
	t.tickets(ctx, 0)
	return nil
}

// clockError is how far two readings of one clock may be apart here: some clients keep
// whole seconds only.
const clockError = 2 * time.Second

func observedAt(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	rep, err := t.again(ctx, agentic.Succeeded)
	if err != nil || rep.receipt == nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, rep.receipt.ObservedAt)
	ok := err == nil && at.After(rep.begin.Add(-clockError)) && at.Before(rep.end.Add(clockError))
	t.Expect("observed_at", ok, "a time from "+agentic.FormatTime(rep.begin)+" to "+agentic.FormatTime(rep.end), rep.receipt.ObservedAt)
	return nil
}
