// Command fleet is one host of many on a PostgreSQL ledger: it runs one action, works
// at whatever any host left open until it is stopped, and then lists what a person has
// to settle. Try it against the reference service, with a ledger that
// 'agentic ledger migrate' has made:
//
//	go run ./cmd/agentic serve --fault late
//	go run ./examples/fleet postgres://agent@127.0.0.1/agent http://127.0.0.1:4318 '{"subject":"Printer on fire"}'
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
	"github.com/agentic-go/agentic/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: fleet DATABASE-URL ORIGIN INPUT")
		os.Exit(2)
	}
	if err := run(ctx, os.Stdout, os.Args[1], os.Args[2], []byte(os.Args[3])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scope says whose requests this host has the credentials for.
var scope = client.Scope{Principal: "example", Environment: "local"}

// host has what one process of a fleet needs.
type host struct {
	ledger *postgres.Ledger
	client *client.Client
	fleet  *fleet.Fleet
	desk   *desk.Desk
}

// newHost wires them. The pool is the caller's, who closes it last.
func newHost(ctx context.Context, pool *pgxpool.Pool, tr *transport.Transport, looked func(reconcile.Done)) (*host, error) {
	lost, err := client.LeasesLost(nil) // counted by the process's OpenTelemetry provider
	if err != nil {
		return nil, err
	}
	h := &host{}
	h.ledger, err = postgres.OpenLedger(ctx, postgres.LedgerConfig{
		Pool: pool, Lost: lost, Logger: slog.Default(),
		Enqueue: fleet.Enqueuer(""), // a job in the transaction of every receipt that leaves a request open
	})
	if err != nil {
		return nil, err
	}
	if h.client, err = client.New(client.Config{Ledger: h.ledger, Transport: tr, Scope: scope, DuplicateWindow: time.Hour}); err != nil {
		return nil, err
	}
	worker, err := reconcile.New(reconcile.Config{
		Client: h.client, Ledger: h.ledger, Scopes: []client.Scope{scope}, Observer: looked, Logger: slog.Default(),
		Limits: reconcile.Limits{Concurrency: 4, Rate: 10}, // of each origin
	})
	if err != nil {
		return nil, err
	}
	if h.fleet, err = fleet.New(fleet.Config{
		Pool: pool, Ledger: h.ledger, Worker: worker, Scopes: []client.Scope{scope}, Concurrency: 8, Logger: slog.Default(),
	}); err != nil {
		return nil, err
	}
	h.desk, err = desk.New(desk.Config{Ledger: h.ledger, Client: h.client})
	return h, err
}

// waiting tells a person what no program can settle, most urgent first.
func (h *host) waiting(ctx context.Context, w io.Writer) error {
	filter := client.Filter{NeedsPerson: true, Order: client.UrgentFirst, Limit: 100}
	list, err := h.ledger.List(ctx, filter.In(scope))
	if err != nil {
		return err
	}
	for _, s := range list {
		rec, _, err := h.desk.Show(ctx, scope, s.RequestID)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s needs a person: %s\n", s.RequestID, desk.CaseOf(rec, time.Now()).Why)
	}
	return nil
}

// run is the life of one host. The caller has authorized the action.
func run(ctx context.Context, w io.Writer, database, origin string, input []byte) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true}) // a real service: no AllowLoopback
	if err != nil {
		return err
	}
	plan, err := fetch(ctx, tr, origin)
	if err != nil {
		return err
	}
	looked := func(d reconcile.Done) { slog.Info("looked", "request", d.RequestID, "kind", d.Kind) }
	h, err := newHost(ctx, pool, tr, looked)
	if err != nil {
		return err
	}
	defer h.ledger.Close()

	result, err := h.client.Execute(ctx, client.Request{Plan: plan, Input: input})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s is %s\n", result.RequestID, result.Receipt.Outcome)
	if err := h.fleet.Run(ctx); err != nil { // until ctx ends, and then until what runs has ended
		return err
	}
	return h.waiting(context.WithoutCancel(ctx), w)
}

// fetch reads the documents of the service, once; a host may keep them.
func fetch(ctx context.Context, tr *transport.Transport, origin string) (*agentic.Plan, error) {
	profile, err := tr.Fetch(ctx, origin+"/agentic.json", agentic.MaxProfileBytes, 5*time.Second)
	if err != nil {
		return nil, err
	}
	openapi, err := tr.Fetch(ctx, origin+"/openapi.json", agentic.MaxOpenAPIBytes, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return agentic.Load(profile, openapi, "create-ticket", agentic.Options{AllowLoopback: true})
}
