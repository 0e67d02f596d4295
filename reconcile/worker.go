package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Config is what a host gives a Worker. Client, Ledger and Scopes are required; the
// zero value of everything else is safe.
type Config struct {
	// Client executes; its own scope is not used, and it waits for no other holder.
	Client *client.Client

	// Ledger is the one of Client.
	Ledger client.Ledger

	// Scopes say whose requests: a worker needs the credentials of each.
	Scopes []client.Scope

	Concurrency int           // executions at once, of all origins; 0 is 8
	Limits      Limits        // per origin
	Poll        time.Duration // how often the ledger is asked for what is due; 0 is 1 s

	// Grace is how long Run lets executions go on after its context has ended. 0 is
	// the longest term of a request that was seen, or 30 s.
	Grace time.Duration

	// Observer gets one Done for each request that an execution was meant for, also
	// when it turned out that there was nothing to do; none for NotNow. It is called
	// on many goroutines.
	Observer func(Done)

	// Logger gets a few lines for operators, of names and numbers. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultConcurrency = 8
	defaultPoll        = time.Second
	defaultGrace       = 30 * time.Second
)

// Worker reconciles. It is safe for concurrent use, and never executes one request
// twice at once.
type Worker struct {
	cfg     Config
	origins *origins
	longest atomic.Int64 // the longest term seen

	mu     sync.Mutex
	active map[key]struct{}
}

// key names a request.
type key struct {
	scope client.Scope
	id    string
}

