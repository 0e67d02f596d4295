package pgfold

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// Pauses are those between two looks at what takes its time: they grow, with
// jitter, so that many who wait do not look together.
type Pauses struct {
	start time.Time
	next  time.Duration
}

// Since is how long ago the first look was; the first call starts it.
func (p *Pauses) Since() time.Duration {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	return time.Since(p.start)
}

// Sleep makes a pause, at most until ctx ends, whose error it gives then.
func (p *Pauses) Sleep(ctx context.Context) error { return p.SleepAtMost(ctx, lastPause) }

// SleepAtMost makes a pause that is no longer than limit.
func (p *Pauses) SleepAtMost(ctx context.Context, limit time.Duration) error {
	p.next = min(max(firstPause, p.next*2), lastPause)
	d := min(p.next/2+rand.N(p.next), limit)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
