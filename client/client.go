package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentic-go/agentic"
)

// Config is what a host gives a Client. Ledger and Transport are required; the
// zero value of everything else is safe.
type Config struct {
	Ledger    Ledger
	Transport Transport

	// Scope keeps this principal's and environment's requests apart from all
	// others (section 6, D8). Each part is at most 256 bytes of UTF-8.
	Scope Scope

	// Wait is how long to wait for another execution of the same request. Zero
	// waits as long as that execution may last at worst; a negative Wait does
	// not wait.
	Wait time.Duration

	// DuplicateWindow is how long a verified success counts as the same thing asked
	// again: a new request ID whose principal, action and input equal those of a
	// request that is open, or succeeded less than so long ago, is refused with a
	// *DuplicateError unless Request.AllowDuplicate. Zero looks at open requests
	// only; a negative window looks at none.
	DuplicateWindow time.Duration

	// CheckInput may refuse an input before anything is saved, for example
	// against Plan.RequestSchema (D18). Its error is returned as it is.
	CheckInput func(*agentic.Plan, agentic.Input) error

	// Observer gets every Event, in order, on the goroutine that executes. It
	// must not block for long.
	Observer func(Event)

	// Logger gets a few lines for operators, without input, receipt or
	// credential. Nil is silent.
	Logger *slog.Logger

	// TracerProvider and MeterProvider get the spans and metrics that Instrumentation
	// describes. Nil is the global one of OpenTelemetry, which does nothing until the
	// program sets one.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// NewRequestID makes request IDs (D7). Nil makes UUIDv7s.
	NewRequestID func() string

	// KillPoint is for tests that kill the process between two effects. It is
	// nil in production.
	KillPoint func(Point)

	// Sleep is for tests with a time of their own. It makes the pause between two status
	// checks (section 3, checkDelayMs): it returns nil after d, or the error of ctx as soon as
	// that has ended, also when d is zero. Nil is a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// maxScopeBytes bounds each part of a Scope.
const maxScopeBytes = 256

func (cfg Config) validate() error {
	switch {
	case cfg.Ledger == nil:
		return errors.New("client: Config.Ledger is missing")
	case cfg.Transport == nil:
		return errors.New("client: Config.Transport is missing")
	}
	for name, s := range map[string]string{"Principal": cfg.Scope.Principal, "Environment": cfg.Scope.Environment} {
		if len(s) > maxScopeBytes || !utf8.ValidString(s) {
			return fmt.Errorf("client: Config.Scope.%s is not UTF-8 of at most %d bytes", name, maxScopeBytes)
		}
	}
	return nil
}

// withDefaults fills in what a host left out.
func (cfg Config) withDefaults() Config {
	if cfg.Observer == nil {
		cfg.Observer = func(Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.NewRequestID == nil {
		cfg.NewRequestID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if cfg.KillPoint == nil {
		cfg.KillPoint = func(Point) {}
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	return cfg
}

// Client runs actions. It is safe for concurrent use.
type Client struct {
	cfg   Config
	plans *planCache
	tel   *telemetry
}

// New makes a Client. The error says which part of the Config is unusable.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	tel, err := newTelemetry(cfg.TracerProvider, cfg.MeterProvider)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg.withDefaults(), plans: new(planCache), tel: tel}, nil
}

// In is the same client for another scope, as a worker needs it that serves many.
func (c *Client) In(scope Scope) (*Client, error) {
	cfg := c.cfg
	cfg.Scope = scope
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, plans: c.plans, tel: c.tel}, nil
}

// Request is one action to run. The host must have authorized it (section 6).
type Request struct {
	// Plan is the action, from agentic.Load or agentic.Bind. Without Plan and
	// Input, ID names a request that is saved already.
	Plan *agentic.Plan

	// Input is the action's input: a JSON object (section 4, D18).
	Input []byte

	// ID is the request ID: 8 to 128 of [A-Za-z0-9_-]. Empty makes a new one
	// (D7). Giving the same ID again is the way to ask again without a second
	// write.
	ID string

	// AllowDuplicate says that a new request is meant although an earlier one has
	// the same principal, action and input (Config.DuplicateWindow).
	AllowDuplicate bool

	// Supersedes is for Prepare: the saved request that a person has this one made
	// instead of, knowing that it may duplicate it. It implies AllowDuplicate.
	Supersedes string
}

// Result is what an execution came to.
type Result struct {
	RequestID string
	Receipt   agentic.Receipt
	Sent      bool // this execution submitted the action, for the only time
	FromSaved bool // the receipt had been saved before and the service was not asked

	// WindowEnded says that the outcome is not final and the tracking window has ended:
	// nothing is read any more, and a person has to settle the request.
	WindowEnded bool
}

// NeedsHandoff reports whether a person or another process of the host has to
// settle the request: its outcome is unknown (section 6.9).
func (r Result) NeedsHandoff() bool { return r.Receipt.Outcome == agentic.Unknown }

// Prepare validates the action, its input and its destination, and saves the
// request without sending it (section 6.1 and 6.2, D9). The Record's RequestID
// names it from then on.
//
// Preparing what is already saved under the same ID changes nothing and returns
// it. The errors are those of Execute.
func (c *Client) Prepare(ctx context.Context, req Request) (*Record, error) {
	b, _, err := c.bind(req)
	if err != nil {
		return nil, err
	}
	h, err := c.begin(ctx, req.Plan, b, IntendPrepare)
	if err != nil {
		return nil, err
	}
	defer c.release(h)
	r := execution{Client: c, hold: h, rec: h.Record()}
	r.emit(Saved{EventHead: r.head(), State: r.rec.State})
	return r.rec, nil
}

// Execute runs the action to a receipt (section 6). A request that is already
// saved under the same ID and binding is reconciled, never sent again; a saved
// final receipt is returned as it is (section 6.10, D11).
//
// Pending and unknown are outcomes of the Result, not errors. Refused before
// anything is saved: *agentic.InputError, *RequestIDError, *OriginError. Refused
// by what is saved: *BindingError, *HeldError, *NotFoundError, *DuplicateError,
// *PurgedError, and for what was never sent *SettledError, when a person settled it,
// and *ExpiredError, when its window has ended. After an
// *InterruptedError, ErrLost or an error that matches ErrLedger the action may
// have been sent: Result.RequestID names it, Result.Sent tells whether this very
// call submitted it, and Resume tells what became of it.
func (c *Client) Execute(ctx context.Context, req Request) (Result, error) {
	ctx, op := c.tel.begin(ctx, "agentic.execute")
	res, err := c.execute(ctx, req, op)
	op.end(ctx, res, err)
	return res, err
}

func (c *Client) execute(ctx context.Context, req Request, op *operation) (Result, error) {
	if req.Plan == nil && req.Input == nil && req.ID != "" {
		return c.take(ctx, req.ID, IntendSubmit, op)
	}
	b, in, err := c.bind(req)
	if err != nil {
		return Result{RequestID: req.ID}, err
	}
	op.names(b.RequestID, b.ActionID, b.Origin)
	c.cfg.KillPoint(BeforeSave)
	h, err := c.begin(ctx, req.Plan, b, IntendSubmit)
	if err != nil {
		return Result{RequestID: b.RequestID}, err
	}
	defer c.release(h)
	r := execution{Client: c, hold: h, rec: h.Record(), plan: req.Plan, input: in}
	return r.run(ctx)
}

// Resume reconciles a saved request by reading only; it never sends (section
// 6.3). It needs the request ID alone. A request that was only prepared is a
// *PreparedError; the other errors are those of Execute. After the tracking window one
// last receipt says so, and later calls give that one.
func (c *Client) Resume(ctx context.Context, requestID string) (Result, error) {
	ctx, op := c.tel.begin(ctx, "agentic.resume")
	res, err := c.take(ctx, requestID, IntendPrepare, op)
	op.end(ctx, res, err)
	return res, err
}

// Load gives what the ledger holds of a request, without holding or reading
// anything else. An unknown ID is a *NotFoundError.
func (c *Client) Load(ctx context.Context, requestID string) (*Record, error) {
	return c.cfg.Ledger.Load(ctx, c.cfg.Scope, requestID)
}

// take executes a saved request under its own snapshots.
func (c *Client) take(ctx context.Context, requestID string, intent Intent, op *operation) (Result, error) {
	res := Result{RequestID: requestID}
	if !ValidRequestID(requestID) {
		return res, &RequestIDError{RequestID: requestID}
	}
	// The plan and the approval come before the hold, so that no right to
	// submit is consumed in vain.
	rec, err := c.cfg.Ledger.Load(ctx, c.cfg.Scope, requestID)
	if err != nil {
		return res, interrupted(ctx, requestID, err)
	}
	op.names(rec.RequestID, rec.ActionID, rec.Origin)
	if !rec.PurgedAt.IsZero() {
		return res, &PurgedError{RequestID: requestID, Outcome: rec.Purged, PurgedAt: rec.PurgedAt}
	}
	if rec.Over() != nil { // nothing is asked of anybody, so nothing has to be approved
		last := *rec.Last()
		head := EventHead{Scope: rec.Scope, RequestID: rec.RequestID, ActionID: rec.ActionID, Origin: rec.Origin, At: rec.SeenAt}
		c.cfg.Observer(Resulted{EventHead: head, Receipt: last, FromSaved: true})
		return Result{RequestID: requestID, Receipt: last, FromSaved: true, WindowEnded: rec.Closed()}, nil
	}
	if err := neverSent(rec, intent, time.Time{}); err != nil {
		return res, err
	}
	plan, in, err := c.plans.load(rec)
	if err != nil {
		return res, err
	}
	if err := c.cfg.Transport.Approve(plan.Origin, plan.Action.ID); err != nil {
		return res, err
	}
	h, err := c.cfg.Ledger.Take(ctx, c.cfg.Scope, requestID, intent, c.wait(plan))
	if err != nil {
		return res, interrupted(ctx, requestID, err)
	}
	defer c.release(h)
	r := execution{Client: c, hold: h, rec: h.Record(), plan: plan, input: in}
	return r.run(ctx)
}

// neverSent is the error for a request that was never sent and is not to be sent
// now, or nil.
func neverSent(rec *Record, intent Intent, now time.Time) error {
	switch note := rec.Settled(); {
	case rec.State != Prepared:
		return nil
	case note != nil:
		return &SettledError{RequestID: rec.RequestID, Note: *note}
	case !now.IsZero() && rec.Expired(now):
		return &ExpiredError{RequestID: rec.RequestID, WindowEnded: rec.CreatedAt.Add(rec.Window)}
	case intent == IntendPrepare:
		return &PreparedError{RequestID: rec.RequestID}
	}
	return nil
}

// bind does step 1 of section 6: everything that can be refused before anything
// is saved.
func (c *Client) bind(req Request) (Binding, agentic.Input, error) {
	if req.Plan == nil {
		return Binding{}, agentic.Input{}, errors.New("client: Request.Plan is missing")
	}
	id := req.ID
	if id == "" {
		id = c.cfg.NewRequestID()
	}
	if !ValidRequestID(id) {
		return Binding{}, agentic.Input{}, &RequestIDError{RequestID: id}
	}
	p := req.Plan
	in, err := p.CheckInput(req.Input)
	if err != nil {
		return Binding{}, in, err
	}
	if c.cfg.CheckInput != nil {
		if err := c.cfg.CheckInput(p, in); err != nil {
			return Binding{}, in, err
		}
	}
	if err := c.cfg.Transport.Approve(p.Origin, p.Action.ID); err != nil {
		return Binding{}, in, err
	}
	return Binding{
		Scope:       c.cfg.Scope,
		RequestID:   id,
		Origin:      p.Origin,
		ActionID:    p.Action.ID,
		Profile:     Snapshot{Digest: p.Profile.Digest(), Body: p.Profile.Source()},
		OpenAPI:     Snapshot{Digest: p.OpenAPI.Digest(), Body: p.OpenAPI.Source()},
		InputDigest: in.Digest(),
		Input:       in.Body(),
		Window:      p.Action.Retention,
		Term:        Term(p.Action),
		Supersedes:  req.Supersedes,
		Fresh:       req.ID == "",
		Guard: Guard{
			On:        c.cfg.DuplicateWindow >= 0 && !req.AllowDuplicate && req.Supersedes == "",
			Succeeded: max(0, c.cfg.DuplicateWindow),
		},
	}, in, nil
}

func (c *Client) begin(ctx context.Context, p *agentic.Plan, b Binding, intent Intent) (Hold, error) {
	h, err := c.cfg.Ledger.Begin(ctx, b, intent, c.wait(p))
	c.tel.refused(ctx, b.Origin, b.ActionID, err)
	return h, interrupted(ctx, b.RequestID, err)
}

// interrupted tells the end of the caller's own context from other errors (D17).
func interrupted(ctx context.Context, requestID string, err error) error {
	if end := ctx.Err(); end != nil && errors.Is(err, end) {
		return &InterruptedError{RequestID: requestID, Err: end}
	}
	return err
}

// wait is how long to wait for another holder.
func (c *Client) wait(p *agentic.Plan) time.Duration {
	if c.cfg.Wait != 0 {
		return max(0, c.cfg.Wait)
	}
	return Term(p.Action)
}

// Term is the longest that one execution of an action takes (Binding.Term): every
// exchange to its time limit, every pause, and a slow write of the receipt.
func Term(a agentic.Action) time.Duration {
	r := a.Recovery
	return r.Timeout*time.Duration(1+2*r.MaxChecks) + r.CheckDelay*time.Duration(r.MaxChecks) + flushTime
}

func (c *Client) release(h Hold) {
	if err := h.Release(); err != nil {
		c.cfg.Logger.Error("cannot release a request", "request_id", h.Record().RequestID, "error", err)
	}
}

// ValidRequestID reports whether a host may give this request ID (D7).
func ValidRequestID(id string) bool {
	if len(id) < 8 || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// planCache keeps the plans of saved snapshots, so that a host that resumes many
// requests of one service parses its documents once.
type planCache struct {
	mu    sync.Mutex
	plans map[planKey]*agentic.Plan
}

type planKey struct{ profile, openapi, action string }

// maxCachedPlans bounds the memory of a host that talks to many services.
const maxCachedPlans = 64

// load rebuilds plan and input from what was saved, and checks that they are
// still what the request was bound to.
func (pc *planCache) load(rec *Record) (*agentic.Plan, agentic.Input, error) {
	damaged := func(what string) error {
		return &LedgerError{Op: "load", Err: fmt.Errorf("request %s: the saved %s is not what the request was bound to", rec.RequestID, what)}
	}
	key := planKey{rec.Profile.Digest, rec.OpenAPI.Digest, rec.ActionID}
	pc.mu.Lock()
	plan := pc.plans[key]
	pc.mu.Unlock()
	if plan == nil {
		var err error
		// Whether loopback is allowed was settled when the request was bound;
		// the transport still decides where it may go.
		plan, err = agentic.Load(rec.Profile.Body, rec.OpenAPI.Body, rec.ActionID, agentic.Options{AllowLoopback: true})
		if err != nil {
			return nil, agentic.Input{}, &LedgerError{Op: "load", Err: fmt.Errorf("request %s: %w", rec.RequestID, err)}
		}
		pc.mu.Lock()
		if pc.plans == nil || len(pc.plans) >= maxCachedPlans {
			pc.plans = make(map[planKey]*agentic.Plan)
		}
		pc.plans[key] = plan
		pc.mu.Unlock()
	}
	if plan.Profile.Digest() != rec.Profile.Digest || plan.OpenAPI.Digest() != rec.OpenAPI.Digest {
		return nil, agentic.Input{}, damaged("snapshot")
	}
	if plan.Origin != rec.Origin {
		return nil, agentic.Input{}, damaged("origin")
	}
	in, err := plan.CheckInput(rec.Input)
	if err != nil || in.Digest() != rec.InputDigest {
		return nil, agentic.Input{}, damaged("input")
	}
	return plan, in, nil
}
