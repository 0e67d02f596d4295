package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const adapterHelp = `The process interface of the draft's compatibility runner, for test harnesses.

It reads one JSON object from standard input and prints one receipt:

  profile, openapi         the documents; the origin is http on loopback
  request_id, input        the identity to persist, and the action's input
  ledger_path              a file, or a folder that exists, the same for every call
  test_crash_after_submit  true: exit with 86 and print nothing, after the
                           submission was attempted and before reconciliation

Called again with the same place and identity, it resumes without another POST.
Every receipt exits with 0, whatever its outcome; logs go to standard error. The
documents' own origin is approved, and nothing but loopback is ever reached. Other
members are ignored.`

// maxAdapterInput holds both documents and an input at their limits, with white
// space between the tokens.
const maxAdapterInput = 2 << 20

func (a *app) newAdapter() *cobra.Command {
	return &cobra.Command{
		Use:     "adapter",
		Short:   "The process interface of compatibility runners",
		Long:    adapterHelp,
		Example: `  agentic adapter < scenario.json`,
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.adapter(cmd.Context()) },
	}
}

// scenario is what a harness asks for.
type scenario struct {
	profile, openapi []byte
	input            []byte
	requestID        string
	ledgerPath       string
	crash            bool
}

func parseScenario(data []byte) (s scenario, err error) {
	root, err := strictjson.Parse(data)
	if e, ok := errors.AsType[*strictjson.Error](err); ok { // without the name that it quotes
		return s, fmt.Errorf("%w in line %d, column %d", e.Reason, e.Line, e.Column)
	}
	if err == nil && root.Kind() != strictjson.Object {
		err = errors.New("it is not a JSON object")
	}
	if err != nil {
		return s, err
	}
	member := func(name string, kind strictjson.Kind) strictjson.Value {
		v, _ := root.Member(name)
		if v.Kind() != kind && err == nil {
			err = errors.New(`its member "` + name + `" is ` + v.Kind().String() + ", not " + kind.String())
		}
		return v
	}
	// A document keeps its meaning and its digest without its white space.
	s.profile = member("profile", strictjson.Object).Compact()
	s.openapi = member("openapi", strictjson.Object).Compact()
	s.input = member("input", strictjson.Object).Compact()
	s.requestID, _ = member("request_id", strictjson.String).Text()
	s.ledgerPath, _ = member("ledger_path", strictjson.String).Text()
	if _, given := root.Member("test_crash_after_submit"); given {
		s.crash = member("test_crash_after_submit", strictjson.Bool).Truth()
	}
	if err == nil && (s.requestID == "" || s.ledgerPath == "") {
		err = errors.New(`its members "request_id" and "ledger_path" may not be empty`)
	}
	return s, err
}

func (a *app) adapter(ctx context.Context) error {
	const help = "See 'agentic adapter --help'."
	data, err := documents.Read(ctx, a.stdin, "-", maxAdapterInput)
	if err != nil {
		return err
	}
	if len(data) > maxAdapterInput {
		return advice.New("scenario", fmt.Errorf("standard input is longer than %d bytes", maxAdapterInput), help)
	}
	s, err := parseScenario(data)
	if err != nil {
		return advice.New("scenario", fmt.Errorf("standard input is not a scenario: %w", err), help)
	}
	plan, err := agentic.Load(s.profile, s.openapi, "", agentic.Options{AllowLoopback: true})
	if err != nil {
		return inScenario(err)
	}
	if !strings.HasPrefix(plan.Origin, "http://") { // a valid profile has http on loopback only
		return advice.New("scenario", fmt.Errorf("the origin %s is not http on loopback, and the adapter is for nothing else", plan.Origin), "For other origins use 'agentic run'.")
	}
	path := s.ledgerPath
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "ledger.db")
	}
	reach := reachFlags{approve: []string{plan.Origin}, allowLoopback: true}
	lf := ledgerFlags{path: path, principal: defaultScope, environment: defaultScope}
	a.ledgerArgs, a.reachArgs = lf.args(), reach.args()
	l, err := a.openLedger(ctx, path)
	if err != nil {
		return err
	}
	defer a.closeLedger(l)
	c, err := a.newClient(l, plan.Origin, nil, &reach, &lf, func(cfg *client.Config) {
		cfg.KillPoint = func(p client.Point) {
			if s.crash && p == client.AfterSubmit {
				os.Exit(exitCrashed)
			}
		}
	})
	if err != nil {
		return err
	}
	done := a.executing()
	// A harness names the identity of every action itself, and may give one input
	// under many: each is meant.
	res, err := c.Execute(ctx, client.Request{Plan: plan, Input: s.input, ID: s.requestID, AllowDuplicate: true})
	done()
	if err != nil {
		return inScenario(unsettled(err, res.RequestID, res.Sent, true)) // a harness calls again
	}
	return a.saved(a.writeJSON(res.Receipt), res.RequestID, string(res.Receipt.Outcome))
}

// inScenario is an error in the words of a scenario, which has members and no
// flags. Its documents were parsed without their white space, so a line and a
// column would name no place in it.
func inScenario(err error) error {
	if e, ok := errors.AsType[*agentic.InvalidError](err); ok {
		return &agentic.InvalidError{Diagnostics: withoutLines(e.Diagnostics)}
	}
	if e, ok := errors.AsType[*agentic.InputError](err); ok {
		return &agentic.InputError{Diagnostics: withoutLines(e.Diagnostics)}
	}
	if e, ok := errors.AsType[*agentic.UnknownActionError](err); ok {
		return advice.New("scenario", fmt.Errorf("the profile has %d actions", len(e.Known)), "A scenario does not name one, so its profile has to have one action.")
	}
	if e, ok := errors.AsType[*client.RequestIDError](err); ok {
		return advice.New("scenario", errors.New(`"request_id" is "`+e.RequestID+`"`), "Give 8 to 128 characters of A-Z, a-z, 0-9, _ and -.")
	}
	if e, ok := errors.AsType[*client.BindingError](err); ok {
		return advice.New("bound-to-another", e, "Give each scenario a request_id or a ledger_path of its own.")
	}
	return err
}

func withoutLines(found agentic.Diagnostics) agentic.Diagnostics {
	found = slices.Clone(found)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}
