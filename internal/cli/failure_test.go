package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
)

// Every error that a command can end with has a code, an exit code, and words
// about what to do; hostile text in it is shown as text.
func TestFail(t *testing.T) {
	const hostile = "\x1b[2J\u202e\nx"
	diagnostics := agentic.Diagnostics{{Severity: agentic.SeverityError, Code: "profile/x", Document: "profile", Pointer: "/" + hostile, Line: 1, Column: 2, Problem: hostile, Remedy: hostile}}
	for _, tt := range []struct {
		err    error
		code   string
		exit   int
		remedy string
	}{
		{advice.BadUsage(hostile, "See help."), "usage", exitUsage, "See help."},
		{advice.New("fetch", errors.New(hostile), "Look."), "fetch", exitError, "Look."},
		{errDeclined, "declined", exitError, "answer y"},
		{&agentic.InvalidError{Diagnostics: diagnostics}, "invalid-document", exitError, ""},
		{&agentic.InputError{Diagnostics: diagnostics}, "invalid-input", exitError, ""},
		{&agentic.UnknownActionError{Action: hostile, Known: []string{hostile}}, "unknown-action", exitError, "--action"},
		{&client.BindingError{RequestID: "request-1", Differences: []client.Difference{{Field: "origin", Saved: hostile, Asked: "b"}}}, "bound-to-another", exitError, "agentic resume request-1 --ledger x"},
		{&client.HeldError{RequestID: "request-1"}, "held", exitError, "agentic resume request-1 --ledger x"},
		{&client.NotFoundError{RequestID: hostile, Scope: client.Scope{Principal: hostile}}, "not-found", exitError, "agentic requests list"},
		{&client.PreparedError{RequestID: "request-1"}, "prepared", exitError, "agentic resume request-1 --ledger x --send"},
		{&client.PreparedError{RequestID: "-request-1"}, "prepared", exitError, "agentic resume --ledger x --send -- -request-1"},
		{&client.ExpiredError{RequestID: "request-1"}, "expired", exitError, "agentic requests supersede request-1 --ledger x --reason TEXT"},
		{&client.RequestIDError{RequestID: hostile}, "request-id", exitUsage, "has the IDs that are saved"},
		{&client.OriginError{Origin: "http://127.0.0.1:1", Reason: "no"}, "origin-not-approved", exitError, "--approve http://127.0.0.1:1 --allow-loopback"},
		{&client.OriginError{Origin: "http://[::1]:81", Reason: "no"}, "origin-not-approved", exitError, "--approve 'http://[::1]:81' --allow-loopback"},
		{&client.OriginError{Origin: "http://[::1]:80", Reason: "no"}, "origin-not-approved", exitError, "No --approve can help: the origin names the default port"},
		{&client.OriginError{Origin: "http://a.example", Reason: "no"}, "origin-not-approved", exitError, "HTTP is for localhost, 127.0.0.1 and [::1] only"},
		{&client.OriginError{Origin: `"https://\x1b"`, Reason: "no"}, "origin-not-approved", exitError, "not visible ASCII"},
		{fmt.Errorf("first: %w", &client.OriginError{Origin: "https://a.example", Reason: hostile}), "origin-not-approved", exitError, "--approve https://a.example"},
		{&client.InterruptedError{RequestID: "request-1", Saved: true, Err: context.Canceled}, "interrupted", exitError, "agentic resume request-1 --ledger x"},
		{&client.InterruptedError{RequestID: "request-1", Err: context.Canceled}, "interrupted", exitError, "agentic requests show request-1 --ledger x"},
		{errors.Join(&client.InterruptedError{RequestID: "request-1", Saved: true, Err: context.Canceled}, &client.LedgerError{Op: "observe", Err: errors.New(hostile)}), "interrupted", exitError, "agentic resume"},
		{client.ErrLost, "lost", exitError, "--open"},
		{&client.LedgerError{Op: "load", Err: errors.New(hostile)}, "ledger", exitError, "Mend this ledger"},
		{context.Canceled, "interrupted", exitError, "Run it again"},
		{&fs.PathError{Op: "open", Path: hostile, Err: fs.ErrNotExist}, "file", exitError, "name of the file"},
		{&fs.PathError{Op: "open", Path: "127.0.0.1:5801/agentic.json", Err: fs.ErrNotExist}, "file", exitError, "begin it with https://"},
		{&fs.PathError{Op: "open", Path: "support.example/agentic.json", Err: fs.ErrNotExist}, "file", exitError, "begin it with https://"},
		{&fs.PathError{Op: "open", Path: "profiles/agentic.json", Err: fs.ErrNotExist}, "file", exitError, "name of the file"},
		{errors.New(hostile), "error", exitError, ""},
	} {
		var out, diag bytes.Buffer
		a := &app{stdout: &out, stderr: &diag, json: true, ledgerArgs: " --ledger x", begins: true}
		exit := a.fail(tt.err)
		var got struct{ Error failure }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%T: %v in %q", tt.err, err, out.String())
		}
		if got.Error.Code != tt.code || exit != tt.exit || !strings.Contains(got.Error.Remedy, tt.remedy) || !strings.Contains(diag.String(), tt.remedy) {
			t.Errorf("%T: code %s, exit code %d, stderr %q; want %s, %d and %q", tt.err, got.Error.Code, exit, diag.String(), tt.code, tt.exit, tt.remedy)
		}
		if strings.Contains(diag.String(), `\\x1b`) {
			t.Errorf("%T: escaped twice: %s", tt.err, diag.String())
		}
		if strings.ContainsAny(out.String()+diag.String(), "\x1b\u202e") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%T: stdout %q, stderr %q", tt.err, out.String(), diag.String())
		}
	}
}

