package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/render"
)

const resumeHelp = `Go on with a saved request, by reading only: follow its status, verify the
evidence, and print the receipt. It never sends a request that may have been sent.

The ID is enough, because the ledger keeps the profile, the OpenAPI document and
the input. The origin must be approved again, because an approval is not saved. A
saved success or failure is returned without asking the service.

A request that was only prepared was provably never sent. --send sends it, for the
only time, after the same question as run (or with --yes), until its tracking window
ends, which began when it was prepared. For a request that was attempted --send
changes nothing.`

func (a *app) newResume() *cobra.Command {
	var (
		reach     reachFlags
		ledger    ledgerFlags
		send, yes bool
	)
	cmd := &cobra.Command{
		Use:     "resume REQUEST_ID",
		Short:   "Go on with a saved request, without a second write",
		Long:    resumeHelp,
		Example: "  agentic resume 019a1b2c-3d4e-7f50-8a9b-0c1d2e3f4a5b --approve https://support.example\n  agentic resume order-2026-117 --approve https://support.example --send",
		Args:    arguments(1, 1, "REQUEST_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.ledgerArgs, a.reachArgs = ledger.args(), reach.args()
			if send {
				if err := a.gate(yes, false); err != nil {
					return err
				}
			}
			return a.resume(cmd.Context(), args[0], reach, ledger, send, yes)
		},
	}
	cmd.Flags().BoolVar(&send, "send", false, "send a request that was only prepared")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --send: do not ask, the action is already authorized")
	ledger.add(cmd)
	reach.add(cmd)
	a.jsonFlag(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func (a *app) resume(ctx context.Context, id string, reach reachFlags, lf ledgerFlags, send, yes bool) error {
	if err := errors.Join(lf.check(), checkRequestID(id)); err != nil {
		return err
	}
	header, err := a.header(headerFlag, reach.headers)
	if err != nil {
		return err
	}
	t, err := reach.transport("", nil) // wrong flags come before a missing ledger
	if err != nil {
		return err
	}
	l, err := a.openSavedLedger(ctx, lf.path, false)
	if err != nil {
		return unsettled(err, id, false, true)
	}
	defer a.closeLedger(l)
	rec, err := l.Load(ctx, lf.scope(), id)
	if err != nil {
		return unsettled(err, id, false, true)
	}
	c, err := a.newClient(l, rec.Origin, header, &reach, &lf)
	if err != nil {
		return err
	}
	attempted := rec.State == client.Attempted
	if !send || attempted {
		return a.settle(attempted, func() (client.Result, error) { return c.Resume(ctx, id) })
	}
	if !yes && sendable(rec) {
		if err := t.Approve(rec.Origin, rec.ActionID); err != nil {
			return err
		}
		if err := a.confirmRecord(ctx, l, rec); err != nil {
			return err
		}
	}
	return a.settle(attempted, func() (client.Result, error) { return c.Execute(ctx, client.Request{ID: id}) })
}

// sendable reports whether a saved request can still be sent. Where it cannot, there
// is nothing to agree to.
func sendable(rec *client.Record) bool {
	return rec.State == client.Prepared && rec.PurgedAt.IsZero() && rec.Settled() == nil
}

// superseded is the request that rec is made instead of, or nil; in its place, when it
// was never sent itself, the one before it that was. Of one that cannot be read nothing
// is known.
func superseded(ctx context.Context, l client.Ledger, rec *client.Record) *client.Summary {
	var sum *client.Summary
	for id, seen := rec.Supersedes, map[string]bool{}; id != "" && !seen[id]; {
		seen[id] = true
		sum = &client.Summary{RequestID: id, State: client.Attempted}
		if old, err := l.Load(ctx, rec.Scope, id); err == nil {
			*sum = old.Summary()
		}
		if id = ""; sum.State == client.Prepared {
			id = sum.Supersedes
		}
	}
	return sum
}

// confirmRecord asks about a request as the ledger has it.
func (a *app) confirmRecord(ctx context.Context, l client.Ledger, rec *client.Record) error {
	plan, err := agentic.Load(rec.Profile.Body, rec.OpenAPI.Body, rec.ActionID, agentic.Options{AllowLoopback: true})
	if err != nil {
		return err
	}
	in, err := plan.CheckInput(rec.Input)
	if err != nil {
		return err
	}
	return a.confirm(ctx, render.Sending{Plan: plan, Input: in, Scope: rec.Scope, RequestID: rec.RequestID, Supersedes: superseded(ctx, l, rec)})
}
