// Package desk is what people do about requests that no program can settle
// (section 6.9): look, recheck, attest, abandon, supersede, export and purge.
//
// Its job is to judge what a request waits for and what each choice risks (CaseOf),
// and to carry out what a person chose, each time with who and why. No verb here
// sends a request that is saved already, and none touches a receipt.
//
// Not its job: asking the person, showing anything, or deciding by itself. It
// imports package agentic and client only.
package desk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Ledger is a client.Ledger with what people need of it beside the engine. Every
// ledger of this module is one. Implementations must pass ledgertest.Ledger.
type Ledger interface {
	// These are client.Ledger.
	Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error)
	Take(ctx context.Context, scope client.Scope, requestID string, intent client.Intent, wait time.Duration) (client.Hold, error)
	Load(ctx context.Context, scope client.Scope, requestID string) (*client.Record, error)
	List(ctx context.Context, f client.Filter) ([]client.Summary, error)

	// AddNote appends a note durably, whoever holds the request, sets its At and
	// raises SeenAt. A note that does not validate is an error, one that
	// client.Summary.Admits refuses a *client.NoteError, an unknown request a *client.NotFoundError; then
	// nothing was written. A note that settles takes the request's NextCheck away for
	// good. What is settled takes further notes; the last one that settles counts.
	AddNote(ctx context.Context, scope client.Scope, requestID string, n client.Note) error

	// Purge removes inputs, observations, receipts, notes and documents of requests
	// that are not open, and leaves a tombstone of each: scope, ID, origin, action,
	// state, outcome, the settling verb, the digest of the input, Supersedes, Window,
	// Term and the times, as they were. A purged ID can never be bound again, and a
	// client.Guard sees the tombstone of a success as it saw the request.
	//
	// Beside an error it gives what it removed before. Others can write while it runs.
	//
	// A hold that lasts while its request is purged writes nothing any more: client.ErrLost,
	// or for a final one the error that it gives anyway. A new request that needs a
	// document while a purge removes it keeps it, or saves it again.
	Purge(ctx context.Context, o client.PurgeOptions) (client.Purged, error)
}

// Config is what a Desk works with.
type Config struct {
	Ledger Ledger // required

	// Client reads the service for Recheck and checks the new request of Supersede;
	// without one both are refused. Its own scope is not used (Client.In), and its
	// ledger has to be the same.
	Client *client.Client
}

// Desk carries out what people choose. It is safe for concurrent use.
type Desk struct {
	ledger Ledger
	client *client.Client
}

// New makes a Desk.
func New(c Config) (*Desk, error) {
	if c.Ledger == nil {
		return nil, errors.New("desk: Config.Ledger is missing")
	}
	return &Desk{ledger: c.Ledger, client: c.Client}, nil
}

// Act says which request a person acts on, who that is, and why. By and Reason may
// not be blank (client.Note).
type Act struct {
	Scope     client.Scope
	RequestID string
	By        string
	Reason    string
}

func (a Act) note(v client.Verb) client.Note {
	return client.Note{By: a.By, Verb: v, Reason: a.Reason}
}

// Show gives a request with its summary, which also tells its NextCheck. An unknown
// ID is a *client.NotFoundError; a purged request is shown as the tombstone it is.
func (d *Desk) Show(ctx context.Context, scope client.Scope, requestID string) (*client.Record, client.Summary, error) {
	rec, err := d.ledger.Load(ctx, scope, requestID)
	if err != nil {
		return nil, client.Summary{}, err
	}
	f := client.Filter{Origin: rec.Origin, ActionID: rec.ActionID, After: rec.CreatedAt, Before: rec.CreatedAt.Add(time.Microsecond)}
	list, err := d.ledger.List(ctx, f.In(scope))
	if err != nil {
		return nil, client.Summary{}, err
	}
	sum := rec.Summary()
	for _, s := range list {
		if s.RequestID == requestID {
			sum.NextCheck = s.NextCheck
		}
	}
	return rec, sum, nil
}

// Recheck notes the act and then has the status read once more (client.Resume),
// whatever its NextCheck is. It never sends. A request with a final receipt, or that
// was never sent, is a *client.NoteError; then nothing was noted or read. The other
// errors are those of Resume, and the note stands.
func (d *Desk) Recheck(ctx context.Context, a Act) (client.Result, error) {
	c, err := d.in(a.Scope)
	if err != nil {
		return client.Result{RequestID: a.RequestID}, err
	}
	if err := d.ledger.AddNote(ctx, a.Scope, a.RequestID, a.note(client.Recheck)); err != nil {
		return client.Result{RequestID: a.RequestID}, err
	}
	return c.Resume(ctx, a.RequestID)
}

