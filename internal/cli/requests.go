package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

func (a *app) newRequests() *cobra.Command {
	cmd := &cobra.Command{Use: "requests", Short: "Look at saved requests", Long: "Look at the requests in the ledger. Nothing is sent and nothing is changed."}
	cmd.AddCommand(a.newRequestsList(), a.newRequestsShow())
	asGroup(cmd)
	return cmd
}

func (a *app) newRequestsList() *cobra.Command {
	var (
		ledger  ledgerFlags
		filter  client.Filter
		outcome string
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List saved requests, newest first",
		Long: `List the requests of one principal and environment, newest first.

--open leaves out what is final: what remains was prepared, attempted without a
receipt, pending or unknown, and can be resumed.`,
		Example: "  agentic requests list --open\n  agentic requests list --outcome unknown --json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter.Outcome = agentic.Outcome(outcome)
			if outcome != "" && !filter.Outcome.Valid() {
				return &usageError{fmt.Sprintf("--outcome %q is none of succeeded, failed, pending and unknown", outcome), "Name one of the four."}
			}
			if filter.Limit < 0 {
				return &usageError{"--limit is below zero", "Give how many requests to list at most, or 0 for all."}
			}
			return a.listRequests(cmd.Context(), ledger, filter)
		},
	}
	cmd.Flags().BoolVar(&filter.Open, "open", false, "only requests without a final receipt")
	cmd.Flags().StringVar(&outcome, "outcome", "", "only requests whose last receipt has this `OUTCOME`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most `N` requests (0 is all)")
	complete(cmd, "outcome", string(agentic.Succeeded), string(agentic.Failed), string(agentic.Pending), string(agentic.Unknown))
	ledger.add(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// requestLine is one request of a listing.
type requestLine struct {
	RequestID string          `json:"request_id"`
	ActionID  string          `json:"action_id"`
	Origin    string          `json:"origin"`
	State     client.State    `json:"state"`
	Outcome   agentic.Outcome `json:"outcome"` // "" without a receipt
	CreatedAt string          `json:"created_at"`
	SeenAt    string          `json:"seen_at"`
}

func (a *app) listRequests(ctx context.Context, lf ledgerFlags, filter client.Filter) (err error) {
	ledger, err := a.openSavedLedger(ctx, lf.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	list, err := ledger.List(ctx, lf.scope(), filter)
	if err != nil {
		return err
	}
	lines := make([]requestLine, len(list))
	rows := [][]string{{"REQUEST", "OUTCOME", "STATE", "CREATED", "ACTION", "ORIGIN"}}
	for i, s := range list {
		lines[i] = requestLine{s.RequestID, s.ActionID, s.Origin, s.State, s.Outcome, agentic.FormatTime(s.CreatedAt), agentic.FormatTime(s.SeenAt)}
		outcome := string(s.Outcome)
		if outcome == "" {
			outcome = "-"
		}
		rows = append(rows, []string{escape.Terminal(s.RequestID), escape.Terminal(outcome), escape.Terminal(string(s.State)),
			s.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"), escape.Terminal(s.ActionID), escape.Terminal(s.Origin)})
	}
	if a.json {
		return a.writeJSON(lines)
	}
	if len(list) == 0 {
		a.say("no such requests of principal %s in environment %s", escape.Terminal(lf.principal), escape.Terminal(lf.environment))
		return nil
	}
	return a.print(table(rows))
}

func (a *app) newRequestsShow() *cobra.Command {
	var ledger ledgerFlags
	cmd := &cobra.Command{
		Use:   "show REQUEST_ID",
		Short: "Show everything that is saved of a request",
		Long: `Show what the ledger holds of one request: what it is bound to, its times, every
exchange with what was expected and found, and every receipt. The input and the
found values are shown too; they can be sensitive.`,
		Example: "  agentic requests show order-2026-117\n  agentic requests show order-2026-117 --json",
		Args:    arguments(1, 1, "REQUEST_ID"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			l, err := a.openSavedLedger(cmd.Context(), ledger.path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, l.Close()) }()
			a.ledgerArgs = ledger.args()
			rec, err := l.Load(cmd.Context(), ledger.scope(), args[0])
			if err != nil {
				return err
			}
			return a.writeRecord(rec)
		},
	}
	ledger.add(cmd)
	a.jsonFlag(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// record is a client.Record for readers; the snapshots are named by their digests.
type record struct {
	RequestID    string               `json:"request_id"`
	Principal    string               `json:"principal"`
	Environment  string               `json:"environment"`
	Origin       string               `json:"origin"`
	ActionID     string               `json:"action_id"`
	State        client.State         `json:"state"`
	Outcome      agentic.Outcome      `json:"outcome"` // "" without a receipt
	CreatedAt    string               `json:"created_at"`
	AttemptedAt  *string              `json:"attempted_at"`
	SeenAt       string               `json:"seen_at"`
	Profile      string               `json:"profile_digest"`
	OpenAPI      string               `json:"openapi_digest"`
	InputDigest  string               `json:"input_digest"`
	Input        json.RawMessage      `json:"input"`
	Observations []client.Observation `json:"observations"`
	Receipts     []agentic.Receipt    `json:"receipts"`
}

// writeRecord prints a request, as JSON or for people.
func (a *app) writeRecord(rec *client.Record) error {
	r := record{
		RequestID: rec.RequestID, Principal: rec.Scope.Principal, Environment: rec.Scope.Environment,
		Origin: rec.Origin, ActionID: rec.ActionID, State: rec.State,
		CreatedAt: agentic.FormatTime(rec.CreatedAt), SeenAt: agentic.FormatTime(rec.SeenAt),
		Profile: rec.Profile.Digest, OpenAPI: rec.OpenAPI.Digest, InputDigest: rec.InputDigest, Input: rec.Input,
		Observations: append([]client.Observation{}, rec.Observations...),
		Receipts:     append([]agentic.Receipt{}, rec.Receipts...),
	}
	if !rec.AttemptedAt.IsZero() {
		at := agentic.FormatTime(rec.AttemptedAt)
		r.AttemptedAt = &at
	}
	if last := rec.Last(); last != nil {
		r.Outcome = last.Outcome
	}
	if a.json {
		return a.writeJSON(r)
	}
	return a.print(r.text())
}

func (r record) text() []byte {
	var b bytes.Buffer
	field(&b, "request", escape.Terminal(r.RequestID))
	field(&b, "action", escape.Terminal(r.ActionID)+" of "+escape.Terminal(r.Origin))
	field(&b, "principal", escape.Terminal(r.Principal)+" in environment "+escape.Terminal(r.Environment))
	switch {
	case r.Outcome != "":
		field(&b, "outcome", escape.Terminal(string(r.Outcome)))
	case r.State == client.Prepared:
		field(&b, "outcome", "none: prepared and never sent")
	default:
		field(&b, "outcome", "none: attempted, and no receipt yet; resume it")
	}
	field(&b, "created", r.CreatedAt)
	if r.AttemptedAt != nil {
		field(&b, "attempted", *r.AttemptedAt)
	}
	field(&b, "last seen", r.SeenAt)
	field(&b, "profile", "sha256 "+escape.Terminal(r.Profile))
	field(&b, "openapi", "sha256 "+escape.Terminal(r.OpenAPI))
	block(&b, "input", r.Input)
	fmt.Fprintf(&b, "\n%s\n", plural(len(r.Observations), "exchange"))
	for i, o := range r.Observations {
		writeExchange(&b, i+1, o)
	}
	fmt.Fprintf(&b, "\n%s\n", plural(len(r.Receipts), "receipt"))
	for _, receipt := range r.Receipts {
		b.Write(receiptText(receipt))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func writeExchange(b *bytes.Buffer, n int, o client.Observation) {
	fmt.Fprintf(b, "%3d. %-6s %s  %s", n, escape.Terminal(string(o.Kind)), agentic.FormatTime(o.At), escape.Terminal(exchangeText(o)))
	if o.Class != "" {
		fmt.Fprintf(b, ", %s", escape.Terminal(string(o.Reach)))
	}
	if o.Outcome != "" {
		fmt.Fprintf(b, ", says %s", escape.Terminal(string(o.Outcome)))
	}
	b.WriteByte('\n')
	for _, c := range o.Checks {
		if c.OK {
			fmt.Fprintf(b, "       ok     %s: %s\n", escape.Terminal(c.Name), escape.Terminal(c.Found))
			continue
		}
		fmt.Fprintf(b, "       wrong  %s: expected %s, found %s\n", escape.Terminal(c.Name), escape.Terminal(c.Expected), escape.Terminal(c.Found))
	}
}
