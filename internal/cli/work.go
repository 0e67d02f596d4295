package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/telemetry"
	"github.com/agentic-go/agentic/reconcile"
)

const workHelp = `Settle what is open, by reading only, until SIGTERM or SIGINT: requests whose host
crashed, and those that are pending or unknown while the service still tracks them.
It never sends anything.

A worker serves one principal in one environment, because it has the credentials of
that one. Any number of workers on any number of hosts may share a ledger in
PostgreSQL, where a job engine spreads the work; a ledger in a file is for the
workers of one machine.

A request is read again ever less often as it grows older, and never after its
window: then it is for a person ('agentic requests list --needs-person'). Each
origin is asked at most so often and so much at once, and less while it is down.

Standard error gets a line for each request that is settled or is now a person's,
and with --json standard output gets one JSON object for each look at a request. The
first signal ends it when what runs has ended, with exit code 0; the second at once.

--header-from-env is as with run when one origin is approved. With more of them it
says to which one the header goes: 'ORIGIN NAME=VAR'.`

const reconcileHelp = `Look once at each request that is open and may have been sent, by reading only, and
print a table of what they came to. It never sends anything.

With --due only what is due by the ledger's schedule, as a worker does; when nothing
is, that is said on a terminal only. The limits and --header-from-env are those of
'agentic work'.

Exit codes:
  0  nothing that was looked at is open any more
  1  an error; what was done until then stands
  4  something is still pending, or another execution has it, and nothing is worse
  5  something is unknown, could not be asked, or needs a person`

// workFlags are the flags of work and reconcile.
type workFlags struct {
	reachFlags
	ledgerFlags
	concurrency int
	limits      reconcile.Limits
}

func (f *workFlags) add(a *app, cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.concurrency, "concurrency", 8, "look at `N` requests at once")
	cmd.Flags().Float64Var(&f.limits.Rate, "origin-rate", 10, "begin at most `R` looks a second at one origin")
	cmd.Flags().IntVar(&f.limits.Concurrency, "origin-concurrency", 4, "and at most `N` at once")
	complete(cmd, "concurrency")
	complete(cmd, "origin-rate")
	complete(cmd, "origin-concurrency")
	f.ledgerFlags.add(cmd)
	f.reachFlags.add(cmd)
	cmd.Flags().Lookup("header-from-env").Usage = "send header Name with the value of environment variable VAR to the one approved origin, or to ORIGIN (`[ORIGIN ]Name=VAR`, repeat for more)"
	a.jsonFlag(cmd)
}

func (f *workFlags) check() error {
	const most = 10000
	for _, n := range []struct {
		flag  string
		value float64
	}{{"--concurrency", float64(f.concurrency)}, {"--origin-rate", f.limits.Rate}, {"--origin-concurrency", float64(f.limits.Concurrency)}} {
		if !(n.value > 0 && n.value <= most) {
			return advice.BadUsage(fmt.Sprintf("%s is not above 0 and at most %d", n.flag, most), "Leave it out for a value that does no harm.")
		}
	}
	return f.ledgerFlags.check()
}

