package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

func (a *app) newRequests() *cobra.Command {
	cmd := &cobra.Command{Use: "requests", Short: "Look at saved requests", Long: "Look at the requests in the ledger. Nothing is sent and nothing is changed."}
	cmd.AddCommand(a.newRequestsList(), a.newRequestsShow())
	a.asGroup(cmd)
	return cmd
}

func (a *app) newRequestsList() *cobra.Command {
	var (
		ledger  ledgerFlags
		filter  client.Filter
		outcome string
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List saved requests, newest first",
		Long: `List the requests of one principal and environment, newest first.

--open leaves out what is final: what remains was prepared, attempted without a
receipt, pending or unknown, and can be resumed.`,
		Example: "  agentic requests list --open\n  agentic requests list --outcome unknown --json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter.Outcome = agentic.Outcome(outcome)
			if outcome != "" && !filter.Outcome.Valid() {
				return advice.BadUsage(`--outcome "`+outcome+`" is none of succeeded, failed, pending and unknown`, "Name one of the four.")
			}
			if filter.Limit < 0 {
				return advice.BadUsage("--limit is below zero", "Give how many requests to list at most, or 0 for all.")
			}
			return a.listRequests(cmd.Context(), ledger, filter)
		},
	}
	cmd.Flags().BoolVar(&filter.Open, "open", false, "only requests without a final receipt")
	cmd.Flags().StringVar(&outcome, "outcome", "", "only requests whose last receipt has this `OUTCOME`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most `N` requests (0 is all)")
	complete(cmd, "outcome", string(agentic.Succeeded), string(agentic.Failed), string(agentic.Pending), string(agentic.Unknown))
	ledger.add(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) listRequests(ctx context.Context, lf ledgerFlags, filter client.Filter) error {
	if err := lf.check(); err != nil {
		return err
	}
	l, err := a.openSavedLedger(ctx, lf.path, true)
	if err != nil {
		return err
	}
	defer a.closeLedger(l)
	list, err := l.List(ctx, filter.In(lf.scope()))
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(render.Lines(list, time.Now()))
	}
	if len(list) == 0 {
		a.say("no such requests of principal %s in environment %s", escape.Terminal(lf.principal), escape.Terminal(lf.environment))
		return nil
	}
	return a.print(render.Listing(list, time.Now()))
}

func (a *app) newRequestsShow() *cobra.Command {
	var ledger ledgerFlags
	cmd := &cobra.Command{
		Use:   "show REQUEST_ID",
		Short: "Show everything that is saved of a request",
		Long: `Show what the ledger holds of one request: what it is bound to, its times, every
exchange with what was expected and found, and every receipt. The input and the
found values are shown too; they can be sensitive.`,
		Example: "  agentic requests show order-2026-117\n  agentic requests show order-2026-117 --json",
		Args:    arguments(1, 1, "REQUEST_ID"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showRequest(cmd.Context(), args[0], ledger) },
	}
	ledger.add(cmd)
	a.jsonFlag(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func (a *app) showRequest(ctx context.Context, id string, lf ledgerFlags) error {
	a.ledgerArgs = lf.args()
	if err := errors.Join(lf.check(), checkRequestID(id)); err != nil {
		return err
	}
	l, err := a.openSavedLedger(ctx, lf.path, true)
	if err != nil {
		return unsettled(err, id, false, true)
	}
	defer a.closeLedger(l)
	rec, err := l.Load(ctx, lf.scope(), id)
	if err != nil {
		return unsettled(err, id, false, true)
	}
	return a.writeRecord(rec, "")
}

// writeRecord prints a request, as JSON or for people.
func (a *app) writeRecord(rec *client.Record, unchecked string) error {
	r := render.NewRecord(rec)
	r.Unchecked = unchecked
	if a.json {
		return a.writeJSON(r)
	}
	return a.print(r.Text())
}
