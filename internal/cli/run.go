package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/inputschema"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/transport"
)

const runHelp = `Run one action: save the request, send it at most once, follow its status, verify
the evidence, and print the receipt.

PROFILE is a file or a URL. From a URL, the URL's origin must be approved and must
be the profile's own. The OpenAPI document is --openapi FILE; without it, it is read
from the profile's origin. Nothing is read from, or sent to, an origin that is not
approved with --approve, whatever the profile says.

On a terminal the command shows what it would send and asks. --yes skips the
question, for a caller that has authorized the action itself. Without a terminal
and without --yes it refuses, before anything is read or saved.

The request is in the ledger before it is sent, and what may have been sent is
never sent again. Give --request-id to name the request yourself: the same ID asks
again about the same request, without a second write. Under another ID the same
action with the same input is refused while the earlier one is open, because it
could happen twice; --allow-duplicate says that a second one is meant.

Progress goes to standard error, the receipt to standard output as JSON. pending
and unknown (exit codes 4 and 5) can be settled later with 'agentic resume'.
Ctrl-C (exit code 1) leaves the request in the ledger, to be resumed.`

const prepareHelp = `Check an action, its input and its destination, and save the request without
sending it, for example while somebody approves it. The request's ID and what it is
bound to are printed.

'agentic resume ID --send' sends it, once. The flags are those of run; --yes is
accepted and asks nothing, because nothing is sent.`

// runFlags are the flags of run and prepare.
type runFlags struct {
	reachFlags
	ledgerFlags
	openapi   string
	action    string
	input     string
	requestID string
	yes       bool

	allowDuplicate  bool
	duplicateWindow time.Duration
}

func (f *runFlags) add(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.openapi, "openapi", "", "OpenAPI document `FILE` (default: read from the profile's approved origin)")
	cmd.Flags().StringVar(&f.action, "action", "", "`ID` of the action (default: the profile's only one)")
	cmd.Flags().StringVar(&f.input, "input", "", "the input, a JSON object: `JSON`, @FILE, or - for standard input (required)")
	cmd.Flags().StringVar(&f.requestID, "request-id", "", "`ID` of the request, 8 to 128 of A-Z a-z 0-9 _ - (default: a new one)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask: the action is already authorized")
	cmd.Flags().BoolVar(&f.allowDuplicate, "allow-duplicate", false, "a second one is meant, although the same action with the same input is open or has succeeded")
	cmd.Flags().DurationVar(&f.duplicateWindow, "duplicate-window", 0, "also refuse what has succeeded less than this `DURATION` ago, such as 24h (default: only what is open)")
	f.ledgerFlags.add(cmd)
	f.reachFlags.add(cmd)
	a.jsonFlag(cmd)
	complete(cmd, "duplicate-window", "1h", "24h", "168h")
	complete(cmd, "input")
	complete(cmd, "request-id")
	_ = cmd.RegisterFlagCompletionFunc("action", a.completeAction)
}