// Attest notes what a person found at the service: client.AttestSucceeded with the
// ID of the resource, or client.AttestFailed without one. It settles the request,
// and its receipts stay what they are. The errors are those of Ledger.AddNote.
func (d *Desk) Attest(ctx context.Context, a Act, found client.Verb, resourceID string) error {
	if found != client.AttestSucceeded && found != client.AttestFailed {
		return &client.NoteError{RequestID: a.RequestID, Verb: found, Reason: "a person attests that it succeeded or that it failed"}
	}
	n := a.note(found)
	n.ResourceID = resourceID
	return d.ledger.AddNote(ctx, a.Scope, a.RequestID, n)
}

// Abandon settles a request as it stands. One that was never sent is never sent from
// then on. One that was superseded is a *client.NoteError: what can still be sent is
// its successor. The other errors are those of Ledger.Load and Ledger.AddNote.
func (d *Desk) Abandon(ctx context.Context, a Act) error {
	rec, err := d.ledger.Load(ctx, a.Scope, a.RequestID)
	if err == nil {
		err = Admits(rec, client.Abandon)
	}
	if err != nil {
		return err
	}
	return d.ledger.AddNote(ctx, a.Scope, a.RequestID, a.note(client.Abandon))
}

// SupersedeOptions are the zero value, mostly.
type SupersedeOptions struct {
	// NewID is the ID of the new request. Empty is SuccessorID, so that who runs
	// Supersede again, and who runs it at the same time, get the same new request.
	NewID string
}

// Superseded is what Supersede made.
type Superseded struct {
	New     *client.Record
	Already bool // the old request named it before
}

// Supersede makes a new request with the documents and the input of an old one,
// saves it as prepared and linked to it (Binding.Supersedes), and notes its ID at the
// old one, which that settles. The old one may have happened: whoever then sends the
// new one (client.Execute with its ID) may do the same thing a second time.
//
// A process that dies between the two writes leaves the new request prepared, with
// the old one's ID in it, and the old one as it was. Supersede again, with the same
// NewID, finds the new request and writes the note that is missing.
//
// A request that was superseded by another one already, whatever was noted since, that
// a person attested as succeeded, or that has a final receipt, is a *client.NoteError. A receipt that becomes final, or
// another successor that is noted, in between is that error too, and the new request
// is abandoned. The other errors are those of client.Prepare and
// Ledger.AddNote.
func (d *Desk) Supersede(ctx context.Context, a Act, o SupersedeOptions) (Superseded, error) {
	c, err := d.in(a.Scope)
	if err != nil {
		return Superseded{}, err
	}
	rec, err := d.ledger.Load(ctx, a.Scope, a.RequestID)
	if err != nil {
		return Superseded{}, err
	}
	n := a.note(client.Supersede)
	if n.NewID = o.NewID; n.NewID == "" {
		n.NewID = SuccessorID(a.Scope, a.RequestID)
	}
	refuse := func(reason string) error {
		return &client.NoteError{RequestID: a.RequestID, Verb: client.Supersede, Reason: reason}
	}
	another := func(successor string) error {
		return refuse("it was superseded by request " + successor + " already; supersede that one")
	}
	earlier := Successor(rec)
	admitted := Admits(rec, client.Supersede)
	settled := rec.Settled()
	switch {
	case n.NewID == a.RequestID:
		return Superseded{}, refuse("the new request needs an ID of its own")
	case settled != nil && settled.Verb == client.AttestSucceeded:
		return Superseded{}, admitted
	case earlier != "" && o.NewID != "" && earlier != o.NewID:
		return Superseded{}, another(earlier)
	case earlier != "":
		next, err := d.ledger.Load(ctx, a.Scope, earlier)
		return Superseded{New: next, Already: true}, err
	}
	// Everything that would refuse the note comes before the new request.
	if err := errors.Join(n.Validate(), admitted); err != nil {
		return Superseded{}, err
	}
	next, err := again(ctx, c, rec, n.NewID)
	if err != nil {
		return Superseded{}, err
	}
	if next.Supersedes != a.RequestID {
		return Superseded{}, refuse("request " + n.NewID + " is saved already, and not as its successor")
	}
	if settled := next.Settled(); settled != nil && next.State == client.Prepared {
		return Superseded{}, refuse("its successor " + n.NewID + " was settled by a person (" + string(settled.Verb) + ") and is never sent; give another new ID")
	}
	if err := d.ledger.AddNote(ctx, a.Scope, a.RequestID, n); err != nil {
		return Superseded{}, errors.Join(err, d.withdraw(ctx, a, next, err))
	}
	// Somebody else may have been faster, with another new ID.
	if rec, err = d.ledger.Load(ctx, a.Scope, a.RequestID); err != nil {
		return Superseded{}, err
	}
	if first := Successor(rec); first != "" && first != n.NewID {
		err := another(first)
		return Superseded{}, errors.Join(err, d.withdraw(ctx, a, next, err))
	}
	return Superseded{New: next}, nil
}

