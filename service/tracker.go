package service

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Config is what a publisher decides. Store, Principal, Profile and OpenAPI are
// required; there is no way to build a Tracker without a principal function.
type Config[Tx any] struct {
	Store Store[Tx]

	// Principal authenticates a request and names whose it is. Any error is
	// answered with 401, without its text; wrap an *AuthError to say more. An
	// empty principal is an error.
	Principal func(*http.Request) (string, error)

	// Profile and OpenAPI are the documents that are published, as files have
	// them. They must pass this project's own validator, or New fails.
	Profile, OpenAPI []byte

	// AllowLoopback accepts an http origin on a loopback host.
	AllowLoopback bool

	MaxInputBytes  int  // of a request body; 0 is agentic.MaxInputBytes
	MaxStoredBytes int  // of an answer kept for repeats; 0 is 16 KiB. A larger one needs Action.Read
	CheckInput     bool // check inputs against the operation's request schema (400)

	// Tombstones is how long a tombstone is kept after its window; 0 keeps it
	// for ever, and less than the longest window of the profile is refused by
	// New (D23).
	Tombstones time.Duration

	Observer func(Event)  // gets every Event; must not block for long
	Logger   *slog.Logger // without bodies and full keys; nil is silent
}

// Request is what a handler gets: one action, to be done once.
type Request struct {
	Key         Key
	Fingerprint string
	Input       []byte        // the body as it was sent, strict JSON, an object
	HTTP        *http.Request // headers and URL; its body is read already
}

// Result is what a handler came to. Make one with DoneWith, RefusedWith or
// PendingWith; the zero Result is an error.
type Result struct {
	state      State
	settlement Settlement
}

// HandlerFunc is the publisher's part: it writes its own rows in tx and says
// what came of it. It must not commit, roll back, or keep tx.
//
//   - DoneWith: the action is completed by what was written in tx.
//   - RefusedWith: a definite refusal of the business; what was written in tx is
//     rolled back and the refusal is recorded (D21).
//   - PendingWith: accepted and not finished; Complete or Fail settles it later.
//   - an error, or a panic: nothing is recorded, and the answer is 500; an error
//     that wraps ErrUnavailable is 503.
type HandlerFunc[Tx any] func(ctx context.Context, tx Tx, r Request) (Result, error)

// Action is one action of the profile, served.
type Action[Tx any] struct {
	ID     string
	Handle HandlerFunc[Tx]

	// Read gives the body of a resource for a repeat whose first answer was too
	// large to store. It is needed only then.
	Read func(ctx context.Context, k Key, resourceID string) ([]byte, error)
}
