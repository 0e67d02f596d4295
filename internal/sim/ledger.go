package sim

import (
	"context"
	"errors"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/sim/durable"
)

// ledger is the ledger as the engine of one host sees it: the store, behind calls that
// can fail before or after they take effect.
type ledger struct{ h *host }

// errDead is what the deferred calls of a dead process get: nobody sees it.
var errDead = errors.New("the process is dead")

var errDisk = errors.New("the ledger did not answer")

// call is one call of the ledger around its effect.
func (l ledger) call(ctx context.Context, op string, effect func() error) error {
	p := l.h.process
	if p.dead {
		return errDead
	}
	w := p.w
	p.step("before " + op)
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.now < w.down {
		p.excuse(time.Second)
		if p.pass(time.Second); w.now < w.down {
			w.count.add(cLedgerDown)
			return &client.LedgerError{Op: op, Err: errDisk}
		}
	}
	fault := w.choose(kLedger, 4)
	switch fault {
	case 1:
		w.say(p.name, "%s fails, and had no effect", op)
		w.count.add(cLedgerBefore)
		return &client.LedgerError{Op: op, Err: errDisk}
	case 2:
		w.down = w.now + w.duration()
		w.say(p.name, "%s fails, and the ledger answers nobody for %s", op, w.down-w.now)
		w.count.add(cLedgerDown)
		return &client.LedgerError{Op: op, Err: errDisk}
	}
	err := effect()
	w.oracle.audit()
	if err == nil && fault == 3 {
		w.say(p.name, "%s takes effect, and its answer is lost", op)
		w.count.add(cLedgerAfter)
		return &client.LedgerError{Op: op, Err: errDisk}
	}
	p.step("after " + op)
	return err
}

// excuse gives the execution that the host is in more time.
func (p *process) excuse(d time.Duration) {
	if p.exec != nil {
		p.exec.excused += d
	}
}

// Begin implements client.Ledger.
func (l ledger) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return l.begin(ctx, "begin", durable.Key{Scope: b.Scope, ID: b.RequestID}, &b, intent, wait)
}

// Take implements client.Ledger.
func (l ledger) Take(ctx context.Context, s client.Scope, requestID string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return l.begin(ctx, "take", durable.Key{Scope: s, ID: requestID}, nil, intent, wait)
}

func (l ledger) begin(ctx context.Context, op string, k durable.Key, b *client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	p := l.h.process
	w := p.w
	until := w.now + max(0, wait)
	if w.planted == WaitForever {
		until = durable.Never
	}
	for {
		h := &hold{p: p, seen: time.Time{}}
		err := l.call(ctx, op, func() error { return h.begin(k, b, intent) })
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, durable.ErrHeld):
			if w.now >= until {
				w.count.add(cHeld)
				return nil, &client.HeldError{RequestID: k.ID}
			}
			w.say(p.name, "waits for the holder of %s", k.ID)
			if err := p.await(ctx, w.store.Get(k), min(until-w.now, leaseTime/2)); err != nil {
				return nil, err
			}
		default:
			// What was held by a call that failed is held for nobody.
			if h.grant != nil && !p.dead {
				h.orphan()
			}
			return nil, err
		}
	}
}

// await waits until the holder of r gives it free, d at most.
func (p *process) await(ctx context.Context, r *durable.Request, d time.Duration) error {
	p.waits = r
	err := p.wait(ctx, d)
	p.waits = nil
	return err
}

