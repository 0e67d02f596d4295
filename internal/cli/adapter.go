package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/scenario"
)

const adapterHelp = `The process interface of the draft's compatibility runner, for test harnesses.

It reads one JSON object from standard input and prints one receipt:

  profile, openapi         the documents; the origin is http on loopback
  request_id, input        the identity to persist, and the action's input
  ledger_path              a file, or a folder that exists, the same for every call
  test_crash_after_submit  true: exit with 86 and print nothing, after the
                           submission was attempted and before reconciliation

The draft's runner gives no others. A harness that knows more may also give

  action_id                which action of a profile with several
  test_now                 what the ledger's clock shows during this whole call, for
                           the creation time and every look at it: RFC 3339 in UTC
                           with at most microseconds, 2026-09-07T12:00:00.000000Z
  test_crash_at            exit with 86 at this point instead, if it is reached:
%s

Called again with the same place and identity, it resumes without another POST.
Every receipt exits with 0, whatever its outcome; logs go to standard error. The
documents' own origin is approved, and nothing but loopback is ever reached. Other
members are ignored.`

// pointsHelp lists the points below one another, four in a line.
func pointsHelp() string {
	var lines []string
	for p := range slices.Chunk(client.Points(), 4) {
		var names []string
		for _, n := range p {
			names = append(names, string(n))
		}
		lines = append(lines, strings.Repeat(" ", 27)+strings.Join(names, ", "))
	}
	return strings.Join(lines, ",\n")
}

func (a *app) newAdapter() *cobra.Command {
	return &cobra.Command{
		Use:     "adapter",
		Short:   "The process interface of compatibility runners",
		Long:    fmt.Sprintf(adapterHelp, pointsHelp()),
		Example: `  agentic adapter < scenario.json`,
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.adapter(cmd.Context()) },
	}
}

func (a *app) adapter(ctx context.Context) error {
	const help = "See 'agentic adapter --help'."
	data, err := documents.Read(ctx, a.stdin, "-", scenario.MaxBytes)
	if err != nil {
		return err
	}
	if len(data) > scenario.MaxBytes {
		return advice.New("scenario", fmt.Errorf("standard input is longer than %d bytes", scenario.MaxBytes), help)
	}
	s, err := scenario.Parse(data)
	if err != nil {
		return advice.New("scenario", fmt.Errorf("standard input is not a scenario: %w", err), help)
	}
	plan, err := agentic.Load(s.Profile, s.OpenAPI, s.Action, agentic.Options{AllowLoopback: true})
	if err != nil {
		return scenario.Error(err)
	}
	if !strings.HasPrefix(plan.Origin, "http://") { // a valid profile has http on loopback only
		return advice.New("scenario", fmt.Errorf("the origin %s is not http on loopback, and the adapter is for nothing else", plan.Origin), "For other origins use 'agentic run'.")
	}
	path := s.Ledger
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "ledger.db")
	}
	reach := reachFlags{approve: []string{plan.Origin}, allowLoopback: true}
	lf := ledgerFlags{path: path, principal: defaultScope, environment: defaultScope}
	a.ledgerArgs, a.reachArgs = lf.args(), reach.args()
	var o place.Options
	if !s.Now.IsZero() {
		o.Clock = func() time.Time { return s.Now }
	}
	l, err := a.openAt(ctx, path, o)
	if err != nil {
		return err
	}
	defer a.closeLedger(l)
	c, err := a.newClient(l, plan.Origin, nil, &reach, &lf, func(cfg *client.Config) {
		cfg.KillPoint = func(p client.Point) {
			if p == s.CrashAt {
				os.Exit(exitCrashed)
			}
		}
	})
	if err != nil {
		return err
	}
	done := a.executing()
	// A harness names the identity of every action itself, and may give one input
	// under many: each is meant.
	res, err := c.Execute(ctx, client.Request{Plan: plan, Input: s.Input, ID: s.RequestID, AllowDuplicate: true})
	done()
	if err != nil {
		return scenario.Error(unsettled(err, res.RequestID, res.Sent, true)) // a harness calls again
	}
	return a.saved(a.writeJSON(res.Receipt), res.RequestID, string(res.Receipt.Outcome))
}