// New makes a Worker. The error says which part of the Config is unusable.
func New(cfg Config) (*Worker, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("reconcile: Config.Client is missing")
	case cfg.Ledger == nil:
		return nil, errors.New("reconcile: Config.Ledger is missing")
	case len(cfg.Scopes) == 0:
		return nil, errors.New("reconcile: Config.Scopes is empty")
	}
	var scopes []client.Scope
	for _, s := range cfg.Scopes {
		if _, err := cfg.Client.In(s); err != nil {
			return nil, fmt.Errorf("reconcile: Config.Scopes: %w", err)
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	cfg.Scopes = scopes
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
	}
	if cfg.Poll <= 0 {
		cfg.Poll = defaultPoll
	}
	if cfg.Observer == nil {
		cfg.Observer = func(Done) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{
		cfg:     cfg,
		origins: &origins{limits: cfg.Limits.withDefaults(), states: map[string]*origin{}},
		active:  map[key]struct{}{},
	}, nil
}

// One looks at one request, whether it is due or not, and never sends it. It waits
// for nothing but the execution itself: when the request's origin is at a limit or
// down, or another execution has the request, Done.Later says when to try again.
//
// The error is that of Done.Err when the context ended (Stopped) or the ledger could
// not do its work (Broken, matching client.ErrLedger); everything else is a Kind.
func (w *Worker) One(ctx context.Context, scope client.Scope, requestID string) (Done, error) {
	k := key{scope, requestID}
	start := time.Now()
	d := Done{Scope: scope, RequestID: requestID}
	rec, err := w.cfg.Ledger.Load(ctx, scope, requestID)
	if err != nil {
		d.fail(ctx, err)
	} else if d.about(rec); d.Kind == "" {
		if !w.claim(k) {
			d.held(nil)
		} else {
			defer w.unclaim(k)
			a, refused := w.origins.admit(rec.Origin, start)
			if refused != nil {
				d.Kind, d.Later = NotNow, w.origins.later(rec.Origin, refused, start)
				return d, nil
			}
			w.execute(ctx, &d, rec, a)
		}
	}
	w.report(&d, start)
	if d.Kind == Stopped || d.Kind == Broken {
		return d, d.Err
	}
	return d, nil
}

// due is the execution of a request that was listed, claimed and admitted.
func (w *Worker) due(ctx context.Context, s client.Summary, a admission) Done {
	start := time.Now()
	d := Done{Scope: s.Scope, RequestID: s.RequestID, ActionID: s.ActionID, Origin: s.Origin, Before: s.Outcome, After: s.Outcome}
	rec, err := w.cfg.Ledger.Load(ctx, s.Scope, s.RequestID)
	switch {
	case err != nil:
		d.fail(ctx, err)
	case rec.SeenAt.After(s.SeenAt): // another worker was here since the listing
		d.Kind = Nothing
	default:
		d.about(rec)
	}
	if d.Kind == "" {
		w.execute(ctx, &d, rec, a)
	} else {
		w.origins.ended(a, notAsked, time.Now())
	}
	w.report(&d, start)
	return d
}

// about fills in what is known of a request, and its Kind when there is nothing to
// execute.
func (d *Done) about(rec *client.Record) {
	s := rec.Summary()
	d.ActionID, d.Origin, d.Before, d.After = s.ActionID, s.Origin, s.Outcome, s.Outcome
	switch {
	case !s.Open() || s.State != client.Attempted:
		d.Kind = Nothing
	case rec.Closed(): // nothing more can be read of it
		d.Kind = ForPerson
	}
}

// execute resumes a request and gives its admission back.
func (w *Worker) execute(ctx context.Context, d *Done, rec *client.Record, a admission) {
	for longest := w.longest.Load(); int64(rec.Term) > longest; longest = w.longest.Load() {
		w.longest.CompareAndSwap(longest, int64(rec.Term))
	}
	var h health
	defer func() {
		if c := w.origins.ended(a, h, time.Now()); c != nil && c.down {
			w.cfg.Logger.Warn("an origin does not answer", "origin", d.Origin, "wait", c.wait)
		} else if c != nil {
			w.cfg.Logger.Info("an origin answers again", "origin", d.Origin)
		}
	}()
	var ended time.Time // the ledger's clock when the receipt was made
	c, err := w.cfg.Client.ForWorker(rec.Scope, func(e client.Event) {
		switch e := e.(type) {
		case client.Checked:
			h.see(e.Observation)
		case client.Verified:
			h.see(e.Observation)
		case client.Resulted:
			ended = e.At
		}
	})
	if err != nil {
		d.fail(ctx, err)
		return
	}
	res, err := c.Resume(ctx, rec.RequestID)
	if err != nil {
		if d.fail(ctx, err); d.Kind == NotApproved && w.origins.notApproved(d.Origin) {
			w.cfg.Logger.Warn("an origin of open requests is not approved here", "origin", d.Origin)
		}
		return
	}
	d.After = res.Receipt.Outcome
	switch {
	case res.FromSaved:
		d.Kind = Nothing
	case d.After == agentic.Succeeded:
		d.Kind = Verified
	case d.After == agentic.Failed:
		d.Kind = Failed
	case !ended.Before(rec.CreatedAt.Add(rec.Window)):
		d.Kind = ForPerson
	case d.After == agentic.Pending:
		d.Kind = StillPending
	default:
		d.Kind = StillUnknown
	}
}

// When to try again what another execution has, and what this worker may not read.
const (
	heldPause     = 5 * time.Second
	approvalPause = time.Minute
)

func (d *Done) held(err error) { d.Kind, d.Later, d.Err = Held, jitter(heldPause), err }

// fail sorts an error of the client or the ledger.
func (d *Done) fail(ctx context.Context, err error) {
	d.Err = err
	switch {
	case is[*client.PreparedError](err), is[*client.SettledError](err), is[*client.PurgedError](err), is[*client.NotFoundError](err):
		d.Kind = Nothing
	case is[*client.HeldError](err), errors.Is(err, client.ErrLost):
		d.held(err)
	case is[*client.OriginError](err):
		d.Kind, d.Later = NotApproved, jitter(approvalPause)
	case is[*client.InterruptedError](err), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		d.Kind = Stopped
	default:
		d.Kind = Broken
	}
}

// is reports whether an error is, or wraps, one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func (w *Worker) report(d *Done, start time.Time) {
	d.Took = time.Since(start)
	w.cfg.Observer(*d)
}

// claim keeps two executions of one request in this process apart before the ledger
// has to.
func (w *Worker) claim(k key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.active[k]; ok {
		return false
	}
	w.active[k] = struct{}{}
	return true
}

func (w *Worker) unclaim(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.active, k)
}
