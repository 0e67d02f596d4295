package service

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// sweepBatch is how many records one transaction of a sweep changes.
const sweepBatch = 200

// DefaultSweepInterval is the interval of Run when it is given none.
const DefaultSweepInterval = time.Minute

// Sweep turns all records past their window into tombstones, and deletes the
// tombstones that are older than Config.Tombstones, in small batches. Any number
// of hosts may do it at once. It returns what was done, also with an error.
func (t *Tracker[Tx]) Sweep(ctx context.Context) (Swept, error) {
	var total Swept
	for {
		n, err := t.store.Sweep(ctx, t.tombstones, sweepBatch)
		total.Expired += n.Expired
		total.Deleted += n.Deleted
		if err == nil && ctx.Err() == nil && (n.Expired >= sweepBatch || n.Deleted >= sweepBatch) {
			continue
		}
		if total != (Swept{}) {
			t.notify(ctx, SweptEvent{total})
		}
		if err != nil {
			return total, fmt.Errorf("service: sweep: %w", err)
		}
		return total, nil
	}
}

// Run sweeps at once and then after every interval, until ctx ends, whose error it
// returns. A sweep that fails is logged, and made again at the next turn.
func (t *Tracker[Tx]) Run(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		interval = DefaultSweepInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if _, err := t.Sweep(ctx); err != nil && ctx.Err() == nil {
			t.log.LogAttrs(ctx, slog.LevelError, "agentic: the sweep failed", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