// Load implements client.Ledger.
func (l ledger) Load(ctx context.Context, s client.Scope, requestID string) (rec *client.Record, err error) {
	err = l.call(ctx, "load", func() error {
		rec, err = l.h.w.store.Load(durable.Key{Scope: s, ID: requestID})
		if err == nil && l.h.w.planted == RewriteFinal && durable.Final(rec) {
			rec.Receipts = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return rec, nil
}

// List implements client.Ledger.
func (l ledger) List(ctx context.Context, f client.Filter) (list []client.Summary, err error) {
	err = l.call(ctx, "list", func() error {
		list = l.h.w.list(f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (w *world) list(f client.Filter) []client.Summary {
	list := w.store.List(f, w.clock())
	if w.planted == ForgetsUnknown && len(list) > 0 && list[0].Outcome == agentic.Unknown {
		list = list[1:]
	}
	return list
}

// hold is client.Hold of one process.
type hold struct {
	p      *process
	grant  *durable.Grant
	record *client.Record
	clock  time.Time     // the database's, when it began
	began  time.Duration // true time of that
	limit  time.Duration // true time until which its lease may be renewed
	seen   time.Time     // the highest time that it saw
	shown  time.Time     // the last time that the engine was shown
	top    time.Time     // the highest of those
	looked bool          // since the last exchange
	back   bool          // the engine was shown that the clock had gone back
	asked  bool          // MaySubmit said yes, and nothing was sent since
}

// begin is the effect of Begin and Take.
func (h *hold) begin(k durable.Key, b *client.Binding, intent client.Intent) error {
	p := h.p
	w := p.w
	if w.planted == OtherInput && b != nil {
		if r := w.store.Get(k); r != nil {
			changed := *b
			changed.InputDigest, changed.Profile, changed.OpenAPI = r.Record.InputDigest, r.Record.Profile, r.Record.OpenAPI
			b = &changed
		}
	}
	before := w.holderOf(k)
	g, rec, err := w.store.Begin(k, b, intent, w.clock(), w.now)
	if err != nil {
		return err
	}
	if w.planted == RewriteFinal && g.Ended {
		r := g.Request
		r.Fence++
		g.Fence, g.Ended, r.Holder, rec.Receipts = r.Fence, false, g, nil
	}
	h.grant, h.record, h.clock, h.began = g, rec, w.clock(), w.now
	h.limit = durable.Never
	if w.leases && !g.Ended {
		h.limit = w.now + max(rec.Term, 5*time.Second)
		g.Until = h.limit
	}
	if before != nil && before.Stands(w.now) && before != g && !g.Ended {
		w.fail(OneWriter, "%s holds %s while another hold on it stands", p.name, k.ID)
	}
	p.hold = h
	h.see()
	if w.planted == AttemptedLate && g.MaySubmit {
		g.Request.Record.State, g.Request.Record.AttemptedAt = client.Prepared, time.Time{}
	}
	if w.telling {
		w.say(p.name, "holds %s, %s, may submit: %t", k.ID, rec.State, h.grant.MaySubmit)
	}
	w.count.add(cHold)
	return nil
}

// holderOf is the hold of a request that was given last, or nil.
func (w *world) holderOf(k durable.Key) *durable.Grant {
	if r := w.store.Get(k); r != nil {
		return r.Holder
	}
	return nil
}

// orphan leaves the hold to nobody: a lock is gone at once, a lease when it ends.
func (h *hold) orphan() {
	w := h.p.w
	if w.leases {
		h.grant.Until = min(h.grant.Until, w.now+leaseTime)
		return
	}
	h.free()
}

// unattended and attended are the begin and the end of a pause of the holder, in which
// nobody renews its lease. One that has ended meanwhile is lost.
func (h *hold) unattended() {
	if h.p.w.leases {
		h.grant.Until = min(h.grant.Until, h.p.w.now+leaseTime)
	}
}

func (h *hold) attended() {
	if h.p.w.leases && h.grant.Stands(h.p.w.now) {
		h.grant.Until = h.limit
	}
}

// free gives the request to whoever waits for it.
func (h *hold) free() {
	h.grant.Released = true
	for _, other := range h.p.w.hosts {
		if q := other.process; q != nil && q.listening && q.waits == h.grant.Request {
			other.wake = h.p.w.now
		}
	}
}

func (h *hold) stands() bool { return h.grant.Stands(h.p.w.now) }

// Record implements client.Hold.
func (h *hold) Record() *client.Record { return h.record }

// MaySubmit implements client.Hold.
func (h *hold) MaySubmit() bool {
	yes := h.grant.MaySubmit && !h.grant.Ended && h.stands()
	switch h.p.w.planted {
	case ResendAfterRestart:
		yes = yes || h.record.State == client.Attempted && len(h.record.Receipts) == 0 && !h.grant.Ended
	case IgnoreLease:
		yes = h.grant.MaySubmit && !h.grant.Ended
	}
	h.asked = yes
	return yes
}

// Now implements client.Hold.
func (h *hold) Now() time.Time {
	t := h.see()
	h.back = h.back || t.Before(h.top) || t.Before(h.record.SeenAt) || t.Before(h.record.CreatedAt)
	h.shown, h.looked, h.top = t, true, durable.Later(h.top, t)
	if h.p.w.planted == IgnoreClock {
		return durable.Later(h.seen.Truncate(time.Hour), h.record.SeenAt)
	}
	return t
}

// see looks at the clock, for the ledger's own use too.
func (h *hold) see() time.Time {
	t := h.p.w.clock()
	if h.p.w.leases { // what has passed here since the database told the time
		t = h.clock.Add(h.p.w.now - h.began)
	}
	h.seen = durable.Later(h.seen, t)
	return t
}

// Observe implements client.Hold.
func (h *hold) Observe(ctx context.Context, obs []client.Observation) error {
	return ledger{h.p.host}.call(ctx, "observe", func() error { return h.append(obs, nil) })
}

// Finish implements client.Hold.
func (h *hold) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	if h.p.w.planted == ReceiptBeforeSave {
		h.p.w.after(latency, func() { _ = h.append(obs, &r) })
		return nil
	}
	return ledger{h.p.host}.call(ctx, "finish", func() error { return h.append(obs, &r) })
}

// append is the effect of Observe and Finish.
func (h *hold) append(obs []client.Observation, r *agentic.Receipt) error {
	p, g := h.p, h.grant
	w := p.w
	h.see()
	seen := h.seen
	if now := w.clock(); w.leases && seen.After(now) {
		seen = now // the database believes its own clock
	}
	switch w.planted {
	case AttemptedLate:
		if rec := &g.Request.Record; g.MaySubmit && rec.State == client.Prepared {
			rec.State, rec.AttemptedAt = client.Attempted, h.record.AttemptedAt
		}
	case ForgetToken:
		if !g.Released && !g.Ended && !g.Stands(w.now) {
			g.Fence, g.Until = g.Request.Fence, durable.Never
			w.oracle.wrote(h)
		}
	case OverwriteReceipts:
		if rec := &g.Request.Record; r != nil && len(rec.Receipts) > 0 {
			rec.Receipts = rec.Receipts[:len(rec.Receipts)-1]
		}
	}
	err := w.store.Append(g, obs, r, h.seen, seen, w.now)
	if w.telling {
		what := "observations"
		if r != nil {
			what = "the receipt " + string(r.Outcome)
		}
		w.say(p.name, "writes %s of %s: %v", what, h.record.RequestID, err)
	}
	switch {
	case errors.Is(err, client.ErrLost):
		w.count.add(cLost)
	case err == nil:
		w.oracle.wrote(h)
		if r != nil && p.exec != nil {
			w.oracle.grounds(p.exec, h.record, r)
		}
		if r != nil && h.back && r.Outcome != agentic.Unknown {
			w.fail(PermittedCall, "%s has a receipt that says %s, though the clock was seen to go back", h.record.RequestID, r.Outcome)
		}
		if r != nil && w.leases {
			h.free()
		}
	}
	return err
}

// Release implements client.Hold.
func (h *hold) Release() error {
	p := h.p
	if p.dead || h.grant.Released {
		return nil
	}
	p.step("before release")
	h.free()
	return nil
}
