package service

import (
	"context"
	"errors"
	"time"
)

// Key scopes a request ID: two requests are the same only if all three parts are
// equal, byte for byte (section 3, request.scope; D19).
type Key struct {
	Principal string // whom the publisher authenticated; never empty
	Action    string // action ID of the profile
	RequestID string // the Idempotency-Key as it was sent
}

// State tells what became of a tracked request.
type State string

// The states of a record. A record is claimed only inside the transaction that
// made it: nobody else ever sees that state, and a crash leaves nothing.
const (
	Claimed State = "claimed"
	Done    State = "done"    // the status says succeeded
	Refused State = "refused" // a definite refusal of the business: failed
	Pending State = "pending" // accepted and not finished
	Expired State = "expired" // a tombstone: past the window, only key, fingerprint and times are left (D23)
)

// Record is what is tracked of one request. It never holds the input.
type Record struct {
	Key         Key
	Fingerprint string // digest of the input (D20), in lower-case hexadecimal
	State       State
	Settlement
	CreatedAt time.Time // the database's clock, UTC, microseconds
	ExpiresAt time.Time // end of the window that was advertised when it was made
}

// Settlement is the answer that a repeat gets.
type Settlement struct {
	ResourceID string // with Done
	Status     int    // HTTP status of the first answer
	Body       []byte // of the first answer; nil with BodyOmitted
	// BodyOmitted says that the body was larger than what is stored, and is read
	// again by the publisher's read function.
	BodyOmitted bool
}

// Errors of a Store.
var (
	// ErrUnavailable is wrapped by every error that says the database cannot be
	// reached or has no room: nothing is known to have happened, try again
	// later (503).
	ErrUnavailable = errors.New("tracking store unavailable")

	// ErrNotPending says that a record to settle is absent, already settled, or
	// expired.
	ErrNotPending = errors.New("the request is not pending")
)

// Store keeps the records in the publisher's database. Times are the database's
// own clock. Implementations must pass storetest.Store.
//
// A Store never sees a body that is larger than the tracker lets it store. The
// text of its errors is logged: it names a request by Key.Short alone.
type Store[Tx any] interface {
	// Transact runs f in a transaction of its own and commits when f returns
	// nil; the commit is durable when Transact returns nil. An error of f rolls
	// back everything that f did and comes back as it is, also when it is
	// wrapped. f may run with others in one commit, each in a savepoint: f must
	// not end the transaction. f may run more than once when the database asks
	// for it (a serialization failure, a batch that was rolled back); the
	// effects of its last run count. A panic of f is rolled back and goes on.
	Transact(ctx context.Context, f func(ctx context.Context, tx Tx) error) error

	// Claim makes a record of the state Claimed in tx, expiring window after the
	// database's time, unless there is one: then it returns that record, as Find
	// gives it (Expired at or past its window), and changes nothing. While another transaction holds a claim of the key, Claim
	// waits until that one ends or ctx does.
	Claim(ctx context.Context, tx Tx, k Key, fingerprint string, window time.Duration) (existing *Record, err error)

	// Settle changes a record in tx from Claimed (in the same tx) or from
	// Pending to the given state; from Pending only inside the window. It is
	// ErrNotPending when there is no such record.
	Settle(ctx context.Context, tx Tx, k Key, to State, s Settlement) error

	// Find reads a record outside of any transaction; nil when there is none. A
	// record at or past its window is returned with the state Expired, whether
	// it was swept or not. FindIn reads it inside tx.
	Find(ctx context.Context, k Key) (*Record, error)
	FindIn(ctx context.Context, tx Tx, k Key) (*Record, error)

	// Sweep turns at most limit records past their window into tombstones, and
	// deletes at most limit tombstones whose window ended more than keep ago, and
	// more than its own length ago (D23); keep 0 deletes none. It may run on many hosts at once.
	Sweep(ctx context.Context, keep time.Duration, limit int) (Swept, error)
}

// Swept counts what one Sweep did.
type Swept struct {
	Expired int // records that became tombstones
	Deleted int // tombstones that were deleted
}
