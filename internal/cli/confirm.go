package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
)

// gate refuses what would need a question that nobody can be asked. It stands
// before everything that reads, saves or sends. stdinTaken says that a document or
// the input is read from standard input.
func (a *app) gate(yes, stdinTaken bool) error {
	switch {
	case yes:
		return nil
	case !a.terminal():
		return advice.BadUsage("sending needs a person's agreement, and there is no terminal to ask on", "Give --yes when the action is already authorized.")
	case stdinTaken:
		return advice.BadUsage("standard input cannot hold both what is to be read and your answer", "Give a file instead of '-', or --yes.")
	}
	return nil
}

// confirm shows what would be sent and asks. The error is errDeclined unless the
// answer is yes.
func (a *app) confirm(ctx context.Context, w render.Sending) error {
	return a.ask(ctx, w.Text(), "Send it? [y/N] ", errDeclined)
}

// ask shows something and asks; any answer but yes is the error declined.
func (a *app) ask(ctx context.Context, shown []byte, question string, declined error) error {
	_, err := a.stderr.Write(shown)
	if err == nil { // what was typed before the question is no answer to it
		err = a.forget()
	}
	if err == nil {
		_, err = a.stderr.Write([]byte(question))
	}
	if err != nil {
		return advice.New("output", fmt.Errorf("cannot ask: %w", err), "Look at the terminal, or give --yes when it is decided already.")
	}
	answer := make(chan string, 1)
	go func() { // a read from a terminal does not end with a context
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		answer <- line
	}()
	select {
	case <-ctx.Done():
		a.say("")
		return ctx.Err()
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			a.say("") // the end of input ends no line
		}
		if s := strings.ToLower(strings.TrimSpace(line)); s == "y" || s == "yes" {
			return nil
		}
		return declined
	}
}
