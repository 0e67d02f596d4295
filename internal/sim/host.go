package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/sim/choice"
	"github.com/agentic-go/agentic/internal/sim/durable"
)

const (
	maxHosts    = choice.Streams - 1
	maxRequests = 2
)

// leaseTime is how long a lease lasts that nobody renews.
const leaseTime = 15 * time.Second

var scope = client.Scope{Principal: "ann", Environment: "simulated"}

// host is one machine, or on a ledger of one machine one process after the other. It
// is a coroutine of its lab that lives through many runs, so that making one costs
// nothing.
type host struct {
	name     string
	stream   int            // of its choices
	patient  *client.Client // waits for other holders
	hasty    *client.Client // does not
	resume   func() (struct{}, bool)
	end      func()
	yield    func(struct{}) bool
	w        *world
	script   func(*process)
	process  *process
	idle     bool
	wake     time.Duration
	stopping bool
}

// process is one life of a host's process, from a start to a crash.
type process struct {
	*host
	number int
	dead   bool
	ctx    context.Context
	cancel context.CancelFunc
	exec   *execution       // the call of the engine that it is in
	hold   *hold            // of that call
	answer *arrival         // what the network has for it
	waits  *durable.Request // whose holder it waits for

	listening bool // something can wake it
	trusted   bool // of a planted fault
}

// crash is what unwinds a process that dies, and halt what unwinds one whose run has
// ended. Nothing but the top of a process recovers them.
type (
	crash struct{}
	halt  struct{}
)

// lab makes one run after the other, with one set of hosts.
type lab struct {
	hosts   [maxHosts]*host
	choices chooser
}

func newLab() *lab {
	l := &lab{}
	for i := range l.hosts {
		h := &host{name: fmt.Sprintf("host %c", 'A'+i), stream: 1 + i, idle: true}
		h.patient, h.hasty = h.client(0), h.client(-1)
		h.resume, h.end = iter.Pull(h.body)
		h.resume() // until it waits for its first run
		l.hosts[i] = h
	}
	return l
}

func (l *lab) close() {
	for _, h := range l.hosts {
		h.end()
	}
}

// client is the engine as it is, on the model's seams.
func (h *host) client(wait time.Duration) *client.Client {
	c, err := client.New(client.Config{
		Ledger: ledger{h}, Transport: network{h}, Scope: scope, Wait: wait,
		NewRequestID: func() string { return requestID(maxRequests - 1) },
		KillPoint:    func(p client.Point) { h.process.step(string(p)) },
		Sleep:        func(ctx context.Context, d time.Duration) error { return h.process.sleep(ctx, d) },
	})
	if err != nil {
		panic("sim: " + err.Error())
	}
	return c
}

// body is the coroutine: one life after the other.
func (h *host) body(yield func(struct{}) bool) {
	h.yield = yield
	for yield(struct{}{}) {
		h.live()
		h.idle, h.w, h.process, h.script = true, nil, nil, nil
	}
}

// start gives the host something to do in a run.
func (h *host) start(w *world, script func(*process)) {
	h.w, h.script, h.idle, h.stopping, h.wake = w, script, false, false, w.now
}

// stop unwinds what the host does.
func (h *host) stop() {
	if !h.idle {
		h.stopping = true
		h.goOn()
	}
}

func (h *host) goOn() { h.resume() }

// live is a host in one run: a process, and another one after a crash.
func (h *host) live() {
	for n := 1; h.spawn(n); n++ {
	}
}

// spawn runs one process to its end and reports whether there is another one.
func (h *host) spawn(number int) (again bool) {
	w := h.w
	p := &process{host: h, number: number}
	p.renew()
	h.process = p
	defer func() {
		switch v := recover(); v.(type) {
		case nil, halt:
			again = false
		case crash:
			again = !w.quiet && w.bad == nil && number < 4
		default:
			if w.fail(NoPanic, "the engine panicked: %v", v); w.bad.Stack == "" {
				w.bad.Stack = string(debug.Stack())
			}
		}
		p.dead = true
		p.cancel()
	}()
	if number > 1 {
		if w.choose(kDetail, 4) == 3 {
			w.say(h.name, "is not started again")
			return false
		}
		p.pass(w.duration())
		w.say(h.name, "starts again")
	}
	h.script(p)
	return false
}

