package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

// failure is an error as it is shown: for people on stderr, and with --json as
// the member "error" of one object on stdout.
type failure struct {
	Code        string              `json:"code"`
	Message     string              `json:"message"`
	Remedy      string              `json:"remedy,omitempty"`
	RequestID   string              `json:"request_id,omitempty"`
	Differences []difference        `json:"differences,omitempty"`
	Diagnostics agentic.Diagnostics `json:"diagnostics,omitempty"`

	exit int
}

type difference struct {
	Field string `json:"field"`
	Saved string `json:"saved"`
	Asked string `json:"asked"`
}

// fail shows an error and gives its exit code.
func (a *app) fail(err error) int {
	f := a.explain(err)
	var b bytes.Buffer
	fmt.Fprintf(&b, "agentic: %s\n", escape.Terminal(f.Message))
	for _, d := range f.Diagnostics {
		writeDiagnostic(&b, d.Document, d)
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "  %s\n", escape.Terminal(f.Remedy))
	}
	_, _ = a.stderr.Write(b.Bytes()) // there is nowhere left to say so
	if a.json {
		if err := a.writeJSON(struct {
			Error failure `json:"error"`
		}{f}); err != nil {
			return exitError
		}
	}
	return f.exit
}

// explain finds code, remedy and exit code of an error.
func (a *app) explain(err error) failure {
	f := failure{Code: "error", Message: oneLine(err.Error()), exit: exitError}
	var (
		usage    *usageError
		remedy   *remedyError
		invalid  *agentic.InvalidError
		input    *agentic.InputError
		action   *agentic.UnknownActionError
		binding  *client.BindingError
		held     *client.HeldError
		missing  *client.NotFoundError
		prepared *client.PreparedError
		id       *client.RequestIDError
		origin   *client.OriginError
		stopped  *client.InterruptedError
		file     *fs.PathError
	)
	switch {
	case errors.As(err, &usage):
		f.Code, f.Remedy, f.exit = "usage", usage.remedy, exitUsage
	case errors.As(err, &remedy):
		f.Code, f.Remedy = remedy.code, remedy.remedy
	case errors.Is(err, errDeclined):
		f.Code, f.Remedy = "declined", "Run it again and answer y to send it."
	case errors.As(err, &invalid):
		f.Code, f.Diagnostics = "invalid-document", invalid.Diagnostics
		f.Message = "a document is invalid: " + count(invalid.Diagnostics)
	case errors.As(err, &input):
		f.Code, f.Diagnostics = "invalid-input", input.Diagnostics
		f.Message = "the input is invalid: " + count(input.Diagnostics)
	case errors.As(err, &action):
		f.Code, f.Remedy = "unknown-action", "Name one of them with --action."
	case errors.As(err, &binding):
		f.Code, f.RequestID, f.Remedy = "bound-to-another", binding.RequestID, "Leave out --request-id for a new action, or go on with the saved one: "+a.resumeCommand(binding.RequestID)
		f.Message = fmt.Sprintf("request %s is already bound to another request", binding.RequestID)
		for _, d := range binding.Differences {
			f.Message += fmt.Sprintf("; %s is %s there and %s here", d.Field, d.Saved, d.Asked)
			f.Differences = append(f.Differences, difference(d))
		}
	case errors.As(err, &held):
		f.Code, f.RequestID, f.Remedy = "held", held.RequestID, "When the other execution has ended: "+a.resumeCommand(held.RequestID)
	case errors.As(err, &missing):
		f.Code, f.RequestID, f.Remedy = "not-found", missing.RequestID, "Look at 'agentic requests list', and give --ledger, --principal and --environment as they were when it was saved."
	case errors.As(err, &prepared):
		f.Code, f.RequestID = "prepared", prepared.RequestID
		f.Message = fmt.Sprintf("request %s was prepared and never sent, so there is nothing to reconcile", prepared.RequestID)
		f.Remedy = "To send it: " + a.resumeCommand(prepared.RequestID) + " --send"
	case errors.As(err, &id):
		f.Code, f.exit, f.Remedy = "request-id", exitUsage, "Give another request ID, or none for a new one."
	case errors.As(err, &origin):
		f.Code = "origin-not-approved"
		f.Remedy = "If you trust this origin, approve it with --approve " + origin.Origin + loopbackHint(origin.Origin) + "."
	case errors.As(err, &stopped):
		f.Code, f.RequestID = "interrupted", stopped.RequestID
		f.Message = fmt.Sprintf("interrupted: request %s is saved, and whether it arrived may be unknown", stopped.RequestID)
		f.Remedy = "To go on, by reading only: " + a.resumeCommand(stopped.RequestID)
		if !stopped.Saved {
			f.Message = fmt.Sprintf("interrupted before request %s could be held: nothing was sent by this command", stopped.RequestID)
			f.Remedy = "To see whether it was saved: agentic requests show " + stopped.RequestID + a.ledgerArgs
		}
		if errors.Is(err, client.ErrLedger) {
			f.Message += "; " + oneLine(err.Error())
		}
	case errors.Is(err, client.ErrLost):
		f.Code, f.Remedy = "lost", "Look at 'agentic requests list --open' and resume the request."
	case errors.Is(err, client.ErrLedger):
		f.Code, f.Remedy = "ledger", "Give another place with --ledger, or mend this one. Until it can be read, nobody knows what was sent."
	case errors.Is(err, context.Canceled):
		f.Code, f.Message, f.Remedy = "interrupted", "interrupted: nothing was sent", ""
	case errors.As(err, &file) && file.Op != "write":
		f.Code, f.Remedy = "file", "Look at the name of the file and whether you may read it."
	}
	return f
}

// loopbackHint names the flag that an http origin also needs.
func loopbackHint(origin string) string {
	if strings.HasPrefix(origin, "http://") {
		return " --allow-loopback"
	}
	return ""
}

// oneLine joins the lines of joined errors.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }

// count says how many errors and warnings there are.
func count(ds agentic.Diagnostics) string {
	errs := 0
	for _, d := range ds {
		if d.Severity == agentic.SeverityError {
			errs++
		}
	}
	s := plural(errs, "error")
	if warnings := len(ds) - errs; warnings > 0 {
		s += ", " + plural(warnings, "warning")
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// writeDiagnostic shows one diagnostic as FILE:LINE:COLUMN with its remedy.
func writeDiagnostic(b *bytes.Buffer, file string, d agentic.Diagnostic) {
	b.WriteString(escape.Terminal(file))
	if d.Line > 0 {
		fmt.Fprintf(b, ":%d:%d", d.Line, d.Column)
	}
	fmt.Fprintf(b, ": %s: %s [%s]\n", d.Severity, escape.Terminal(d.Problem), d.Code)
	if d.Pointer != "" {
		fmt.Fprintf(b, "    at %s\n", escape.Terminal(d.Pointer))
	}
	if d.Remedy != "" {
		fmt.Fprintf(b, "    %s\n", escape.Terminal(d.Remedy))
	}
}
