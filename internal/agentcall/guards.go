package agentcall

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Bounds of what the guards look at.
const (
	openFor = 8 * 24 * time.Hour // longer than any tracking window; what is older waits for a person
	maxOpen = maxNamed + 1       // so that what cannot all be named shows

	// maxRemembered bounds the IDs that are remembered of an agent. What is forgotten
	// holds another input back until it is named again.
	maxRemembered = 10_000

	// promptly is how soon an answer has to be there to be sure that the client has
	// not stopped waiting for it without a word.
	promptly = 2 * time.Second
)

// reading is who has read the success of a request.
type reading struct {
	session string
	at      time.Time
}

// question is what the guards are asked before something is sent for the first time.
type question struct {
	tool     *tool
	id       string // of the request that is to be sent; never in its own way
	digest   string // of its input
	distinct map[string]bool
	session  string
}

// finding is what the guards found: a request with the same input, or requests with
// another one that are in the way, or nothing.
type finding struct {
	same     *client.Record // one that was attempted before one that was not
	inTheWay []*client.Record
}

// guards looks for requests that a new one may be a repeat of: those of the same
// action that are open, and those that succeeded, or that a person took off the desk
// although they may have been done, so short a time ago that the agent may not know of
// it. The caller has the action's gate.
//
// The ledger's own guard finds the same input again, atomically and over all hosts
// (client.Config.DuplicateWindow). Requests with another input are found by
// listing, which is enough while nobody else may bind one (Config.Turn).
func (c *Calls) guards(q question) (f finding, err error) {
	if c.cfg.NoSameGuard && c.cfg.NoOpenGuard {
		return f, nil
	}
	now := time.Now()
	base := client.Filter{Origin: q.tool.plan.Origin, ActionID: q.tool.plan.Action.ID}.In(c.cfg.Engine.Scope)
	open := base
	open.Open, open.After, open.Limit = true, now.Add(-openFor), maxOpen
	open.Order = client.UrgentFirst // so that prepared ones, however many, hide none that was attempted
	list, err := c.find(open)
	if err != nil {
		return f, err
	}
	slices.SortStableFunc(list, func(a, b client.Summary) int { return b.CreatedAt.Compare(a.CreatedAt) })
	quiet := map[string]bool{} // looked at for the same input only
	if c.cfg.Recent > 0 || c.cfg.Repeat > 0 {
		done := base
		// What was made long ago may have succeeded just now.
		done.After, done.Limit = now.Add(-max(openFor, c.cfg.Repeat, c.cfg.Recent)), 2*maxOpen
		recent, err := c.find(done)
		if err != nil {
			return f, err
		}
		for _, s := range recent {
			settled := s.State == client.Attempted && (s.Settled == client.Abandon || s.Settled == client.AttestSucceeded)
			if s.Open() || !s.PurgedAt.IsZero() || s.Outcome != agentic.Succeeded && !settled {
				continue
			}
			lately := now.Sub(s.SeenAt) < c.cfg.Recent && !c.isKnown(s.RequestID, q.session)
			// A person is not asked about what the ledger's guard would then refuse, which
			// does not look at what a person left as it is: that may have been done.
			if lately || (c.cfg.Confirm || settled) && now.Sub(s.SeenAt) < c.cfg.Repeat {
				list, quiet[s.RequestID] = append(list, s), !lately
			}
		}
	}
	for i := range list {
		s := &list[i]
		named := q.distinct[s.RequestID]
		if s.RequestID == q.id || named && !s.Open() {
			continue
		}
		rec, err := c.load(s.RequestID)
		switch {
		case err != nil:
			return f, err
		case rec.Expired(now), named && neverArrived(rec, now):
		case rec.InputDigest == q.digest && !c.cfg.NoSameGuard:
			if f.same == nil || f.same.State == client.Prepared {
				f.same = rec
			}
		case named || quiet[s.RequestID] || rec.State == client.Prepared || c.cfg.NoOpenGuard:
		default:
			f.inTheWay = append(f.inTheWay, rec)
		}
	}
	return f, nil
}

