package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
)

// flushTime bounds a durable write that must not be lost to a context that has
// already ended. It is longer than a ledger needs to give up by itself.
const flushTime = 30 * time.Second

// execution is one run over one hold: steps 3 to 9 of section 6. Everything that
// was observed and is not durable yet stands in fresh.
type execution struct {
	*Client
	hold  Hold
	rec   *Record
	plan  *agentic.Plan
	input agentic.Input

	fresh    []Observation
	refused  int       // HTTP status with which the service refused this submission, or 0 (D10)
	highest  time.Time // the highest time that was ever seen of this request (D16)
	wentBack bool      // the clock was below it
	sent     bool
	checkNo  int // the status check that is being made, or was made last
}

// run goes from the hold to a durable receipt.
func (x *execution) run(ctx context.Context) (Result, error) {
	x.highest = x.rec.SeenAt
	for _, o := range x.rec.Observations {
		x.note(o)
	}
	x.emit(Saved{EventHead: x.head(), State: x.rec.State, MaySubmit: x.hold.MaySubmit()})
	if last := x.rec.Over(); last != nil {
		x.emit(Resulted{EventHead: x.head(), Receipt: *last, FromSaved: true})
		return Result{RequestID: x.rec.RequestID, Receipt: *last, FromSaved: true, WindowEnded: x.rec.Closed()}, nil
	}
	if x.rec.State == Prepared {
		return Result{RequestID: x.rec.RequestID}, neverSent(x.rec, IntendPrepare, x.now())
	}
	if x.hold.MaySubmit() {
		x.kill(BeforeSubmit)
		at, problem := x.clockProblem()
		if problem != "" {
			return x.finish(ctx, unknown("Nothing was sent. "+problem))
		}
		if err := x.submit(ctx, at); err != nil {
			return x.stopped(ctx, err)
		}
	}
	v, err := x.reconcile(ctx)
	if err != nil {
		return x.stopped(ctx, err)
	}
	return x.finish(ctx, v)
}

// submit sends the POST. Its answer makes no outcome (D10); only a refusal of
// this very submission is made durable at once, because it makes every later
// reading of the status more careful.
func (x *execution) submit(ctx context.Context, at time.Time) error {
	if !x.hold.MaySubmit() { // a host that was paused before may find its hold gone
		return x.ledgerError(ctx, "submit", ErrLost)
	}
	x.emit(Submitting{x.headAt(at)})
	x.sent = true
	a := x.plan.Action
	sctx, span := x.tel.exchange(ctx, ExchangeSubmit)
	start := time.Now()
	ex := x.cfg.Transport.Submit(sctx, Submission{
		Origin: x.plan.Origin, ActionID: a.ID, URL: x.plan.SubmitURL(), Header: a.Header,
		RequestID: x.rec.RequestID, Body: x.rec.Input, Timeout: a.Recovery.Timeout,
	})
	x.kill(AfterSubmit)
	o := observe(ExchangeSubmit, at, time.Since(start), ex)
	x.tel.submitted(sctx, x.plan.Origin, a.ID)
	x.tel.exchanged(sctx, span, ExchangeSubmit, 0, o.Duration, ex)
	x.fresh = append(x.fresh, o)
	x.note(o)
	if x.refused != 0 {
		if err := x.flush(ctx); err != nil {
			return err
		}
		x.kill(AfterRefusal)
	}
	if o.Reach == Answered {
		x.emit(Submitted{EventHead: x.head(), Observation: o})
	} else {
		x.emit(Interrupted{EventHead: x.head(), Observation: o})
	}
	x.log("action submitted", "reach", o.Reach, "status", o.Status, "class", o.Class)
	return canceled(ctx, ex)
}

// verdict is what an execution will put into its receipt.
type verdict struct {
	outcome  agentic.Outcome
	reason   string
	resource string
	evidence *agentic.ReceiptEvidence
}

func unknown(reason string) verdict { return verdict{outcome: agentic.Unknown, reason: reason} }

// reconcile makes at most MaxChecks status checks; failed and a verified success
// end it at once, otherwise the last check decides (D11).
func (x *execution) reconcile(ctx context.Context) (verdict, error) {
	r := x.plan.Action.Recovery
	var v verdict
	claimed := false // the service said succeeded, and it could not be verified
	for n := 1; n <= r.MaxChecks; n++ {
		if n > 1 {
			if err := x.cfg.Sleep(ctx, r.CheckDelay); err != nil {
				return v, err
			}
		}
		x.kill(BeforeStatus)
		at, problem := x.clockProblem()
		if problem != "" {
			return unknown(problem), nil
		}
		status, err := x.check(ctx, n, at)
		if err != nil {
			return v, err
		}
		switch {
		case status.Outcome == agentic.Succeeded && x.refused != 0:
			return unknown(fmt.Sprintf("The service refused this submission with HTTP status %d, so the success that it reports "+
				"under this request ID may be that of an earlier request.", x.refused)), nil
		case status.Outcome == agentic.Succeeded:
			x.kill(BeforeVerify)
			at, problem := x.clockProblem()
			if problem != "" {
				return unknown(problem), nil
			}
			if v, err = x.verify(ctx, status.ResourceID, at); err != nil || v.outcome == agentic.Succeeded {
				return v, err
			}
			claimed = true
		case status.Outcome == agentic.Failed && claimed:
			return unknown("The service first said that the action succeeded, and then that it did not complete."), nil
		case status.Outcome == agentic.Failed:
			return verdict{outcome: agentic.Failed, reason: status.Reason}, nil
		default:
			v = verdict{outcome: status.Outcome, reason: status.Reason}
		}
	}
	return v, nil
}

