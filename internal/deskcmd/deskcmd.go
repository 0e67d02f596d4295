// Package deskcmd has the commands with which people look at saved requests and
// settle them: requests, and ledger purge.
//
// Its job is flags, the questions, and what is printed about what package desk did.
// Not its job: the terminal, the place of a ledger, the transport and exit codes of
// errors, which its host (package cli) brings along; and every decision about a
// request. It imports package agentic, client, desk, and of internal advice, escape,
// privatefile and render.
package deskcmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
)

// Host is what the command brings along.
type Host interface {
	// Group makes a command that has only subcommands.
	Group(*cobra.Command)

	// Leaf gives a command --json and its number of arguments, described by names.
	Leaf(cmd *cobra.Command, args int, names string)

	// Place adds the flags of a ledger and a scope in it.
	Place(*cobra.Command) Place

	// Reach adds the flags that say where a request may go.
	Reach(*cobra.Command, Place) Reach

	// By is who uses this command, as far as the machine knows.
	By() string
}

// Place is a ledger and a scope in it, as flags name them.
type Place interface {
	Check() error // refuses flags that cannot be acted on, before anything is opened
	Scope() client.Scope
	Args() string // the flags again, for a command that a person can copy

	// Open opens a ledger that has to be there.
	Open(ctx context.Context, readOnly bool) (desk.Ledger, func(), error)

	// Unsettled names the request in an error that leaves open what became of it.
	Unsettled(err error, requestID string) error
}

// Reach is where requests may go, as flags say.
type Reach interface {
	Check() error

	// Client has the headers of the flags for this one origin.
	Client(l client.Ledger, origin string) (*client.Client, error)

	// Settle runs an execution of a request that was attempted, prints its receipt
	// and sets the exit code.
	Settle(execute func() (client.Result, error)) error

	// SendCommand is the command that sends a prepared request, ready to copy.
	SendCommand(requestID string) string
}

// Output is standard output and error. What is given to it has to be escaped.
type Output interface {
	JSON() bool
	Print([]byte) error
	Say(format string, args ...any) // one line to standard error
	Terminal() bool                 // a person can be asked

	// Ask shows something and asks; the error of an answer that is not yes has the
	// text declined.
	Ask(ctx context.Context, shown []byte, question, declined string) error

	// Progress shows how far a long command is; Progress(0, 0) takes it away.
	Progress(done, total int)
}

// Commands makes the commands of a host.
type Commands struct {
	host Host
	out  Output
	now  func() time.Time
}

// New makes Commands.
func New(h Host, out Output) *Commands { return &Commands{h, out, time.Now} }

// Requests is the command requests.
func (c *Commands) Requests() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requests",
		Short: "Look at saved requests, and settle what no program can",
		Long: `Look at the requests in a ledger, and settle what no program can.

list and show change nothing. recheck, attest, abandon and supersede are noted with
who did it, when and why; none of them touches a receipt, and none sends a request
that is saved already. export writes requests out as they are.`,
	}
	cmd.AddCommand(c.list(), c.show(), c.recheck(), c.attest(), c.abandon(), c.supersede(), c.export())
	c.host.Group(cmd)
	return cmd
}

// printJSON prints one JSON value.
func (c *Commands) printJSON(v any) error {
	b, err := render.JSON(v)
	if err != nil {
		return err
	}
	return c.out.Print(b)
}

// printed is the result of what is done already and stays done, also when nobody can
// read it.
func (c *Commands) printed(err error, done, remedy string) error {
	if err == nil {
		return nil
	}
	return advice.New("output", errors.Join(errors.New(done), err), remedy)
}

// checkID refuses an ID that no request can have (D7).
func checkID(p Place, id string) error {
	err := p.Check()
	if !client.ValidRequestID(id) {
		err = errors.Join(err, &client.RequestIDError{RequestID: id})
	}
	return err
}

// one opens the ledger and gives its desk and the one request.
func (c *Commands) one(ctx context.Context, p Place, id string, readOnly bool) (*opened, error) {
	if err := checkID(p, id); err != nil {
		return nil, err
	}
	l, closer, err := p.Open(ctx, readOnly)
	if err != nil {
		return nil, p.Unsettled(err, id)
	}
	o := &opened{ledger: l, close: closer}
	if o.desk, err = desk.New(desk.Config{Ledger: l}); err == nil {
		o.rec, o.sum, err = o.desk.Show(ctx, p.Scope(), id)
	}
	if err != nil {
		closer()
		return nil, p.Unsettled(err, id)
	}
	return o, nil
}

// opened is a request in an open ledger.
type opened struct {
	ledger desk.Ledger
	close  func()
	desk   *desk.Desk
	rec    *client.Record
	sum    client.Summary
}

// reach gives the request a desk that can talk to its service.
func (o *opened) reach(r Reach) error {
	cl, err := r.Client(o.ledger, o.rec.Origin)
	if err == nil {
		o.desk, err = desk.New(desk.Config{Ledger: o.ledger, Client: cl})
	}
	return err
}

// agreed refuses what needs a question that nobody can be asked, before anything is
// opened.
func (c *Commands) agreed(yes bool, what string) error {
	if yes || c.out.Terminal() {
		return nil
	}
	return advice.BadUsage(what+" needs a person's agreement, and there is no terminal to ask on", "Give --yes when it is decided.")
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// The error is that the flag does not exist; the tests ask for every one.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
