package postgres

import (
	"context"
	"sync"
	"time"
)

// requestKey is the SHA-256 under which a request stands.
type requestKey [32]byte

// gates let one caller of this process at a time to a request, so that those who
// wait for each other here do not ask the database.
type gates struct {
	mu sync.Mutex
	m  map[requestKey]*gate
}

type gate struct {
	in   chan struct{} // whoever has put its value in is in
	refs int           // who is in, or waits
}

// enter waits until the caller is in: false when patience ran out, or the context's
// error. Without patience it tries once.
func (g *gates) enter(ctx context.Context, k requestKey, patience time.Duration) (bool, error) {
	g.mu.Lock()
	w := g.m[k]
	if w == nil {
		w = &gate{in: make(chan struct{}, 1)}
		g.m[k] = w
	}
	w.refs++
	g.mu.Unlock()
	select {
	case w.in <- struct{}{}:
		return true, nil
	default:
	}
	timer := time.NewTimer(max(0, patience))
	defer timer.Stop()
	select {
	case w.in <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		g.leave(k, false)
		return false, ctx.Err()
	case <-timer.C:
		g.leave(k, false)
		return false, nil
	}
}

func (g *gates) leave(k requestKey, wasIn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.m[k]
	if wasIn {
		<-w.in
	}
	if w.refs--; w.refs == 0 {
		delete(g.m, k)
	}
}
