package client

import (
	"errors"
	"fmt"
	"strings"
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