// completeAction offers the actions of the profile that is already typed.
func (a *app) completeAction(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || documents.IsURL(args[0]) || args[0] == "-" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	data, err := documents.Read(cmd.Context(), a.stdin, args[0], agentic.MaxProfileBytes)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, _ := agentic.ParseProfile(data, agentic.Options{AllowLoopback: true})
	if p == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, action := range p.Actions {
		ids = append(ids, action.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run PROFILE --input JSON|@FILE|-",
		Short: "Run an action at most once and print its receipt",
		Long:  runHelp,
		Example: `  agentic run https://support.example/agentic.json --approve https://support.example \
      --input '{"subject":"The printer is on fire"}' --header-from-env 'Authorization=SUPPORT_AUTH'
  agentic run agentic.json --openapi openapi.json --approve https://support.example --input @ticket.json --yes --json`,
		Args: arguments(1, 1, "PROFILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAction(cmd.Context(), args[0], &f) },
	}
	f.add(a, cmd)
	return cmd
}

func (a *app) newPrepare() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "prepare PROFILE --input JSON|@FILE|-",
		Short:   "Save a request without sending it",
		Long:    prepareHelp,
		Example: "  agentic prepare agentic.json --openapi openapi.json --approve https://support.example --input @ticket.json",
		Args:    arguments(1, 1, "PROFILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.prepareAction(cmd.Context(), args[0], &f) },
	}
	f.add(a, cmd)
	return cmd
}

// session is an action that is ready to be saved: everything is checked that can
// be checked before.
type session struct {
	client *client.Client
	ledger ledger
	plan   *agentic.Plan
	input  agentic.Input

	unchecked string // why the input was not checked against the request schema
}

func (s *session) request(f *runFlags) client.Request {
	return client.Request{Plan: s.plan, Input: s.input.Body(), ID: f.requestID, AllowDuplicate: f.allowDuplicate}
}

// maxInputFile bounds what is read as an input; agentic.Plan.CheckInput has the
// limit that counts.
const maxInputFile = 1 << 20

// readInput gives the action's input from --input: JSON, @FILE or -.
func (a *app) readInput(ctx context.Context, flag string) ([]byte, error) {
	name, file := strings.CutPrefix(flag, "@")
	if !file && flag != "-" {
		return []byte(flag), nil
	}
	a.names["input"] = name
	return documents.Read(ctx, a.stdin, name, maxInputFile)
}

// check refuses flags that cannot be acted on, before anything is read.
func (f *runFlags) check(profile string) error {
	switch {
	case f.input == "":
		return advice.BadUsage("--input is missing", "Give the action's input as --input JSON, --input @FILE or --input -.")
	case f.duplicateWindow < 0:
		return advice.BadUsage("--duplicate-window "+f.duplicateWindow.String()+" is below zero", "Give how long a success counts, or --allow-duplicate if a second one is meant.")
	case f.fromStdin(profile) > 1:
		return advice.BadUsage("standard input can hold only one of the profile, the OpenAPI document and the input", "Save the others to files.")
	case f.requestID != "":
		if err := checkRequestID(f.requestID); err != nil {
			return err
		}
	}
	return f.ledgerFlags.checkNew()
}

// checkRequestID refuses an ID that no request can have (D7).
func checkRequestID(id string) error {
	if client.ValidRequestID(id) {
		return nil
	}
	return &client.RequestIDError{RequestID: id}
}

// begin checks flags, documents, input and approval, in this order, and then opens
// the ledger.
func (a *app) begin(ctx context.Context, profile string, f *runFlags) (*session, error) {
	a.ledgerArgs, a.reachArgs, a.begins = f.ledgerFlags.args(), f.reachFlags.args(), true
	if err := f.check(profile); err != nil {
		return nil, err
	}
	header, err := a.header(headerFlag, f.headers)
	if err != nil {
		return nil, err
	}
	input, err := a.readInput(ctx, f.input)
	if err != nil {
		return nil, err
	}
	t, err := f.transport("", nil)
	if err != nil {
		return nil, err
	}
	defer t.CloseIdleConnections()
	plan, err := a.findPlan(ctx, t, &f.reachFlags, profile, f.openapi, f.action)
	if err != nil {
		return nil, err
	}
	in, err := plan.CheckInput(input)
	if e, ok := errors.AsType[*agentic.InputError](err); ok {
		e.Diagnostics = documents.Truthful(e.Diagnostics, input, maxInputFile)
	}
	if err != nil {
		return nil, err
	}
	unchecked, err := a.checkSchema(plan, in)
	if err != nil {
		return nil, err
	}
	l, err := a.openLedger(ctx, f.path)
	if err != nil {
		return nil, unsettled(err, f.requestID, false, true)
	}
	c, err := a.newClient(l, plan.Origin, header, &f.reachFlags, &f.ledgerFlags, func(cfg *client.Config) { cfg.DuplicateWindow = f.duplicateWindow })
	if err != nil {
		a.closeLedger(l)
		return nil, err
	}
	return &session{c, l, plan, in, unchecked}, nil
}

// findPlan finds the documents of an action, shows their warnings, and refuses an
// origin that is not approved.
func (a *app) findPlan(ctx context.Context, t *transport.Transport, f *reachFlags, profile, openapi, action string) (*agentic.Plan, error) {
	source := documents.Source{Stdin: a.stdin, Transport: t, Names: a.names, Options: agentic.Options{AllowLoopback: f.allowLoopback}}
	plan, err := source.Plan(ctx, profile, openapi, action)
	if err != nil {
		return nil, err
	}
	a.warn(plan.Warnings)
	if err := t.Approve(plan.Origin, plan.Action.ID); err != nil {
		return nil, err
	}
	return plan, nil
}

// warn shows what does not make a pair of documents unusable.
func (a *app) warn(ds agentic.Diagnostics) {
	var b bytes.Buffer
	for _, d := range ds {
		render.Diagnostic(&b, a.names.Of(d.Document), d)
	}
	_, _ = a.stderr.Write(b.Bytes()) // warnings are not worth an error
}

// checkSchema keeps an input at home that the OpenAPI document does not allow
// (D18). What a schema that cannot be checked has to say is for the service to
// judge; unchecked says why then, in at most 300 characters.
func (a *app) checkSchema(plan *agentic.Plan, in agentic.Input) (unchecked string, err error) {
	schema := plan.RequestSchema()
	if schema == nil {
		return "", nil
	}
	found, err := inputschema.Check(schema, in.Body())
	if err != nil {
		unchecked = escape.Bounded(render.OneLine(err.Error()), 300)
		a.say("the input was not checked against the request schema: %s", unchecked)
		return unchecked, nil
	}
	if found.HasErrors() {
		return "", &agentic.InputError{Diagnostics: found}
	}
	return "", nil
}

func (a *app) runAction(ctx context.Context, profile string, f *runFlags) error {
	if err := a.gate(f.yes, f.fromStdin(profile) > 0); err != nil {
		return err
	}
	s, err := a.begin(ctx, profile, f)
	if err != nil {
		return err
	}
	defer a.closeLedger(s.ledger)
	return a.execute(ctx, s, f)
}

// fromStdin counts what is to be read from standard input.
func (f *runFlags) fromStdin(profile string) (n int) {
	for _, name := range []string{profile, f.openapi, strings.TrimPrefix(f.input, "@")} {
		if name == "-" {
			n++
		}
	}
	return n
}

func (a *app) execute(ctx context.Context, s *session, f *runFlags) error {
	ask, attempted := !f.yes, false
	w := render.Sending{Plan: s.plan, Input: s.input, Scope: f.scope(), RequestID: f.requestID}
	if f.requestID != "" {
		rec, err := s.client.Load(ctx, f.requestID)
		if _, missing := errors.AsType[*client.NotFoundError](err); err != nil && !missing {
			return unsettled(err, f.requestID, false, true)
		}
		if rec != nil {
			ask, attempted, w.Supersedes = ask && sendable(rec), rec.State == client.Attempted, superseded(ctx, s.ledger, rec)
		}
		if attempted {
			a.say("request %s is already saved: it is not sent again", escape.Terminal(f.requestID))
		}
	}
	if ask {
		if err := a.confirm(ctx, w); err != nil {
			return err
		}
	}
	return a.settle(attempted, func() (client.Result, error) {
		return s.client.Execute(ctx, s.request(f))
	})
}

func (a *app) prepareAction(ctx context.Context, profile string, f *runFlags) error {
	s, err := a.begin(ctx, profile, f)
	if err != nil {
		return err
	}
	defer a.closeLedger(s.ledger)
	done := a.executing()
	rec, err := s.client.Prepare(ctx, s.request(f))
	done()
	if err != nil {
		return unsettled(err, f.requestID, false, false)
	}
	if rec.State == client.Prepared {
		a.say("To send it: %s", escape.Quoted(a.resumeCommand(rec.RequestID, " --send")))
		a.say("%s", render.Until(rec, time.Now()))
	}
	return a.saved(a.writeRecord(rec, s.unchecked), rec.RequestID, string(rec.State))
}
