package workcmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/telemetry"
	"github.com/agentic-go/agentic/reconcile"
)

// What another execution has is neither settled nor unknown.
func TestWorst(t *testing.T) {
	for want, kinds := range map[agentic.Outcome][]reconcile.Kind{
		agentic.Succeeded: {reconcile.Verified, reconcile.Failed, reconcile.Nothing},
		agentic.Pending:   {reconcile.Verified, reconcile.Held},
		agentic.Unknown:   {reconcile.StillUnknown, reconcile.Held, reconcile.StillPending},
	} {
		var r reconcile.Report
		for _, k := range kinds {
			r.Done = append(r.Done, reconcile.Done{Kind: k})
		}
		if got := worst(r); got != want {
			t.Errorf("%s: %s, want %s", kinds, got, want)
		}
	}
}

var errOpened = errors.New("the ledger was opened")

// standIn is a host whose ledger is a file that must not be opened yet.
type standIn struct{ approved bool }

func (standIn) Leaf(*cobra.Command, int, string)             {}
func (h standIn) ReachAll(cmd *cobra.Command) Reach          { cmd.Flags().Bool("json", false, ""); return h }
func (standIn) Telemetry(bool) (*telemetry.Telemetry, error) { return nil, nil }
func (standIn) Log() *slog.Logger                            { return slog.New(slog.DiscardHandler) }
func (standIn) Exit(agentic.Outcome)                         {}
func (standIn) Check() error                                 { return nil }
func (standIn) Scope() client.Scope                          { return client.Scope{} }
func (h standIn) Approved() bool                             { return h.approved }
func (standIn) InFile() bool                                 { return true }
func (standIn) Open(context.Context, int) (*Opened, error)   { return nil, errOpened }

// A command line that cannot be acted on opens nothing.
func TestRefusedBeforeTheLedger(t *testing.T) {
	for line, want := range map[string]string{
		"reconcile --concurrency 0":                       "--concurrency is not above 0",
		"reconcile --origin-rate 0":                       "--origin-rate is not above 0",
		"work --origin-rate NaN":                          "--origin-rate is not above 0",
		"work --origin-concurrency 10001":                 "at most 10000",
		"work --poll-only":                                "this one is a file",
		"reconcile --concurrency 10000 --origin-rate 1e4": "",
	} {
		root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
		c := New(standIn{approved: true}, nil)
		root.AddCommand(c.Work(), c.Reconcile())
		root.SetArgs(strings.Fields(line))
		root.SetErr(io.Discard)
		err := root.ExecuteContext(t.Context())
		e, usage := errors.AsType[*advice.Error](err)
		if want == "" {
			if !errors.Is(err, errOpened) {
				t.Errorf("%s: %v", line, err)
			}
		} else if !usage || e.Code != advice.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	cmd := New(standIn{}, nil).Work()
	cmd.SetArgs(nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--approve is missing") {
		t.Errorf("without an origin: %v", err)
	}
}
