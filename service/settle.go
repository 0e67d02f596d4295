package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Complete settles pending work as done, in a transaction of the publisher, which
// commits what the work wrote too. resourceID and body are those of DoneWith. The
// body is what repeats get from then on, with 200.
//
// It happens once. The same settlement again changes nothing and is nil; any other
// one, an absent request, or one past its window wraps ErrNotPending.
func (t *Tracker[Tx]) Complete(ctx context.Context, tx Tx, k Key, resourceID string, body []byte) error {
	return t.settle(ctx, tx, k, Done, Settlement{ResourceID: resourceID, Status: http.StatusOK, Body: body})
}

// Fail settles pending work as refused for good: its status is failed, so nothing
// of it may remain. status and body are those of RefusedWith. It happens once, as
// Complete does.
func (t *Tracker[Tx]) Fail(ctx context.Context, tx Tx, k Key, status int, body []byte) error {
	return t.settle(ctx, tx, k, Refused, Settlement{Status: status, Body: body})
}

func (t *Tracker[Tx]) settle(ctx context.Context, tx Tx, k Key, to State, s Settlement) error {
	a := t.lookUp(k.Action)
	if a == nil {
		return fmt.Errorf("service: the profile has no action %q", k.Action)
	}
	s, err := a.checked(to, s)
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	err = t.store.Settle(ctx, tx, k, to, s)
	if errors.Is(err, ErrNotPending) {
		var stands *Record
		if stands, err = t.store.FindIn(ctx, tx, k); err == nil {
			return stands.settledAs(to, s)
		}
	}
	if err != nil {
		return fmt.Errorf("service: settle: %w", err)
	}
	t.notify(ctx, CompletedEvent{EventHead{k}, to, s.ResourceID})
	return nil
}

// settledAs is nil when the record, nil for none, is settled in that very way.
func (r *Record) settledAs(to State, s Settlement) error {
	switch {
	case r == nil:
		return fmt.Errorf("service: there is no such request: %w", ErrNotPending)
	case r.State == to && r.ResourceID == s.ResourceID && r.Status == s.Status &&
		r.BodyOmitted == s.BodyOmitted && bytes.Equal(r.Body, s.Body):
		return nil
	}
	return fmt.Errorf("service: it is %s already: %w", r.State, ErrNotPending)
}
