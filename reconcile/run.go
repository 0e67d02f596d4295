package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentic-go/agentic/client"
)

const (
	// page is how much is listed of a scope when all of it can begin, and lastPage
	// when most of it waits for its origins.
	page     = 256
	lastPage = 16384

	// The time spent on listing is bounded: a pause of listShare times what the last
	// one took follows, and at least listPause.
	listShare = 20
	listPause = 10 * time.Millisecond

	// listTime is how long a listing may take: a connection that was cut off without a
	// word never answers.
	listTime = time.Minute

	// lastPause is the longest pause after a ledger that failed, before jitter.
	lastPause = 30 * time.Second
)

// loop is one Run.
type loop struct {
	*Worker
	q     *queue
	later map[key]deferral
	next  time.Time // when to list next
	rest  time.Time // no listing before this
	size  int       // how much to list of a scope
	full  bool      // the last listing had as much
	fresh int       // of that, what had not been put off
	fails int       // listings in a row that failed
}

// deferral is a request that could not be done, and when it is tried again.
type deferral struct {
	until time.Time
	fails int // executions in a row that the ledger failed
}

// Run executes what is due, until ctx ends. Then nothing new begins, and what runs
// may go on for Config.Grace before it is cancelled; Run returns when all of it has
// ended. What was cancelled stays open and is due again.
//
// A ledger that cannot be listed is asked again, less and less often; an error is
// never returned for it. The result is nil.
func (w *Worker) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	l := &loop{Worker: w, q: newQueue(w), later: map[key]deferral{}, size: page, next: time.Now()}
	for ctx.Err() == nil {
		now := time.Now()
		if !now.Before(l.next) {
			l.list(ctx, now)
		}
		again := l.q.start(work, now, drop)
		if l.full && l.fresh > 0 && len(l.q.lanes) == 0 { // there is more
			l.next = earlier(l.next, l.rest)
		}
		if !l.q.free() {
			again = time.Time{} // the end of an execution wakes it up
		}
		timer := time.NewTimer(time.Until(earlier(again, l.next)))
		select {
		case d := <-l.q.done:
			l.ended(d)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	l.q.drain(w.grace(), cancel)
	return nil
}

// drop leaves what another caller of this process executes; what waits for its
// origin stays in the queue until the next listing.
func drop(_ client.Summary, r *refusal) bool { return r == nil }

func (w *Worker) grace() time.Duration {
	if w.cfg.Grace > 0 {
		return w.cfg.Grace
	}
	return cmp.Or(time.Duration(w.longest.Load()), defaultGrace)
}

// list replaces the queue by what is due now.
func (l *loop) list(ctx context.Context, now time.Time) {
	if l.full && l.q.free() && (len(l.q.lanes) > 0 || l.fresh == 0) {
		l.size = min(2*l.size, lastPage) // what waits, or was put off, may hide what could begin
	} else {
		l.size = max(l.size/2, page)
	}
	var due []client.Summary
	l.full, l.fresh = false, 0
	for _, scope := range l.cfg.Scopes {
		limited, cancel := context.WithTimeout(ctx, listTime)
		list, err := l.cfg.Ledger.List(limited, client.Filter{Due: true, Order: client.DueFirst, Limit: l.size}.In(scope))
		cancel()
		if err != nil {
			l.listFailed(ctx, err)
			return
		}
		l.full = l.full || len(list) == l.size
		due = append(due, list...)
	}
	if len(l.cfg.Scopes) > 1 {
		slices.SortStableFunc(due, func(a, b client.Summary) int { return a.NextCheck.Compare(b.NextCheck) })
	}
	if l.fails > 0 {
		l.cfg.Logger.Info("the ledger can be listed again")
	}
	l.fails = 0
	due = l.without(due, now)
	l.fresh = len(due)
	l.q.fill(due)
	end := time.Now()
	l.rest = end.Add(max(end.Sub(now)*listShare, listPause))
	l.next = now.Add(l.cfg.Poll)
	if l.next.Before(l.rest) {
		l.next = l.rest
	}
}

// without leaves out what was put off, and forgets what is not due any more.
func (l *loop) without(due []client.Summary, now time.Time) []client.Summary {
	still := map[key]deferral{}
	due = slices.DeleteFunc(due, func(s client.Summary) bool {
		k := key{s.Scope, s.RequestID}
		d, ok := l.later[k]
		if ok {
			still[k] = d
		}
		return ok && now.Before(d.until)
	})
	l.later = still
	return due
}

func (l *loop) listFailed(ctx context.Context, err error) {
	if l.q.fill(nil); ctx.Err() != nil {
		return
	}
	if l.fails++; l.fails == 1 {
		l.cfg.Logger.Error("the ledger cannot be listed", "error", err)
	}
	l.next = time.Now().Add(jitter(pause(l.cfg.Poll, l.fails, lastPause)))
}

// pause doubles with each failure, the first being number 1.
func pause(first time.Duration, fails int, last time.Duration) time.Duration {
	if fails > 16 {
		return max(first, last)
	}
	return max(first, min(first<<(fails-1), last))
}

// ended takes note of an execution that has ended.
func (l *loop) ended(d Done) {
	l.q.running--
	k := key{d.Scope, d.RequestID}
	switch {
	case d.Kind == Broken:
		fails := l.later[k].fails + 1
		l.later[k] = deferral{time.Now().Add(jitter(pause(time.Second, fails, lastBackoff))), fails}
		l.cfg.Logger.Error("a request could not be executed", "request_id", d.RequestID, "origin", d.Origin, "error", d.Err)
		if errors.Is(d.Err, client.ErrLedger) {
			l.q.fill(nil) // the next listing tells whether it is the ledger or the request
		}
	case d.Later > 0:
		l.later[k] = deferral{until: time.Now().Add(d.Later)}
	case d.Kind == Nothing, d.Kind == ForPerson: // should a ledger still call it due, then not at once
		l.later[k] = deferral{until: time.Now().Add(heldPause)}
	default:
		delete(l.later, k)
	}
}

// earlier is the earlier of two times; a zero a never comes.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