// check is one status check.
func (x *execution) check(ctx context.Context, n int, at time.Time) (agentic.StatusDecision, error) {
	m := x.plan.Action.Recovery.MaxChecks
	x.checkNo = n
	x.emit(Checking{EventHead: x.headAt(at), N: n, M: m})
	u, err := x.plan.StatusURL(x.rec.RequestID)
	if err != nil {
		return agentic.StatusDecision{Outcome: agentic.Unknown, Reason: "The status cannot be read: " + err.Error() + "."}, nil
	}
	ex, o := x.get(ctx, ExchangeStatus, u, at)
	x.kill(AfterStatus)
	var d agentic.StatusDecision
	if ex.Err == nil {
		d = agentic.DecideStatus(x.rec.RequestID, ex.Answer)
		o.Outcome, o.Checks = d.Outcome, d.Checks
	} else {
		d = agentic.StatusDecision{Outcome: agentic.Unknown, Reason: "The status could not be read: " + sentence(ex)}
	}
	x.fresh = append(x.fresh, o)
	x.emit(Checked{EventHead: x.head(), N: n, M: m, Observation: o.withoutChecks(), Reason: d.Reason})
	x.log("status checked", "check", n, "of", m, "status", o.Status, "class", o.Class, "outcome", d.Outcome)
	return d, canceled(ctx, ex)
}

// verify reads the resource and checks the evidence (section 6.6).
func (x *execution) verify(ctx context.Context, resourceID string, at time.Time) (verdict, error) {
	x.emit(Verifying{EventHead: x.headAt(at), ResourceID: resourceID})
	u, err := x.plan.ResourceURL(resourceID)
	if err != nil {
		return unknown("The resource cannot be read: " + err.Error() + "."), nil
	}
	ex, o := x.get(ctx, ExchangeVerify, u, at)
	x.kill(AfterVerify)
	var d agentic.ResourceDecision
	if ex.Err == nil {
		d = x.plan.DecideResource(x.rec.RequestID, resourceID, x.input, ex.Answer)
		o.Checks = d.Checks
	} else {
		d = agentic.ResourceDecision{Reason: "The resource could not be read: " + sentence(ex)}
	}
	x.fresh = append(x.fresh, o)
	x.emit(Verified{EventHead: x.head(), OK: d.Verified, Observation: o.withoutChecks(), Reason: d.Reason})
	x.log("resource verified", "status", o.Status, "class", o.Class, "verified", d.Verified)
	if !d.Verified {
		return unknown(d.Reason), canceled(ctx, ex)
	}
	return verdict{outcome: agentic.Succeeded, reason: d.Reason, resource: resourceID, evidence: d.Evidence}, nil
}

// get is one read, at the time of the look that allowed it.
func (x *execution) get(ctx context.Context, kind ExchangeKind, url string, at time.Time) (Exchange, Observation) {
	ctx, span := x.tel.exchange(ctx, kind)
	start := time.Now()
	ex := x.cfg.Transport.Get(ctx, Read{
		Origin: x.plan.Origin, ActionID: x.plan.Action.ID, URL: url, Timeout: x.plan.Action.Recovery.Timeout,
	})
	o := observe(kind, at, time.Since(start), ex)
	x.tel.exchanged(ctx, span, kind, x.checkNo, o.Duration, ex)
	return ex, o
}

// finish makes the receipt durable and only then returns it (section 6.7). An
// outcome that was observed is written even if the caller has given up.
func (x *execution) finish(ctx context.Context, v verdict) (Result, error) {
	res := Result{RequestID: x.rec.RequestID, Sent: x.sent}
	now := x.now()
	if x.wentBack && v.outcome != agentic.Unknown {
		v = unknown(wentBackReason)
	}
	r := agentic.Receipt{
		Agentic: agentic.Version, RequestID: x.rec.RequestID, ActionID: x.rec.ActionID, Origin: x.rec.Origin,
		Outcome: v.outcome, ObservedAt: agentic.FormatTime(now), Reason: v.reason, Evidence: v.evidence,
	}
	if v.outcome == agentic.Succeeded {
		r.ResourceID = &v.resource
	}
	x.kill(BeforeReceipt)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := x.hold.Finish(ctx, x.fresh, r); err != nil {
		return res, x.ledgerError(ctx, "finish", err)
	}
	x.fresh = nil
	x.kill(AfterReceipt)
	res.Receipt, res.WindowEnded = r, !r.Outcome.Final() && x.highest.Sub(x.rec.CreatedAt) >= x.plan.Action.Retention
	x.emit(Resulted{EventHead: x.head(), Receipt: r})
	x.log("receipt saved", "outcome", r.Outcome)
	return res, nil
}

