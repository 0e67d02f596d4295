package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/ticket"
)

const demoHelp = `See one action go wrong and be settled: a ticket service with a fault, a client and
a ledger, all on this machine, in a temporary folder and on a free loopback port.

It shows each step of the client, the receipt, and what the service itself counted.
--crash kills the client's process right after the POST (SIGKILL, with everything it
knew) and resumes in a new process, which has the ledger alone. The exit code is that
of the receipt, as with run.

Faults (--fault):`

func (a *app) newDemo() *cobra.Command {
	var (
		fault string
		crash bool
	)
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "See a lost answer turn into a verified receipt",
		Long:    demoHelp + faultsHelp(),
		Example: "  agentic demo\n  agentic demo --crash\n  agentic demo --fault wrong-evidence",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := parseFault(fault)
			if err != nil {
				return err
			}
			return a.demo(cmd.Context(), f, crash)
		},
	}
	cmd.Flags().StringVar(&fault, "fault", "response-lost", "what the service does wrong, by `NAME`")
	cmd.Flags().BoolVar(&crash, "crash", false, "kill the client after the POST and resume in a new process")
	complete(cmd, "fault", faultNames()...)
	a.jsonFlag(cmd)
	cmd.AddCommand(a.newDemoClient())
	return cmd
}

func (a *app) demo(ctx context.Context, fault ticket.FaultInfo, crash bool) error {
	cfg := demo.Config{Fault: fault, Show: func(s render.Step) error {
		if a.json {
			return nil
		}
		return a.print([]byte(s.Line() + "\n"))
	}}
	if crash {
		cfg.Crash = []string{"demo", "client"}
	}
	story, err := demo.Run(ctx, cfg)
	if err != nil {
		return err
	}
	a.exit = outcomeExit(story.Outcome)
	if a.json {
		return a.writeJSON(story)
	}
	return a.print(story.Text())
}

// newDemoClient is the hidden command that demo --crash runs as a process of its
// own.
func (a *app) newDemoClient() *cobra.Command {
	return &cobra.Command{
		Use:    "client",
		Short:  "The client process of demo --crash",
		Hidden: true,
		Args:   arguments(0, 0, ""),
		RunE:   func(cmd *cobra.Command, _ []string) error { return demo.Client(cmd.Context(), a.stdin, a.stdout) },
	}
}