// An error that leaves open what became of a request names it, in words and in
// JSON, and leads back to this ledger; another one would send the action again.
func TestFailUnsettled(t *testing.T) {
	ledgerError := &client.LedgerError{Op: "finish", Err: errors.New("disk full")}
	cancelled := func(saved bool) error {
		return &client.InterruptedError{RequestID: "request-1", Saved: saved, Err: context.Canceled}
	}
	const (
		resume = "agentic resume request-1 --ledger x --approve https://a.example"
		show   = "agentic requests show request-1 --ledger x\n"
		mend   = "Mend this ledger and ask again. Do not use another ledger for an action that may be in this one"
		may    = "the action may have been sent as request request-1"
		before = "nothing was sent by this command, and request request-1 may have been sent before it"
		saved  = "nothing was sent by this command, and request request-1 may be saved"
	)
	for _, tt := range []struct {
		name            string
		err             error
		sent, attempted bool
		code            string
		want            []string
	}{
		{"ledger after the POST", ledgerError, true, false, "ledger", []string{may, mend, resume, "disk full"}},
		{"ledger, sent before", ledgerError, false, true, "ledger", []string{before, mend, resume}},
		{"ledger, new", ledgerError, false, false, "ledger", []string{saved, mend, show}},
		{"lost after the POST", client.ErrLost, true, false, "lost", []string{may, resume}},
		{"lost, sent before", fmt.Errorf("x: %w", client.ErrLost), false, true, "lost", []string{before, resume}},
		{"interrupted after the POST", cancelled(true), true, false, "interrupted", []string{may, resume}},
		{"interrupted and ledger", errors.Join(cancelled(true), ledgerError), true, false, "interrupted", []string{may, mend, resume, "disk full"}},
		{"interrupted, sent before", cancelled(false), false, true, "interrupted", []string{before, resume}},
		{"interrupted, saved", cancelled(true), false, false, "interrupted", []string{saved, resume}},
		{"interrupted, new", cancelled(false), false, false, "interrupted", []string{saved, show}},
		{"cancelled while it is looked up", context.Canceled, false, true, "interrupted", []string{before, resume}},
		{"anything after the POST", errors.New("disk full"), true, false, "error", []string{may, resume, "disk full"}},
	} {
		var out, diag bytes.Buffer
		a := &app{stdout: &out, stderr: &diag, json: true, ledgerArgs: " --ledger x", reachArgs: " --approve https://a.example"}
		exit := a.fail(unsettled(tt.err, "request-1", tt.sent, tt.attempted))
		var got struct{ Error failure }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Error.RequestID != "request-1" || got.Error.Code != tt.code || exit != exitError {
			t.Errorf("%s: exit code %d, %s (%v)", tt.name, exit, out.String(), err)
		}
		for _, want := range tt.want {
			if !strings.Contains(diag.String(), want) || !strings.Contains(got.Error.Message+got.Error.Remedy+"\n", want) {
				t.Errorf("%s: no %q in %s", tt.name, want, diag.String())
			}
		}
		if strings.Contains(diag.String(), "another place") {
			t.Errorf("%s: leads to another ledger: %s", tt.name, diag.String())
		}
	}
	refused := &client.BindingError{RequestID: "request-1"}
	if got := unsettled(refused, "request-1", false, true); got != error(refused) {
		t.Errorf("a refusal became %v", got)
	}
}

// A verb that is refused is told in a sentence, and what went wrong beside it too.
func TestFailNote(t *testing.T) {
	err := errors.Join(&client.NoteError{RequestID: "request-1", Verb: client.AttestFailed, Reason: "no"}, errors.New("abandon request-2"))
	if f := (&app{}).explain(err); !strings.HasPrefix(f.Message, "request request-1 cannot be attested as failed: no") || !strings.Contains(f.Message, "abandon request-2") {
		t.Errorf("message %q", f.Message)
	}
}

func TestOutcomeExit(t *testing.T) {
	for o, want := range map[agentic.Outcome]int{agentic.Succeeded: 0, agentic.Failed: 3, agentic.Pending: 4, agentic.Unknown: 5, "": 5, "great": 5} {
		if got := outcomeExit(o); got != want {
			t.Errorf("outcomeExit(%q) = %d, want %d", o, got, want)
		}
	}
}

// Every command explains itself, and every flag with a value can be completed.
func TestCommandsAreDescribed(t *testing.T) {
	files := map[string]bool{"openapi": true, "ledger": true, "db": true, "token-file": true, "tokens": true, "config": true, "tls-cert": true, "tls-key": true, "output": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "completion" { // completion is cobra's
				walk(sub)
			}
		}
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" && !cmd.HasSubCommands() {
			t.Errorf("%s lacks a description or an example", cmd.CommandPath())
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			_, found := cmd.GetFlagCompletionFunc(f.Name)
			if valued := f.Value.Type() != "bool" && f.Value.Type() != "int"; valued && !files[f.Name] && !found {
				t.Errorf("%s --%s has no completion", cmd.CommandPath(), f.Name)
			}
		})
	}
	walk((&app{}).newRoot())
}