// stopped ends an execution without a receipt, and keeps what was observed.
func (x *execution) stopped(ctx context.Context, err error) (Result, error) {
	res := Result{RequestID: x.rec.RequestID, Sent: x.sent}
	if errors.Is(err, ErrLedger) || errors.Is(err, ErrLost) {
		return res, err
	}
	return res, errors.Join(&InterruptedError{RequestID: x.rec.RequestID, Saved: true, Err: err}, x.flush(ctx))
}

// canceled is the error that ends an execution when its context has ended, or
// when the transport saw that before the context did (D17).
func canceled(ctx context.Context, ex Exchange) error {
	if err := ctx.Err(); err != nil || ex.Class != ClassCanceled {
		return err
	}
	return fmt.Errorf("%w: %w", context.Canceled, ex.Err)
}

// ledgerError makes sure that what a ledger could not write is told as that,
// whatever error it gave: after a submission a host must not take it for its own
// time limit.
func (x *execution) ledgerError(ctx context.Context, op string, err error) error {
	x.tel.noticed(ctx, op, err)
	if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrLedger) {
		return err
	}
	return &LedgerError{Op: op, Err: err}
}

// flush makes the fresh observations durable.
func (x *execution) flush(ctx context.Context) error {
	if len(x.fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := x.hold.Observe(ctx, x.fresh); err != nil {
		return x.ledgerError(ctx, "observe", err)
	}
	x.fresh = nil
	return nil
}

// clockProblem looks at the ledger's clock before each network call: a clock below a time
// already seen, or an age at or past the tracking window, is a problem that ends the
// execution as unknown (section 6.9, D16). Between the look and its exchange there is no
// other, which could show more than was decided on.
func (x *execution) clockProblem() (at time.Time, problem string) {
	at = x.now()
	window := x.plan.Action.Retention
	switch {
	case x.wentBack:
		return at, wentBackReason
	case at.Sub(x.rec.CreatedAt) >= window:
		return at, fmt.Sprintf("The tracking window of %s has ended, so the service may have forgotten the request; it needs the host's hand-off process.", window)
	}
	return at, ""
}

const wentBackReason = "The host's clock moved backwards, so the tracking window cannot be judged; the request needs the host's hand-off process."

// now is the only look at the ledger's clock, so that no step back goes unseen.
func (x *execution) now() time.Time {
	t := x.hold.Now()
	if t.Before(x.highest) || t.Before(x.rec.CreatedAt) {
		x.wentBack = true
	} else {
		x.highest = t
	}
	return t
}

// note remembers a refusal of this very submission (D10).
func (x *execution) note(o Observation) {
	if o.Kind == ExchangeSubmit && (o.Status == http.StatusConflict || o.Status == http.StatusUnprocessableEntity) {
		x.refused = o.Status
	}
}

func observe(kind ExchangeKind, at time.Time, d time.Duration, ex Exchange) Observation {
	o := Observation{Kind: kind, At: at, Duration: d, Reach: ex.Reach, Status: ex.Answer.Status, Class: ex.Class}
	if ex.Err != nil {
		o.Detail = bound(ex.Err.Error())
	}
	return o
}

// sentence tells people why an exchange gave no usable answer.
func sentence(ex Exchange) string { return bound(ex.Err.Error()) + " (" + string(ex.Class) + ")." }

// bound keeps text from outside short enough for a receipt, and UTF-8.
func bound(s string) string {
	const limit = 300
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (x *execution) kill(p Point) { x.cfg.KillPoint(p) }

func (x *execution) emit(e Event) { x.cfg.Observer(e) }

func (x *execution) head() EventHead { return x.headAt(x.now()) }

func (x *execution) headAt(at time.Time) EventHead {
	return EventHead{Scope: x.rec.Scope, RequestID: x.rec.RequestID, ActionID: x.rec.ActionID, Origin: x.rec.Origin, At: at}
}

// log writes a line of names and numbers only: nothing that the publisher wrote
// freely (D6), and nothing that is confidential.
func (x *execution) log(message string, more ...any) {
	if ctx := context.Background(); x.cfg.Logger.Enabled(ctx, slog.LevelInfo) {
		args := append([]any{"request_id", x.rec.RequestID, "action", x.rec.ActionID, "origin", x.rec.Origin}, more...)
		x.cfg.Logger.InfoContext(ctx, message, args...)
	}
}
