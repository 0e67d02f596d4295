package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
)

const rootHelp = `agentic runs one action of a service at most once, and tells what became of it.

An action is described by an Agentic Action Profile (0.1.0-draft): one POST that
submits it, one GET that tells its status, and one GET that reads the result. The
request is saved in a ledger before it is sent; a request that may have been sent
is never sent again; success is reported only with evidence read back.

Exit codes:
  0  verified success, or valid
  1  an error, or invalid
  2  usage: the command line cannot be acted on
  3  failed: the service says that the action did not complete
  4  pending: not resolved yet, resume later
  5  unknown: nobody may conclude anything, resume later or hand off

With --json a command prints one JSON value on standard output and nothing else
there; errors are {"error": {"code": ..., "message": ...}}. Progress and messages
for people go to standard error.`

// newRoot is the tree of commands.
func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "agentic",
		Short:         "Run an action of a service at most once, and verify what became of it",
		Long:          rootHelp,
		Example:       "  agentic demo\n  agentic validate agentic.json openapi.json\n  agentic run https://support.example/agentic.json --approve https://support.example --input @ticket.json",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(printer{a})
	root.SetErr(a.stderr)
	root.PersistentPreRun = func(*cobra.Command, []string) { a.began = true }
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.newDemo(), a.newServe(), a.newRun(), a.newPrepare(), a.newResume(), a.desk().Requests(), a.newLedger(),
		a.work().Work(), a.work().Reconcile(), a.conformance().Conformance(), a.mcp().Command(), a.newValidate(), a.newReceipt(), a.newAdapter(), a.newVersion())
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			a.asGroup(cmd)
			for _, shell := range cmd.Commands() {
				shell.Args = arguments(0, 0, "")
			}
		}
	}
	a.asGroup(root)
	singleValues(root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// --help does not make a command of what is none.
		if wrong := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(wrong) > 0 {
			a.misused = noCommand(cmd, wrong[0])
			return
		}
		help(cmd, args)
	})
	return root
}

func seeHelp(cmd *cobra.Command) string { return "See '" + cmd.CommandPath() + " --help'." }

// forms are what a flag of each type takes.
var forms = map[string]string{
	"duration": "a duration such as 90m or 2h30m", "age": "a duration above zero such as 90m, 2h30m or 7d",
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 to 18446744073709551615", "float64": "a number", "bool": "true or false, or the flag alone",
}

// flagError is an error of pflag without its quoting, which would be escaped twice.
func flagError(cmd *cobra.Command, err error) error {
	// What follows a command that is none was meant for another.
	if wrong := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(wrong) > 0 {
		return noCommand(cmd, wrong[0])
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		for _, problem := range []error{errTwice, errEmpty} {
			if errors.Is(err, problem) {
				return advice.BadUsage("--"+e.GetFlag().Name+" "+problem.Error(), seeHelp(cmd))
			}
		}
		remedy := seeHelp(cmd)
		if form := forms[e.GetFlag().Value.Type()]; form != "" {
			remedy = "Give " + form + ". " + remedy
		}
		return advice.BadUsage("--"+e.GetFlag().Name+` cannot be "`+e.GetValue()+`"`, remedy)
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok && e.GetSpecifiedShortnames() != "" {
		return advice.BadUsage("unknown flag: -"+e.GetSpecifiedShortnames(), "Before an argument that begins with '-' write '--'. "+seeHelp(cmd))
	}
	remedy := seeHelp(cmd)
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok && e.GetSpecifiedName() == "version" {
		remedy = "See 'agentic version'."
	}
	return advice.BadUsage(err.Error(), remedy)
}

// newHelp is the command help: what it is asked about has to be there.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Long:    "Show the help text of a command.",
		Example: "  agentic help run\n  agentic help requests show",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
			if topic, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, sub := range topic.Commands() {
					if sub.IsAvailableCommand() {
						words = append(words, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return noCommand(topic, rest[0])
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// asGroup makes a command that has only subcommands: without a known one it is a
// usage error, because exit code 0 stands for a verified success.
func (a *app) asGroup(cmd *cobra.Command) {
	a.jsonFlag(cmd) // wherever it stands, it is never taken for a flag with a value
	_ = cmd.Flags().MarkHidden("json")
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return advice.BadUsage("a command is missing", seeHelp(cmd))
		}
		return noCommand(cmd, args[0])
	}
}

// noCommand says that a command has no such subcommand.
func noCommand(cmd *cobra.Command, name string) error {
	remedy := seeHelp(cmd)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		remedy = "Did you mean " + strings.Join(near, " or ") + "?"
	}
	return advice.BadUsage(`there is no command "`+name+`"`, remedy)
}

// arguments accepts between least and most arguments, described by names.
func arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		want := "takes " + names
		if names == "" {
			want = "takes no arguments"
		}
		return advice.BadUsage(fmt.Sprintf("%s %s, and %s given", cmd.CommandPath(), want, were(len(args))), seeHelp(cmd))
	}
}

func were(n int) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON value on standard output")
}

// complete offers fixed words for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	// The error is that the flag does not exist; the tests ask for every one.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the draft",
		Long:    "Print the version of this program, of the draft it implements, and of Go.",
		Example: "  agentic version --json",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if a.json {
				return a.writeJSON(v)
			}
			return a.print(fmt.Appendf(nil, "agentic %s (profile %s, %s)\n", v.Version, v.Profile, v.Go))
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

type versions struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Profile  string `json:"profile"`
	Go       string `json:"go"`
}

func version() versions {
	v := versions{Version: "(devel)", Profile: agentic.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
