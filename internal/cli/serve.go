package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

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

func parseFault(name string) (ticket.Fault, error) {
	f, err := ticket.ParseFault(name)
	if err != nil {
		return "", &usageError{"--fault: " + err.Error(), "Name one of them."}
	}
	return f, nil
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
			return a.serve(cmd.Context(), addr, ticket.Config{Path: db, Fault: f, Inspect: inspect})
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
	s, err := startTickets(ctx, addr, cfg, log)
	if err != nil {
		return err
	}
	if err := a.writeJSON(struct {
		Origin string `json:"origin"`
		Fault  string `json:"fault"`
	}{s.origin, string(cfg.Fault)}); err != nil {
		return errors.Join(err, s.stop())
	}
	select {
	case <-ctx.Done():
		return s.stop()
	case err := <-s.ended:
		return errors.Join(fmt.Errorf("the service ended: %w", err), s.stop())
	}
}

// tickets is a running ticket service.
type tickets struct {
	*ticket.Service
	origin string
	http   *http.Server
	ended  chan error // what Serve returned
}

// startTickets opens the service and listens. cfg.Origin is set here. With a nil
// log it is silent.
func startTickets(ctx context.Context, addr string, cfg ticket.Config, log slog.Handler) (*tickets, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &usageError{"--addr: " + err.Error(), "Write it as 127.0.0.1:4318."}
	}
	// Other loopback addresses are no origin that a profile may name (section 2).
	if host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return nil, &usageError{fmt.Sprintf("--addr %s: the ticket service has no authentication and listens on localhost, 127.0.0.1 or [::1] only", addr), "Write it as 127.0.0.1:4318."}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &remedyError{fmt.Errorf("%s is in use by another program", addr), "address-in-use", "Stop it, or choose another port with --addr, such as 127.0.0.1:0 for any free one."}
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	s := &tickets{origin: "http://" + originHost(host, l.Addr().(*net.TCPAddr).Port), ended: make(chan error, 1)}
	cfg.Origin = s.origin
	if log == nil {
		log = slog.NewTextHandler(io.Discard, nil)
	}
	cfg.Logger = slog.New(log)
	s.Service, err = ticket.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log, slog.LevelWarn),
	}
	go func() { s.ended <- s.http.Serve(l) }()
	return s, nil
}

// originHost is host and port as a canonical origin has them (D3).
func originHost(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 80 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// stop answers what has begun, for a few seconds, and closes the service.
func (s *tickets) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return errors.Join(err, s.Service.Close())
}