// isKnown reports whether the agent is known to have seen the result of a request.
func (c *Calls) isKnown(requestID, session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, named := c.known[requestID]; named {
		return true
	}
	r, ok := c.read[requestID]
	return ok && session != "" && r.session == session
}

// names remembers that the agent named requests, which proves that it knows of them.
func (c *Calls) names(requestIDs ...string) {
	if len(requestIDs) == 0 {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	if len(c.known)+len(requestIDs) > maxRemembered {
		clear(c.known)
	}
	for _, id := range requestIDs {
		c.known[id] = now
	}
}

// hasRead remembers that a session was told of a success while it waited for it.
func (c *Calls) hasRead(ctx context.Context, call Call, requestID string) {
	if call.Session == "" || ctx.Err() != nil || time.Since(call.began) > promptly {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	if len(c.read) >= maxRemembered {
		clear(c.read)
	}
	c.read[requestID] = reading{call.Session, now}
}

// GaveUp says that a client of a session stopped waiting for a call, perhaps as the
// answer was on its way: what it was told lately counts as lost.
func (c *Calls) GaveUp(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.read {
		if r.session == session && time.Since(r.at) < c.cfg.AnswerWithin {
			delete(c.read, id)
		}
	}
}

// forget drops what makes no difference any more. The caller has c.mu.
func (c *Calls) forget(now time.Time) {
	for id, at := range c.known {
		if now.Sub(at) > 2*c.cfg.Recent {
			delete(c.known, id)
		}
	}
	for id, r := range c.read {
		if now.Sub(r.at) > 2*c.cfg.Recent {
			delete(c.read, id)
		}
	}
}

// gate takes the right to bind requests of an action, so that two calls of one agent
// at the same moment see each other, in this process and by Config.Turn in all. It
// waits as long as the call may. release may be called more than once.
func (c *Calls) gate(ctx context.Context, t *tool, call Call) (release func(), err error) {
	within, cancel := context.WithTimeout(ctx, c.cfg.AnswerWithin-time.Since(call.began))
	defer cancel()
	busy := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return refuse("busy", "Another call of this action is still waiting for the ledger of this server. Call again later with the same arguments.")
	}
	g := c.gates[t.key()]
	select {
	case g <- struct{}{}:
	case <-within.Done():
		return nil, busy()
	}
	if c.cfg.Turn == nil {
		return sync.OnceFunc(func() { <-g }), nil
	}
	scope, key := c.cfg.Engine.Scope, t.key()
	give, err := c.cfg.Turn(within, scope.Principal, scope.Environment, key.origin, key.action)
	switch {
	case err == nil:
		return sync.OnceFunc(func() { give(); <-g }), nil
	case within.Err() != nil:
		err = busy()
	default:
		err = c.refused(err)
	}
	<-g
	return nil, err
}

// act is the tool of an action.
func (c *Calls) act(ctx context.Context, t *tool, call Call) (*Answer, error) {
	in, w, err := t.split(call.Arguments)
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Engine.Transport.Approve(t.plan.Origin, t.plan.Action.ID); err != nil {
		return nil, c.refused(err)
	}
	if err := c.exist(w.distinct, client.Filter{Origin: t.plan.Origin, ActionID: t.plan.Action.ID}); err != nil {
		return nil, err
	}
	c.names(keys(w.distinct)...)
	asked := w.requestID
	if asked == "" && call.Agreed != nil {
		asked = call.Agreed.RequestID // of this call, when it was made before
	}
	if asked != "" {
		rec, err := c.load(asked)
		if _, missing := errors.AsType[*client.NotFoundError](err); err != nil && !missing {
			return c.unsaid(asked, nil, true), nil
		}
		if err == nil {
			if w.requestID != "" {
				c.names(w.requestID)
			}
			if rec.Origin != t.plan.Origin || rec.ActionID != t.plan.Action.ID || rec.InputDigest != in.Digest() {
				return nil, refuse("bound-to-another", "Request %s is bound to another action or another input. Leave request_id out, or go on with that request by %s.", asked, toolResume)
			}
			if rec.State == client.Prepared {
				return c.send(ctx, t, asked, w.distinct, call)
			}
			return c.follow(ctx, asked, w.requestID != "", call)
		}
	}
	release, err := c.gate(ctx, t, call)
	if err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			release()
		}
	}()
	newID := asked
	if newID == "" {
		newID = uuid.Must(uuid.NewV7()).String()
	}
	f, err := c.guards(question{t, newID, in.Digest(), w.distinct, call.Session})
	if err != nil {
		return nil, c.refused(err)
	}
	switch {
	case f.same != nil:
		release()
		started = true
		return c.follow(ctx, f.same.RequestID, true, call)
	case len(f.inTheWay) > 0:
		return c.heldBack(t, f, toolCallWords(t)), nil
	}
	q := Question{Tool: t.Name, RequestID: newID, Origin: t.plan.Origin, ActionID: t.plan.Action.ID, URL: t.plan.SubmitURL(), Input: in.Body(), InputDigest: in.Digest()}
	if c.cfg.Confirm && !q.agreed(call.Agreed) {
		return nil, &ConfirmError{Question: q}
	}
	started = true
	r := c.start(newID, true, release, func(ctx context.Context) (client.Result, error) {
		req := client.Request{Plan: t.plan, Input: in.Body(), ID: newID}
		res, err := c.client.Execute(ctx, req)
		// A success that the agent names is no reason to hold another one back, nor is
		// what never arrived.
		if twice, ok := errors.AsType[*client.DuplicateError](err); ok && w.distinct[twice.Earlier.RequestID] && (!twice.Earlier.Open() || c.arrivedNever(twice.Earlier.RequestID)) {
			req.AllowDuplicate = true
			return c.client.Execute(ctx, req)
		}
		return res, err
	})
	return c.outcome(ctx, r, false, call)
}

