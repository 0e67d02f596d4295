package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// outcome is what stands for a request once run returns.
type outcome struct {
	record Record
	first  bool   // this request made the record
	body   []byte // of a first answer, whole
}

// run brings one request to its outcome. Whoever has the key already is waited
// for; then its record stands, or this request goes on in its place.
//
// In one process the wait is here, without a connection; between processes it is
// in Store.Claim.
func (t *Tracker[Tx]) run(ctx context.Context, a *action, handle HandlerFunc[Tx], r Request) (outcome, error) {
	ctx, w := newWait(ctx, t.maxWait)
	defer w.end()
	for {
		land, other := t.flight.start(r.Key)
		if land != nil {
			defer land()
			return t.claim(ctx, w, a, handle, r)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return outcome{}, context.Cause(ctx)
		}
		record, err := t.store.Find(ctx, r.Key)
		if err != nil || record != nil {
			return found(record), w.explain(err)
		}
	}
}

func found(r *Record) outcome {
	if r == nil {
		return outcome{}
	}
	return outcome{record: *r}
}

// claim runs the handler in the transaction that also holds the record (D21).
func (t *Tracker[Tx]) claim(ctx context.Context, w *wait, a *action, handle HandlerFunc[Tx], r Request) (outcome, error) {
	var o outcome
	var committable bool
	err := t.transact(ctx, func(ctx context.Context, tx Tx) error {
		committable = false // the last run counts
		existing, err := t.claimed(ctx, w, tx, a, r)
		if err != nil {
			return err
		}
		if existing != nil {
			o, committable = found(existing), true
			return nil
		}
		result, err := call(ctx, handle, tx, r)
		if err != nil {
			return err
		}
		s, err := a.checked(result.state, result.settlement)
		if err != nil {
			return err
		}
		if result.state == Refused {
			return &refusal{s}
		}
		if err := t.store.Settle(ctx, tx, r.Key, result.state, s); err != nil {
			return err
		}
		o, committable = a.firstOutcome(r, result.state, s), true
		o.body = result.settlement.Body
		return nil
	})
	if no, ok := errors.AsType[*refusal](err); ok {
		return t.refuse(ctx, w, a, r, no.settlement)
	}
	return o, w.explain(committed(err, committable))
}

// refuse records a refusal whose writes were rolled back. Another request may have
// taken the key in between; then what that one came to stands, and this refusal
// was never seen by anybody.
func (t *Tracker[Tx]) refuse(ctx context.Context, w *wait, a *action, r Request, s Settlement) (outcome, error) {
	var o outcome
	var committable bool
	w.begin()
	err := t.transact(ctx, func(ctx context.Context, tx Tx) error {
		committable = false
		existing, err := t.claimed(ctx, w, tx, a, r)
		if err != nil {
			return err
		}
		if existing != nil {
			o, committable = found(existing), true
			return nil
		}
		if err := t.store.Settle(ctx, tx, r.Key, Refused, s); err != nil {
			return err
		}
		o, committable = a.firstOutcome(r, Refused, s), true
		o.body = s.Body
		return nil
	})
	return o, w.explain(committed(err, committable))
}

// claimed is Claim within the wait.
func (t *Tracker[Tx]) claimed(ctx context.Context, w *wait, tx Tx, a *action, r Request) (*Record, error) {
	w.begin()
	existing, err := t.store.Claim(ctx, tx, r.Key, r.Fingerprint, a.window)
	if err == nil && !w.stop() {
		err = errWaited
	}
	return existing, err
}

func (a *action) firstOutcome(r Request, to State, s Settlement) outcome {
	return outcome{first: true, record: Record{Key: r.Key, Fingerprint: r.Fingerprint, State: to, Settlement: s}}
}

// committed refuses a transaction function that swallows errors.
func committed(err error, committable bool) error {
	if err == nil && !committable {
		return errors.New("the transaction function returned nil although what it ran did not")
	}
	return err
}

// call runs the publisher's handler. A panic becomes an error, so that it is
// rolled back like one, whatever goroutine the store runs it on.
func call[Tx any](ctx context.Context, handle HandlerFunc[Tx], tx Tx, r Request) (result Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanic(v)
		}
	}()
	if result, err = handle(ctx, tx, r); err != nil {
		err = &handlerError{err}
	}
	return result, err
}

// handlerError is an error of the publisher's handler. Stores see through it.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return "the handler: " + e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

// foreignError is an error of other code of the publisher.
type foreignError struct {
	of  string // a field of Config or Action
	err error
}

func (e *foreignError) Error() string { return e.of + ": " + e.err.Error() }
func (e *foreignError) Unwrap() error { return e.err }

// marked tells the errors of Config.Transact from those that it gives back.
func marked[Tx any](transact transactFunc[Tx]) transactFunc[Tx] {
	return func(ctx context.Context, f func(context.Context, Tx) error) error {
		var last error
		err := transact(ctx, func(ctx context.Context, tx Tx) error {
			last = f(ctx, tx)
			return last
		})
		if err == nil || errors.Is(err, last) && errors.Is(last, err) {
			return err
		}
		return &foreignError{"Config.Transact", err}
	}
}

// refusal rolls back what a handler wrote before it refused.
type refusal struct{ settlement Settlement }

func (*refusal) Error() string { return "refused by the business" }

// panicError is a panic of the publisher's code. Its text has no content.
type panicError struct {
	value any
	stack []byte
}

func newPanic(v any) *panicError { return &panicError{v, debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("a panic with a value of type %T", e.value) }

// aborts reports whether the publisher asked net/http to drop the connection.
func (e *panicError) aborts() bool { return e.value == http.ErrAbortHandler }

// errWaited is the end of Config.MaxWait.
var errWaited = errors.New("waited too long for its turn")

// wait ends a context when a request has waited too long. It does not count the
// time of the handler. Its methods follow each other, on any goroutine.
type wait struct {
	timer   *time.Timer
	limit   time.Duration
	stopped bool
	ctx     context.Context
	end     func()
}

func newWait(parent context.Context, limit time.Duration) (context.Context, *wait) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &wait{limit: limit, ctx: ctx}
	w.timer = time.AfterFunc(limit, func() { cancel(errWaited) })
	w.end = func() { w.timer.Stop(); cancel(nil) }
	return ctx, w
}

// begin counts anew when the time was stopped: a transaction that is run again
// waits again.
func (w *wait) begin() {
	if w.stopped {
		w.stopped = false
		w.timer.Reset(w.limit)
	}
}

// stop stops the time, unless it is over.
func (w *wait) stop() bool {
	w.stopped = w.timer.Stop()
	return w.stopped
}

// explain names the end of the wait when that is why err came.
func (w *wait) explain(err error) error {
	if _, ours := errors.AsType[*handlerError](err); err == nil || ours || context.Cause(w.ctx) != errWaited {
		return err
	}
	return errors.Join(errWaited, err)
}

// flight has the requests that this process is working on.
type flight struct {
	mu  sync.Mutex
	air map[Key]chan struct{}
}

// start takes a key, and land gives it back; or another request has it, until
// other is closed.
func (f *flight) start(k Key) (land func(), other <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.air[k]; ok {
		return nil, c
	}
	if f.air == nil {
		f.air = map[Key]chan struct{}{}
	}
	c := make(chan struct{})
	f.air[k] = c
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.air, k)
		close(c)
	}, nil
}
