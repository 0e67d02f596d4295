package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/agentic-go/agentic"
)

// Limits of ObserveOpen: how often a ledger is asked at most, how long it may take,
// and how many requests are counted.
const (
	openFresh   = 15 * time.Second
	openTimeout = 5 * time.Second
	openLimit   = 10_000
)

const (
	keyAge   = attribute.Key("agentic.age")
	keyState = attribute.Key("agentic.state")
)

// openAges and openStates are what open requests are counted by.
var (
	openAges   = [...]string{"<1m", "<1h", "<1d", ">=1d"}
	openStates = [...]string{"prepared", "attempted", "pending", "unknown"}
)

// ObserveOpen has a meter count the open requests of a ledger (Summary.Open) as
// "agentic.requests.open", by age and state, and those that need a person
// (Summary.NeedsPerson) as "agentic.requests.needs_person". Without scopes it counts
// the requests of all. A nil provider is the global one.
//
// A scrape lists the ledger, not more often than every 15 s and not longer than 5 s in
// all; what failed is not asked again any sooner, and reports nothing in between. Each
// scope is counted up to 10,000 requests. Every process that counts one ledger reports
// the same numbers: take their maximum, not their sum. The age is by this host's clock.
func ObserveOpen(mp metric.MeterProvider, ledger Ledger, scopes []Scope) (unregister func() error, err error) {
	m := meter(mp)
	open, err := m.Int64ObservableGauge("agentic.requests.open", metric.WithUnit("{request}"),
		metric.WithDescription("Open requests in the ledger, by age and state."))
	if err != nil {
		return nil, fmt.Errorf("client: agentic.requests.open: %w", err)
	}
	person, err := m.Int64ObservableGauge("agentic.requests.needs_person", metric.WithUnit("{request}"),
		metric.WithDescription("Open requests whose tracking window has ended, so that only a person can settle them."))
	if err != nil {
		return nil, fmt.Errorf("client: agentic.requests.needs_person: %w", err)
	}
	count := &openCount{ledger: ledger, scopes: scopes}
	reg, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, err := count.get(ctx)
		if err != nil {
			return err
		}
		for a, age := range openAges {
			for s, state := range openStates {
				o.ObserveInt64(open, n.open[a][s], metric.WithAttributeSet(attribute.NewSet(keyAge.String(age), keyState.String(state))))
			}
		}
		o.ObserveInt64(person, n.person)
		return nil
	}, open, person)
	if err != nil {
		return nil, fmt.Errorf("client: agentic.requests.open: %w", err)
	}
	return reg.Unregister, nil
}

type openNumbers struct {
	open   [len(openAges)][len(openStates)]int64
	person int64
}

// openCount remembers the last count, for every reader that asks.
type openCount struct {
	ledger Ledger
	scopes []Scope

	mu      sync.Mutex
	at      time.Time
	numbers openNumbers
	err     error
}

func (c *openCount) get(ctx context.Context) (openNumbers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= openFresh {
		// The count is for all readers, so one that has gone does not end it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		defer cancel()
		c.numbers, c.err = c.count(ctx)
		c.at = time.Now()
	}
	return c.numbers, c.err
}

// count asks the ledger. Its error is a class only: what a ledger says may name files
// and servers, and this goes where telemetry goes.
func (c *openCount) count(ctx context.Context) (openNumbers, error) {
	filters := []Filter{{}}
	if len(c.scopes) > 0 {
		filters = filters[:0]
		for _, s := range c.scopes {
			filters = append(filters, Filter{}.In(s))
		}
	}
	var n openNumbers
	for _, f := range filters {
		f.Limit = openLimit
		f.NeedsPerson = true
		persons, err := c.ledger.List(ctx, f)
		if err != nil {
			return openNumbers{}, fmt.Errorf("client: open requests were not counted: %s", errorType(err))
		}
		n.person += int64(len(persons))
		f.NeedsPerson, f.Open, f.Order = false, true, UrgentFirst
		list, err := c.ledger.List(ctx, f)
		if err != nil {
			return openNumbers{}, fmt.Errorf("client: open requests were not counted: %s", errorType(err))
		}
		now := time.Now()
		for i := range list {
			n.open[openAge(now.Sub(list[i].CreatedAt))][openState(&list[i])]++
		}
	}
	return n, nil
}

func openAge(d time.Duration) int {
	switch {
	case d < time.Minute:
		return 0
	case d < time.Hour:
		return 1
	case d < 24*time.Hour:
		return 2
	}
	return 3
}

func openState(s *Summary) int {
	switch {
	case s.Outcome == agentic.Pending:
		return 2
	case s.Outcome == agentic.Unknown:
		return 3
	case s.State == Attempted:
		return 1
	}
	return 0
}
