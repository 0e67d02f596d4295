package sim

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/sim/durable"
)

// epoch is the true time at which every run begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is one run: the hosts, their ledger, the network, the service, and the oracle
// that watches them. Only one of them acts at a time, and what happens follows from
// the choices alone.
type world struct {
	lab     *lab
	choices *chooser
	limits  *limits
	planted Plant

	now    time.Duration // true time since epoch
	events []event       // a heap by at and seq
	seq    int
	steps  int
	stream int  // whose choices are made
	quiet  bool // no faults any more

	hosts   []*host
	last    *host // who went on last
	leases  bool  // the ledger is shared by leases; otherwise by locks of one machine
	skew    time.Duration
	store   *durable.Ledger
	down    time.Duration // the ledger answers nobody before
	service service
	oracle  oracle
	answers []agentic.Answer // what the service answered last, of which copies may arrive late

	count   *counts
	text    []string // the events in words
	telling bool
	bad     *Violation
}

// event is something that happens by itself at a moment.
type event struct {
	at     time.Duration
	seq    int
	stream int // of who caused it
	do     func()
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// after has something happen later.
func (w *world) after(d time.Duration, do func()) {
	w.seq++
	w.events = append(w.events, event{at: w.now + max(0, d), seq: w.seq, stream: w.stream, do: do})
	for i := len(w.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !w.events[i].before(w.events[up]) {
			break
		}
		w.events[i], w.events[up] = w.events[up], w.events[i]
		i = up
	}
}

func (w *world) pop() event {
	first, n := w.events[0], len(w.events)-1
	w.events[0] = w.events[n]
	w.events[n] = event{}
	w.events = w.events[:n]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && w.events[child].before(w.events[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		w.events[i], w.events[least] = w.events[least], w.events[i]
		i = least
	}
}

// choose is a choice of this run; when its faults are over, always the harmless one.
func (w *world) choose(k kind, n int) int {
	if w.quiet {
		return 0
	}
	return w.choices.choose(w.stream, k, n)
}

// clock is the ledger's: that of the database, or of the one machine.
func (w *world) clock() time.Time { return epoch.Add(w.now + w.skew).Truncate(time.Microsecond) }

// run goes on until no host has anything to do, or with drain until nothing happens
// any more at all.
func (w *world) run(drain bool) {
	for w.bad == nil {
		next, busy := durable.Never, false
		for _, h := range w.hosts {
			if !h.idle {
				busy = true
				next = min(next, h.wake)
			}
		}
		if !busy && !drain || !busy && len(w.events) == 0 {
			return
		}
		if len(w.events) > 0 && w.events[0].at <= next {
			e := w.pop()
			w.now, w.stream = max(w.now, e.at), e.stream
			e.do()
			w.oracle.audit()
			continue
		}
		w.now, w.stream = max(w.now, next), 0
		h := w.pick(next)
		w.stream = h.stream
		h.wake = durable.Never
		w.last = h
		h.goOn()
		w.oracle.audit()
	}
}

// pick is who goes on of those that wait for no later moment than at.
func (w *world) pick(at time.Duration) *host {
	var ready [maxHosts]*host
	n := 0
	if w.last != nil && !w.last.idle && w.last.wake <= at {
		ready[0], n = w.last, 1
	}
	for _, h := range w.hosts {
		if !h.idle && h.wake <= at && h != w.last {
			ready[n] = h
			n++
		}
	}
	if n == 1 {
		return ready[0]
	}
	return ready[w.choose(kDetail, n)]
}

// how long or how far something goes; the first is the least.
func (w *world) duration() time.Duration {
	l := w.limits
	switch w.choose(kHow, 9) {
	case 0:
		return 10 * time.Millisecond
	case 1:
		return time.Second
	case 2:
		return l.timeout + time.Second
	case 3:
		return leaseTime / 2
	case 4:
		return leaseTime + time.Second
	case 5:
		return l.term + time.Second
	case 6:
		return l.window / 2
	case 7:
		return l.window - time.Second
	default:
		return l.window + time.Minute
	}
}

// say tells an event in words.
func (w *world) say(who, format string, args ...any) {
	if !w.telling {
		return
	}
	w.text = append(w.text, fmt.Sprintf("%14s  %-8s  %s", w.now, who, fmt.Sprintf(format, args...)))
}

// fail ends the run: an invariant does not hold. The first one counts.
func (w *world) fail(inv Invariant, format string, args ...any) {
	if w.bad != nil {
		return
	}
	w.bad = &Violation{Invariant: inv, Detail: fmt.Sprintf(format, args...)}
	w.say("oracle", "%s does not hold: %s", inv, w.bad.Detail)
}
