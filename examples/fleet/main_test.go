package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
	"github.com/agentic-go/agentic/transport"
)

// A host runs an action to its receipt, works and drains; and what one host left
// pending is verified by the worker of another, with one POST for each request.
func TestTwoHosts(t *testing.T) {
	ctx := t.Context()
	database := pgtest.Shared(t).NewDatabase(t)
	pools := [2]*pgxpool.Pool{newPool(t, database), newPool(t, database)}
	if err := postgres.MigrateLedger(ctx, pools[0], ""); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Migrate(ctx, pools[0], ""); err != nil {
		t.Fatal(err)
	}
	service, origin := serve(t)

	var out bytes.Buffer
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := run(short, &out, database, origin, []byte(`{"subject":"Printer on fire"}`)); err != nil || !strings.HasSuffix(out.String(), " is succeeded\n") {
		t.Fatalf("%q, %v", &out, err)
	}

	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	looks := make(chan reconcile.Done, 8)
	var hosts [2]*host
	for i := range hosts {
		if hosts[i], err = newHost(ctx, pools[i], tr, func(d reconcile.Done) { looks <- d }); err != nil {
			t.Fatal(err)
		}
		defer hosts[i].ledger.Close()
	}
	res, err := hosts[0].client.Execute(ctx, client.Request{Plan: twoChecks(t, tr, origin), Input: []byte(`{"subject":"Chair broken"}`)})
	if err != nil || res.Receipt.Outcome != agentic.Pending {
		t.Fatalf("%+v, %v", res, err)
	}
	work, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- hosts[1].fleet.Run(work) }()
	select {
	case d := <-looks:
		if d.RequestID != res.RequestID || d.Kind != reconcile.Verified {
			t.Errorf("%+v", d)
		}
	case <-time.After(time.Minute):
		t.Error("the worker of the other host did nothing")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out.Reset()
	if err := hosts[1].waiting(ctx, &out); err != nil || out.Len() != 0 {
		t.Errorf("%q, %v", &out, err)
	}
	if st, err := service.State(ctx); err != nil || st.Posts != 2 || st.Tickets != 2 {
		t.Errorf("%+v, %v", st, err)
	}
}

func newPool(t *testing.T, database string) *pgxpool.Pool {
	pool, err := pgxpool.New(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// serve has a service that is pending for two status checks of each request.
func serve(t *testing.T) (*ticket.Service, string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + ln.Addr().String()
	s, err := ticket.Open(t.Context(), ticket.Config{Origin: origin, Fault: "late"})
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: s.Handler()}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _, _ = srv.Close(), s.Close() })
	return s, origin
}

// twoChecks is a plan of the service's documents whose execution asks twice at most.
func twoChecks(t *testing.T, tr *transport.Transport, origin string) *agentic.Plan {
	var documents [2][]byte
	for i, name := range []string{"/agentic.json", "/openapi.json"} {
		var err error
		if documents[i], err = tr.Fetch(t.Context(), origin+name, agentic.MaxOpenAPIBytes, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	profile := bytes.Replace(documents[0], []byte(`"maxChecks": 3`), []byte(`"maxChecks": 2`), 1)
	plan, err := agentic.Load(profile, documents[1], "create-ticket", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
