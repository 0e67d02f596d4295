package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err.Error(), "See '" + cmd.CommandPath() + " --help'."}
	})
	root.AddCommand(a.newDemo(), a.newServe(), a.newRun(), a.newPrepare(), a.newResume(), a.newRequests(),
		a.newValidate(), a.newReceipt(), a.newAdapter(), a.newVersion())
	asGroup(root)
	return root
}

// asGroup makes a command that has only subcommands: without a known one it is a
// usage error, because exit code 0 stands for a verified success.
func asGroup(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return &usageError{"a command is missing", "See '" + cmd.CommandPath() + " --help'."}
		}
		remedy := "See '" + cmd.CommandPath() + " --help'."
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			remedy = "Did you mean " + strings.Join(near, " or ") + "?"
		}
		return &usageError{fmt.Sprintf("there is no command %q", args[0]), remedy}
	}
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
		return &usageError{fmt.Sprintf("%s %s, and %s given", cmd.CommandPath(), want, were(len(args))), "See '" + cmd.CommandPath() + " --help'."}
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
