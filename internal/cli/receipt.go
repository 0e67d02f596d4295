package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/render"
)

const maxReceiptFile = 1 << 20

func (a *app) newReceipt() *cobra.Command {
	cmd := &cobra.Command{Use: "receipt", Short: "Work with receipts", Long: "Work with receipts. A receipt is the record of one observation; it is no signature and no proof that the service is honest."}
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check the form of a receipt",
		Long: `Check a receipt against the receipt schema of the draft (section 7).

Only the form is checked: whether the receipt is true is for its reader to judge.
'-' reads standard input. Exit code 0 means a well-formed receipt, whatever its
outcome.`,
		Example: "  agentic receipt check receipt.json\n  agentic run ... --json | agentic receipt check -",
		Args:    arguments(1, 1, "FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.checkReceipt(cmd.Context(), args[0]) },
	}
	a.jsonFlag(check)
	cmd.AddCommand(check)
	a.asGroup(cmd)
	return cmd
}

func (a *app) checkReceipt(ctx context.Context, name string) error {
	data, err := documents.Read(ctx, a.stdin, name, maxReceiptFile)
	if err != nil {
		return err
	}
	if len(data) > maxReceiptFile {
		return advice.New("file", fmt.Errorf("%s is longer than %d bytes, which no receipt is", name, maxReceiptFile), "Look whether it is the file that you mean.")
	}
	r, found := agentic.ParseReceipt(data)
	if r == nil {
		a.exit = exitError
	}
	if a.json {
		return a.writeJSON(struct {
			Valid       bool                `json:"valid"`
			Outcome     agentic.Outcome     `json:"outcome,omitempty"`
			RequestID   string              `json:"request_id,omitempty"`
			Diagnostics agentic.Diagnostics `json:"diagnostics"`
		}{r != nil, outcomeOf(r), requestOf(r), render.Unique(found)})
	}
	var b bytes.Buffer
	for _, d := range found {
		render.Diagnostic(&b, name, d)
	}
	if r == nil {
		fmt.Fprintf(&b, "invalid: %s\n", render.Count(found))
		return a.print(b.Bytes())
	}
	b.Write(render.Summary(*r))
	fmt.Fprintln(&b, "valid: the form of a receipt; whether it is true is for its reader to judge")
	return a.print(b.Bytes())
}

func outcomeOf(r *agentic.Receipt) agentic.Outcome {
	if r == nil {
		return ""
	}
	return r.Outcome
}

func requestOf(r *agentic.Receipt) string {
	if r == nil {
		return ""
	}
	return r.RequestID
}
