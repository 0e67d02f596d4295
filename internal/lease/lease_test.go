package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/lease"
)

func TestRight(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var r lease.Right
	r.Begin(start, 30*time.Second, time.Minute)
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {26 * time.Second, true}, {27 * time.Second, false}, {time.Hour, false}} {
		if r.Stands(at(tt.after)) != tt.want {
			t.Errorf("after %s it is %v", tt.after, !tt.want)
		}
	}
	// The machine was suspended: the monotonic clock stood still, the other did not.
	if wall := at(28 * time.Second).Round(0); r.Stands(wall) {
		t.Error("it stands after a time that only the wall clock shows")
	}
	for _, tt := range []struct {
		after, want time.Duration
		due         bool
	}{{9 * time.Second, 0, false}, {10 * time.Second, 30 * time.Second, true}, {35 * time.Second, 25 * time.Second, true}, {61 * time.Second, 0, false}} {
		got, due := r.Renewal(at(tt.after), 30*time.Second)
		if due != tt.due || due && got != tt.want {
			t.Errorf("renewal after %s: %s, %v", tt.after, got, due)
		}
	}
	r.Renewed(at(35*time.Second), 25*time.Second)
	if _, due := r.Renewal(at(46*time.Second), 30*time.Second); due {
		t.Error("it is renewed although its term gives no more")
	}
	if !r.Lose() || r.Lose() || r.Stands(at(36*time.Second)) {
		t.Error("a lost right stands, or is told of twice")
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	var g lease.Gates
	k, other := lease.Key{1}, lease.Key{2}
	enter := func(ctx context.Context, k lease.Key, patience time.Duration) (bool, error) {
		return g.Enter(ctx, k, patience)
	}
	for _, key := range []lease.Key{k, other} {
		if in, err := enter(t.Context(), key, -1); !in || err != nil {
			t.Fatalf("%v, %v", in, err)
		}
	}
	if in, err := enter(t.Context(), k, 0); in || err != nil {
		t.Errorf("a second one without patience: %v, %v", in, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if in, err := enter(ended, k, time.Minute); in || !errors.Is(err, context.Canceled) {
		t.Errorf("a second one whose context has ended: %v, %v", in, err)
	}
	came := make(chan bool)
	go func() {
		in, err := enter(context.Background(), k, time.Minute)
		came <- in && err == nil
	}()
	select {
	case <-came:
		t.Fatal("two are in")
	case <-time.After(20 * time.Millisecond):
	}
	g.Leave(k)
	if !<-came {
		t.Error("the waiter did not come in")
	}
	g.Leave(k)
	g.Leave(other)
	if in, err := enter(t.Context(), k, 0); !in || err != nil {
		t.Errorf("a gate that is free: %v, %v", in, err)
	}
}
