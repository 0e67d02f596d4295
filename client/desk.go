package client

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
)

// Verb names what a person did about a request (section 6.9). No verb sends a
// request, and none touches a receipt.
type Verb string

// What people do at the desk. All but Recheck settle a request: nothing reads its
// status by itself any more.
const (
	Recheck         Verb = "recheck"          // had its status read once more
	AttestSucceeded Verb = "attest-succeeded" // looked at the service: it happened
	AttestFailed    Verb = "attest-failed"    // looked at the service: it did not happen
	Abandon         Verb = "abandon"          // decided to leave it as it is
	Supersede       Verb = "supersede"        // had a new request made instead, which may duplicate it
)

// Settles reports whether the verb takes a request off the desk.
func (v Verb) Settles() bool {
	switch v {
	case AttestSucceeded, AttestFailed, Abandon, Supersede:
		return true
	}
	return false
}

// Valid reports whether v is one of the five.
func (v Verb) Valid() bool { return v == Recheck || v.Settles() }

// Note is what one person did about a request, and why. Notes are appended, never
// changed.
type Note struct {
	At         time.Time `json:"at"` // the ledger's clock, set by the ledger
	By         string    `json:"by"`
	Verb       Verb      `json:"verb"`
	Reason     string    `json:"reason"`
	ResourceID string    `json:"resource_id,omitempty"` // AttestSucceeded: what was found at the service
	NewID      string    `json:"new_id,omitempty"`      // Supersede: the request made instead
}

// Limits of a Note, in bytes of UTF-8.
const (
	maxByBytes         = 256
	maxReasonBytes     = 2048
	maxResourceIDBytes = 1024
)

// Validate checks a note by itself.
func (n *Note) Validate() error {
	for _, part := range []struct {
		name, text string
		limit      int
		needed     bool
	}{
		{"who did it", n.By, maxByBytes, true},
		{"why", n.Reason, maxReasonBytes, true},
		{"the resource ID", n.ResourceID, maxResourceIDBytes, n.Verb == AttestSucceeded},
	} {
		switch {
		case part.needed && strings.TrimSpace(part.text) == "":
			return fmt.Errorf("a note has to tell %s", part.name)
		case len(part.text) > part.limit || !utf8.ValidString(part.text):
			return fmt.Errorf("in a note %s is not UTF-8 of at most %d bytes", part.name, part.limit)
		}
	}
	switch {
	case !n.Verb.Valid():
		return fmt.Errorf("there is no verb %.40q", string(n.Verb))
	case n.Verb != AttestSucceeded && n.ResourceID != "":
		return fmt.Errorf("%s has no resource ID", n.Verb)
	case n.Verb == Supersede && !ValidRequestID(n.NewID):
		return errors.New("supersede names the new request")
	case n.Verb != Supersede && n.NewID != "":
		return fmt.Errorf("%s makes no new request", n.Verb)
	}
	return nil
}

// Admits says whether a person may do this to a request as it stands: nil, or a
// *NoteError. A ledger asks it in the transaction that appends the note.
func (s *Summary) Admits(v Verb) error {
	refuse := func(reason string) error { return &NoteError{RequestID: s.RequestID, Verb: v, Reason: reason} }
	switch {
	case !v.Valid():
		return refuse("there is no such verb")
	case !s.PurgedAt.IsZero():
		return refuse("it was purged")
	case s.Outcome == agentic.Succeeded:
		return refuse("its receipt says succeeded, with evidence; that is final")
	case s.Outcome == agentic.Failed:
		return refuse("its receipt says failed; that is final, and a new request may be made")
	case s.State == Prepared && v != Abandon && v != Supersede:
		return refuse("it was provably never sent; send it, or abandon it")
	}
	return nil
}

// PurgeOptions say what a ledger removes for good.
type PurgeOptions struct {
	// Before is the age: requests count whose SeenAt is before it, and that are not
	// open. What is open is never purged; a zero Before purges nothing.
	Before      time.Time
	Principal   *string // nil is any
	Environment *string

	// Apply removes them. Without it nothing is changed, and the counts tell what
	// would be.
	Apply bool
	Limit int // at most so many requests in this call; 0 is no limit
}

// Purged counts what a purge removed, or would.
type Purged struct {
	Requests  int  `json:"requests"`  // inputs removed; each leaves a tombstone
	Entries   int  `json:"entries"`   // writes of observations and receipts
	Snapshots int  `json:"snapshots"` // documents that no request of any scope needs any more
	Open      int  `json:"open"`      // as old, and kept because they are open; the limit does not count them
	More      bool `json:"more"`      // the limit left some that could be purged
}
