package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/agentic-go/agentic/client"
)

// queue hands requests out to at most Config.Concurrency goroutines: those of one
// origin in order, and the origins in turn. It belongs to one goroutine.
type queue struct {
	worker  *Worker
	lanes   []*lane
	turn    int
	running int
	done    chan Done
}

// lane has the requests of one origin that wait.
type lane struct {
	origin string
	list   []client.Summary
}

func newQueue(w *Worker) *queue {
	return &queue{worker: w, done: make(chan Done, w.cfg.Concurrency)}
}

// fill replaces what waits.
func (q *queue) fill(list []client.Summary) {
	byOrigin := map[string]*lane{}
	q.lanes = q.lanes[:0]
	for _, s := range list {
		l := byOrigin[s.Origin]
		if l == nil {
			l = &lane{origin: s.Origin}
			byOrigin[s.Origin] = l
			q.lanes = append(q.lanes, l)
		}
		l.list = append(l.list, s)
	}
}

// free reports whether another execution may begin.
func (q *queue) free() bool { return q.running < q.worker.cfg.Concurrency }

// start begins what may begin now, and tells when to look again; zero means that
// nothing waits for a time. refused is asked about each request that cannot begin
// (r is nil when this process executes it already) and says whether to drop it.
func (q *queue) start(ctx context.Context, now time.Time, refused func(client.Summary, *refusal) bool) time.Time {
	var again time.Time
	blocked := 0 // lanes in a row that could not begin anything
	for q.free() && blocked < len(q.lanes) {
		q.turn++
		l := q.lanes[q.turn%len(q.lanes)]
		if began, r := q.startOne(ctx, now, l, refused); began {
			blocked = 0
		} else {
			blocked++
			if r != nil && (again.IsZero() || r.at.Before(again)) {
				again = r.at
			}
		}
	}
	q.lanes = slices.DeleteFunc(q.lanes, func(l *lane) bool { return len(l.list) == 0 })
	return again
}

// startOne begins the first request of a lane that may.
func (q *queue) startOne(ctx context.Context, now time.Time, l *lane, refused func(client.Summary, *refusal) bool) (bool, *refusal) {
	w := q.worker
	for len(l.list) > 0 {
		s := l.list[0]
		k := key{s.Scope, s.RequestID}
		if !w.claim(k) {
			refused(s, nil)
			l.list = l.list[1:]
			continue
		}
		a, r := w.origins.admit(s.Origin, now)
		if r != nil {
			w.unclaim(k)
			if !refused(s, r) {
				return false, r
			}
			l.list = l.list[1:]
			continue
		}
		l.list = l.list[1:]
		q.running++
		go func() {
			d := w.due(ctx, s, a)
			w.unclaim(k)
			q.done <- d
		}()
		return true, nil
	}
	return false, nil
}

// drain waits for what runs. After grace the executions are cancelled; what they
// had not finished stays open.
func (q *queue) drain(grace time.Duration, cancel context.CancelFunc) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for q.running > 0 {
		select {
		case <-q.done:
			q.running--
		case <-timer.C:
			q.worker.cfg.Logger.Warn("executions are cancelled after the grace period", "running", q.running)
			cancel()
		}
	}
}
