package lease

import (
	"context"
	"sync"
	"time"
)

// Key names a request.
type Key [32]byte

// Gates let one caller of this process at a time to a request, so that those who
// wait for each other here do not ask the database.
type Gates struct {
	mu sync.Mutex
	m  map[Key]*gate
}

type gate struct {
	in   chan struct{} // whoever has put its value in is in
	refs int           // who is in, or waits
}

// Enter waits until the caller is in: false when patience ran out, or the context's
// error. Without patience it tries once.
func (g *Gates) Enter(ctx context.Context, k Key, patience time.Duration) (bool, error) {
	g.mu.Lock()
	w := g.m[k]
	if w == nil {
		if g.m == nil {
			g.m = map[Key]*gate{}
		}
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

// Leave is for who is in.
func (g *Gates) Leave(k Key) { g.leave(k, true) }

func (g *Gates) leave(k Key, wasIn bool) {
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
