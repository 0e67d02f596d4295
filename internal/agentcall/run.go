package agentcall

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentic-go/agentic/client"
)

// run is one execution, which belongs to no call: those that wait for it may go.
type run struct {
	id    string
	sends bool // it alone may send; it is final when done is closed
	done  chan struct{}
	res   client.Result // set before done is closed
	err   error

	begin func() // the request is bound, or will not be

	mu       sync.Mutex
	steps    int
	last     Progress
	watchers map[chan Progress]bool
}

// start executes a request, or joins the execution that goes on already. release is
// called as soon as the request is bound, or will not be.
func (c *Calls) start(id string, sends bool, release func(), execute func(context.Context) (client.Result, error)) *run {
	c.mu.Lock()
	if r := c.runs[id]; r != nil {
		c.mu.Unlock()
		release()
		return r
	}
	r := &run{id: id, sends: sends, done: make(chan struct{}), begin: sync.OnceFunc(release), watchers: map[chan Progress]bool{}}
	if c.ended {
		c.mu.Unlock()
		release()
		r.err = &client.InterruptedError{RequestID: id, Err: context.Canceled}
		close(r.done)
		return r
	}
	c.runs[id] = r
	c.executing.Add(1)
	c.mu.Unlock()
	go func() {
		defer c.executing.Done()
		res, err := c.shielded(id, execute)
		c.mu.Lock()
		r.res, r.err = res, err
		delete(c.runs, id)
		c.mu.Unlock()
		r.begin()
		close(r.done)
	}()
	return r
}

// shielded executes a request. After a panic it may have been sent.
func (c *Calls) shielded(id string, execute func(context.Context) (client.Result, error)) (res client.Result, err error) {
	defer func() {
		if err == ErrFault {
			res = client.Result{RequestID: id, Sent: true}
		}
	}()
	defer c.recovered("the execution of request "+id, &err)
	return execute(c.life)
}

// running is the execution of a request in this process, or nil.
func (c *Calls) running(id string) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[id]
}

// await waits for an execution as long as this call may, and reports whether it has
// ended. It goes on either way.
func (c *Calls) await(ctx context.Context, r *run, call Call) bool {
	steps := make(chan Progress, 32)
	r.watch(steps)
	defer r.unwatch(steps)
	timer := time.NewTimer(c.cfg.AnswerWithin - time.Since(call.began))
	defer timer.Stop()
	tell := func(p Progress) {
		if call.Progress != nil {
			call.Progress(p)
		}
	}
	for {
		select {
		case p := <-steps:
			tell(p)
			continue
		default:
		}
		select {
		case p := <-steps:
			tell(p)
		case <-r.done:
			for {
				select {
				case p := <-steps:
					tell(p)
					continue
				default:
				}
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (r *run) watch(steps chan Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[steps] = true
	if r.steps > 0 {
		steps <- r.last // it is empty
	}
}

func (r *run) unwatch(steps chan Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watchers, steps)
}

// step tells all that wait. Who does not keep up misses steps: an execution waits
// for nobody.
func (r *run) step(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	p.N = r.steps
	r.last = p
	for w := range r.watchers {
		select {
		case w <- p:
		default:
		}
	}
}

// observe gives an event of the engine to the execution that it belongs to.
func (c *Calls) observe(e client.Event) {
	id, p := progress(e)
	r := c.running(id)
	if r == nil {
		return
	}
	if saved, ok := e.(client.Saved); ok {
		r.sends = r.sends && saved.MaySubmit // another process may have had the right
		r.begin()
	}
	r.step(p)
}

// progress is an event in words, without anything that a service or a publisher said.
func progress(e client.Event) (id string, p Progress) {
	answer := func(o client.Observation) string {
		if o.Class != "" {
			return "no usable answer (" + string(o.Class) + ")"
		}
		return fmt.Sprintf("HTTP status %d", o.Status)
	}
	switch e := e.(type) {
	case client.Saved:
		if e.MaySubmit {
			return e.RequestID, Progress{Text: "Saved as request " + e.RequestID + "; it is sent once."}
		}
		return e.RequestID, Progress{Text: "Found saved request " + e.RequestID + "; it is not sent again."}
	case client.Submitting:
		return e.RequestID, Progress{Text: "Sending it, for the only time."}
	case client.Submitted:
		return e.RequestID, Progress{Text: "Sent: " + answer(e.Observation) + ", which proves nothing yet."}
	case client.Interrupted:
		return e.RequestID, Progress{Text: "Sent: " + answer(e.Observation) + "; what became of it is read now."}
	case client.Checking:
		return e.RequestID, Progress{Text: fmt.Sprintf("Reading the status, %d of at most %d.", e.N, e.M)}
	case client.Checked:
		return e.RequestID, Progress{Text: "Status: " + answer(e.Observation) + outcomeWord(string(e.Observation.Outcome)) + "."}
	case client.Verifying:
		return e.RequestID, Progress{Text: "Reading the result for evidence."}
	case client.Verified:
		if e.OK {
			return e.RequestID, Progress{Text: "The evidence is complete."}
		}
		return e.RequestID, Progress{Text: "The evidence is not there: " + answer(e.Observation) + "."}
	case client.Resulted:
		return e.RequestID, Progress{Text: "Receipt: " + string(e.Receipt.Outcome) + "."}
	}
	return "", Progress{}
}

func outcomeWord(outcome string) string {
	if outcome == "" {
		return ""
	}
	return ", " + outcome
}
