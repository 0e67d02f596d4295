package sim

import (
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/sim/durable"
)

// simulate makes one run with the choices of the lab's chooser.
func (l *lab) simulate(planted Plant, count *counts, telling bool) *world {
	w := &world{lab: l, choices: &l.choices, planted: planted, count: count, telling: telling, store: durable.New()}
	w.limits = variants()[w.choose(kWorld, len(variants()))]
	w.leases = w.choose(kWorld, 2) == 1
	n := 1 + w.choose(kWorld, maxHosts)
	if n > maxHosts {
		n = maxHosts
	}
	w.oracle.w = w
	for i := range w.oracle.requests {
		w.oracle.requests[i].input = &inputs[w.choose(kDetail, len(inputs))]
	}
	if w.telling {
		ledger := "one machine, with locks"
		if w.leases {
			ledger = "many hosts, with leases"
		}
		w.say("world", "%d hosts, a ledger for %s; window %s, maxChecks %d, timeout %s", n, ledger, w.limits.window, w.limits.checks, w.limits.timeout)
	}
	w.startService()
	w.hosts = l.hosts[:n]
	for _, h := range w.hosts {
		h.start(w, life)
	}
	w.run(false)
	if w.bad == nil {
		w.finish()
	}
	for _, h := range w.hosts {
		h.stop()
	}
	return w
}

// finish lets everything work again, and looks what becomes of what is open: at once,
// and after the window.
func (w *world) finish() {
	w.say("world", "nothing fails any more")
	w.quiet = true
	w.down, w.service.down = 0, 0
	host := w.hosts[0]
	w.oracle.listed()
	host.start(w, func(p *process) { w.oracle.settles(p) })
	w.run(false)
	w.run(true) // what was late arrives
	if w.bad != nil {
		return
	}
	open := w.list(client.Filter{Open: true})
	if len(open) == 0 {
		return
	}
	ends := open[0].WindowEnds
	for i := range open {
		ends = durable.Later(ends, durable.Later(open[i].WindowEnds, open[i].SeenAt))
	}
	if d := ends.Sub(w.clock()); d > 0 {
		w.now += d
	}
	w.say("world", "the window of everything has ended")
	host.start(w, w.oracle.handsOver)
	w.run(false)
}

// handsOver judges what becomes of what is open after the window.
func (o *oracle) handsOver(p *process) {
	w := o.w
	for i := range o.requests {
		s := &o.requests[i]
		if s.saved == nil || !s.attempted || s.purged || s.saved.Record.Settled() != nil || durable.Final(&s.saved.Record) {
			continue
		}
		res, err := p.reconcile(i, true)
		switch {
		case err != nil:
			w.fail(KnownOutcome, "after the window %s gives an error: %v", requestID(i), err)
		case !res.NeedsHandoff() || !res.WindowEnded:
			w.fail(KnownOutcome, "after the window %s is not handed over: %s", requestID(i), res.Receipt.Outcome)
		}
		again, err := p.reconcile(i, true)
		if err != nil || !again.FromSaved || !sameReceipt(&again.Receipt, &res.Receipt) {
			w.fail(KnownOutcome, "after the window %s gives another receipt than before: %s, %v", requestID(i), again.Receipt.Outcome, err)
		}
		sum := s.saved.Summary()
		switch {
		case !sum.NeedsPerson(w.clock()):
			w.fail(KnownOutcome, "after the window %s does not wait for a person", requestID(i))
		case !sum.NextCheck.IsZero():
			w.fail(KnownOutcome, "after the window %s is still due for workers", requestID(i))
		}
	}
	o.listed()
}
