package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/ticket"
)

const demoHelp = `See one action go wrong and be settled: a ticket service with a fault, a client and
a ledger, all on this machine, in a temporary folder and on a free loopback port.

It shows each step of the client, the receipt, and what the service itself counted.
--crash kills the client's process right after the POST (SIGKILL, with everything it
knew) and resumes in a new process, which has the ledger alone. The exit code is that
of the receipt, as with run.

Faults (--fault):`

const demoInput = `{"subject":"The printer on floor 3 is on fire"}`

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

// demonstration is what demo shows.
type demonstration struct {
	Fault       string          `json:"fault"`
	Crash       bool            `json:"crash"`
	Outcome     agentic.Outcome `json:"outcome"`
	Explanation []string        `json:"explanation"` // sentences
	Receipt     agentic.Receipt `json:"receipt"`
	Service     ticket.State    `json:"service"`
	Steps       []step          `json:"steps"`
}

func (a *app) demo(ctx context.Context, fault ticket.Fault, crash bool) (err error) {
	dir, err := os.MkdirTemp("", "agentic-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	service, err := startTickets(ctx, "127.0.0.1:0", ticket.Config{Path: filepath.Join(dir, "service.db"), Fault: fault, Inspect: true}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.stop()) }()

	d := demonstration{Fault: string(fault), Crash: crash}
	show := func(s step) error {
		d.Steps = append(d.Steps, s)
		if a.json {
			return nil
		}
		return a.print(fmt.Appendf(nil, "%-9s %s\n", escape.Terminal(s.Who), stepLine(s)))
	}
	if err := show(step{Who: "service", Step: "started", Text: fmt.Sprintf("at %s; its fault is %s: it %s", service.origin, fault, summary(fault))}); err != nil {
		return err
	}
	task := demoTask{origin: service.origin, ledger: filepath.Join(dir, "ledger", "ledger.db"), requestID: uuid.Must(uuid.NewV7()).String()}
	if crash {
		d.Receipt, err = crashAndResume(ctx, task, show)
	} else {
		task.who = "client"
		d.Receipt, err = task.run(ctx, show)
	}
	switch {
	case ctx.Err() != nil:
		return &remedyError{errors.New("the demo was interrupted, and its temporary folder is removed"), "interrupted", "Run it again; nothing of it is left."}
	case err != nil:
		return err
	}
	if d.Service, err = service.State(ctx); err != nil {
		return err
	}
	d.Outcome = d.Receipt.Outcome
	d.Explanation = d.explain()
	if d.Service.Posts != 1 {
		return fmt.Errorf("the service counted %s instead of 1: this program broke its promise", plural(d.Service.Posts, "POST"))
	}
	a.exit = outcomeExit(d.Outcome)
	if a.json {
		return a.writeJSON(d)
	}
	return a.print(d.text())
}

func summary(fault ticket.Fault) string {
	for _, f := range ticket.Faults() {
		if f.Name == string(fault) {
			return f.Summary
		}
	}
	return ""
}

func (d demonstration) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nThe receipt:\n%s\n", receiptText(d.Receipt))
	fmt.Fprintf(&b, "\nThe service counted: %s, %s, %s, %s.\n", plural(d.Service.Posts, "POST"), plural(d.Service.Tickets, "ticket"),
		plural(d.Service.Requests, "tracked request"), plural(d.Service.Reads, "read"))
	b.WriteByte('\n')
	for _, sentence := range d.Explanation {
		fmt.Fprintln(&b, escape.Terminal(sentence))
	}
	return b.Bytes()
}

// explain tells what was lost and how it was settled.
func (d demonstration) explain() []string {
	var s []string
	lost := false
	for _, st := range d.Steps {
		lost = lost || st.Step == "no answer"
	}
	switch {
	case d.Crash:
		s = append(s, "The client died right after its POST, with everything it knew: nobody could tell from it whether there is a ticket.",
			"The ledger had the request from before the POST, so the new process did not send it again.")
	case lost:
		s = append(s, "The answer to the POST was lost: nobody could tell from it whether there is a ticket.",
			"The client did not send it again.")
	default:
		s = append(s, "The answer to the POST arrived, and proved nothing by itself.")
	}
	switch d.Outcome {
	case agentic.Succeeded:
		s = append(s, "It asked the service what became of this request ID and read the ticket back: its ID, request ID, state and subject are those of this request.",
			"That is the evidence in the receipt.")
	case agentic.Failed:
		s = append(s, "It asked the service what became of this request ID, and the service says with authority that the action did not complete.")
	case agentic.Pending:
		s = append(s, "It asked the service what became of this request ID, and the service says that it is not decided yet. 'agentic resume' would ask again later.")
	default:
		s = append(s, "It asked the service what became of this request ID, and what it could read proved neither success nor failure.",
			"So it claims neither: the outcome is unknown, and a person has to look before anybody starts the action anew.")
	}
	return s
}
