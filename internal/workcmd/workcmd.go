// Package workcmd has the commands that settle what is open by reading only: work,
// until it is stopped, and reconcile, once.
//
// Its job is their flags, what runs the workers, and what is printed about what they
// did. Not its job: the place of a ledger, the transport, headers, the set-up of
// telemetry and the exit codes of errors, which its host (package cli) brings along;
// when something is due, and every decision about a request. It imports package agentic,
// client, fleet, reconcile, and of internal advice, place, render and telemetry.
package workcmd

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/telemetry"
	"github.com/agentic-go/agentic/reconcile"
)

// Host is what the command brings along.
type Host interface {
	// Leaf gives a command --json and its number of arguments, described by names.
	Leaf(cmd *cobra.Command, args int, names string)

	// ReachAll adds the flags of a ledger, a scope in it, and of where requests may
	// go: any number of origins, each with headers of its own.
	ReachAll(*cobra.Command) Reach

	// Telemetry is that of this process, or nil when nobody asked for any; pages asks.
	Telemetry(pages bool) (*telemetry.Telemetry, error)

	// Log is for those who run a worker.
	Log() *slog.Logger

	// Exit sets the exit code to that of an outcome.
	Exit(agentic.Outcome)
}

// Reach is a ledger, a scope in it and the approved origins, as flags name them.
type Reach interface {
	Check() error // refuses a scope that cannot be acted on, before anything is opened
	Scope() client.Scope
	Approved() bool // at least one origin is
	InFile() bool   // the ledger is certainly a file

	// Open opens a ledger that has to be there, for so many looks at once, and makes
	// the client that looks. It refuses wrong origins and headers before.
	Open(ctx context.Context, concurrency int) (*Opened, error)
}

// Opened is what a worker works with.
type Opened struct {
	Ledger client.Ledger
	Place  *place.Ledger // whose Ledger that is; nil is a ledger without a job engine
	Client *client.Client
	Close  func()
}

// Output is standard output and error. What is given to it has to be escaped.
type Output interface {
	JSON() bool
	Print([]byte) error
	Say(format string, args ...any) // one line to standard error
	Live() bool                     // standard error is a terminal

	// Progress shows how far a long command is; Progress(0, 0) takes it away.
	Progress(done, total int)

	// Failure is an error as the member "error" of the one JSON value shows it. The
	// caller prints that value, and nothing is printed on standard output after it.
	Failure(error) any
}

// Commands makes the commands of a host.
type Commands struct {
	host Host
	out  Output
}

// New makes Commands.
func New(h Host, out Output) *Commands { return &Commands{h, out} }

// flags are those of work and reconcile.
type flags struct {
	Reach
	concurrency int
	limits      reconcile.Limits
}

func (c *Commands) flags(cmd *cobra.Command) *flags {
	var f flags
	cmd.Flags().IntVar(&f.concurrency, "concurrency", 8, "look at `N` requests at once")
	cmd.Flags().Float64Var(&f.limits.Rate, "origin-rate", 10, "begin at most `R` looks a second at one origin")
	cmd.Flags().IntVar(&f.limits.Concurrency, "origin-concurrency", 4, "and at most `N` at once")
	complete(cmd, "concurrency")
	complete(cmd, "origin-rate")
	complete(cmd, "origin-concurrency")
	f.Reach = c.host.ReachAll(cmd)
	c.host.Leaf(cmd, 0, "")
	return &f
}

// Check also refuses limits that make no sense.
func (f *flags) Check() error {
	const most = 10000
	for _, n := range []struct {
		flag  string
		value float64
	}{{"--concurrency", float64(f.concurrency)}, {"--origin-rate", f.limits.Rate}, {"--origin-concurrency", float64(f.limits.Concurrency)}} {
		if !(n.value > 0 && n.value <= most) {
			return advice.BadUsage(fmt.Sprintf("%s is not above 0 and at most %d", n.flag, most), "Leave it out for a value that does no harm.")
		}
	}
	return f.Reach.Check()
}

// worker opens what the flags name and makes what both commands run. The caller closes
// what was opened.
func (c *Commands) worker(ctx context.Context, f *flags, observe func(reconcile.Done)) (*reconcile.Worker, *Opened, error) {
	if err := f.Check(); err != nil {
		return nil, nil, err
	}
	o, err := f.Open(ctx, f.concurrency)
	if err != nil {
		return nil, nil, err
	}
	w, err := reconcile.New(reconcile.Config{
		Client: o.Client, Ledger: o.Ledger, Scopes: []client.Scope{f.Scope()},
		Concurrency: f.concurrency, Limits: f.limits, Observer: observe, Logger: c.host.Log(),
	})
	if err != nil {
		o.Close()
		return nil, nil, err
	}
	return w, o, nil
}

// printJSON prints one JSON value.
func (c *Commands) printJSON(v any) error {
	b, err := render.JSON(v)
	if err != nil {
		return err
	}
	return c.out.Print(b)
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// The error is that the flag does not exist; the tests of package cli ask for every one.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
