package reconcile

import (
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Kind tells what looking at one request came to. The values are stable and safe
// to log and to count by.
type Kind string

// The kinds. The first five are what an execution found out; the others say why
// there was none, or why it has no result.
const (
	Verified     Kind = "verified"      // succeeded, with evidence
	Failed       Kind = "failed"        // the service says that it did not complete
	StillPending Kind = "still-pending" // read again later
	StillUnknown Kind = "still-unknown" // read again later
	ForPerson    Kind = "for-a-person"  // its tracking window has ended
	Nothing      Kind = "nothing-to-do" // final, settled by a person, purged, only prepared, or done by another meanwhile
	Held         Kind = "held"          // another execution has it, or took it over
	NotNow       Kind = "not-now"       // its origin is at a limit or down
	NotApproved  Kind = "not-approved"  // this worker's host has not approved its origin
	Stopped      Kind = "stopped"       // the context ended first; it stays open
	Broken       Kind = "error"         // the ledger could not do its work
)

// Kinds are all of them, in the order of a table.
func Kinds() []Kind {
	return []Kind{Verified, Failed, StillPending, StillUnknown, ForPerson, Nothing, Held, NotNow, NotApproved, Stopped, Broken}
}

// Done is what looking at one request came to.
type Done struct {
	Scope     client.Scope
	RequestID string
	ActionID  string
	Origin    string
	Before    agentic.Outcome // of the last receipt that was saved before; "" is none
	After     agentic.Outcome // of the last receipt now
	Kind      Kind
	Later     time.Duration // above zero: nothing was found out; try again after so long
	Err       error         // why, for Held, NotApproved, Stopped, Broken and some of Nothing
	Took      time.Duration
}

// Report is what one pass came to. Each request has one Done, in the order in which
// they ended, and Counts adds them up.
type Report struct {
	Counts map[Kind]int
	Done   []Done
	Took   time.Duration
}

func (r *Report) add(d Done) {
	r.Counts[d.Kind]++
	r.Done = append(r.Done, d)
}
