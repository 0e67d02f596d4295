// Command inflight holds thousands of actions in flight at once over a small pool
// of PostgreSQL connections: the ticket service answers no submission before all of
// them have arrived. It prints how many were in flight as the service counted them,
// how many connections the server had for them, and what became of every action.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/bench/internal/database"
	"github.com/agentic-go/agentic/bench/internal/tickets"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/transport"
)

func main() {
	if err := raiseFileLimit(); err != nil { // of the service's process too
		fmt.Fprintln(os.Stderr, "inflight: raising the limit of open files:", err)
	}
	tickets.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "inflight:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("inflight", flag.ContinueOnError)
	requests := flags.Int("requests", 5000, "requests in flight at once")
	pool := flags.Int("pool", 20, "connections of the pool, at most")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *requests < 1 || *pool < 2 {
		return errors.New("inflight takes flags only, with at least one request and a pool of 2")
	}
	r, err := run(ctx, *requests, *pool)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err = fmt.Fprintf(stdout, "%d requests in flight at once at the service (%d asked for), %d POSTs, %d of an ID that had come before\n"+
		"%d connections at the server at most, over a pool of %d\n"+
		"%d receipts: %v, in %.1f s\n",
		r.Peak, r.Requests, r.Posts, r.Repeats, r.Connections, r.Pool, r.Receipts, r.Outcomes, r.Seconds)
	return err
}

// report is what was seen. It is an error, and no report, when an action is not
// verified, or the numbers are not what was asked for.
type report struct {
	Requests    int                     `json:"requests"`
	Pool        int                     `json:"pool"`
	Peak        int64                   `json:"peak_in_flight"`
	Posts       int64                   `json:"posts"`
	Repeats     int64                   `json:"repeats"`
	Connections int                     `json:"connections"` // most that pg_stat_activity had of the database
	Receipts    int                     `json:"receipts"`    // in the ledger
	Outcomes    map[agentic.Outcome]int `json:"outcomes"`
	Seconds     float64                 `json:"seconds"`
}

func run(ctx context.Context, requests, conns int) (_ *report, err error) {
	server, err := database.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	service, err := tickets.Start(requests)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()
	plan, err := service.Plan()
	if err != nil {
		return nil, err
	}
	address, err := server.NewDatabase(conns)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := postgres.MigrateLedger(ctx, pool, ""); err != nil {
		return nil, err
	}
	ledger, err := postgres.OpenLedger(ctx, postgres.LedgerConfig{Pool: pool})
	if err != nil {
		return nil, err
	}
	defer ledger.Close()
	scope := client.Scope{Principal: "bench"}
	t, err := transport.New(transport.Config{Origins: []string{service.Origin}, AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	defer t.CloseIdleConnections()
	c, err := client.New(client.Config{Ledger: ledger, Transport: t, Scope: scope})
	if err != nil {
		return nil, err
	}
	watch, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer watch.Close(context.WithoutCancel(ctx))
	most := watchConnections(ctx, watch, pool.Config().ConnConfig.Database)

	start := time.Now()
	failures := make(chan error, requests)
	var wg sync.WaitGroup
	for n := range requests {
		wg.Go(func() {
			_, err := c.Execute(ctx, client.Request{Plan: plan, Input: []byte(`{"subject":"Lamp ` + strconv.Itoa(n) + ` is out"}`)})
			if err != nil {
				failures <- err
			}
		})
	}
	wg.Wait()
	r := &report{Requests: requests, Pool: conns, Outcomes: map[agentic.Outcome]int{}, Seconds: time.Since(start).Seconds()}
	close(failures)
	if err := <-failures; err != nil {
		return nil, fmt.Errorf("%d of %d requests failed, the first: %w", len(failures)+1, requests, err)
	}
	if r.Connections, err = most(); err != nil {
		return nil, err
	}
	saved, err := ledger.List(ctx, client.Filter{}.In(scope))
	if err != nil {
		return nil, err
	}
	r.Receipts = len(saved)
	for _, s := range saved {
		r.Outcomes[s.Outcome]++
	}
	counts, err := service.Counts()
	if err != nil {
		return nil, err
	}
	r.Peak, r.Posts, r.Repeats = counts.Peak, counts.Posts, counts.Repeats
	want := int64(requests)
	if r.Peak != want || r.Posts != want || r.Repeats != 0 || r.Outcomes[agentic.Succeeded] != requests || r.Connections < 1 || r.Connections > conns {
		return nil, fmt.Errorf("not what was asked for: %+v", *r)
	}
	return r, nil
}

// watchConnections counts the connections to a database again and again, until the
// function it gives is called, which tells the most there were.
func watchConnections(ctx context.Context, conn *pgx.Conn, database string) (most func() (int, error)) {
	var highest int
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			var n int
			if err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = $1`, database).Scan(&n); err != nil {
				stopped <- err
				return
			}
			highest = max(highest, n)
			select {
			case <-stop:
				stopped <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (int, error) {
		close(stop)
		err := <-stopped
		return highest, err
	}
}
