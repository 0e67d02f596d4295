//go:build unix

package hosts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
	"github.com/agentic-go/agentic/transport"
)

const hostRole = "AGENTIC_PROOF_HOSTS"

var scope = client.Scope{Principal: "ann", Environment: "proof"}

// order is what a host process is told to do.
type order struct {
	Name     string
	Origin   string
	Forward  map[string]string // loopback address here: address outside
	Database string
	Requests int
	Callers  int
	Lease    time.Duration
	Log      string // file to which each report is appended
	Seed     uint64
}

// report is what a host says of one request, a line of JSON, after Execute has
// returned. Errors of one try that are tried again are counted only.
type report struct {
	ID      string
	Sent    bool
	Outcome agentic.Outcome
	Held    bool // another host had it all the time
	Lost    int  // tries that ended with a lost hold
	Ledger  int  // tries that ended with an unavailable ledger
	Err     string
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(hostRole); spec != "" {
		if err := hostMain(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hostMain is an agent host in a process of its own: it tries every request in an
// order of its own, and works for the fleet beside. It goes on with what its log
// does not have, so it can be killed and started again.
func hostMain(spec string) error {
	var o order
	if err := json.Unmarshal([]byte(spec), &o); err != nil {
		return err
	}
	for here, there := range o.Forward {
		if err := forward(here, there); err != nil {
			return err
		}
	}
	ctx := context.Background()
	h, err := openHost(ctx, o.Origin, o.Database, o.Lease, nil)
	if err != nil {
		return err
	}
	go h.work(ctx)

	done, err := readLog(o.Log)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(o.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ids := make(chan string)
	go func() {
		defer close(ids)
		for _, n := range rand.New(rand.NewPCG(o.Seed, 1)).Perm(o.Requests) {
			if id := requestID(n); done[id] == nil {
				ids <- id
			}
		}
	}()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range o.Callers {
		wg.Go(func() {
			for id := range ids {
				line, err := json.Marshal(h.try(ctx, id))
				if err != nil {
					panic(err)
				}
				mu.Lock()
				_, err = log.Write(append(line, '\n'))
				mu.Unlock()
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := log.WriteString("{}\n"); err != nil { // all tried
		return err
	}
	select {} // and works on, until it is killed
}

// readLog gives the reports of a log by request ID; an empty ID says that all have
// been tried.
func readLog(path string) (map[string]*report, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	done := map[string]*report{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		r := new(report)
		if json.Unmarshal(lines.Bytes(), r) == nil { // a killed process leaves half a line
			done[r.ID] = r
		}
	}
	return done, lines.Err()
}

// host is a wired host: ledger, transport and engine.
type host struct {
	pool   *pgxpool.Pool
	ledger *postgres.Ledger
	client *client.Client
	plan   *agentic.Plan
}

func openHost(ctx context.Context, origin, database string, lease time.Duration, clock func() time.Time) (*host, error) {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 16
	cfg.ConnConfig.ConnectTimeout = 2 * time.Second
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var ledger *postgres.Ledger
	for { // the host may start while it is cut off
		ledger, err = postgres.OpenLedger(ctx, postgres.LedgerConfig{Pool: pool, Lease: lease, Enqueue: fleet.Enqueuer(""), Clock: clock})
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Ledger: ledger, Transport: tr, Scope: scope, Wait: 2 * time.Second})
	if err != nil {
		return nil, err
	}
	plan, err := agentic.Load(ticket.Profile(origin), ticket.OpenAPI(origin), "", agentic.Options{AllowLoopback: true})
	return &host{pool, ledger, c, plan}, err
}

func (h *host) worker() (*reconcile.Worker, error) {
	return reconcile.New(reconcile.Config{Client: h.client, Ledger: h.ledger, Scopes: []client.Scope{scope}, Concurrency: 8,
		Limits: reconcile.Limits{Concurrency: 8, Rate: 500}})
}

// work runs a worker of the fleet, for ever.
func (h *host) work(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := h.worker()
		if err != nil {
			panic(err)
		}
		f, err := fleet.New(fleet.Config{Pool: h.pool, Worker: w, Ledger: h.ledger, Scopes: []client.Scope{scope}, Concurrency: 8, Rescue: 5 * time.Second,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err)
		}
		if err := f.Run(ctx); err != nil {
			time.Sleep(time.Second)
		}
	}
}

// try executes one request until the ledger has told what became of it.
func (h *host) try(ctx context.Context, id string) report {
	r := report{ID: id}
	for {
		res, err := h.client.Execute(ctx, client.Request{Plan: h.plan, Input: []byte(inputOf(id)), ID: id})
		r.Sent = r.Sent || res.Sent
		var held *client.HeldError
		switch {
		case err == nil:
			r.Outcome = res.Receipt.Outcome
			return r
		case errors.As(err, &held):
			r.Held = true
			return r
		case errors.Is(err, client.ErrLost):
			r.Lost++
		case errors.Is(err, client.ErrLedger):
			r.Ledger++
		default:
			r.Err = err.Error()
			return r
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// through is a database URL that goes over TCP to another address.
func through(t testing.TB, database, address string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = address, "sslmode=disable"
	return u.String()
}

// socketOf is the socket of the server of a database URL.
func socketOf(t testing.TB, database string) [2]string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	return [2]string{"unix", filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port"))}
}
