package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/inputschema"
)

// Values of a Config that says nothing else.
const (
	DefaultMaxStoredBytes = 16 << 10
	DefaultMaxWait        = 10 * time.Second // the longest recovery.timeoutMs of the draft
)

// Config is what a publisher decides. Store, Principal, Profile and OpenAPI are
// required; there is no way to build a Tracker without a principal function.
type Config[Tx any] struct {
	Store Store[Tx]

	// Transact, when it is set, runs the publisher's own transactions in place of
	// Store.Transact, and keeps the same contract. It is for a publisher that has
	// one already, with its isolation level, retries and tracing: above READ
	// COMMITTED it has to run f again after a serialization failure, which
	// concurrent repeats cause. An error that does not wrap ErrUnavailable is
	// answered with 500. Of one that is not f's own the type alone is logged.
	Transact func(ctx context.Context, f func(ctx context.Context, tx Tx) error) error

	// Principal authenticates a request and names whose it is, in 1 to 1,024
	// bytes of UTF-8 without control characters. Any error is answered with 401,
	// without its text, which is not logged either; wrap an *AuthError to say more, or ErrUnavailable when it
	// is not known whose request it is (503). A name that cannot be is an error.
	// It sees the request before anything else does, and must not read its body.
	Principal func(*http.Request) (string, error)

	// Profile and OpenAPI are the documents that are published, as files have
	// them. They must pass this project's own validator, or New fails.
	Profile, OpenAPI []byte

	// AllowLoopback accepts an http origin on a loopback host.
	AllowLoopback bool

	MaxInputBytes  int  // of a request body; 0 is agentic.MaxInputBytes
	MaxStoredBytes int  // of an answer kept for repeats; 0 is 16 KiB. A larger one needs Action.Read
	CheckInput     bool // check inputs against the operation's request schema (400)

	// MaxWait is how long a request waits for its turn: for the first one with its
	// key, for a connection, for a lock. Then it is answered with 503. It does not
	// bound the handler. 0 is 10 s.
	MaxWait time.Duration

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
	Input       []byte // the body as it was sent, strict JSON, an object

	// HTTP has the headers; its body is read already, and its URL has no query.
	// Headers are not in the fingerprint: a repeat with others is the same request
	// and gets the first answer, so they must not change what is done.
	HTTP *http.Request
}

// HandlerFunc is the publisher's part: it writes its own rows in tx and says
// what came of it. It must not commit, roll back, or keep tx.
//
//   - DoneWith: the action is completed by what was written in tx.
//   - RefusedWith: a definite refusal of the business; what was written in tx is
//     rolled back and the refusal is recorded (D21).
//   - PendingWith: accepted and not finished; Complete or Fail settles it later.
//   - an error, or a panic: nothing is recorded, and the answer is 500; an error
//     that wraps ErrUnavailable is 503. A panic with http.ErrAbortHandler ends the
//     connection without an answer, and nothing is recorded either.
//
// Every error of a statement in tx is returned, unless the statement was inside a
// savepoint of the handler's own that is rolled back; and no statement may end the
// transaction, so INSERT OR ROLLBACK and RAISE(ROLLBACK) are forbidden. On those,
// and on an interrupt, a full disk or an I/O error, SQLite takes the whole
// transaction back and database/sql does not notice: what a handler that swallows
// the error writes after it commits by itself. No record is made then, and the
// submission ends in an error, but those writes stay.
//
// It may be called again for one request when the database asks for that; only
// what the last call wrote counts, so it does nothing outside of tx. ctx ends
// when the client goes away: what is not committed then is rolled back, and the
// status stays unknown, which is true.
type HandlerFunc[Tx any] func(ctx context.Context, tx Tx, r Request) (Result, error)

// Action is one action of the profile, served.
type Action[Tx any] struct {
	ID     string
	Handle HandlerFunc[Tx]

	// Read gives the body of a resource for a repeat whose first answer was too
	// large to store. It is needed only then. What is not strict JSON is answered
	// with 500.
	Read func(ctx context.Context, k Key, resourceID string) ([]byte, error)
}

