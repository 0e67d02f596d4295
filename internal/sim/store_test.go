package sim

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/ledgertest"
)

// TestStore holds the model to the contract of every ledger. The suite has goroutines and
// the true time; what they need stands around the store here.
func TestStore(t *testing.T) {
	for name, takeOver := range map[string]func(*request){
		"locks":  func(r *request) { r.fence++ },
		"leases": func(r *request) { r.holder.until = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			ledgertest.Ledger(t, func(*testing.T) ledgertest.LedgerStore {
				s := &shared{store: newStore()}
				return ledgertest.LedgerStore{
					Open: func(_ *testing.T, clock func() time.Time) desk.Ledger { return &handle{s, clock} },
					TakeOver: func(_ *testing.T, scope client.Scope, id string) {
						s.mu.Lock()
						defer s.mu.Unlock()
						takeOver(s.store.requests[key{scope, id}])
					},
				}
			})
		})
	}
}

// shared is a store for many goroutines.
type shared struct {
	mu    sync.Mutex
	store *store
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
	return l.begin(ctx, key{b.Scope, b.RequestID}, &b, intent, wait)
}

func (l *handle) Take(ctx context.Context, s client.Scope, id string, intent client.Intent, wait time.Duration) (client.Hold, error) {
	return l.begin(ctx, key{s, id}, nil, intent, wait)
}

func (l *handle) begin(ctx context.Context, k key, b *client.Binding, intent client.Intent, wait time.Duration) (client.Hold, error) {
	for until := time.Now().Add(wait); ; {
		h := &sharedHold{handle: l}
		err := l.with(ctx, func() (err error) {
			now := l.now()
			h.seen = now
			h.grant, h.record, err = l.store.begin(k, b, intent, now, 0)
			return err
		})
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, errHeld):
			return nil, err
		case !time.Now().Before(until):
			return nil, &client.HeldError{RequestID: k.id}
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *handle) Load(ctx context.Context, s client.Scope, id string) (rec *client.Record, err error) {
	err = l.with(ctx, func() error {
		rec, err = l.store.load(key{s, id})
		return err
	})
	return rec, err
}

func (l *handle) List(ctx context.Context, f client.Filter) (list []client.Summary, err error) {
	err = l.with(ctx, func() error {
		list = l.store.list(f, l.now())
		return nil
	})
	return list, err
}

func (l *handle) AddNote(ctx context.Context, s client.Scope, id string, n client.Note) error {
	return l.with(ctx, func() error { return l.store.note(key{s, id}, n, l.now()) })
}

// Purge needs more than the simulator does, which has one request purged.
func (l *handle) Purge(ctx context.Context, o client.PurgeOptions) (p client.Purged, err error) {
	err = l.with(ctx, func() error {
		needed := map[string]bool{}
		for _, r := range l.store.order {
			sum := r.summary()
			f := client.Filter{Principal: o.Principal, Environment: o.Environment}
			profile, openapi := r.record.Profile.Digest, r.record.OpenAPI.Digest
			switch old := matches(&sum, &f, l.now()) && sum.SeenAt.Before(o.Before) && sum.PurgedAt.IsZero(); {
			case old && sum.Open():
				p.Open++
			case old && o.Limit > 0 && p.Requests == o.Limit:
				p.More = true
			case old:
				p.Requests++
				p.Entries += r.entries
				if o.Apply {
					l.store.bury(r, l.now())
				}
				continue
			}
			needed[profile], needed[openapi] = true, true
		}
		for digest := range l.store.snapshots {
			if !needed[digest] {
				p.Snapshots++
				if o.Apply {
					delete(l.store.snapshots, digest)
				}
			}
		}
		return nil
	})
	return p, err
}

type sharedHold struct {
	*handle
	grant  *grant
	record *client.Record
	seen   time.Time
}

func (h *sharedHold) Record() *client.Record { return h.record }

func (h *sharedHold) MaySubmit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.grant.maySubmit && !h.grant.ended && h.grant.stands(0)
}

func (h *sharedHold) Now() time.Time {
	t := h.now()
	h.seen = maxTime(h.seen, t)
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
		return h.store.append(h.grant, obs, r, h.seen, h.seen, 0)
	})
}

func (h *sharedHold) Release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grant.released = true
	return nil
}
