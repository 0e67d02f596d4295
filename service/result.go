package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// Result is what a handler came to. Make one with DoneWith, RefusedWith or
// PendingWith; the zero Result is an error.
type Result struct {
	state      State
	settlement Settlement
}

// DoneWith says that the action is completed. resourceID names the resource that
// the verify operation reads; it must fit one path segment (D14). body is the
// answer to the client, JSON, or nil for one that has the form of a status
// answer; it is served as application/json with 201, and with 200 to a repeat.
func DoneWith(resourceID string, body []byte) Result {
	return Result{Done, Settlement{ResourceID: resourceID, Status: http.StatusCreated, Body: body}}
}

// RefusedWith says that the business refuses the action for good. status is a
// 4xx that asks nobody to try again, usually 422; body is a JSON object, served as
// application/problem+json, or nil for one that only says so.
func RefusedWith(status int, body []byte) Result {
	return Result{Refused, Settlement{Status: status, Body: body}}
}

// PendingWith says that the action is accepted and not finished. body is JSON, or
// nil for one that has the form of a status answer; it is served with 202.
func PendingWith(body []byte) Result {
	return Result{Pending, Settlement{Status: http.StatusAccepted, Body: body}}
}

// checked is the settlement as it is stored: within MaxStoredBytes, and such that
// every repeat can be answered from it.
func (a *action) checked(to State, s Settlement) (Settlement, error) {
	if len(s.Body) == 0 {
		s.Body = nil
	} else {
		v, err := strictjson.Parse(s.Body)
		if err != nil {
			return s, errors.New("the body of the result is not strict JSON")
		}
		if to == Refused && v.Kind() != strictjson.Object {
			return s, errors.New("the body of a refusal is not a JSON object")
		}
	}
	switch to {
	case Done:
		if _, err := a.plan.ResourceURL(s.ResourceID); err != nil {
			return s, fmt.Errorf("the resource cannot be addressed (D14): %w", err)
		}
	case Refused:
		if !definite(s.Status) {
			return s, fmt.Errorf("%d is not the status of a definite refusal: take 422 or another 4xx that asks nobody to try again", s.Status)
		}
	case Pending:
	default:
		return s, errors.New("the handler gave the zero Result: make one with DoneWith, RefusedWith or PendingWith")
	}
	if len(s.Body) <= a.maxStored {
		return s, nil
	}
	if to != Done || a.read == nil {
		return s, fmt.Errorf("the body has %d bytes and %d are stored: only that of a completed action may be larger, with Action.Read", len(s.Body), a.maxStored)
	}
	s.Body, s.BodyOmitted = nil, true
	return s, nil
}

// definite reports whether a status tells a client that this very request is
// refused for good.
func definite(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return 400 <= status && status < 500
}

// statusAnswer is the answer of the status operation (section 4).
type statusAnswer struct {
	RequestID  string  `json:"request_id"`
	Status     string  `json:"status"`
	ResourceID *string `json:"resource_id"`
}

// of is the status answer for what stands; nothing, the absent record, and an
// expired one are the same (D24).
func (a statusAnswer) of(r *Record) []byte {
	a.Status = "unknown"
	if r != nil {
		switch r.State {
		case Done:
			a.Status, a.ResourceID = "succeeded", &r.ResourceID
		case Refused:
			a.Status = "failed"
		case Pending:
			a.Status = "pending"
		}
	}
	return encode(a)
}

// encode writes one JSON value and a line feed. What is encoded here are strings
// and numbers, which always marshal.
func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return append(b, '\n')
}
