package deskcmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

const showHelp = `Show what the ledger holds of one request: what it is bound to, its times, every
exchange with its time, duration and result, which evidence matched and which did
not, every receipt, what people noted, and why it is where it is. Then what a person
can do, and what each choice risks.

The input, and what checks expected and found, can be sensitive: they are redacted
to their sizes, and the input's digest, unless --reveal is given. Receipts are shown
whole.`

func (c *Commands) show() *cobra.Command {
	var (
		place  Place
		reveal bool
	)
	cmd := &cobra.Command{
		Use:     "show REQUEST_ID",
		Short:   "Show a saved request, why it is open, and what can be done",
		Long:    showHelp,
		Example: "  agentic requests show order-2026-117\n  agentic requests show order-2026-117 --reveal --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.showRequest(cmd.Context(), place, args[0], reveal)
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show the input, and what checks expected and found")
	place = c.host.Place(cmd)
	c.host.Leaf(cmd, 1, "REQUEST_ID")
	return cmd
}

func (c *Commands) showRequest(ctx context.Context, p Place, id string, reveal bool) error {
	o, err := c.one(ctx, p, id, true)
	if err != nil {
		return err
	}
	defer o.close()
	judged := desk.CaseOf(o.rec, c.now())
	r := render.NewRecord(o.rec).Judged(judged, o.sum.NextCheck)
	if !reveal {
		r = r.Redact()
	}
	if c.out.JSON() {
		return c.printJSON(r)
	}
	if err := c.out.Print(r.Text()); err != nil {
		return err
	}
	if r.Redacted && o.rec.PurgedAt.IsZero() {
		c.out.Say("The input, and what checks expected and found, are redacted; --reveal shows them.")
	}
	if len(judged.Choices) > 0 {
		c.out.Say("To do one of these: %s", escape.Quoted(choiceCommand(o.rec, p, c.now())))
	}
	return nil
}

// choiceCommand is how a choice is made, ready to be completed.
func choiceCommand(rec *client.Record, p Place, now time.Time) string {
	if sendable(rec, now) {
		reach := " --approve " + escape.Shell(rec.Origin)
		if strings.HasPrefix(rec.Origin, "http://") {
			reach += " --allow-loopback"
		}
		return withID("agentic resume", p.Args()+reach+" --send", rec.RequestID) + " to send it, or " +
			withID("agentic requests abandon", p.Args()+" --reason TEXT", rec.RequestID)
	}
	return withID("agentic requests VERB", p.Args()+" --reason TEXT", rec.RequestID)
}

// withID completes a command. A request ID may begin with '-' (D7).
func withID(command, flags, requestID string) string {
	if requestID[0] == '-' {
		return command + flags + " -- " + escape.Shell(requestID)
	}
	return command + " " + escape.Shell(requestID) + flags
}
