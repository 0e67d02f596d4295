package workcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/advice"
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

// Work is the command work.
func (c *Commands) Work() *cobra.Command {
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
	}
	cmd.Flags().StringVar(&listen, "listen", "", "serve GET /metrics, /healthz and /readyz at this `ADDRESS`, to everybody who can reach it (default: nothing)")
	cmd.Flags().BoolVar(&pollOnly, "poll-only", false, "with PostgreSQL behind a pooler of transactions: ask for jobs every second instead of being told")
	complete(cmd, "listen", "127.0.0.1:9464", "[::1]:9464")
	f := c.flags(cmd)
	cmd.Flags().Lookup("json").Usage = "print a JSON object in a line for each look at a request"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.work(cmd.Context(), f, listen, pollOnly) }
	return cmd
}

// settled reports whether a look ends the work of a worker on the request.
func settled(k reconcile.Kind) bool {
	return k == reconcile.Verified || k == reconcile.Failed || k == reconcile.ForPerson
}

// journal writes down what a worker does. It is used by many goroutines.
type journal struct {
	*Commands
	mu     sync.Mutex
	counts map[reconcile.Kind]int
	deaf   bool // nobody hears standard output
	stop   context.CancelCauseFunc
}

func (j *journal) step(name, text string) {
	j.out.Say("%s", render.Step{Name: name, Text: text}.Line())
}

func (j *journal) begin(scope client.Scope, engine, listen string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if listen != "" {
		j.step("listening", "at "+listen)
	}
	j.step("working", fmt.Sprintf("for principal %s in environment %s, %s", scope.Principal, scope.Environment, engine))
	if j.out.JSON() {
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
	if !j.out.JSON() {
		return nil
	}
	return j.printJSON(struct {
		Event  string                 `json:"event"`
		Counts map[reconcile.Kind]int `json:"counts"`
	}{"drained", j.counts})
}

func (j *journal) looked(d reconcile.Done) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[d.Kind]++
	if settled(d.Kind) {
		j.out.Say("%s", render.Done(d).Line())
	}
	if j.out.JSON() {
		l := render.NewLook(d)
		l.Event = "looked"
		j.event(l)
	}
}

// event prints a line of JSON. A worker that nobody hears ends. The caller has j.mu.
func (j *journal) event(v any) {
	if j.deaf {
		return
	}
	if err := j.printJSON(v); err != nil {
		j.deaf = true
		j.stop(err)
	}
}

func (c *Commands) work(ctx context.Context, f *flags, listen string, pollOnly bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !f.Approved() {
		return advice.BadUsage("--approve is missing: a worker asks approved origins alone", "Name the services whose requests it settles: --approve ORIGIN, repeated for more.")
	}
	j := &journal{Commands: c, counts: map[reconcile.Kind]int{}, stop: stop}
	if pollOnly && f.InFile() {
		return advice.BadUsage("--poll-only is for a ledger in PostgreSQL, and this one is a file", "Leave it out: a file is asked for what is due anyway.")
	}
	t, err := c.host.Telemetry(listen != "")
	if err != nil {
		return err
	}
	w, o, err := c.worker(ctx, f, j.looked)
	if err != nil {
		return err
	}
	defer o.Close()
	run, engine, err := c.engine(w, o, f, pollOnly)
	if err != nil {
		return err
	}
	serving, unserve := context.WithCancel(context.WithoutCancel(ctx)) // healthy until it has drained
	at, unserved, err := pages(serving, t, listen, func(asked context.Context) error {
		if ctx.Err() != nil {
			return telemetry.NotReady("draining")
		}
		_, err := o.Ledger.List(asked, client.Filter{Due: true, Order: client.DueFirst, Limit: 1}.In(f.Scope())) // what is open alone is few
		return err
	}, stop)
	if err != nil {
		unserve()
		return err
	}
	defer func() { unserve(); <-unserved }()
	if t != nil {
		unregister, err := client.ObserveOpen(t.MeterProvider, o.Ledger, []client.Scope{f.Scope()})
		if err != nil {
			return err
		}
		defer func() { _ = unregister() }() // before the ledger closes
	}
	j.begin(f.Scope(), engine, at)
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
func (c *Commands) engine(w *reconcile.Worker, o *Opened, f *flags, pollOnly bool) (run func(context.Context) error, name string, err error) {
	if p := o.Place; p != nil && p.Queued {
		workers, err := fleet.New(fleet.Config{
			Pool: p.Pool, Schema: p.Schema, Worker: w, Ledger: p.Postgres,
			Scopes: []client.Scope{f.Scope()}, Concurrency: f.concurrency, PollOnly: pollOnly, Logger: c.host.Log(),
		})
		if err != nil {
			return nil, "", err
		}
		return workers.Run, "with the job engine", nil
	}
	return w.Run, "asking the ledger for what is due", nil
}

// pages listens for those who monitor a worker; "" is nobody. fail gets the error of
// pages that end before ctx does.
func pages(ctx context.Context, t *telemetry.Telemetry, address string, ready func(context.Context) error, fail func(error)) (at string, ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if address == "" {
		close(done)
		return "", done, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, advice.New("listen", fmt.Errorf("cannot listen: %w", err), "Give --listen as ADDRESS:PORT of this machine that is free, such as 127.0.0.1:9464.")
	}
	go func() {
		defer close(done)
		if err := t.Serve(ctx, l, ready); err != nil {
			fail(fmt.Errorf("the pages of --listen ended: %w", err))
		}
	}()
	return l.Addr().String(), done, nil
}
