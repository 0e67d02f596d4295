// Package demo runs the reference ticket service, and shows with it how one action
// goes wrong and is settled.
//
// Its job is the story of 'agentic demo': service, client and ledger on this
// machine, in a temporary folder; with a crash the client is a process that dies
// after its POST and another that resumes. Not its job: the terminal, flags and
// exit codes, which internal/cli has. It imports the root package, client,
// transport and sqlite, and of internal ticket, documents, render, advice, escape
// and strictjson.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/ticket"
)

const input = `{"subject":"The printer on floor 3 is on fire"}`

// Config says what to show. Fault and Show are required.
type Config struct {
	Fault ticket.FaultInfo
	Show  func(render.Step) error // each step, as it happens

	// Crash has the arguments with which this program calls Client: the client is
	// a process of its own then, and is killed after its POST. Without them it runs
	// in this process.
	Crash []string
}

// Story is what was shown.
type Story struct {
	Fault       string          `json:"fault"`
	Crash       bool            `json:"crash"`
	Outcome     agentic.Outcome `json:"outcome"`
	Explanation []string        `json:"explanation"` // sentences
	Receipt     agentic.Receipt `json:"receipt"`
	Service     ticket.State    `json:"service"`
	Steps       []render.Step   `json:"steps"`
}

// Run plays the story to its receipt and leaves nothing behind.
func Run(ctx context.Context, cfg Config) (story *Story, err error) {
	dir, err := os.MkdirTemp("", "agentic-demo-")
	if err != nil {
		return nil, advice.New("file", err, "Look at the folder for temporary files (TMPDIR).")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	service, err := Start(ctx, "127.0.0.1:0", ticket.Config{Path: filepath.Join(dir, "service.db"), Fault: ticket.Fault(cfg.Fault.Name), Inspect: true}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()

	story = &Story{Fault: cfg.Fault.Name, Crash: cfg.Crash != nil}
	show := func(s render.Step) error {
		story.Steps = append(story.Steps, s)
		return cfg.Show(s)
	}
	if err := show(render.Step{Who: "service", Name: "started", Text: fmt.Sprintf("at %s; its fault is %s: it %s", service.Origin, cfg.Fault.Name, cfg.Fault.Summary)}); err != nil {
		return nil, err
	}
	t := task{Who: "client", Origin: service.Origin, Ledger: filepath.Join(dir, "ledger", "ledger.db"), RequestID: uuid.Must(uuid.NewV7()).String()}
	if cfg.Crash != nil {
		story.Receipt, err = crashAndResume(ctx, cfg.Crash, t, show)
	} else {
		story.Receipt, err = t.run(ctx, show)
	}
	switch {
	case ctx.Err() != nil:
		return nil, advice.New("interrupted", errors.New("the demo was interrupted, and its temporary folder is removed"), "Run it again; nothing of it is left.")
	case err != nil:
		return nil, err
	}
	if story.Service, err = service.State(ctx); err != nil {
		return nil, err
	}
	if story.Service.Posts != 1 {
		return nil, fmt.Errorf("the service counted %s instead of 1: this program broke its promise", render.Plural(story.Service.Posts, "POST"))
	}
	story.Outcome = story.Receipt.Outcome
	story.Explanation = story.explain()
	return story, nil
}

// Text is the end of the story for people: what remains after the steps.
func (s *Story) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nThe receipt:\n%s\n", render.Receipt(s.Receipt))
	fmt.Fprintf(&b, "\nThe service counted: %s, %s, %s, %s.\n", render.Plural(s.Service.Posts, "POST"), render.Plural(s.Service.Tickets, "ticket"),
		render.Plural(s.Service.Requests, "tracked request"), render.Plural(s.Service.Reads, "read"))
	b.WriteByte('\n')
	for _, sentence := range s.Explanation {
		fmt.Fprintln(&b, escape.Terminal(sentence))
	}
	return b.Bytes()
}

// explain tells what was lost and how it was settled.
func (s *Story) explain() []string {
	var told []string
	lost := false
	for _, step := range s.Steps {
		lost = lost || step.Name == render.NoAnswer
	}
	switch {
	case s.Crash:
		told = append(told, "The client died right after its POST, with everything it knew: nobody could tell from it whether there is a ticket.",
			"The ledger had the request from before the POST, so the new process did not send it again.")
	case lost:
		told = append(told, "The answer to the POST was lost: nobody could tell from it whether there is a ticket.",
			"The client did not send it again.")
	default:
		told = append(told, "The answer to the POST arrived, and proved nothing by itself.")
	}
	switch s.Outcome {
	case agentic.Succeeded:
		return append(told, "It asked the service what became of this request ID and read the ticket back: its ID, request ID, state and subject are those of this request.",
			"That is the evidence in the receipt.")
	case agentic.Failed:
		return append(told, "It asked the service what became of this request ID, and the service says with authority that the action did not complete.")
	case agentic.Pending:
		return append(told, "It asked the service what became of this request ID, and the service says that it is not decided yet. 'agentic resume' would ask again later.")
	}
	return append(told, "It asked the service what became of this request ID, and what it could read proved neither success nor failure.",
		"So it claims neither: the outcome is unknown, and a person has to look before anybody starts the action anew.")
}
