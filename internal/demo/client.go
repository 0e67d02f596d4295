package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// task is the client's part of the story. As JSON it is the standard input of a
// client that is a process.
type task struct {
	Who       string `json:"who"`
	Origin    string `json:"origin"`
	Ledger    string `json:"ledger"`
	RequestID string `json:"request_id"`
	Resume    bool   `json:"resume"` // with the ledger and the ID alone
	Kill      bool   `json:"kill"`   // die right after the POST
}

// message is one line of a client process: a step, or the receipt at the end.
type message struct {
	Step    *render.Step     `json:"step,omitempty"`
	Receipt *agentic.Receipt `json:"receipt,omitempty"`
}

// Client is the process that a crash kills, and the one that resumes.
func Client(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	t, err := readTask(ctx, stdin)
	if err != nil {
		return err
	}
	out := json.NewEncoder(stdout)
	r, err := t.run(ctx, func(s render.Step) error { return out.Encode(message{Step: &s}) })
	if err != nil {
		return err
	}
	return out.Encode(message{Receipt: &r})
}

func readTask(ctx context.Context, in io.Reader) (t task, err error) {
	data, err := documents.Read(ctx, in, "-", maxMessage)
	if err != nil {
		return t, err
	}
	v, err := strictjson.Parse(data)
	if err != nil {
		return t, fmt.Errorf("standard input is no task of a demo: %w", err)
	}
	return task{Who: text(v, "who"), Origin: text(v, "origin"), Ledger: text(v, "ledger"), RequestID: text(v, "request_id"),
		Resume: truth(v, "resume"), Kill: truth(v, "kill")}, nil
}

// maxMessage bounds a task and a line of a client process; a receipt is far below.
const maxMessage = 1 << 20

func text(v strictjson.Value, name string) string {
	m, _ := v.Member(name)
	s, _ := m.Text()
	return s
}

func truth(v strictjson.Value, name string) bool {
	m, _ := v.Member(name)
	return m.Truth()
}

// run executes or resumes the action and shows each step.
func (t task) run(ctx context.Context, show func(render.Step) error) (r agentic.Receipt, err error) {
	tr, err := transport.New(transport.Config{Origins: []string{t.Origin}, AllowLoopback: true})
	if err != nil {
		return r, err
	}
	ledger, err := sqlite.Open(ctx, sqlite.Config{Path: t.Ledger})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	var shown error
	c, err := client.New(client.Config{
		Ledger: ledger, Transport: tr, Scope: client.Scope{Principal: "demo", Environment: "demo"},
		Observer: func(e client.Event) {
			s := render.Event(e)
			s.Who = t.Who
			if shown == nil {
				shown = show(s)
			}
		},
		KillPoint: func(p client.Point) {
			if t.Kill && p == client.AfterSubmit {
				killSelf()
			}
		},
	})
	if err != nil {
		return r, err
	}
	if t.Resume {
		res, err := c.Resume(ctx, t.RequestID)
		return res.Receipt, errors.Join(err, shown)
	}
	source := documents.Source{Transport: tr, Options: agentic.Options{AllowLoopback: true}}
	plan, err := source.Plan(ctx, t.Origin+"/agentic.json", "", "")
	if err != nil {
		return r, err
	}
	res, err := c.Execute(ctx, client.Request{Plan: plan, Input: []byte(input), ID: t.RequestID})
	return res.Receipt, errors.Join(err, shown)
}

// killSelf ends the process as SIGKILL does: nothing is flushed, closed or told.
func killSelf() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("this process cannot be killed: %v", err))
	}
	select {}
}

// crashAndResume runs the action in a process that kills itself after the POST,
// and resumes in another.
func crashAndResume(ctx context.Context, args []string, t task, show func(render.Step) error) (r agentic.Receipt, err error) {
	t.Who, t.Kill = "client 1", true
	receipt, state, err := t.spawn(ctx, args, show)
	switch {
	case err != nil:
		return r, err
	case receipt != nil || state.Success():
		return r, errors.New("the first client process was to be killed after its POST and was not")
	}
	if err := show(render.Step{Who: t.Who, Name: "killed", Text: fmt.Sprintf("process %d died right after the POST (%s)", state.Pid(), state)}); err != nil {
		return r, err
	}
	t.Who, t.Kill, t.Resume = "client 2", false, true
	if err := show(render.Step{Who: t.Who, Name: "started", Text: "a new process, with the ledger and the request ID alone"}); err != nil {
		return r, err
	}
	receipt, state, err = t.spawn(ctx, args, show)
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
func (t task) spawn(ctx context.Context, args []string, show func(render.Step) error) (receipt *agentic.Receipt, state *os.ProcessState, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find this program to run it again: %w", err)
	}
	stdin, err := json.Marshal(t)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("cannot run this program again: %w", err)
	}
	receipt, broken := relay(out, show)
	_, _ = io.Copy(io.Discard, out) // lets the process end if showing failed
	_ = cmd.Wait()                  // how it ended is in ProcessState
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case broken != nil:
		return nil, nil, broken
	case complaint.Len() > 0:
		return nil, nil, fmt.Errorf("the client process failed: %s", bytes.TrimSpace(complaint.Bytes()))
	}
	return receipt, cmd.ProcessState, nil
}

// relay shows the steps of a client process until it ends.
func relay(out io.Reader, show func(render.Step) error) (receipt *agentic.Receipt, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		v, err := strictjson.Parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("the client process said what this program does not understand: %w", err)
		}
		if s, ok := v.Member("step"); ok {
			if err := show(render.Step{Who: text(s, "who"), Name: text(s, "step"), Text: text(s, "text")}); err != nil {
				return nil, err
			}
		}
		if r, ok := v.Member("receipt"); ok {
			var found agentic.Diagnostics
			if receipt, found = agentic.ParseReceipt(r.Compact()); receipt == nil {
				return nil, fmt.Errorf("the client process gave no receipt: %w", found.Err())
			}
		}
	}
	return receipt, lines.Err()
}
