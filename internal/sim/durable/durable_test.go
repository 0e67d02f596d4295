package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/sim/durable"
	"github.com/agentic-go/agentic/ledgertest"
)

// TestLedger holds the model to the contract of every ledger. The suite has goroutines and
// the true time; what they need stands around the store here.
func TestLedger(t *testing.T) {
	for name, takeOver := range map[string]func(*durable.Request){
		"locks":  func(r *durable.Request) { r.Fence++ },
		"leases": func(r *durable.Request) { r.Holder.Until = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			ledgertest.Ledger(t, func(*testing.T) ledgertest.LedgerStore {
				s := &shared{store: durable.New()}
				return ledgertest.LedgerStore{
					Open: func(_ *testing.T, clock func() time.Time) desk.Ledger { return &handle{s, clock} },
					TakeOver: func(_ *testing.T, scope client.Scope, id string) {
						s.mu.Lock()
						defer s.mu.Unlock()
						takeOver(s.store.Get(durable.Key{Scope: scope, ID: id}))
					},
				}
			})
		})
	}
}

// shared is a store for many goroutines.
type shared struct {
	mu    sync.Mutex
	store *durable.Ledger
}

type handle struct {
	*shared
	clock func() time.Time
}

func (l *handle) now() time.Time { return l.clock().UTC().Truncate(time.Microsecond) }

// with runs one effect, unless ctx has ended.
func (l *handle) with(ctx context.Context, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return effect()
}

func (l *handle) Begin(ctx context.Context, b client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return l.begin(ctx, durable.Key{Scope: b.Scope, ID: b.RequestID}, &b, intent, wait)
}

func (l *handle) Take(ctx context.Context, s client.Scope, id string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return l.begin(ctx, durable.Key{Scope: s, ID: id}, nil, intent, wait)
}

func (l *handle) begin(ctx context.Context, k durable.Key, b *client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	for until := time.Now().Add(wait); ; {
		h := &sharedHold{handle: l}
		err := l.with(ctx, func() (err error) {
			now := l.now()
			h.seen = now
			h.grant, h.record, err = l.store.Begin(k, b, intent, now, 0)
			return err
		})
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, durable.ErrHeld):
			return nil, err
		case !time.Now().Before(until):
			return nil, &client.HeldError{RequestID: k.ID}
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *handle) Load(ctx context.Context, s client.Scope, id string) (rec *client.Record, err error) {
	err = l.with(ctx, func() error {
		rec, err = l.store.Load(durable.Key{Scope: s, ID: id})
		return err
	})
	return rec, err
}

func (l *handle) List(ctx context.Context, f client.Filter) (list []client.Summary, err error) {
	err = l.with(ctx, func() error {
		list = l.store.List(f, l.now())
		return nil
	})
	return list, err
}

func (l *handle) AddNote(ctx context.Context, s client.Scope, id string, n client.Note) error {
	return l.with(ctx, func() error { return l.store.Note(durable.Key{Scope: s, ID: id}, n, l.now()) })
}

func (l *handle) Purge(ctx context.Context, o client.PurgeOptions) (p client.Purged, err error) {
	err = l.with(ctx, func() error {
		p = l.store.Purge(o, l.now())
		return nil
	})
	return p, err
}

type sharedHold struct {
	*handle
	grant  *durable.Grant
	record *client.Record
	seen   time.Time
}

func (h *sharedHold) Record() *client.Record { return h.record }

func (h *sharedHold) MaySubmit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.grant.MaySubmit && !h.grant.Ended && h.grant.Stands(0)
}

func (h *sharedHold) Now() time.Time {
	t := h.now()
	h.seen = durable.Later(h.seen, t)
	return t
}

func (h *sharedHold) Observe(ctx context.Context, obs []client.Observation) error {
	return h.append(ctx, obs, nil)
}

func (h *sharedHold) Finish(ctx context.Context, obs []client.Observation, r agentic.Receipt) error {
	return h.append(ctx, obs, &r)
}

func (h *sharedHold) append(ctx context.Context, obs []client.Observation, r *agentic.Receipt) error {
	return h.with(ctx, func() error {
		h.Now()
		return h.store.Append(h.grant, obs, r, h.seen, h.seen, 0)
	})
}

func (h *sharedHold) Release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grant.Released = true
	return nil
}
