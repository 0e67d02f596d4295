package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/ticket"
)

const serveHelp = `Run the reference ticket service of the draft, on loopback only.

The first line on standard output is JSON: {"origin": ..., "fault": ...}. The
service answers POST /tickets, GET /requests/{requestId}, GET /tickets/{ticketId},
/agentic.json, /openapi.json and /health; with --inspect also GET /__state, which
counts what arrived and what it holds. It stops on SIGINT and SIGTERM.

It has one anonymous principal and no authentication: it is for trying and testing.
Without --db its database is temporary.

Faults (--fault):`

const serveExample = `  agentic serve --fault response-lost --inspect
  curl -i http://127.0.0.1:4318/tickets -H 'Idempotency-Key: key-12345678' \
      -H 'Content-Type: application/json' -d '{"subject":"The printer is on fire"}'
  curl http://127.0.0.1:4318/requests/key-12345678`

// faultsHelp lists every fault with what it does and where a client must end.
func faultsHelp() string {
	var b strings.Builder
	for _, f := range ticket.Faults() {
		fmt.Fprintf(&b, "\n  %-19s %s (%s)", f.Name, f.Summary, f.Outcome)
	}
	return b.String()
}

func faultNames() []string {
	var names []string
	for _, f := range ticket.Faults() {
		names = append(names, f.Name)
	}
	return names
}

func parseFault(name string) (ticket.FaultInfo, error) {
	for _, f := range ticket.Faults() {
		if f.Name == name {
			return f, nil
		}
	}
	return ticket.FaultInfo{}, advice.BadUsage(`--fault: there is no fault "`+name+`"; there are: `+strings.Join(faultNames(), ", "), "Name one of them.")
}

func (a *app) newServe() *cobra.Command {
	var (
		addr, db, fault string
		inspect         bool
	)
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run the reference ticket service, with a fault if you like",
		Long:    serveHelp + faultsHelp(),
		Example: serveExample,
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := parseFault(fault)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), addr, ticket.Config{Path: db, Fault: ticket.Fault(f.Name), Inspect: inspect})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:4318", "loopback `ADDRESS` to listen on; port 0 is any free one")
	cmd.Flags().StringVar(&db, "db", "", "database `FILE` (default: a temporary one)")
	cmd.Flags().StringVar(&fault, "fault", string(ticket.Normal), "the one promise to break, by `NAME`")
	cmd.Flags().BoolVar(&inspect, "inspect", false, "serve GET /__state with the service's own counts")
	complete(cmd, "fault", faultNames()...)
	complete(cmd, "addr", "127.0.0.1:4318", "localhost:4318", "[::1]:4318")
	return cmd
}

func (a *app) serve(ctx context.Context, addr string, cfg ticket.Config) error {
	log := slog.NewTextHandler(a.stderr, nil)
	s, err := demo.Start(ctx, addr, cfg, log)
	if err != nil {
		return err
	}
	if err := a.writeJSON(struct {
		Origin string `json:"origin"`
		Fault  string `json:"fault"`
	}{s.Origin, string(cfg.Fault)}); err != nil {
		return errors.Join(err, s.Stop())
	}
	select {
	case <-ctx.Done():
		return s.Stop()
	case err := <-s.Ended:
		return errors.Join(fmt.Errorf("the service ended: %w", err), s.Stop())
	}
}