func (a *app) newWork() *cobra.Command {
	var f workFlags
	var listen string
	var pollOnly bool
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Settle what is open, by reading only, until it is stopped",
		Long:  workHelp,
		Example: `  agentic work --approve https://support.example --header-from-env 'Authorization=SUPPORT_AUTH' \
      --ledger postgres://agent@db.example/agent --listen 127.0.0.1:9464
  agentic work --approve https://support.example --approve https://shop.example \
      --header-from-env 'https://support.example Authorization=SUPPORT_AUTH'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd.Context(), &f, listen, pollOnly)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "serve GET /metrics, /healthz and /readyz at this `ADDRESS`, to everybody who can reach it (default: nothing)")
	cmd.Flags().BoolVar(&pollOnly, "poll-only", false, "with PostgreSQL behind a pooler of transactions: ask for jobs every second instead of being told")
	complete(cmd, "listen", "127.0.0.1:9464", "[::1]:9464")
	f.add(a, cmd)
	cmd.Flags().Lookup("json").Usage = "print a JSON object in a line for each look at a request"
	return cmd
}

func (a *app) newReconcile() *cobra.Command {
	var f workFlags
	var due bool
	cmd := &cobra.Command{
		Use:     "reconcile",
		Short:   "Look once at everything that is open, by reading only",
		Long:    reconcileHelp,
		Example: "  agentic reconcile --approve https://support.example\n  agentic reconcile --due --approve https://support.example --json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.reconcile(cmd.Context(), &f, reconcile.PassOptions{DueOnly: due})
		},
	}
	cmd.Flags().BoolVar(&due, "due", false, "only what is due by the ledger's schedule")
	f.add(a, cmd)
	return cmd
}

// originHeaders reads the headers of a command that talks to several origins: each
// credential goes to exactly one that is approved.
func (a *app) originHeaders(f *reachFlags) (map[string]http.Header, error) {
	specs := make(map[string][]string)
	for _, spec := range f.headers {
		origin, rest, named := strings.Cut(spec, " ")
		switch {
		case !named && len(f.approve) == 1:
			origin, rest = f.approve[0], spec
		case !named:
			return nil, advice.BadUsage("--header-from-env "+spec+": it does not say to which of the approved origins the header goes", "Write it as --header-from-env 'ORIGIN "+spec+"'.")
		case !slices.Contains(f.approve, origin):
			return nil, advice.BadUsage("--header-from-env "+spec+": its origin is not approved", "Name one of those of --approve.")
		}
		specs[origin] = append(specs[origin], rest)
	}
	headers := make(map[string]http.Header)
	for origin, specs := range specs {
		h, err := a.header(specs)
		if err != nil {
			return nil, err
		}
		headers[origin] = h
	}
	return headers, nil
}

// newWorker makes what work and reconcile run. The caller closes the ledger.
func (a *app) newWorker(ctx context.Context, f *workFlags, observe func(reconcile.Done)) (*reconcile.Worker, ledger, error) {
	if err := f.check(); err != nil {
		return nil, ledger{}, err
	}
	headers, err := a.originHeaders(&f.reachFlags)
	if err != nil {
		return nil, ledger{}, err
	}
	t, err := f.transportTo(headers)
	if err != nil {
		return nil, ledger{}, err
	}
	l, err := a.openAt(ctx, f.path, place.Options{MustExist: true, Conns: place.WorkerConns(f.concurrency)})
	if err != nil {
		return nil, ledger{}, err
	}
	w, err := func() (*reconcile.Worker, error) {
		c, err := client.New(a.instrumented(client.Config{Ledger: l, Transport: t, Scope: f.scope()}))
		if err != nil {
			return nil, err
		}
		return reconcile.New(reconcile.Config{
			Client: c, Ledger: l, Scopes: []client.Scope{f.scope()},
			Concurrency: f.concurrency, Limits: f.limits, Observer: observe, Logger: a.operators(),
		})
	}()
	if err != nil {
		a.closeLedger(l)
		return nil, ledger{}, err
	}
	return w, l, nil
}

// settled reports whether a look ends the work of a worker on the request.
func settled(k reconcile.Kind) bool {
	return k == reconcile.Verified || k == reconcile.Failed || k == reconcile.ForPerson
}

// journal writes down what a worker does. It is used by many goroutines.
type journal struct {
	*app
	mu     sync.Mutex
	counts map[reconcile.Kind]int
	stop   context.CancelCauseFunc
}

func (j *journal) step(name, text string) { j.say("%s", render.Step{Name: name, Text: text}.Line()) }

func (j *journal) begin(scope client.Scope, engine, listen string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if listen != "" {
		j.step("listening", "at "+listen)
	}
	j.step("working", fmt.Sprintf("for principal %s in environment %s, %s", scope.Principal, scope.Environment, engine))
	if j.json {
		j.event(struct {
			Event  string `json:"event"`
			Engine string `json:"engine"`
			Listen string `json:"listen,omitempty"`
		}{"working", engine, listen})
	}
}

func (j *journal) drained() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.step("drained", render.Kinds(j.counts))
	if !j.json {
		return nil
	}
	return j.writeJSON(struct {
		Event  string                 `json:"event"`
		Counts map[reconcile.Kind]int `json:"counts"`
	}{"drained", j.counts})
}

func (j *journal) looked(d reconcile.Done) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[d.Kind]++
	if settled(d.Kind) {
		j.say("%s", render.Done(d).Line())
	}
	if j.json {
		l := render.NewLook(d)
		l.Event = "looked"
		j.event(l)
	}
}

// event prints a line of JSON. A worker that nobody hears ends. The caller has j.mu.
func (j *journal) event(v any) {
	if j.mute {
		return
	}
	if err := j.writeJSON(v); err != nil {
		j.stop(err)
	}
}

func (a *app) work(ctx context.Context, f *workFlags, listen string, pollOnly bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if len(f.approve) == 0 {
		return advice.BadUsage("--approve is missing: a worker asks approved origins alone", "Name the services whose requests it settles: --approve ORIGIN, repeated for more.")
	}
	j := &journal{app: a, counts: map[reconcile.Kind]int{}, stop: stop}
	if p, err := place.Find(f.path, a.lookupEnv); err == nil && pollOnly && !p.Postgres() {
		return advice.BadUsage("--poll-only is for a ledger in PostgreSQL, and this one is a file", "Leave it out: a file is asked for what is due anyway.")
	}
	if err := a.startTelemetry(listen != ""); err != nil {
		return err
	}
	w, l, err := a.newWorker(ctx, f, j.looked)
	if err != nil {
		return err
	}
	defer a.closeLedger(l)
	run, engine, err := a.engine(w, l, f, pollOnly)
	if err != nil {
		return err
	}
	serving, unserve := context.WithCancel(context.WithoutCancel(ctx)) // healthy until it has drained
	at, unserved, err := a.pages(serving, listen, func(asked context.Context) error {
		if ctx.Err() != nil {
			return telemetry.NotReady("draining")
		}
		_, err := l.List(asked, client.Filter{Due: true, Order: client.DueFirst, Limit: 1}.In(f.scope())) // what is open alone is few
		return err
	}, stop)
	if err != nil {
		unserve()
		return err
	}
	defer func() { unserve(); <-unserved }()
	if a.telemetry != nil {
		unregister, err := client.ObserveOpen(a.telemetry.MeterProvider, l, []client.Scope{f.scope()})
		if err != nil {
			return err
		}
		defer func() { _ = unregister() }() // before the ledger closes
	}
	j.begin(f.scope(), engine, at)
	if err := run(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return j.drained()
}

// engine chooses what spreads the work: River, where the ledger also queues jobs for
// it, or the worker's own loop.
func (a *app) engine(w *reconcile.Worker, l ledger, f *workFlags, pollOnly bool) (run func(context.Context) error, name string, err error) {
	if p := l.at; p != nil && p.Queued {
		workers, err := fleet.New(fleet.Config{
			Pool: p.Pool, Schema: p.Schema, Worker: w, Ledger: p.Postgres,
			Scopes: []client.Scope{f.scope()}, Concurrency: f.concurrency, PollOnly: pollOnly, Logger: a.operators(),
		})
		if err != nil {
			return nil, "", err
		}
		return workers.Run, "with the job engine", nil
	}
	return w.Run, "asking the ledger for what is due", nil
}

// reconcile makes one pass.
func (a *app) reconcile(ctx context.Context, f *workFlags, o reconcile.PassOptions) error {
	w, l, err := a.newWorker(ctx, f, nil)
	if err != nil {
		return err
	}
	defer a.closeLedger(l)
	var progress func(done, total int)
	if a.live() {
		progress = a.bar
	}
	report, err := w.Pass(ctx, o, progress)
	if progress != nil {
		_, _ = fmt.Fprint(a.stderr, "\r\x1b[K") // over the bar; progress is not worth an error
	}
	if err != nil && len(report.Done) == 0 {
		return err
	}
	if n := report.Counts[reconcile.Broken]; err == nil && n > 0 {
		err = advice.New("ledger", fmt.Errorf("the ledger could not do its work for %s", render.Plural(n, "request")), "Look at their errors, mend the ledger, and reconcile again.")
	}
	a.exit = passExit(report)
	if printing := a.printReport(report, o.DueOnly, err); printing != nil {
		return printing
	}
	return err
}

// passExit is the worst of what is left open.
func passExit(r reconcile.Report) int {
	exit := exitOK
	for _, d := range r.Done {
		switch {
		case d.Kind == reconcile.Verified, d.Kind == reconcile.Failed, d.Kind == reconcile.Nothing:
		case d.Kind == reconcile.StillPending, d.Kind == reconcile.Held:
			exit = max(exit, exitPending)
		default:
			exit = exitUnknown
		}
	}
	return exit
}

// printReport prints what was done, and with --json also why not all of it was.
func (a *app) printReport(r reconcile.Report, due bool, failed error) error {
	if a.json {
		var why *failure
		if failed != nil {
			f := a.explain(failed)
			why = &f
			defer func() { a.mute = true }() // it is said, in the one value
		}
		looks := make([]render.Look, len(r.Done))
		for i, d := range r.Done {
			looks[i] = render.NewLook(d)
		}
		return a.writeJSON(struct {
			Requests []render.Look          `json:"requests"`
			Counts   map[reconcile.Kind]int `json:"counts"`
			Took     float64                `json:"took_seconds"`
			Error    *failure               `json:"error,omitempty"`
		}{looks, r.Counts, r.Took.Seconds(), why})
	}
	switch {
	case len(r.Done) > 0:
	case due:
		if a.live() { // cron mails every line
			a.say("nothing is due")
		}
		return nil
	default:
		a.say("nothing is open that may have been sent")
		return nil
	}
	return a.print(render.Pass(r))
}

// bar draws how far a pass is on standard error, over itself.
func (a *app) bar(done, total int) {
	const width = 30
	full := width * done / max(1, total)
	_, _ = fmt.Fprintf(a.stderr, "\r[%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(" ", width-full), done, total)
}