// send sends a prepared request, for the only time.
func (c *Calls) send(ctx context.Context, t *tool, requestID string, distinct map[string]bool, call Call) (*Answer, error) {
	release, err := c.gate(ctx, t, call)
	if err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			release()
		}
	}()
	rec, err := c.load(requestID)
	if err != nil {
		return nil, c.refused(err)
	}
	if rec.State != client.Prepared || c.running(requestID) != nil {
		release()
		started = true
		return c.follow(ctx, requestID, false, call)
	}
	f, err := c.guards(question{t, requestID, rec.InputDigest, distinct, call.Session})
	if err != nil {
		return nil, c.refused(err)
	}
	if f.same != nil && f.same.State == client.Attempted {
		f.inTheWay, f.same = append(f.inTheWay, f.same), nil
	}
	if len(f.inTheWay) > 0 {
		return c.heldBack(t, f, submitWords), nil
	}
	q := Question{Tool: toolSubmit, RequestID: requestID, Origin: rec.Origin, ActionID: rec.ActionID, URL: c.submitURL(rec), Input: rec.Input, InputDigest: rec.InputDigest}
	if c.cfg.Confirm && !q.agreed(call.Agreed) {
		return nil, &ConfirmError{Question: q}
	}
	started = true
	r := c.start(requestID, true, release, func(ctx context.Context) (client.Result, error) {
		return c.client.Execute(ctx, client.Request{ID: requestID})
	})
	return c.outcome(ctx, r, false, call)
}

// follow tells what became of a saved request, by reading only.
func (c *Calls) follow(ctx context.Context, requestID string, repeated bool, call Call) (*Answer, error) {
	r := c.running(requestID)
	if r == nil {
		rec, err := c.load(requestID)
		if _, missing := errors.AsType[*client.NotFoundError](err); missing {
			return nil, c.refused(err)
		}
		if err != nil {
			return c.unsaid(requestID, nil, repeated), nil
		}
		sum := rec.Summary()
		if !sum.Open() || rec.State == client.Prepared || rec.Closed() {
			return c.told(ctx, rec, repeated, call), nil
		}
		r = c.start(requestID, false, func() {}, func(ctx context.Context) (client.Result, error) { return c.client.Resume(ctx, requestID) })
	}
	return c.outcome(ctx, r, repeated, call)
}