// Tracker serves the actions of one profile. It is safe for concurrent use.
type Tracker[Tx any] struct {
	*server
	store      Store[Tx]
	transact   transactFunc[Tx]
	tombstones time.Duration
	flight     flight
}

type transactFunc[Tx any] func(context.Context, func(context.Context, Tx) error) error

// server is the half of a tracker that knows no transaction: what a mux sees.
type server struct {
	principal func(*http.Request) (string, error)
	find      func(context.Context, Key) (*Record, error)
	maxInput  int
	maxStored int
	maxWait   time.Duration
	observer  func(Event)
	log       *slog.Logger
	actions   []*action
	profile   *document
	openapi   *document
}

// action is one action as the mux sees it.
type action struct {
	*server
	id     string
	plan   *agentic.Plan
	window time.Duration
	submit *submission
	status *status
	verify template
	schema []byte // nil when inputs are not checked
	read   func(context.Context, Key, string) ([]byte, error)
	run    func(context.Context, Request) (outcome, error)
}

// New makes a tracker for all actions of the profile. Its error says what to
// mend: an *agentic.InvalidError when a document is at fault.
func New[Tx any](cfg Config[Tx], actions ...Action[Tx]) (*Tracker[Tx], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Tracker[Tx]{store: cfg.Store, transact: cfg.Store.Transact, tombstones: cfg.Tombstones, server: &server{
		principal: cfg.Principal,
		find:      cfg.Store.Find,
		maxInput:  cmp.Or(cfg.MaxInputBytes, agentic.MaxInputBytes),
		maxStored: cmp.Or(cfg.MaxStoredBytes, DefaultMaxStoredBytes),
		maxWait:   cmp.Or(cfg.MaxWait, DefaultMaxWait),
		observer:  cfg.Observer,
		log:       cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		openapi:   newDocument(cfg.OpenAPI),
		profile:   newDocument(cfg.Profile),
	}}
	if cfg.Transact != nil {
		t.transact = marked(cfg.Transact)
	}
	opts := agentic.Options{AllowLoopback: cfg.AllowLoopback}
	profile, found := agentic.ParseProfile(cfg.Profile, opts)
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("service: Config.Profile: %w", err)
	}
	if err := sameActions(profile, actions); err != nil {
		return nil, err
	}
	for _, given := range actions {
		plan, err := agentic.Load(cfg.Profile, cfg.OpenAPI, given.ID, opts)
		if err != nil {
			return nil, fmt.Errorf("service: action %s: %w", given.ID, err)
		}
		a, err := t.newAction(given, plan, cfg.CheckInput)
		if err != nil {
			return nil, fmt.Errorf("service: action %s: %w", given.ID, err)
		}
		if cfg.Tombstones != 0 && cfg.Tombstones < a.window {
			return nil, fmt.Errorf("service: Config.Tombstones is %s, below the window of %s, which is %s: keep tombstones at least that long, or for ever with 0 (D23)",
				cfg.Tombstones, a.id, a.window)
		}
		t.actions = append(t.actions, a)
	}
	return t, t.distinct()
}

func (cfg *Config[Tx]) validate() error {
	switch {
	case cfg.Store == nil:
		return errors.New("service: Config.Store is missing")
	case cfg.Principal == nil:
		return errors.New("service: Config.Principal is missing: say whose a request is, also when all are the same")
	case cfg.MaxInputBytes < 0, cfg.MaxStoredBytes < 0, cfg.MaxWait < 0, cfg.Tombstones < 0:
		return errors.New("service: a limit of Config is negative")
	}
	return nil
}

