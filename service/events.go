package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
)

// Event is something that has just happened to a tracked request or to the
// records. The types are FirstEvent, RefusedEvent, PendingEvent, ReplayEvent,
// ConflictEvent, ExpiredEvent, CompletedEvent, ErrorEvent and SweptEvent. None
// holds an input or a body.
type Event interface{ event() }

// EventHead is what all events of a request share. The key is whole: an observer
// that writes it down should write Key.Short, or log it with slog, which does.
type EventHead struct{ Key Key }

func (EventHead) event() {}

// FirstEvent says that the action was done and its record committed.
type FirstEvent struct {
	EventHead
	ResourceID string
}

// RefusedEvent says that a definite refusal of the business was recorded.
type RefusedEvent struct {
	EventHead
	Status int
}

// PendingEvent says that an action was accepted and recorded as not finished.
type PendingEvent struct{ EventHead }

// ReplayEvent says that a repeat is answered with the recorded outcome.
type ReplayEvent struct {
	EventHead
	State State // Done, Refused or Pending
}

// ConflictEvent says that a key came again with other input, and was refused.
type ConflictEvent struct{ EventHead }

// ExpiredEvent says that a key came again after its window, and was refused.
type ExpiredEvent struct{ EventHead }

// CompletedEvent says that pending work was settled in a transaction of the
// publisher, which may not have committed yet.
type CompletedEvent struct {
	EventHead
	State      State  // Done, or Refused when it failed
	ResourceID string // with Done
}

// ErrorEvent says that a submission or a status was answered with 500 or 503. Err
// may hold text of the publisher's code, which is not logged.
type ErrorEvent struct {
	EventHead // its key is incomplete when the request was not read that far
	Err       error
}

// SweptEvent says what one call of Sweep did, when it did something.
type SweptEvent struct{ Swept }

func (SweptEvent) event() {}

// Short names a key in logs: twelve hexadecimal digits of its digest.
func (k Key) Short() string {
	sum := sha256.Sum256([]byte(k.Principal + "\x00" + k.Action + "\x00" + k.RequestID))
	return hex.EncodeToString(sum[:6])
}

// LogValue keeps principal and request ID out of logs.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("action", k.Action), slog.String("key", k.Short()))
}

// notify logs an event and gives it to the observer.
func (s *server) notify(ctx context.Context, e Event) {
	level, attrs := slog.LevelDebug, []slog.Attr{}
	var what string
	switch e := e.(type) {
	case FirstEvent:
		what, attrs = "done", append(attrs, slog.Any("request", e.Key))
	case RefusedEvent:
		what, attrs = "refused", append(attrs, slog.Any("request", e.Key), slog.Int("status", e.Status))
	case PendingEvent:
		what, attrs = "pending", append(attrs, slog.Any("request", e.Key))
	case ReplayEvent:
		what, attrs = "repeat", append(attrs, slog.Any("request", e.Key), slog.String("state", string(e.State)))
	case ConflictEvent:
		level, what, attrs = slog.LevelInfo, "key with other input", append(attrs, slog.Any("request", e.Key))
	case ExpiredEvent:
		level, what, attrs = slog.LevelInfo, "key after its window", append(attrs, slog.Any("request", e.Key))
	case CompletedEvent:
		what, attrs = "settled", append(attrs, slog.Any("request", e.Key), slog.String("state", string(e.State)))
	case SweptEvent:
		level, what, attrs = slog.LevelInfo, "swept", append(attrs, slog.Int("expired", e.Expired), slog.Int("deleted", e.Deleted))
	}
	s.log.LogAttrs(ctx, level, "agentic: "+what, attrs...)
	s.observe(e)
}

// observe keeps a panic of the observer from changing an answer.
func (s *server) observe(e Event) {
	if s.observer == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p := newPanic(v)
			s.log.Error("agentic: Config.Observer panicked", slog.String("panic", p.Error()), slog.String("stack", string(p.stack)))
		}
	}()
	s.observer(e)
}

// logFailure logs an error. The text of one that came from the publisher's code may
// hold an input or a credential, as that of a *url.Error does, and a panic's value
// may, so only their types are logged.
func (s *server) logFailure(ctx context.Context, level slog.Level, k Key, status int, err error) {
	attrs := []slog.Attr{slog.Any("request", k), slog.Int("status", status)}
	if e, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, slog.String("error", e.Error()), slog.String("stack", string(e.stack)))
	} else if e, ok := errors.AsType[*handlerError](err); ok {
		attrs = append(attrs, slog.String("error", fmt.Sprintf("of the handler, type %T", e.err)))
	} else if e, ok := errors.AsType[*foreignError](err); ok {
		attrs = append(attrs, slog.String("error", fmt.Sprintf("of %s, type %T", e.of, e.err)))
	} else {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.log.LogAttrs(ctx, level, "agentic: failed", attrs...)
}
