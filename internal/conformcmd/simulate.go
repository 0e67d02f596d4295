package conformcmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/sim"
)

const simulateHelp = `Run this program's own engine through interruptions, in one process and without a
network: lost, late and repeated answers, crashes at every boundary, a ledger that
fails, clocks that jump, a service that forgets. Everything in a run follows from its
seed, and after every step the promises are checked against a plain model.

Runs have the seeds from --seed on. The first run that breaks a promise ends the
search: its trace, made as short as it can be, is printed on standard output, and with
--trace written to a file. 'agentic conformance simulate --replay FILE' makes that run
again. With --runs 1 the whole trace of that one seed is printed, whatever it shows.

Exit codes:
  0  no run broke a promise
  1  a run did, or an error
  2  usage: the command line cannot be acted on`

const (
	defaultRuns   = 100_000
	maxTraceBytes = 1 << 20
)

type simulateFlags struct {
	seed          uint64
	runs          int64
	lasts         time.Duration
	workers       int
	replay, trace string
}

func (c *Commands) simulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run the engine through interruptions that follow from a seed",
		Long:  simulateHelp,
		Example: `  agentic conformance simulate --runs 200000
  agentic conformance simulate --seed 1000000 --for 30m --trace found.txt
  agentic conformance simulate --replay found.txt`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		changed := cmd.Flags().Changed
		switch {
		case changed("runs") && changed("for"):
			return advice.BadUsage("--runs and --for cannot both say when to end", "Give one of them.")
		case changed("replay") && (changed("runs") || changed("for") || changed("seed") || changed("workers")):
			return advice.BadUsage("--replay makes one run, which is in its file", "Leave --seed, --runs, --for and --workers out.")
		case changed("runs") && f.runs < 1:
			return advice.BadUsage(fmt.Sprintf("--runs %d is below one", f.runs), "Say how many runs are to be made.")
		case changed("for") && f.lasts <= 0:
			return advice.BadUsage("--for "+f.lasts.String()+" is not above zero", "Give a duration such as 10m.")
		case changed("workers") && f.workers < 1:
			return advice.BadUsage(fmt.Sprintf("--workers %d is below one", f.workers), "Say how many runs may be made at once.")
		}
		if err := (&outputFlags{}).check([]source{{"--replay", f.replay}}, f.file(nil)); err != nil {
			return err
		}
		switch {
		case changed("replay"):
			return c.replay(cmd.Context(), &f)
		case f.lasts == 0 && f.runs == 1:
			return c.printTrace(sim.Run(f.seed), &f)
		}
		return c.search(cmd.Context(), &f)
	}
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "the first seed, a whole number from 0 to 18446744073709551615; each further run has the next one")
	cmd.Flags().Int64Var(&f.runs, "runs", defaultRuns, "how many runs to make")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "make runs for this `DURATION` instead of a number of them")
	cmd.Flags().IntVar(&f.workers, "workers", 0, "so many runs at once (default: one for each processor)")
	cmd.Flags().StringVar(&f.replay, "replay", "", "make the run of this trace again: `FILE`, or - for standard input")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write the trace of what was found to this `FILE`, too")
	complete(cmd, "seed")
	complete(cmd, "runs", "200000", "10000000")
	complete(cmd, "for", "1m", "30m", "8h")
	completeFile(cmd, "replay")
	completeFile(cmd, "trace")
	c.host.LeafBetween(cmd, 0, 0, "")
	return cmd
}

func (f *simulateFlags) file(trace []byte) file {
	return file{"--trace", f.trace, func(w io.Writer) error { _, err := w.Write(trace); return err }}
}

// violated is a promise that a run broke.
type violated struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

func newViolated(v *sim.Violation) *violated {
	if v == nil {
		return nil
	}
	return &violated{string(v.Invariant), v.Detail}
}

// searched is what a search came to, as JSON.
type searched struct {
	Seed      uint64           `json:"seed"` // of the first run
	Last      uint64           `json:"last_seed"`
	Runs      int64            `json:"runs"`
	Steps     int64            `json:"steps"`
	Took      float64          `json:"took_seconds"`
	Rate      float64          `json:"runs_per_second"`
	Coverage  map[string]int64 `json:"coverage"`
	Violation *violated        `json:"violation"` // null is none
	Trace     string           `json:"trace,omitempty"`
}

