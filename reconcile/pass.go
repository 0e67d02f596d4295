package reconcile

import (
	"context"
	"time"

	"github.com/agentic-go/agentic/client"
)

// PassOptions choose what a pass looks at.
type PassOptions struct {
	// DueOnly leaves out what is not due yet by the ledger's schedule.
	DueOnly bool

	// Filter narrows it down further, within the worker's scopes. Open, Due and
	// Order are set by the pass.
	Filter client.Filter
}

// Pass looks once at each open request that may have been sent, the least time left
// in the window first. It waits for the limits of an origin, but not for one that is
// down: what it could not ask is NotNow. A request whose closing receipt is written
// is ForPerson without being executed.
//
// progress, if not nil, is called after each request, on the caller's goroutine. The
// error says that the ledger could not be listed, or that ctx ended: then what ran was
// cancelled, and the report has what was done until then.
func (w *Worker) Pass(ctx context.Context, o PassOptions, progress func(done, total int)) (Report, error) {
	begun := time.Now()
	report := Report{Counts: map[Kind]int{}}
	waiting, closed, err := w.open(ctx, o)
	if err != nil {
		return report, err
	}
	total := len(waiting) + len(closed)
	add := func(d Done) {
		report.add(d)
		if progress != nil {
			progress(len(report.Done), total)
		}
	}
	for _, s := range closed {
		add(listed(s, ForPerson))
	}
	q := newQueue(w)
	q.fill(waiting)
	refused := func(s client.Summary, r *refusal) bool {
		switch {
		case r == nil:
			d := listed(s, Held)
			d.Later = jitter(heldPause)
			add(d)
		case r.down:
			d := listed(s, NotNow)
			d.Later = w.origins.later(s.Origin, r, time.Now())
			add(d)
		default:
			return false
		}
		return true
	}
	for {
		var again time.Time
		if ctx.Err() == nil {
			again = q.start(ctx, time.Now(), refused)
		}
		if q.running == 0 && (len(q.lanes) == 0 || ctx.Err() != nil) {
			report.Took = time.Since(begun)
			return report, ctx.Err()
		}
		select {
		case d := <-q.done:
			q.running--
			add(d)
		case <-after(again):
		case <-stop(ctx, q):
		}
	}
}

// stop is ctx's end while there is something to wait for that it does not end.
func stop(ctx context.Context, q *queue) <-chan struct{} {
	if q.running > 0 {
		return nil // they end with ctx
	}
	return ctx.Done()
}

// after is a channel that gets a value at a time; a zero time never comes.
func after(at time.Time) <-chan time.Time {
	if at.IsZero() {
		return nil
	}
	return time.After(time.Until(at))
}

// listed is the Done of a request that was not executed.
func listed(s client.Summary, k Kind) Done {
	return Done{Scope: s.Scope, RequestID: s.RequestID, ActionID: s.ActionID, Origin: s.Origin, Before: s.Outcome, After: s.Outcome, Kind: k}
}

// open lists what a pass looks at: what still has a next check, and what has none
// because its closing receipt is written.
func (w *Worker) open(ctx context.Context, o PassOptions) (waiting, closed []client.Summary, err error) {
	f := o.Filter
	f.Open, f.Due, f.Order = true, o.DueOnly, client.UrgentFirst
	for _, scope := range w.cfg.Scopes {
		if f.Principal != nil && *f.Principal != scope.Principal || f.Environment != nil && *f.Environment != scope.Environment {
			continue
		}
		list, err := w.cfg.Ledger.List(ctx, f.In(scope))
		if err != nil {
			return nil, nil, err
		}
		for _, s := range list {
			switch {
			case s.State != client.Attempted:
			case s.NextCheck.IsZero():
				closed = append(closed, s)
			default:
				waiting = append(waiting, s)
			}
		}
	}
	return waiting, closed, nil
}
