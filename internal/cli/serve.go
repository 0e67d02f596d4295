package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/ticket"
)

const serveHelp = `Run the reference ticket service of the draft.

The first line on standard output is JSON: {"origin": ..., "fault": ...}. The
service answers POST /tickets, GET /requests/{requestId}, GET /tickets/{ticketId},
/agentic.json, /openapi.json, /health and, for people, a page at /; with --inspect
also GET /__state, which tells everybody on this machine what arrived and what it
holds, and is refused off loopback. It stops on SIGINT and SIGTERM.

Tickets are kept in a temporary database, in the SQLite file of --db, or in
PostgreSQL with --postgres: in the schema agentic_ticket, which it makes. Leave the
password out of the URL and in PGPASSWORD or PGPASSFILE: others can see arguments.

Without --token-file everybody is one anonymous principal, on loopback only. A line
of that file is a principal, a blank, and the SHA-256 of a random bearer token in
hexadecimal ('printf %s "$TOKEN" | sha256sum'); # begins a comment. A request needs
"Authorization: Bearer TOKEN", and sees what belongs to its principal. Off loopback
--token-file, --tls-cert and --tls-key are needed.

Faults (--fault):`

const serveExample = `  agentic serve --fault response-lost --inspect
  curl -i http://127.0.0.1:4318/tickets -H 'Idempotency-Key: key-12345678' \
      -H 'Content-Type: application/json' -d '{"subject":"The printer is on fire"}'
  curl http://127.0.0.1:4318/requests/key-12345678

  agentic serve --addr 0.0.0.0:443 --origin https://support.example --token-file tokens \
      --tls-cert cert.pem --tls-key key.pem --postgres postgres://tickets@db.example/tickets`

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

// serveFlags say where the service is, who may use it, and what it keeps.
type serveFlags struct {
	addr, origin, db, postgres   string
	tokens, certificate, private string // files
	fault                        string
	retention                    time.Duration
	inspect                      bool
}

func (a *app) newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run the reference ticket service, with a fault if you like",
		Long:    serveHelp + faultsHelp(),
		Example: serveExample,
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, cfg, err := f.config(cmd.Flags().Changed("db"))
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), at, cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:4318", "`ADDRESS` to listen on; port 0 is any free one")
	flags.StringVar(&f.origin, "origin", "", "the `ORIGIN` that clients see (default: that of --addr)")
	flags.StringVar(&f.db, "db", "", "SQLite database `FILE` (default: a temporary one)")
	flags.StringVar(&f.postgres, "postgres", "", "PostgreSQL database `URL`, in place of a file")
	flags.StringVar(&f.tokens, "token-file", "", "`FILE` of principals and the hashes of their tokens (default: one anonymous principal)")
	flags.StringVar(&f.certificate, "tls-cert", "", "PEM `FILE` of the certificate, and those between it and its root")
	flags.StringVar(&f.private, "tls-key", "", "PEM `FILE` of its private key")
	flags.DurationVar(&f.retention, "retention", ticket.DefaultRetention, "how long a request is tracked, a `DURATION` of 1m to 168h")
	flags.StringVar(&f.fault, "fault", string(ticket.Normal), "the one promise to break, by `NAME`")
	flags.BoolVar(&f.inspect, "inspect", false, "serve GET /__state with the service's own counts, on loopback only")
	complete(cmd, "fault", faultNames()...)
	complete(cmd, "addr", "127.0.0.1:4318", "localhost:4318", "[::1]:4318")
	complete(cmd, "origin")
	complete(cmd, "postgres")
	complete(cmd, "retention", "1m", "1h", "24h", "168h")
	return cmd
}

// config reads the files that the flags name. db says that --db was given.
func (f *serveFlags) config(db bool) (at demo.Place, cfg ticket.Config, err error) {
	fault, err := parseFault(f.fault)
	if err != nil {
		return at, cfg, err
	}
	switch {
	case db && f.postgres != "":
		return at, cfg, advice.BadUsage("--db and --postgres are two places for one database", "Give one of them.")
	case (f.certificate == "") != (f.private == ""):
		return at, cfg, advice.BadUsage("--tls-cert and --tls-key belong together", "Give both or none.")
	case f.retention < ticket.MinRetention || f.retention > ticket.MaxRetention || f.retention%time.Second != 0:
		return at, cfg, advice.BadUsage("--retention "+f.retention.String()+": it is not 1m to 168h in whole seconds", "Write it as 24h.")
	}
	at = demo.Place{Addr: f.addr, Origin: f.origin}
	cfg = ticket.Config{Path: f.db, Postgres: f.postgres, Fault: ticket.Fault(fault.Name), Inspect: f.inspect, Retention: f.retention}
	if f.certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.private)
		if err != nil {
			return at, cfg, advice.New("certificate", fmt.Errorf("the certificate %s with the key %s: %w", f.certificate, f.private, err), "Both are files of PEM, and the key is that of the first certificate.")
		}
		at.TLS = &pair
	}
	if f.tokens != "" {
		if cfg.Principal, err = readTokens(f.tokens); err != nil {
			return at, cfg, advice.New("token-file", err, "A line is a principal, a blank and the SHA-256 of its token in hexadecimal.")
		}
	}
	return at, cfg, nil
}

func readTokens(name string) (func(*http.Request) (string, error), error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	principal, err := ticket.ReadTokens(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return principal, nil
}

func (a *app) serve(ctx context.Context, at demo.Place, cfg ticket.Config) error {
	s, err := demo.StartAt(ctx, at, cfg, slog.NewTextHandler(a.stderr, nil))
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
