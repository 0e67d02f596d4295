package deskcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
)

const purgeHelp = `Remove inputs, exchanges, receipts, notes and documents of old requests for good. Of
each request a tombstone stays: its ID, origin, action, outcome, times and the digest
of its input, so that its ID can never be used for another request.

--before is a date (2026-09-01, its beginning in UTC), a time (RFC 3339) or an age
(90d): requests count that nothing has happened to since. What is open is never
purged; settle it first. Without --apply nothing is changed, and the counts say what
would be. 'agentic requests export' keeps a copy.`

// Purge is the command ledger purge.
func (c *Commands) Purge() *cobra.Command {
	var (
		place      Place
		before     string
		all, apply bool
	)
	cmd := &cobra.Command{
		Use:     "purge --before DATE|DURATION",
		Short:   "Remove what is kept of old requests, and leave tombstones",
		Long:    purgeHelp,
		Example: "  agentic ledger purge --before 90d\n  agentic ledger purge --before 2026-06-01 --all --apply",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := place.Check(); err != nil {
			return err
		}
		at, err := parseBefore(before, c.now())
		if err != nil {
			return err
		}
		o := client.PurgeOptions{Before: at, Apply: apply}
		o.Principal, o.Environment = within(cmd, place, all)
		return c.purge(cmd.Context(), place, o)
	}
	cmd.Flags().StringVar(&before, "before", "", "purge what nothing has happened to since this `DATE|DURATION` (required)")
	cmd.Flags().BoolVar(&all, "all", false, "of every principal and environment, but for those that are given")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without, only count")
	complete(cmd, "before", "30d", "90d", "365d")
	place = c.host.Place(cmd)
	c.host.Leaf(cmd, 0, "")
	return cmd
}

// parseBefore reads a date, a time or an age. What lies in the future would purge
// what has just happened, and is most often a mistake.
func parseBefore(s string, now time.Time) (time.Time, error) {
	const remedy = "Give a date such as 2026-09-01, a time such as 2026-09-01T12:00:00Z, or an age such as 90d."
	if s == "" {
		return time.Time{}, advice.BadUsage("--before is missing", remedy)
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.After(now) || t.Year() < 1970 {
				return t, advice.BadUsage("--before "+s+" is no time of the past", remedy)
			}
			return t.UTC(), nil
		}
	}
	d, err := parseAge(s)
	if err != nil {
		return time.Time{}, advice.BadUsage(`--before "`+s+`" is neither a date nor an age`, remedy)
	}
	return now.Add(-d).UTC(), nil
}

// purged is what purge did, or would.
type purged struct {
	Applied bool   `json:"applied"`
	Before  string `json:"before"`
	client.Purged
}

func (c *Commands) purge(ctx context.Context, p Place, o client.PurgeOptions) error {
	l, closer, err := p.Open(ctx, !o.Apply)
	if err != nil {
		return err
	}
	defer closer()
	d, err := desk.New(desk.Config{Ledger: l})
	if err != nil {
		return err
	}
	sum, err := c.purgeWithProgress(ctx, d, o)
	if err != nil {
		return inPart(sum, err)
	}
	err = c.printPurged(o, sum)
	if o.Apply {
		err = c.printed(err, were(sum.Requests)+" purged", "'agentic requests list' has the tombstones.")
	}
	return err
}

// inPart is the error of a purge, with what was removed before it.
func inPart(sum client.Purged, err error) error {
	switch {
	case sum.Requests == 0:
		return err
	case errors.Is(err, context.Canceled):
		return advice.New("interrupted", fmt.Errorf("interrupted: %s purged before this, and the rest is as it was", were(sum.Requests)), "Run it again for the rest.")
	}
	return fmt.Errorf("%s purged before this: %w", were(sum.Requests), err)
}

func (c *Commands) printPurged(o client.PurgeOptions, sum client.Purged) error {
	if c.out.JSON() {
		return c.printJSON(purged{o.Apply, agentic.FormatTime(o.Before), sum})
	}
	var b bytes.Buffer
	verb := "would be purged"
	if o.Apply {
		verb = "purged"
	}
	fmt.Fprintf(&b, "%s: nothing has happened to them since %s\n", verb, agentic.FormatTime(o.Before))
	render.Field(&b, "requests", fmt.Sprint(sum.Requests))
	render.Field(&b, "entries", fmt.Sprint(sum.Entries)+" of exchanges and receipts")
	render.Field(&b, "documents", fmt.Sprint(sum.Snapshots))
	render.Field(&b, "kept", fmt.Sprint(sum.Open)+" as old, because they are open")
	if err := c.out.Print(b.Bytes()); err != nil {
		return err
	}
	if !o.Apply {
		c.out.Say("Nothing was changed. --apply does it.")
	}
	return nil
}

// purgeWithProgress counts first where somebody watches.
func (c *Commands) purgeWithProgress(ctx context.Context, d *desk.Desk, o client.PurgeOptions) (client.Purged, error) {
	if !o.Apply || !c.out.Terminal() {
		return d.Purge(ctx, o, nil)
	}
	dry := o
	dry.Apply = false
	would, err := d.Purge(ctx, dry, nil)
	if err != nil {
		return client.Purged{}, err
	}
	defer c.out.Progress(0, 0)
	return d.Purge(ctx, o, func(sum client.Purged) { c.out.Progress(sum.Requests, max(would.Requests, sum.Requests)) })
}

func were(n int) string {
	if n == 1 {
		return "1 request was"
	}
	return fmt.Sprintf("%d requests were", n)
}