// sameActions checks that exactly the profile's actions are given, each once, and
// that they share the one document that is served.
func sameActions[Tx any](profile *agentic.Profile, actions []Action[Tx]) error {
	given := map[string]bool{}
	for _, a := range actions {
		switch _, ok := profile.Action(a.ID); {
		case !ok:
			return fmt.Errorf("service: the profile has no action %q: take it away, or describe it in the profile", a.ID)
		case given[a.ID]:
			return fmt.Errorf("service: the action %s is given twice", a.ID)
		case a.Handle == nil:
			return fmt.Errorf("service: the action %s has no Handle", a.ID)
		}
		given[a.ID] = true
	}
	for _, a := range profile.Actions {
		if !given[a.ID] {
			return fmt.Errorf("service: the profile has the action %s, which is not given to New: serve it, or take it out of the profile", a.ID)
		}
		if first := profile.Actions[0].OpenAPI; a.OpenAPI != first {
			return fmt.Errorf("service: the actions name two OpenAPI documents, %s and %s, and a tracker serves one", first, a.OpenAPI)
		}
	}
	return nil
}

func (t *Tracker[Tx]) newAction(given Action[Tx], plan *agentic.Plan, checkInput bool) (*action, error) {
	a := &action{server: t.server, id: given.ID, plan: plan, window: plan.Action.Retention, read: given.Read}
	submit, status, verify := plan.Paths()
	a.submit = &submission{action: a, path: submit}
	a.status = newStatus(a, status)
	a.verify = newTemplate(verify)
	a.run = func(ctx context.Context, r Request) (outcome, error) { return t.run(ctx, a, given.Handle, r) }
	if !checkInput {
		return a, nil
	}
	if a.schema = plan.RequestSchema(); a.schema == nil {
		return nil, errors.New("Config.CheckInput is set, but the OpenAPI document has no inline schema of the request body")
	}
	if _, err := inputschema.Check(a.schema, []byte("{}")); err != nil {
		return nil, fmt.Errorf("Config.CheckInput is set: %w", err)
	}
	return a, nil
}

// distinct checks that a path tells the action, which a key is scoped to.
func (s *server) distinct() error {
	const documents = "the documents"
	served := map[string]string{"GET /agentic.json": documents}
	take := func(method, path, by string) error {
		at := method + " " + path
		if first, ok := served[at]; ok {
			return fmt.Errorf("service: %s is of %s and of %s, but a key belongs to one action (request.scope): give each operations of its own", at, first, by)
		}
		served[at] = by
		return nil
	}
	if err := take("GET", s.actions[0].plan.Action.OpenAPI, documents); err != nil {
		return err
	}
	for _, a := range s.actions {
		if err := errors.Join(take("POST", a.submit.path, a.id), take("GET", a.status.path.anonymous(), a.id)); err != nil {
			return err
		}
	}
	for _, a := range s.actions {
		if by, ok := served["GET "+a.verify.anonymous()]; ok {
			return fmt.Errorf("service: the read of %s, %s, has the path of another operation, of %s: no router can tell them apart", a.id, a.verify, by)
		}
	}
	return nil
}

// Submit serves the submission of an action, and Status its status. They panic
// when the profile has no such action.
func (t *Tracker[Tx]) Submit(actionID string) http.Handler { return t.action(actionID).submit }

// Status serves the status operation of an action. Its handler takes the request
// ID from the escaped path, so it must see the whole path, as it was sent.
func (t *Tracker[Tx]) Status(actionID string) http.Handler { return t.action(actionID).status }

// Profile serves the profile, for /agentic.json (section 2).
func (t *Tracker[Tx]) Profile() http.Handler { return t.profile }

// OpenAPI serves the OpenAPI document, for the path that the profile names.
func (t *Tracker[Tx]) OpenAPI() http.Handler { return t.openapi }

func (s *server) action(id string) *action {
	if a := s.lookUp(id); a != nil {
		return a
	}
	known := make([]string, len(s.actions))
	for i, a := range s.actions {
		known[i] = a.id
	}
	panic(fmt.Sprintf("service: no action %q; there are: %s", id, strings.Join(known, ", ")))
}

func (s *server) lookUp(id string) *action {
	for _, a := range s.actions {
		if a.id == id {
			return a
		}
	}
	return nil
}
