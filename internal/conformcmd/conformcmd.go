// Package conformcmd has the commands that try clients and services, and the simulator:
// conformance client, service, simulate and list.
//
// Its job is flags, the operator's consent, and where reports go. Not its job: the
// terminal, documents, headers from the environment and exit codes of errors, which its
// host (package cli) brings along; what is checked, which the kits say; and what a
// report looks like, which package conformance says. It imports package agentic,
// conformance, clientkit, servicekit, and of internal advice, escape, privatefile,
// render, sim and strictjson.
package conformcmd

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

// Host is what the command brings along.
type Host interface {
	// Group makes a command that has only subcommands.
	Group(*cobra.Command)

	// LeafBetween gives a command --json and between least and most arguments,
	// described by names.
	LeafBetween(cmd *cobra.Command, least, most int, names string)

	// ReachOne adds the flags that say which origins are approved and what is sent to
	// the one of the profile.
	ReachOne(*cobra.Command) Reach

	// HeaderFromEnv is the header that a flag such as --header-from-env asks for, each
	// spec as Name=VAR. Its errors name the flag and tell no value.
	HeaderFromEnv(flag string, specs []string) (http.Header, error)

	// ReadFile gives a file, or standard input for "-", up to one byte more than limit.
	ReadFile(ctx context.Context, name string, limit int) ([]byte, error)

	// CheckSchema refuses an input that the action's request schema does not allow, with
	// a *agentic.InputError. A schema that cannot be checked refuses nothing.
	CheckSchema(*agentic.Plan, agentic.Input) error

	// Tool is this program, for reports.
	Tool() conformance.Tool

	// Fail sets the exit code to that of an error.
	Fail()
}

// Reach is where requests may go, as flags say.
type Reach interface {
	Check() error        // refuses flags that cannot be acted on, before anything is read
	Header() http.Header // what goes to the one origin, after Check
	AllowLoopback() bool

	// Plan reads the documents, from files or from the approved origin, shows their
	// warnings, and refuses an origin that is not approved. Without openapi the
	// OpenAPI document is read from that origin; action "" is the profile's only one.
	Plan(ctx context.Context, profile, openapi, action string) (*agentic.Plan, error)
}

// Output is standard output and error. What is given to it has to be escaped.
type Output interface {
	JSON() bool
	Print([]byte) error
	Say(format string, args ...any) // one line to standard error
	Terminal() bool                 // a person can be asked
	Live() bool                     // standard error is a terminal

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
}

// New makes Commands.
func New(h Host, out Output) *Commands { return &Commands{h, out} }

// Conformance is the command conformance.
func (c *Commands) Conformance() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Try a client or a service, and report what was observed",
		Long: `Try a client or a service of the draft, and report what was observed.

client starts any client as a process, against services that fail in every way that
the draft speaks of. service sends many requests to a service that you own. simulate
runs this program's own engine through interruptions that follow from a seed.

A report states observations for the versions and the scenarios that were tried. It
certifies nothing.`,
	}
	cmd.AddCommand(c.client(), c.service(), c.simulate(), c.list())
	c.host.Group(cmd)
	return cmd
}

const listHelp = `List the checks of the kits: the ID, how binding it is, the sections of the draft and
this project's decisions (docs/DECISIONS.md), and what has to come of it. must and
should are the draft's; reading is the safe reading where the draft is silent.

Exit codes:
  0  listed
  1  the list could not be printed
  2  usage: the command line cannot be acted on`

func (c *Commands) list() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [client|service]",
		Short:   "List the checks of the kits",
		Long:    listHelp,
		Example: "  agentic conformance list\n  agentic conformance list service --json",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		kinds := []conformance.Kind{conformance.Client, conformance.Service}
		if len(args) == 1 {
			kind := conformance.Kind(args[0])
			if kind != conformance.Client && kind != conformance.Service {
				return advice.BadUsage(`there is no kit "`+args[0]+`"`, "Give client or service, or nothing for both.")
			}
			kinds = []conformance.Kind{kind}
		}
		var all []listed
		for _, kind := range kinds {
			for _, info := range checks(kind) {
				all = append(all, listed{kind, info})
			}
		}
		return c.printList(all)
	}
	c.host.LeafBetween(cmd, 0, 1, "client or service, or nothing for both")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []cobra.Completion{string(conformance.Client), string(conformance.Service)}, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// listed is a check and whose it is.
