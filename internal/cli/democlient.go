package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// demoTask is the client's part of the demo.
type demoTask struct {
	who       string
	origin    string
	ledger    string
	requestID string
	resume    bool // only what the ledger has
	kill      bool // die right after the POST
}

// run executes or resumes the action and shows each step.
func (t demoTask) run(ctx context.Context, show func(step) error) (r agentic.Receipt, err error) {
	reach := reachFlags{approve: []string{t.origin}, allowLoopback: true}
	tr, err := reach.transport("", nil)
	if err != nil {
		return r, err
	}
	ledger, err := sqlite.Open(ctx, sqlite.Config{Path: t.ledger})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	var shown error
	c, err := client.New(client.Config{
		Ledger: ledger, Transport: tr, Scope: client.Scope{Principal: "demo", Environment: "demo"},
		Observer: func(e client.Event) {
			s := describe(e)
			s.Who = t.who
			shown = errors.Join(shown, show(s))
		},
		KillPoint: func(p client.Point) {
			if t.kill && p == client.AfterSubmit {
				killSelf()
			}
		},
	})
	if err != nil {
		return r, err
	}
	if t.resume {
		res, err := c.Resume(ctx, t.requestID)
		return res.Receipt, errors.Join(err, shown)
	}
	plan, err := fetchPlan(ctx, tr, t.origin)
	if err != nil {
		return r, err
	}
	res, err := c.Execute(ctx, client.Request{Plan: plan, Input: []byte(demoInput), ID: t.requestID})
	return res.Receipt, errors.Join(err, shown)
}

// fetchPlan reads the documents that the ticket service serves.
func fetchPlan(ctx context.Context, t *transport.Transport, origin string) (*agentic.Plan, error) {
	profile, err := t.Fetch(ctx, origin+"/agentic.json", agentic.MaxProfileBytes, fetchTimeout)
	if err != nil {
		return nil, err
	}
	openapi, err := t.Fetch(ctx, origin+"/openapi.json", agentic.MaxOpenAPIBytes, fetchTimeout)
	if err != nil {
		return nil, err
	}
	return agentic.Load(profile, openapi, "", agentic.Options{AllowLoopback: true})
}

// killSelf ends the process as SIGKILL does: nothing is flushed, closed or told.
func killSelf() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		os.Exit(exitCrashed)
	}
	select {}
}

// demoMessage is one line of a demo client's standard output: a step, or the
// receipt at the end.
type demoMessage struct {
	Step    *step            `json:"step,omitempty"`
	Receipt *agentic.Receipt `json:"receipt,omitempty"`
}

// newDemoClient is the hidden command that demo --crash runs as a process of its
// own.
func (a *app) newDemoClient() *cobra.Command {
	var t demoTask
	cmd := &cobra.Command{
		Use:    "client",
		Short:  "The client process of demo --crash",
		Hidden: true,
		Args:   arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := t.run(cmd.Context(), func(s step) error { return a.writeJSON(demoMessage{Step: &s}) })
			if err != nil {
				return err
			}
			return a.writeJSON(demoMessage{Receipt: &r})
		},
	}
	cmd.Flags().StringVar(&t.who, "who", "", "")
	cmd.Flags().StringVar(&t.origin, "origin", "", "")
	cmd.Flags().StringVar(&t.ledger, "ledger", "", "")
	cmd.Flags().StringVar(&t.requestID, "request-id", "", "")
	cmd.Flags().BoolVar(&t.resume, "resume", false, "")
	cmd.Flags().BoolVar(&t.kill, "kill", false, "")
	return cmd
}

// crashAndResume runs the action in a process that kills itself after the POST,
// and resumes in another.
func crashAndResume(ctx context.Context, t demoTask, show func(step) error) (r agentic.Receipt, err error) {
	t.who, t.kill = "client 1", true
	receipt, state, err := t.spawn(ctx, show)
	switch {
	case err != nil:
		return r, err
	case receipt != nil || state.Success():
		return r, errors.New("the first client process was to be killed after its POST and was not")
	}
	if err := show(step{Who: t.who, Step: "killed", Text: "process " + fmt.Sprint(state.Pid()) + " died right after the POST (" + state.String() + ")"}); err != nil {
		return r, err
	}
	t.who, t.kill, t.resume = "client 2", false, true
	if err := show(step{Who: t.who, Step: "started", Text: "a new process, with the ledger and the request ID alone"}); err != nil {
		return r, err
	}
	receipt, state, err = t.spawn(ctx, show)
	if err == nil && receipt == nil {
		err = fmt.Errorf("the second client process ended without a receipt (%s)", state)
	}
	if err != nil {
		return r, err
	}
	return *receipt, nil
}

// spawn runs the task in a process of this program and relays its steps. receipt
// is nil when the process ended without one.
func (t demoTask) spawn(ctx context.Context, show func(step) error) (receipt *agentic.Receipt, state *os.ProcessState, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find this program to run it again: %w", err)
	}
	args := []string{"demo", "client", "--who", t.who, "--origin", t.origin, "--ledger", t.ledger, "--request-id", t.requestID}
	if t.resume {
		args = append(args, "--resume")
	}
	if t.kill {
		args = append(args, "--kill")
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("cannot run this program again: %w", err)
	}
	var broken error
	for dec := json.NewDecoder(out); broken == nil; {
		var m demoMessage
		broken = dec.Decode(&m)
		if broken == nil && m.Step != nil {
			broken = show(*m.Step)
		}
		if m.Receipt != nil {
			receipt = m.Receipt
		}
	}
	_, _ = io.Copy(io.Discard, out) // lets the process end if showing failed
	_ = cmd.Wait()                  // how it ended is in ProcessState
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if !errors.Is(broken, io.EOF) {
		return nil, nil, broken
	}
	if complaint.Len() > 0 {
		return nil, nil, fmt.Errorf("the client process failed: %s", bytes.TrimSpace(complaint.Bytes()))
	}
	return receipt, cmd.ProcessState, nil
}