// outcome waits for an execution and tells what it came to.
func (c *Calls) outcome(ctx context.Context, r *run, repeated bool, call Call) (*Answer, error) {
	if !c.await(ctx, r, call) {
		return c.goesOn(r.id, repeated), nil
	}
	if twice, ok := errors.AsType[*client.DuplicateError](r.err); ok {
		return c.follow(ctx, twice.Earlier.RequestID, true, call)
	}
	if r.err != nil {
		return c.failed(ctx, r, repeated, call)
	}
	rec, err := c.load(r.id)
	if err != nil {
		return c.unsaid(r.id, &r.res.Receipt, repeated), nil
	}
	return c.told(ctx, rec, repeated, call), nil
}

// ledgerTime bounds one reading of the ledger.
const ledgerTime = 10 * time.Second

// load reads a request, and find lists requests. Both do it although the call may
// have ended: it is quick, and what it came to is told to nobody in vain.
func (c *Calls) load(requestID string) (*client.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), ledgerTime)
	defer cancel()
	return c.ledger.Load(ctx, c.cfg.Engine.Scope, requestID)
}

func (c *Calls) find(f client.Filter) ([]client.Summary, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), ledgerTime)
	defer cancel()
	return c.ledger.List(ctx, f)
}

// exist refuses IDs in distinct_from that name nothing: who makes them up has not
// looked at what is there. The refusal lists what is open, of those that f chooses.
func (c *Calls) exist(named map[string]bool, f client.Filter) error {
	for _, id := range slices.Sorted(maps.Keys(named)) {
		_, err := c.load(id)
		if _, missing := errors.AsType[*client.NotFoundError](err); !missing {
			continue // what else is wrong with the ledger shows where it matters
		}
		f = f.In(c.cfg.Engine.Scope)
		f.Open, f.Order, f.Limit = true, client.UrgentFirst, maxShownOpen+1
		list, err := c.find(f)
		if err != nil {
			return c.refused(err)
		}
		open := "There is no open request."
		if len(list) > 0 {
			var ids []string
			for _, s := range list[:min(len(list), maxShownOpen)] {
				ids = append(ids, s.RequestID)
			}
			open = "These are open: " + strings.Join(ids, ", ") + "."
			if len(list) > maxShownOpen {
				open += " And more."
			}
		}
		return refuse("not-found", "distinct_from names %s, and this principal has no such request. Do not make IDs up. %s See %s.", id, open, toolList)
	}
	return nil
}

// arrivedNever is neverArrived of a saved request; false when it cannot be told.
func (c *Calls) arrivedNever(requestID string) bool {
	rec, err := c.load(requestID)
	return err == nil && neverArrived(rec, time.Now())
}

func keys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

// Question is what a person is asked before something is sent for the first time.
// Input is the principal's own and is shown escaped.
type Question struct {
	Tool        string
	RequestID   string
	Origin      string
	ActionID    string
	URL         string // of the POST
	Input       []byte
	InputDigest string
}

// agreed reports whether a person said yes to the same question.
func (q *Question) agreed(a *Question) bool {
	return a != nil && a.Tool == q.Tool && a.RequestID == q.RequestID && a.Origin == q.Origin && a.ActionID == q.ActionID && a.InputDigest == q.InputDigest
}

// ConfirmError says that a person has to be asked first (Config.Confirm). Nothing was
// saved or sent; the call made again with Call.Agreed goes on, and is the same
// request however often it is made.
type ConfirmError struct{ Question Question }

func (e *ConfirmError) Error() string {
	return "a person has to agree before request " + e.Question.RequestID + " is sent; nothing was sent"
}
