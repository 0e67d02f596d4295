package conformcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit"
	"github.com/agentic-go/agentic/internal/advice"
)

const clientHelp = `Try a client of the draft: each check starts a service on this machine and the client
as a process, with a fresh place for its ledger, breaks something, and compares what
the client says with what the service saw. Nothing but loopback is listened on.

--adapter is the file of the draft's compatibility runner:
  {"name": "...", "authorship": "project" or "external-self-declared",
   "command": ["program", "argument"], "features": ["test_now"]}
A relative program with a slash in it is looked up from the file's folder, and the
client runs there. The command is never given to a shell. features is optional and
names members of the input beyond those of that runner which the client knows:
test_now and action_id (docs/conformance.md).

The client is run with your rights: try only one that you would start yourself.

` + knownHelp + `
The report goes to standard output, as text or with --json as JSON. It states what was
observed of this version of the client and certifies nothing (docs/conformance.md).

Exit codes:
` + judgedExits + `
  2  usage: the command line cannot be acted on`

const (
	maxParallel = 64
	minTimeout  = 100 * time.Millisecond
)

// runFlags are those of every run of a kit.
type runFlags struct {
	outputFlags
	judgement
	only   []string
	repeat int
	seed   uint64
	list   bool
}

func (f *runFlags) add(cmd *cobra.Command, kind conformance.Kind) {
	cmd.Flags().StringArrayVar(&f.only, "only", nil, "only checks whose ID, beginning of the ID before '/', or group this `PATTERN` names, such as 'status/*' (repeat for more)")
	cmd.Flags().IntVar(&f.repeat, "repeat", 1, "try each check so often; one that passes and fails is flaky")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "what the random choices follow from, as a report names it: a whole number from 0 to 18446744073709551615")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the checks instead of running them")
	f.judgement.add(cmd)
	f.outputFlags.add(cmd)
	complete(cmd, "seed")
	_ = cmd.RegisterFlagCompletionFunc("only", func(*cobra.Command, []string, string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, c := range checks(kind) {
			words = append(words, cobra.CompletionWithDesc(c.ID, c.Title))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *runFlags) check(sources ...source) error {
	if f.repeat < 1 {
		return advice.BadUsage(fmt.Sprintf("--repeat %d is below one", f.repeat), "Say how often each check is to be tried.")
	}
	if err := f.judgement.check(); err != nil {
		return err
	}
	return f.outputFlags.check(append(sources, source{"--baseline", f.baseline}), file{flag: "--write-baseline", name: f.writeBaseline})
}

type clientFlags struct {
	runFlags
	adapter  string
	parallel int
	timeout  time.Duration
}

func (c *Commands) client() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "client --adapter FILE",
		Short: "Try a client, as a process",
		Long:  clientHelp,
		Example: `  agentic conformance client --adapter adapter.json
  agentic conformance client --adapter adapter.json --baseline known.json --junit report.xml --html report.html
  agentic conformance client --adapter adapter.json --only 'response-lost' --repeat 20 --json`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.list {
			return c.listOnly(conformance.Client, f.only)
		}
		return c.tryClient(cmd.Context(), &f)
	}
	cmd.Flags().StringVar(&f.adapter, "adapter", "", "`FILE` that says how the client is started (required)")
	cmd.Flags().IntVar(&f.parallel, "parallel", 4, fmt.Sprintf("so many checks at once, at most %d", maxParallel))
	cmd.Flags().DurationVar(&f.timeout, "timeout", clientkit.DefaultTimeout, "how long one call of the client may take (`DURATION`)")
	f.runFlags.add(cmd, conformance.Client)
	completeFile(cmd, "adapter", "json")
	complete(cmd, "timeout", "10s", "30s", "2m")
	c.host.LeafBetween(cmd, 0, 0, "")
	return cmd
}

func (f *clientFlags) check() error {
	switch {
	case f.adapter == "":
		return advice.BadUsage("--adapter is missing", "Give the file that says how the client is started.")
	case f.adapter == "-" && f.baseline == "-":
		return advice.BadUsage("standard input can hold only one of the adapter and the baseline", "Save one of them to a file.")
	case f.parallel < 1:
		return advice.BadUsage(fmt.Sprintf("--parallel %d is below one", f.parallel), "Say how many checks may run at once.")
	case f.parallel > maxParallel:
		return advice.BadUsage(fmt.Sprintf("--parallel %d is above %d", f.parallel, maxParallel), fmt.Sprintf("Let no more than %d checks run at once: each starts processes.", maxParallel))
	case f.timeout < minTimeout:
		return advice.BadUsage("--timeout "+f.timeout.String()+" is below "+minTimeout.String(), "Give a duration such as 30s: no client starts in less.")
	}
	return f.runFlags.check(source{"--adapter", f.adapter})
}

func (c *Commands) tryClient(ctx context.Context, f *clientFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	infos, err := selected(conformance.Client, f.only)
	if err != nil {
		return err
	}
	adapter, err := c.readAdapter(ctx, f.adapter)
	if err != nil {
		return err
	}
	known, err := c.readBaseline(ctx, f.baseline, adapter.Name, conformance.Client)
	if err != nil {
		return err
	}
	show, end := c.progress()
	rep, err := clientkit.Run(ctx, clientkit.Config{
		Adapter: adapter, Dir: filepath.Dir(f.adapter), Match: ids(infos, f.only),
		Repeat: f.repeat, Parallel: min(f.parallel, len(infos)), Seed: f.seed, Timeout: f.timeout, Tool: c.host.Tool(),
		Progress: func(done, total int, _ conformance.Result) { show(done, total) },
	})
	end()
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx, err, "there is no report", shorter)
		}
		return advice.New("adapter", err, "Look at the command in the adapter's file, and whether it can be started by hand.")
	}
	return c.judge(rep, &f.runFlags, known)
}

func (c *Commands) readAdapter(ctx context.Context, name string) (clientkit.Adapter, error) {
	data, err := c.host.ReadFile(ctx, name, clientkit.MaxAdapterBytes)
	if err != nil {
		return clientkit.Adapter{}, err
	}
	a, err := clientkit.ParseAdapter(data)
	if err != nil {
		return a, advice.New("adapter", fmt.Errorf("%s: %w", name, err), "'agentic conformance client --help' shows what an adapter's file has in it.")
	}
	return a, nil
}