// Successor is the ID of the request that was made instead of this one, or "". A
// request has one at most: of two that were made at once, the one noted first.
func Successor(rec *client.Record) string {
	for _, n := range rec.Notes {
		if n.Verb == client.Supersede {
			return n.NewID
		}
	}
	return ""
}

// again prepares what a saved request was made of under another ID.
func again(ctx context.Context, c *client.Client, rec *client.Record, newID string) (*client.Record, error) {
	// Whether loopback is allowed is for the client's transport to decide.
	plan, err := agentic.Load(rec.Profile.Body, rec.OpenAPI.Body, rec.ActionID, agentic.Options{AllowLoopback: true})
	if err != nil {
		return nil, &client.LedgerError{Op: "load", Err: fmt.Errorf("request %s: %w", rec.RequestID, err)}
	}
	return c.Prepare(ctx, client.Request{Plan: plan, Input: rec.Input, ID: newID, Supersedes: rec.RequestID})
}

// withdraw abandons a successor that is not needed after all, because the old
// request was refused its note. After another error it may be needed, and stays.
func (d *Desk) withdraw(ctx context.Context, a Act, next *client.Record, why error) error {
	if _, refused := errors.AsType[*client.NoteError](why); !refused || next.State != client.Prepared {
		return nil
	}
	err := d.ledger.AddNote(ctx, a.Scope, next.RequestID, client.Note{By: a.By, Verb: client.Abandon,
		Reason: "Request " + a.RequestID + " came to its end, or to another successor, before this one was sent instead."})
	if err != nil {
		return fmt.Errorf("request %s is prepared and not needed; abandon it: %w", next.RequestID, err)
	}
	return nil
}

// SuccessorID is the request ID that Supersede gives the successor of a request: a
// UUIDv8 of its scope and ID, so that a request has one successor however often and
// from wherever it is asked for.
func SuccessorID(scope client.Scope, requestID string) string {
	h := sha256.New()
	for _, s := range []string{"agentic successor", scope.Principal, scope.Environment, requestID} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) // a hash takes everything
		_, _ = h.Write([]byte(s))
	}
	u := h.Sum(nil)[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// purgeStep is how many requests one call of a ledger purges. Each looks through all
// requests once, and lets others write in between by itself.
const purgeStep = 10000

// Purge removes what o says, in steps of o.Limit requests (0 is 10,000), until nothing is
// left or ctx ends. progress, if not nil, is called after each step with the sum so
// far. Without o.Apply nothing is changed, and the counts are of everything.
//
// After an error the sum tells what was removed before it.
func (d *Desk) Purge(ctx context.Context, o client.PurgeOptions, progress func(client.Purged)) (client.Purged, error) {
	var sum client.Purged
	switch {
	case !o.Apply:
		o.Limit = 0
	case o.Limit <= 0:
		o.Limit = purgeStep
	}
	for {
		p, err := d.ledger.Purge(ctx, o)
		sum.Requests += p.Requests
		sum.Entries += p.Entries
		sum.Snapshots += p.Snapshots
		if err != nil {
			return sum, err
		}
		sum.Open = p.Open
		if progress != nil {
			progress(sum)
		}
		if !o.Apply || !p.More {
			return sum, nil
		}
	}
}

// Export gives every request that the filter chooses, whole and in its order,
// one at a time. An error of each ends it and is returned.
func (d *Desk) Export(ctx context.Context, f client.Filter, each func(*client.Record) error) error {
	list, err := d.ledger.List(ctx, f)
	if err != nil {
		return err
	}
	for _, s := range list {
		rec, err := d.ledger.Load(ctx, s.Scope, s.RequestID)
		if err != nil {
			return err
		}
		if err := each(rec); err != nil {
			return err
		}
	}
	return nil
}

// in is the client for a scope.
func (d *Desk) in(scope client.Scope) (*client.Client, error) {
	if d.client == nil {
		return nil, errors.New("desk: Config.Client is missing, which this needs")
	}
	return d.client.In(scope)
}
