package service

import (
	"crypto/sha256"
	"encoding/hex"
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
// may hold text of the publisher's handler, which is not logged.
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
