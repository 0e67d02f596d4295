package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/bench/internal/tickets"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/transport"
)

// side is one way to run a verified action. act runs one and fails unless the
// service's own records prove it; caller is the number of who calls. saved counts
// the verified actions in its database; it is nil for a side that has none.
type side struct {
	name  string
	act   func(ctx context.Context, caller int) error
	saved func(ctx context.Context) (int, error)
	close func()
}

// subjects makes every input another one, so that no action looks like a
// duplicate of another.
var subjects atomic.Int64

func subject() string { return fmt.Sprintf("The printer on floor %d is out of paper", subjects.Add(1)) }

// newRequestID is the same on all sides, and as the client makes it.
func newRequestID() string { return uuid.Must(uuid.NewV7()).String() }

// newBare is the three calls with nothing saved: what an agent without a ledger
// does when all goes well. It is the ceiling of the others.
func newBare(origin string) *side {
	c := newCaller(origin)
	return &side{name: "bare", close: c.http.CloseIdleConnections, act: func(ctx context.Context, _ int) error {
		id, about := newRequestID(), subject()
		if _, err := c.submit(ctx, id, about); err != nil {
			return err
		}
		resource, err := c.status(ctx, id)
		if err != nil {
			return err
		}
		_, err = c.verify(ctx, id, resource, about)
		return err
	}}
}

// newAgentic is this project's client on this project's PostgreSQL ledger. With so
// many ledgers over one pool, callers take turns between them: with one, what waits
// is written together, and with one for each caller nothing is.
func newAgentic(ctx context.Context, name string, s *tickets.Service, database string, ledgers int) (_ *side, err error) {
	plan, err := s.Plan()
	if err != nil {
		return nil, err
	}
	t, err := transport.New(transport.Config{Origins: []string{s.Origin}, AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, err
	}
	opened := make([]*postgres.Ledger, 0, ledgers)
	end := func() {
		for _, l := range opened {
			_ = l.Close()
		}
		pool.Close()
		t.CloseIdleConnections()
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	if err := postgres.MigrateLedger(ctx, pool, ""); err != nil {
		return nil, err
	}
	clients := make([]*client.Client, ledgers)
	for i := range clients {
		l, err := postgres.OpenLedger(ctx, postgres.LedgerConfig{Pool: pool})
		if err != nil {
			return nil, err
		}
		opened = append(opened, l)
		if clients[i], err = client.New(client.Config{Ledger: l, Transport: t, Scope: client.Scope{Principal: "bench"}}); err != nil {
			return nil, err
		}
	}
	saved := func(ctx context.Context) (int, error) {
		list, err := opened[0].List(ctx, client.Filter{Outcome: agentic.Succeeded})
		return len(list), err
	}
	return &side{name: name, close: end, saved: saved, act: func(ctx context.Context, caller int) error {
		res, err := clients[caller%ledgers].Execute(ctx, client.Request{Plan: plan, Input: fmt.Appendf(nil, `{"subject":%q}`, subject())})
		if err != nil {
			return err
		}
		return verified(res)
	}}, nil
}

// verified is the error for a result that is not this execution's verified success.
func verified(res client.Result) error {
	r := res.Receipt
	switch {
	case r.Outcome != agentic.Succeeded || r.Evidence == nil:
		return fmt.Errorf("request %s: outcome %s: %s", res.RequestID, r.Outcome, r.Reason)
	case !res.Sent || res.FromSaved:
		return errors.New("the receipt is another execution's")
	}
	return nil
}
