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
		{&usageError{hostile, "See help."}, "usage", exitUsage, "See help."},
		{&remedyError{errors.New(hostile), "fetch", "Look."}, "fetch", exitError, "Look."},
		{errDeclined, "declined", exitError, "answer y"},
		{&agentic.InvalidError{Diagnostics: diagnostics}, "invalid-document", exitError, ""},
		{&agentic.InputError{Diagnostics: diagnostics}, "invalid-input", exitError, ""},
		{&agentic.UnknownActionError{Action: hostile, Known: []string{hostile}}, "unknown-action", exitError, "--action"},
		{&client.BindingError{RequestID: "request-1", Differences: []client.Difference{{Field: "origin", Saved: hostile, Asked: "b"}}}, "bound-to-another", exitError, "agentic resume request-1 --ledger x"},
		{&client.HeldError{RequestID: "request-1"}, "held", exitError, "agentic resume request-1 --ledger x"},
		{&client.NotFoundError{RequestID: hostile}, "not-found", exitError, "agentic requests list"},
		{&client.PreparedError{RequestID: "request-1"}, "prepared", exitError, "agentic resume request-1 --ledger x --send"},
		{&client.RequestIDError{RequestID: hostile}, "request-id", exitUsage, "another request ID"},
		{&client.OriginError{Origin: "http://127.0.0.1:1", Reason: "no"}, "origin-not-approved", exitError, "--approve http://127.0.0.1:1 --allow-loopback"},
		{fmt.Errorf("first: %w", &client.OriginError{Origin: "https://a.example", Reason: hostile}), "origin-not-approved", exitError, "--approve https://a.example."},
		{&client.InterruptedError{RequestID: "request-1", Saved: true, Err: context.Canceled}, "interrupted", exitError, "agentic resume request-1 --ledger x"},
		{&client.InterruptedError{RequestID: "request-1", Err: context.Canceled}, "interrupted", exitError, "agentic requests show request-1 --ledger x"},
		{errors.Join(&client.InterruptedError{RequestID: "request-1", Saved: true, Err: context.Canceled}, &client.LedgerError{Op: "observe", Err: errors.New(hostile)}), "interrupted", exitError, "agentic resume"},
		{client.ErrLost, "lost", exitError, "--open"},
		{&client.LedgerError{Op: "open", Err: errors.New(hostile)}, "ledger", exitError, "--ledger"},
		{context.Canceled, "interrupted", exitError, ""},
		{&fs.PathError{Op: "open", Path: hostile, Err: fs.ErrNotExist}, "file", exitError, "name of the file"},
		{errors.New(hostile), "error", exitError, ""},
	} {
		var out, diag bytes.Buffer
		a := &app{stdout: &out, stderr: &diag, json: true, ledgerArgs: " --ledger x"}
		exit := a.fail(tt.err)
		var got struct{ Error failure }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%T: %v in %q", tt.err, err, out.String())
		}
		if got.Error.Code != tt.code || exit != tt.exit || !strings.Contains(got.Error.Remedy, tt.remedy) || !strings.Contains(diag.String(), tt.remedy) {
			t.Errorf("%T: code %s, exit code %d, stderr %q; want %s, %d and %q", tt.err, got.Error.Code, exit, diag.String(), tt.code, tt.exit, tt.remedy)
		}
		if strings.ContainsAny(out.String()+diag.String(), "\x1b\u202e") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%T: stdout %q, stderr %q", tt.err, out.String(), diag.String())
		}
	}
}

func TestOutcomeExit(t *testing.T) {
	for o, want := range map[agentic.Outcome]int{agentic.Succeeded: 0, agentic.Failed: 3, agentic.Pending: 4, agentic.Unknown: 5, "": 5, "great": 5} {
		if got := outcomeExit(o); got != want {
			t.Errorf("outcomeExit(%q) = %d, want %d", o, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"https://support.example:8443": "https://support.example:8443",
		"":                             "''",
		"it's me":                      `'it'\''s me'`,
		"$(id)":                        "'$(id)'",
		"[::1]":                        "'[::1]'",
		"~/x":                          "'~/x'",
		"naïve":                        "'naïve'",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	got := string(table([][]string{{"A", "LONG", "C"}, {"größer", "x", "y"}}))
	if want := "A       LONG  C\ngrößer  x     y\n"; got != want {
		t.Errorf("table = %q, want %q", got, want)
	}
}

// Every command explains itself, and every flag with a value can be completed.
func TestCommandsAreDescribed(t *testing.T) {
	files := map[string]bool{"openapi": true, "ledger": true, "db": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
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