// renew gives the next call of the engine a context that has not ended.
func (p *process) renew() {
	if p.cancel != nil {
		p.cancel()
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

// pass lets d go by, or as long as nobody wakes the host.
func (p *process) pass(d time.Duration) {
	p.wake = durable.Never
	if d != durable.Never {
		p.wake = p.w.now + d
	}
	if !p.yield(struct{}{}) || p.stopping || p.w.bad != nil {
		p.dead = true
		panic(halt{})
	}
}

// die ends the process at this very moment.
func (p *process) die() {
	w := p.w
	w.say(p.name, "crashes")
	w.count.add(cCrash)
	p.dead = true
	if p.hold != nil {
		p.hold.orphan()
	}
	panic(crash{})
}

// pause stops the process for d, without its knowing.
func (p *process) pause(d time.Duration) {
	w := p.w
	w.say(p.name, "is paused for %s", d)
	w.count.add(cPause)
	if p.hold != nil {
		p.hold.unattended()
	}
	if p.exec != nil {
		p.exec.excused += d
	}
	p.pass(d)
	if p.hold != nil {
		p.hold.attended()
	}
}

const stepKinds = 8

// step is a place between two effects, where anything can happen.
func (p *process) step(at string) {
	w := p.w
	if p.dead {
		return // unwinding
	}
	if w.bad != nil {
		p.dead = true
		panic(halt{})
	}
	w.steps++
	if x := p.exec; x != nil {
		x.steps++
		w.oracle.bounded(x)
	}
	c := w.choose(kStep, stepKinds)
	if c == 0 {
		return
	}
	if w.telling {
		w.say(p.name, "is at %q", at)
	}
	switch c {
	case 1:
		w.count.add(cYield)
		p.pass(0)
	case 2:
		p.pause(50 * time.Millisecond)
	case 3:
		p.pause(w.duration())
	case 4:
		p.die()
	case 5:
		d := w.duration()
		w.skew += d
		w.say("clock", "the ledger's clock jumps ahead by %s", d)
		w.count.add(cClockAhead)
	case 6:
		d := w.duration()
		w.skew -= d
		w.say("clock", "the ledger's clock jumps back by %s", d)
		w.count.add(cClockBack)
	case 7:
		w.say(p.name, "its caller gives up")
		w.count.add(cCancel)
		p.cancel()
	}
}

// wait lets d go by, unless something comes first: the host is woken, dies, or its caller
// gives up. It is over at once when ctx has ended.
func (p *process) wait(ctx context.Context, d time.Duration) error {
	w := p.w
	if err := ctx.Err(); err != nil {
		return err
	}
	listen := func(d time.Duration) {
		p.listening = true
		p.pass(d)
		p.listening = false
	}
	switch w.choose(kWait, 4) {
	case 0:
		listen(d)
	case 1:
		listen(d / 2)
		p.die()
	case 2:
		listen(d / 2)
		w.say(p.name, "its caller gives up")
		w.count.add(cCancel)
		p.cancel()
	case 3:
		listen(d)
		p.pause(w.duration())
	}
	return ctx.Err()
}

// sleep is client.Config.Sleep.
func (p *process) sleep(ctx context.Context, d time.Duration) error {
	p.step("pause between checks")
	return p.wait(ctx, d)
}

func requestID(i int) string { return fmt.Sprintf("request-%d", i+1) }

// execution is one call of the engine as the oracle sees it.
type execution struct {
	p       *process
	request int
	asked   *input // nil when it names a saved request
	start   time.Duration
	wait    time.Duration // for another holder, at most
	excused time.Duration // what was done to it
	steps   int

	posts, statuses, verifies int
	finished                  *agentic.Receipt // a final receipt that was saved before
	reads                     bool             // it may not submit
	refused                   bool             // it saw a 409 or 422
	claimed                   bool             // it was told succeeded of this request
	status                    string           // the last status answer of this request that it was shown
	ticket                    string           // the last resource answer that it was shown
}

// The calls of the engine.
const (
	callExecute = "executes"
	callPrepare = "prepares"
	callSend    = "sends" // Execute by the ID alone
	callResume  = "resumes"
)

// call makes one call of the engine, and has the oracle look at what it gives.
func (p *process) call(what string, request int, asked *input, patient bool, do func(*client.Client) (client.Result, error)) (client.Result, error) {
	w := p.w
	p.renew()
	x := &execution{p: p, request: request, asked: asked, start: w.now, reads: what != callExecute && what != callSend}
	c := p.hasty
	if patient {
		c, x.wait = p.patient, w.limits.term
	}
	p.exec, p.hold, p.answer, p.trusted = x, nil, nil, false
	if r := w.store.Get(durable.Key{Scope: scope, ID: requestID(request)}); r != nil && durable.Final(&r.Record) {
		saved := r.Record.Last().Clone()
		x.finished = &saved
	}
	if w.telling {
		w.say(p.name, "%s %s", what, requestID(request))
	}
	res, err := do(c)
	p.exec, p.hold = nil, nil
	w.oracle.bounded(x)
	w.oracle.returned(x, &res, err)
	if w.telling {
		w.say(p.name, "gets %s", came(&res, err))
	}
	return res, err
}

func came(res *client.Result, err error) string {
	if err != nil {
		return "the error: " + err.Error()
	}
	s := string(res.Receipt.Outcome)
	if res.FromSaved {
		s += ", from a saved receipt"
	}
	return s + ": " + res.Receipt.Reason
}

// life is what a host does with its requests.
func life(p *process) {
	w := p.w
	for n := range 5 {
		op := ops[w.choose(kOp, len(ops))]
		switch {
		case op == 0 && n == 0 && p.number > 1:
			op = opRecover
		case op == 0 && n == 0 && p == w.hosts[0].process:
			op = opExecute
		}
		if !p.act(op) {
			return
		}
	}
}

// ops are what a host can do next, as often as each stands here. The first is the
// harmless one, and then the simple ones come.
var ops = [...]int{opStop, opExecute, opResume, opIdle, opPrepare, opSend, opWork, opRecover, opSettle, opPurge,
	opExecute, opExecute, opExecute, opExecute, opResume, opRecover, opIdle, opIdle, opExecute}

// What a host does next.
const (
	opStop = iota
	opExecute
	opResume
	opPrepare
	opSend // Execute by the ID alone
	opWork // as a worker: resume what is due
	opRecover
	opIdle
	opSettle // as a person at the desk
	opPurge
)

// act does one of them and reports whether there is more.
func (p *process) act(op int) bool {
	w := p.w
	which := func() int { return w.choose(kDetail, maxRequests) }
	switch op {
	case opStop:
		return false
	case opExecute, opPrepare:
		i := which()
		in, body := w.oracle.input(i), ""
		switch w.choose(kDetail, 5) {
		case 0:
			body = in.body
		case 1:
			body = in.spaced
		default:
			in = &inputs[w.choose(kDetail, len(inputs))]
			body = in.body
		}
		req := client.Request{Plan: w.limits.plan, Input: []byte(body), ID: requestID(i), AllowDuplicate: w.choose(kDetail, 2) == 0}
		if w.planted == UnboundedChecks {
			req.Plan = w.limits.unbounded
		}
		patient := w.choose(kDetail, 2) == 0
		if op == opExecute {
			_, _ = p.call(callExecute, i, in, patient, func(c *client.Client) (client.Result, error) { return c.Execute(p.ctx, req) })
			return true
		}
		_, _ = p.call(callPrepare, i, in, patient, func(c *client.Client) (client.Result, error) {
			if _, err := c.Prepare(p.ctx, req); err != nil {
				return client.Result{}, err
			}
			return client.Result{}, errPrepared
		})
	case opResume:
		p.reconcile(which(), w.choose(kDetail, 2) == 0)
	case opSend:
		i := which()
		_, _ = p.call(callSend, i, nil, w.choose(kDetail, 2) == 0, func(c *client.Client) (client.Result, error) {
			return c.Execute(p.ctx, client.Request{ID: requestID(i)})
		})
	case opWork, opRecover:
		p.renew()
		list, err := ledger{p.host}.List(p.ctx, client.Filter{Open: op == opRecover, Due: op == opWork, Order: client.DueFirst})
		if err != nil {
			w.say(p.name, "gets no list of what is open: %v", err)
			return true
		}
		if w.telling {
			w.say(p.name, "finds %d requests to go on with", len(list))
		}
		for i := range list {
			p.reconcile(int(list[i].RequestID[len("request-")]-'1'), op == opRecover)
		}
	case opIdle:
		p.pass(w.duration())
	case opSettle:
		p.settle(which())
	case opPurge:
		p.purge()
	}
	return true
}

// errPrepared marks a call that gives no receipt.
var errPrepared = errors.New("prepared, so there is no receipt")

func (p *process) reconcile(request int, patient bool) (client.Result, error) {
	return p.call(callResume, request, nil, patient, func(c *client.Client) (client.Result, error) { return c.Resume(p.ctx, requestID(request)) })
}

// settle is a person who gives a request up.
func (p *process) settle(request int) {
	w := p.w
	if w.store.Get(durable.Key{Scope: scope, ID: requestID(request)}) == nil {
		return
	}
	err := w.store.Note(durable.Key{Scope: scope, ID: requestID(request)}, client.Note{By: "ann", Verb: client.Abandon, Reason: "Waited long enough."}, w.clock())
	w.oracle.audit()
	w.count.add(cSettled)
	w.say(p.name, "a person abandons %s: %v", requestID(request), err)
}

// purge removes what is kept of everything that is not open.
func (p *process) purge() {
	w := p.w
	purged := w.store.Purge(client.PurgeOptions{Before: w.clock().Add(time.Hour), Apply: true}, w.clock())
	w.oracle.audit()
	w.say(p.name, "purges the ledger of %d requests", purged.Requests)
	if purged.Requests > 0 {
		w.count.add(cPurged)
	}
}