func (c *Commands) search(ctx context.Context, f *simulateFlags) error {
	o := sim.Options{Seed: f.seed, Runs: f.runs, Workers: f.workers}
	within, cancel := ctx, context.CancelFunc(func() {})
	if f.lasts > 0 {
		o.Runs = 0
		within, cancel = context.WithTimeout(ctx, f.lasts)
	}
	defer cancel()
	show, end := c.progress()
	o.Progress = func(p sim.Progress) {
		if f.lasts > 0 {
			show(int(p.Elapsed.Seconds()), max(1, int(f.lasts.Seconds())))
		} else {
			show(int(min(p.Runs, math.MaxInt32)), int(min(f.runs, math.MaxInt32)))
		}
	}
	r, err := sim.Search(within, o)
	end()
	if r.Violation == nil && ctx.Err() != nil {
		return interrupted(ctx, ctx.Err(), fmt.Sprintf("%d runs from seed %d on broke no promise", r.Runs, r.Seed),
			fmt.Sprintf("To go on from there give --seed %d; --runs or --for says when to end.", r.Seed+uint64(r.Runs)))
	}
	if err != nil {
		return err
	}
	if r.Violation == nil {
		return c.printSearch(r, nil)
	}
	c.host.Fail()
	trace := r.Violation.Trace.Text()
	failed := c.writeTrace(f, trace)
	return c.printed(c.printSearch(r, trace), failed)
}

func (c *Commands) printSearch(r sim.Result, trace []byte) error {
	if c.out.JSON() {
		return c.printJSON(searched{r.Seed, r.Last, r.Runs, r.Steps, r.Elapsed.Seconds(), r.Rate, r.Coverage, newViolated(r.Violation), string(trace)})
	}
	made := fmt.Sprintf("%d runs with the seeds from %d to %d, %d steps, in %s: %.0f runs a second",
		r.Runs, r.Seed, r.Last, r.Steps, r.Elapsed.Round(time.Millisecond), r.Rate)
	if r.Violation != nil {
		c.out.Say("%s", made)
		c.out.Say("%s", escape.Terminal(render.OneLine(r.Violation.Error())))
		return c.out.Print(visible(trace))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nNo run broke a promise. What happened in them:\n", made)
	rows := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Coverage)) {
		rows = append(rows, []string{"  " + escape.Terminal(name), fmt.Sprint(r.Coverage[name])})
	}
	b.Write(render.Table(rows))
	return c.out.Print(b.Bytes())
}

func (c *Commands) replay(ctx context.Context, f *simulateFlags) error {
	text, err := c.host.ReadFile(ctx, f.replay, maxTraceBytes)
	if err != nil {
		return err
	}
	t, err := sim.Replay(text)
	if err != nil {
		return advice.New("trace", fmt.Errorf("%s: %w", f.replay, err), "Give what 'agentic conformance simulate' printed, or wrote with --trace.")
	}
	return c.printTrace(t, f)
}

// replayed is one run, as JSON.
type replayed struct {
	Seed      uint64    `json:"seed"`
	Violation *violated `json:"violation"` // null is none
	Trace     string    `json:"trace"`
}

func (c *Commands) printTrace(t *sim.Trace, f *simulateFlags) error {
	if t.Violation != nil {
		c.host.Fail()
	}
	text := t.Text()
	failed := c.writeTrace(f, text)
	if c.out.JSON() {
		return c.printed(c.printJSON(replayed{t.Seed, newViolated(t.Violation), string(text)}), failed)
	}
	if t.Violation == nil {
		c.out.Say("this run breaks no promise")
	} else {
		c.out.Say("%s", escape.Terminal(render.OneLine(t.Violation.Error())))
	}
	return c.printed(c.out.Print(visible(text)), failed)
}

// writeTrace writes the file that --replay reads.
func (c *Commands) writeTrace(f *simulateFlags, text []byte) error {
	if f.trace == "" {
		return nil
	}
	if err := writeFile(f.file(text)); err != nil {
		return err
	}
	c.out.Say("To make it again: agentic conformance simulate --replay %s", escape.Shell(f.trace))
	return nil
}

// visible is a text of several lines, each as a terminal shows it.
func visible(text []byte) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		b.WriteString(escape.Terminal(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.Bytes()
}
