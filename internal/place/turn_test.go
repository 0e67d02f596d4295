package place

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// TestTurns: callers with a Turns each, as processes have one, take turns in a name,
// and are not in each other's way in another.
func TestTurns(t *testing.T) {
	for kind, name := range map[string]string{"file": filepath.Join(t.TempDir(), "ledger.db"), "database": pgtest.Shared(t).NewDatabase(t)} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p, err := Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			var all []*Turns
			for range 3 {
				l, err := p.Open(ctx, Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				turns, err := l.Turns(ctx)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { turns.Close() })
				all = append(all, turns)
			}
			n, inside := 0, 0
			var mu sync.Mutex // for the race detector, which knows of no lock of a kernel or a server
			var wg sync.WaitGroup
			for i := range 30 {
				wg.Go(func() {
					release, err := all[i%len(all)].Take(ctx, "ada", "order")
					if err != nil {
						t.Error(err)
						return
					}
					defer release()
					mu.Lock()
					inside++
					if n++; inside > 1 {
						t.Errorf("%d have the turn", inside)
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
				})
			}
			wg.Wait()
			if n != 30 {
				t.Errorf("%d had a turn", n)
			}
			release, err := all[0].Take(ctx, "ada", "order")
			if err != nil {
				t.Fatal(err)
			}
			other, err := all[1].Take(ctx, "bob", "order")
			if err != nil {
				t.Fatal(err)
			}
			other()
			short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			defer stop()
			if _, err := all[1].Take(short, "ada", "order"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			release()
			if again, err := all[1].Take(ctx, "ada", "order"); err != nil {
				t.Error(err)
			} else {
				again()
			}
		})
	}
}
