package groupcommit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// committing is a committer whose database takes everything.
func committing() *Committer {
	ok := func() error { return nil }
	return &Committer{Begin: ok, Commit: ok, Rollback: ok, InFlight: func() int { return 1 }}
}

// stuck is a committer whose leader stands in its transaction until leave is closed.
type stuck struct {
	*Committer
	leave  chan struct{}
	leader chan error
}

func newStuck(c *Committer) *stuck {
	s := &stuck{Committer: c, leave: make(chan struct{}), leader: make(chan error, 1)}
	in := make(chan struct{})
	go func() {
		s.leader <- s.Submit(context.Background(), func() error {
			close(in)
			<-s.leave
			return nil
		})
	}()
	<-in
	return s
}

// waitFor waits until so many writes are queued.
func (s *stuck) waitFor(t *testing.T, n int) {
	t.Helper()
	for range 5000 {
		if s.Waiting() == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the queue does not get to %d", n)
}

// A context that ends in the queue takes its write out, and the lead goes on; one
// that ends when the write is in a batch changes nothing.
func TestWithdraw(t *testing.T) {
	s := newStuck(committing())
	type result struct {
		err error
		ran bool
	}
	start := func(ctx context.Context) <-chan result {
		c := make(chan result, 1)
		go func() {
			ran := false
			err := s.Submit(ctx, func() error { ran = true; return nil })
			c <- result{err, ran}
		}()
		return c
	}
	ctx, cancel := context.WithCancel(context.Background())
	gone := start(ctx)
	s.waitFor(t, 1)
	stays := start(context.Background())
	s.waitFor(t, 2)
	cancel()
	if r := <-gone; !errors.Is(r.err, context.Canceled) || r.ran {
		t.Errorf("a write that was withdrawn: %+v", r)
	}
	close(s.leave)
	if err := <-s.leader; err != nil {
		t.Error(err)
	}
	if r := <-stays; r.err != nil || !r.ran {
		t.Errorf("the write behind it: %+v", r)
	}
	if r := <-start(context.Background()); r.err != nil || !r.ran {
		t.Errorf("a write afterwards: %+v", r)
	}
	if r := <-start(ctx); !errors.Is(r.err, context.Canceled) || r.ran {
		t.Errorf("a write of an ended context: %+v", r)
	}
}

// A leader that is cancelled before it leads passes the lead on, and the last one
// leaves nobody leading.
func TestWithdrawLeader(t *testing.T) {
	writes := []*write{{signal: make(chan struct{}, 1)}, {signal: make(chan struct{}, 1)}}
	c := &Committer{busy: true, queue: slices.Clone(writes)}
	c.mu.Lock()
	c.passOn()
	c.mu.Unlock()
	for i, w := range writes {
		if !w.leads || len(w.signal) != 1 {
			t.Fatalf("write %d does not lead", i)
		}
		if !c.withdraw(w) {
			t.Fatalf("write %d is not in the queue", i)
		}
	}
	if c.busy || len(c.queue) != 0 {
		t.Errorf("busy %v with %d queued", c.busy, len(c.queue))
	}
	if c.withdraw(writes[0]) {
		t.Error("a write was withdrawn twice")
	}
}

// A leader waits for the writes of the others in flight, no longer than gatherTime,
// and not at all when few are in flight.
func TestGather(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name     string
		inFlight int
		arrive   []time.Duration // of the writes behind the leader's
		waited   time.Duration
		batch    int
	}{
		{"alone", 1, nil, 0, 1},
		{"few", GatherFrom - 1, []time.Duration{ms}, 0, 1},
		{"many, nobody comes", GatherFrom, nil, gatherTime, 1},
		{"many, some come", GatherFrom, []time.Duration{0, ms}, gatherTime, 3},
		{"all are there", GatherFrom, make([]time.Duration, GatherFrom-1), 0, GatherFrom},
		{"all come in time", GatherFrom, append(make([]time.Duration, GatherFrom-2), ms), ms, GatherFrom},
		{"one comes late", GatherFrom, append(make([]time.Duration, GatherFrom-2), 3*ms), gatherTime, GatherFrom - 1},
		{"more than a batch", 2 * maxBatch, append(make([]time.Duration, maxBatch-2), ms), ms, maxBatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Committer{InFlight: func() int { return tt.inFlight }, busy: true, queue: []*write{{}}}
				for _, at := range tt.arrive {
					go func() {
						time.Sleep(at)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						time.AfterFunc(time.Second, cancel) // nobody commits here
						_ = c.Submit(ctx, nil)
					}()
				}
				if tt.inFlight > 1 && len(tt.arrive) > 0 && tt.arrive[0] == 0 {
					synctest.Wait()
				}
				start := time.Now()
				c.mu.Lock()
				c.gather()
				got, again := len(c.queue), c.enough
				c.mu.Unlock()
				if waited := time.Since(start); waited != tt.waited || got != tt.batch || again != nil {
					t.Errorf("waited %s for %d writes, want %s and %d", waited, got, tt.waited, tt.batch)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// What a database refuses is told to those it refused, and to nobody else.
func TestErrors(t *testing.T) {
	failure := errors.New("spoiled")
	for name, tt := range map[string]struct {
		begin, commit []error // of the calls in turn; nil from then on
		want          [2]error
		rolled        int
	}{
		"nothing":       {nil, nil, [2]error{}, 0},
		"begin":         {[]error{failure}, nil, [2]error{failure, failure}, 0},
		"commit":        {nil, []error{failure}, [2]error{}, 1}, // each alone is taken
		"commit of all": {nil, []error{failure, failure, failure}, [2]error{failure, failure}, 3},
		"commit of one": {nil, []error{failure, nil, failure}, [2]error{nil, failure}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			next := func(list *[]error) (err error) {
				if len(*list) > 0 {
					err, *list = (*list)[0], (*list)[1:]
				}
				return err
			}
			rolled := 0
			c := &Committer{
				Begin:    func() error { return next(&tt.begin) },
				Commit:   func() error { return next(&tt.commit) },
				Rollback: func() error { rolled++; return failure },
			}
			batch := make([]*write, 2)
			for i := range batch {
				batch[i] = &write{do: func() error { return nil }, signal: make(chan struct{}, 1)}
			}
			c.lead(batch)
			if batch[0].err != tt.want[0] || batch[1].err != tt.want[1] || rolled != tt.rolled || len(batch[1].signal) != 1 {
				t.Errorf("%v and %v, %d times rolled back", batch[0].err, batch[1].err, rolled)
			}
		})
	}
}
