package postgres

import (
	"context"
	"math/rand/v2"
	"time"
)

// retryTime is how long a read, and a hold that nobody waits longer for, is tried
// while the database cannot serve.
const retryTime = 10 * time.Second

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// pauses are those between two looks at what takes its time: they grow, with
// jitter, so that many who wait do not look together.
type pauses struct {
	start time.Time
	next  time.Duration
}

// since is how long ago the first look was; the first call starts it.
func (p *pauses) since() time.Duration {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	return time.Since(p.start)
}

// sleep makes a pause, at most until ctx ends, whose error it gives then.
func (p *pauses) sleep(ctx context.Context) error { return p.sleepAtMost(ctx, lastPause) }

func (p *pauses) sleepAtMost(ctx context.Context, limit time.Duration) error {
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
