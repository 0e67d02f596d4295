package filelock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Both kinds of lock of a Unix system exclude, wait, wake and end.
func TestLockTable(t *testing.T) {
	for name, newLock := range kernelLocks {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/ledger.db"
			tables := make([]*Table, 2)
			for i := range tables {
				k, err := newLock(path)
				if err != nil {
					t.Fatal(err)
				}
				defer k.close()
				tables[i] = newTable(k)
			}
			counts := make([]atomic.Int32, 4) // never added to: only the lock keeps them right
			var wg sync.WaitGroup
			for worker := range 16 {
				wg.Go(func() {
					for i := range 50 {
						k := Key(i%len(counts)) << 60
						if err := tables[worker%2].Acquire(t.Context(), k, time.Minute); err != nil {
							t.Error(err)
							return
						}
						n := &counts[i%len(counts)]
						n.Store(n.Load() + 1)
						if err := tables[worker%2].Release(k); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for i, want := range []int32{208, 208, 192, 192} {
				if got := counts[i].Load(); got != want {
					t.Errorf("key %d was counted %d times, want %d", i, got, want)
				}
			}

			if err := tables[0].Acquire(t.Context(), Place, time.Minute); err != nil {
				t.Fatal(err)
			}
			for i, table := range tables {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				if err := table.Acquire(ctx, Place, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("table %d: %v", i, err)
				}
				cancel()
			}
			if err := tables[0].Close(); err != nil { // as the end of a process does
				t.Fatal(err)
			}
			if err := tables[1].Acquire(t.Context(), Place, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := tables[1].Release(Place); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Stop ends who waits for a goroutine and who waits for another process, and keeps
// what is held.
func TestStop(t *testing.T) {
	path := t.TempDir() + "/ledger.db"
	var tables [2]*Table
	for i := range tables {
		var err error
		if tables[i], err = Open(path); err != nil {
			t.Fatal(err)
		}
		defer tables[i].Close()
	}
	k := KeyOf("alice", "production", "request-1")
	if err := tables[0].Acquire(t.Context(), k, 0); err != nil {
		t.Fatal(err)
	}
	if got := tables[0].InFlight(); got != 1 {
		t.Errorf("in flight: %d", got)
	}
	ended := make(chan error, 2)
	for _, table := range tables {
		go func() { ended <- table.Acquire(context.Background(), k, time.Minute) }()
	}
	time.Sleep(20 * time.Millisecond)
	for _, table := range tables {
		table.Stop()
	}
	for range tables {
		if err := <-ended; err != ErrStopped {
			t.Errorf("a waiter: %v", err)
		}
	}
	if err := tables[1].Acquire(t.Context(), k, 0); err != ErrHeld {
		t.Errorf("what is held after Stop: %v", err)
	}
}

// Parts are told apart, and no key is that of the place.
func TestKeyOf(t *testing.T) {
	seen := map[Key]bool{Place: true}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", ""}, {"a", "b"}, {"", "ab"}, {"ab"}} {
		k := KeyOf(parts...)
		if seen[k] || k < 0 || k >= Place {
			t.Errorf("KeyOf(%q) = %d", parts, k)
		}
		seen[k] = true
	}
}