type listed struct {
	Kind conformance.Kind `json:"kind"`
	conformance.Info
}

func checks(kind conformance.Kind) []conformance.Info {
	if kind == conformance.Client {
		return clientkit.Checks()
	}
	return servicekit.Checks()
}

// listOnly prints the checks of one kit that patterns name.
func (c *Commands) listOnly(kind conformance.Kind, only []string) error {
	infos, err := selected(kind, only)
	if err != nil {
		return err
	}
	var all []listed
	for _, info := range infos {
		all = append(all, listed{kind, info})
	}
	return c.printList(all)
}

func (c *Commands) printList(all []listed) error {
	if c.out.JSON() {
		return c.printJSON(struct {
			Checks []listed `json:"checks"`
		}{all})
	}
	rows := [][]string{{"KIT", "ID", "LEVEL", "SECTIONS", "WHAT HAPPENS, AND WHAT HAS TO COME OF IT"}}
	for _, l := range all {
		row := []string{string(l.Kind), l.ID, string(l.Level), strings.Join(l.Sections, " "), l.Title}
		for i := range row {
			row[i] = escape.Quoted(row[i]) // a title has JSON in it
		}
		rows = append(rows, row)
	}
	return c.out.Print(render.Table(rows))
}

// printJSON prints one JSON value.
func (c *Commands) printJSON(v any) error {
	b, err := render.JSON(v)
	if err != nil {
		return err
	}
	return c.out.Print(b)
}

// selected gives the checks of a kit that patterns name.
func selected(kind conformance.Kind, only []string) ([]conformance.Info, error) {
	infos, err := conformance.Select(checks(kind), only)
	if err != nil {
		return nil, advice.BadUsage("--only: "+err.Error(), "'agentic conformance list "+string(kind)+"' has the IDs.")
	}
	return infos, nil
}

// ids are what a kit is told to run: no patterns if everything is.
func ids(infos []conformance.Info, only []string) (all []string) {
	if len(only) == 0 {
		return nil
	}
	for _, i := range infos {
		all = append(all, i.ID)
	}
	return all
}

// progress shows how far a run is where somebody watches; end takes it away.
func (c *Commands) progress() (show func(done, total int), end func()) {
	if !c.out.Live() {
		return func(int, int) {}, func() {}
	}
	return c.out.Progress, func() { c.out.Progress(0, 0) }
}

// shorter is how the run of a kit takes less time.
const shorter = "Run it again; --only makes a run shorter."

// interrupted is the error of a run that was given up.
func interrupted(ctx context.Context, err error, what, remedy string) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return advice.New("interrupted", errors.New("interrupted: "+what), remedy)
}

// finish prints a report, writes the files that were asked for, and sets the exit code.
func (c *Commands) finish(rep *conformance.Report, f *outputFlags, more ...file) error {
	if !rep.OK() {
		c.host.Fail()
	}
	failed := errors.Join(f.write(rep), writeAll(more))
	var b bytes.Buffer
	write := rep.WriteText
	if c.out.JSON() {
		write = rep.WriteJSON
	}
	err := write(&b)
	if err == nil {
		err = c.out.Print(b.Bytes())
	}
	return c.printed(err, failed)
}

// printed is the result of a command that has printed what it found, or err, and could
// not write a file if failed is not nil. With --json nothing else may go to standard
// output.
func (c *Commands) printed(err, failed error) error {
	if failed == nil || err != nil || !c.out.JSON() {
		return errors.Join(err, failed)
	}
	c.out.Say("agentic: %s", escape.Terminal(render.OneLine(failed.Error())))
	c.host.Fail()
	return nil
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// The error is that the flag does not exist; the tests ask for every one.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeFile offers files of these extensions.
func completeFile(cmd *cobra.Command, flag string, extensions ...string) {
	directive := cobra.ShellCompDirectiveFilterFileExt
	if len(extensions) == 0 {
		directive = cobra.ShellCompDirectiveDefault
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(extensions, directive))
}
