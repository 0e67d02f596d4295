package workcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/reconcile"
)

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

// Reconcile is the command reconcile.
func (c *Commands) Reconcile() *cobra.Command {
	var due bool
	cmd := &cobra.Command{
		Use:     "reconcile",
		Short:   "Look once at everything that is open, by reading only",
		Long:    reconcileHelp,
		Example: "  agentic reconcile --approve https://support.example\n  agentic reconcile --due --approve https://support.example --json",
	}
	cmd.Flags().BoolVar(&due, "due", false, "only what is due by the ledger's schedule")
	f := c.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.reconcile(cmd.Context(), f, due) }
	return cmd
}

// reconcile makes one pass.
func (c *Commands) reconcile(ctx context.Context, f *flags, due bool) error {
	w, o, err := c.worker(ctx, f, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	var progress func(done, total int)
	if c.out.Live() {
		progress = c.out.Progress
	}
	report, err := w.Pass(ctx, reconcile.PassOptions{DueOnly: due}, progress)
	if progress != nil {
		progress(0, 0)
	}
	if err != nil && len(report.Done) == 0 {
		return err
	}
	if n := report.Counts[reconcile.Broken]; err == nil && n > 0 {
		err = advice.New("ledger", fmt.Errorf("the ledger could not do its work for %s", render.Plural(n, "request")), "Look at their errors, mend the ledger, and reconcile again.")
	}
	c.host.Exit(worst(report))
	if printing := c.printReport(report, due, err); printing != nil {
		return printing
	}
	return err
}

// worst is the outcome of what is left open, and Succeeded when nothing is.
func worst(r reconcile.Report) agentic.Outcome {
	open := agentic.Succeeded
	for _, d := range r.Done {
		switch d.Kind {
		case reconcile.Verified, reconcile.Failed, reconcile.Nothing:
		case reconcile.StillPending, reconcile.Held:
			open = agentic.Pending
		default:
			return agentic.Unknown
		}
	}
	return open
}

// printReport prints what was done, and with --json also why not all of it was.
func (c *Commands) printReport(r reconcile.Report, due bool, failed error) error {
	if c.out.JSON() {
		var why any
		if failed != nil {
			why = c.out.Failure(failed)
		}
		looks := make([]render.Look, len(r.Done))
		for i, d := range r.Done {
			looks[i] = render.NewLook(d)
		}
		return c.printJSON(struct {
			Requests []render.Look          `json:"requests"`
			Counts   map[reconcile.Kind]int `json:"counts"`
			Took     float64                `json:"took_seconds"`
			Error    any                    `json:"error,omitempty"`
		}{looks, r.Counts, r.Took.Seconds(), why})
	}
	switch {
	case len(r.Done) > 0:
	case due:
		if c.out.Live() { // cron mails every line
			c.out.Say("nothing is due")
		}
		return nil
	default:
		c.out.Say("nothing is open that may have been sent")
		return nil
	}
	return c.out.Print(render.Pass(r))
}
