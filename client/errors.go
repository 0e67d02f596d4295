package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
)

// ErrLedger is wrapped by every error that says the ledger could not do its
// work: it cannot be opened, read or written.
var ErrLedger = errors.New("ledger unavailable")

// ErrLost says that a hold was taken over by another; nothing was written.
var ErrLost = errors.New("the hold on this request was lost to another holder")

// LedgerError says what a ledger could not do, and why. It matches ErrLedger.
type LedgerError struct {
	Op  string // such as "open", "begin", "finish"
	Err error
}

func (e *LedgerError) Error() string { return fmt.Sprintf("ledger unavailable: %s: %v", e.Op, e.Err) }

// Unwrap gives ErrLedger and the cause to errors.Is and errors.As.
func (e *LedgerError) Unwrap() []error { return []error{ErrLedger, e.Err} }

// Difference is one part of a binding that differs. Saved and Asked are short:
// an origin, an action ID or a digest, never an input.
type Difference struct {
	Field string // "origin", "action", "profile", "openapi" or "input"
	Saved string
	Asked string
}

// BindingError says that a request ID is bound to something else (D8).
type BindingError struct {
	RequestID   string
	Differences []Difference
}

func (e *BindingError) Error() string {
	parts := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		parts[i] = fmt.Sprintf("%s %s instead of %s", d.Field, d.Saved, d.Asked)
	}
	return fmt.Sprintf("request %s is already bound to another request: %s; use a new request ID for a new action",
		e.RequestID, strings.Join(parts, ", "))
}

// Compare gives the differences between a saved binding and the one asked for.
// A Ledger returns them in a *BindingError.
func Compare(saved, asked *Binding) []Difference {
	var ds []Difference
	add := func(field, s, a string) {
		if s != a {
			ds = append(ds, Difference{Field: field, Saved: s, Asked: a})
		}
	}
	add("origin", saved.Origin, asked.Origin)
	add("action", saved.ActionID, asked.ActionID)
	add("profile", saved.Profile.Digest, asked.Profile.Digest)
	add("openapi", saved.OpenAPI.Digest, asked.OpenAPI.Digest)
	add("input", saved.InputDigest, asked.InputDigest)
	return ds
}

// HeldError says that another holder has the request and did not give it free in
// time (section 6: serialized execution).
type HeldError struct{ RequestID string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("request %s is held by another execution; wait for it, then resume", e.RequestID)
}

// NotFoundError says that the scope has no request of that ID.
type NotFoundError struct {
	Scope     Scope
	RequestID string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no request %s of principal %q in environment %q", e.RequestID, e.Scope.Principal, e.Scope.Environment)
}

// PreparedError says that Resume found a request that was only prepared: it was
// provably never sent, so there is nothing to reconcile (D9).
type PreparedError struct{ RequestID string }

func (e *PreparedError) Error() string {
	return fmt.Sprintf("request %s was prepared and never sent; execute it to send it", e.RequestID)
}

// DuplicateError says that a new request looks like an earlier one asked again
// under a new ID: principal, action and input are the same. Nothing was saved. Go on
// with the earlier one, or say that a second one is meant (Request.AllowDuplicate).
type DuplicateError struct {
	RequestID string  // that was refused
	Earlier   Summary // whose intent is the same
}

func (e *DuplicateError) Error() string {
	is := "is not settled"
	switch {
	case e.Earlier.Outcome == agentic.Succeeded:
		is = "has succeeded"
	case e.Earlier.Settled != "":
		is = "was settled by a person (" + string(e.Earlier.Settled) + ")"
	case e.Earlier.State == Prepared:
		is = "is prepared"
	}
	return fmt.Sprintf("request %s was not saved: request %s of %s has the same action and input and %s",
		e.RequestID, e.Earlier.RequestID, agentic.FormatTime(e.Earlier.CreatedAt), is)
}

// SettledError says that a request that was never sent was settled by a person, so
// it is never sent.
type SettledError struct {
	RequestID string
	Note      Note
}

func (e *SettledError) Error() string {
	return fmt.Sprintf("request %s was never sent, and never will be: %.140q settled it (%s) at %s",
		e.RequestID, e.Note.By, e.Note.Verb, agentic.FormatTime(e.Note.At))
}

// ExpiredError says that a request was prepared so long ago that its tracking window
// has ended before it was sent. It stays prepared and is never sent (D16).
type ExpiredError struct {
	RequestID   string
	WindowEnded time.Time
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("request %s was prepared and never sent, and its tracking window ended at %s, so it is not sent any more; prepare a new one",
		e.RequestID, agentic.FormatTime(e.WindowEnded))
}

// PurgedError says that a request was purged: its ID stays used for ever, and
// what it came to is not kept beyond Outcome.
type PurgedError struct {
	RequestID string
	Outcome   agentic.Outcome // of its last receipt
	PurgedAt  time.Time
}

func (e *PurgedError) Error() string {
	return fmt.Sprintf("request %s was purged at %s; its ID cannot be used again", e.RequestID, agentic.FormatTime(e.PurgedAt))
}

// NoteError says that a person cannot do this to a request as it stands.
type NoteError struct {
	RequestID string
	Verb      Verb
	Reason    string
}

func (e *NoteError) Error() string {
	return fmt.Sprintf("cannot %s request %s: %s", e.Verb, e.RequestID, e.Reason)
}

// RequestIDError says that a request ID given by the host is not 8 to 128 of
// [A-Za-z0-9_-] (D7).
type RequestIDError struct{ RequestID string }

func (e *RequestIDError) Error() string {
	return fmt.Sprintf("request ID %.140q is not 8 to 128 characters of A-Z, a-z, 0-9, _ and -", e.RequestID)
}

// OriginError says that the host has not approved an origin, or that an action's
// requests may not go there (section 2).
type OriginError struct {
	Origin string
	Reason string
}

func (e *OriginError) Error() string { return fmt.Sprintf("origin %s: %s", e.Origin, e.Reason) }

// InterruptedError says that the context ended before there was a receipt (D17).
// No receipt was written that was not observed. With Saved the request is in the
// ledger and Resume goes on; without, this call ended before it held the request,
// and sent nothing. It wraps the context's error.
type InterruptedError struct {
	RequestID string
	Saved     bool
	Err       error
}

func (e *InterruptedError) Error() string {
	if e.Saved {
		return fmt.Sprintf("interrupted; request %s is saved and can be resumed: %v", e.RequestID, e.Err)
	}
	return fmt.Sprintf("interrupted before request %s could be held; this call sent nothing: %v", e.RequestID, e.Err)
}

// Unwrap returns the context's error.
func (e *InterruptedError) Unwrap() error { return e.Err }
