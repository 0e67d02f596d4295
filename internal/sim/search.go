package sim

import (
	"context"
	"github.com/agentic-go/agentic/internal/sim/durable"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how many runs to make, and of which seeds.
type Options struct {
	Seed     uint64 // of the first run; each further run has the next one
	Runs     int64  // 0 goes on until the context ends
	Workers  int    // 0 is one for each processor that Go uses
	Progress func(Progress)
	Planted  Plant // "" tries the engine as it is
}

// Progress is where a search stands. It is told about once a second.
type Progress struct {
	Runs    int64
	Elapsed time.Duration
	Rate    float64 // runs a second
}

// Result is what a search came to.
type Result struct {
	Seed      uint64 // of the first run
	Last      uint64 // of the last one that was begun
	Runs      int64  // that were made to their end
	Steps     int64  // of all of them: places where something could happen
	Elapsed   time.Duration
	Rate      float64          // runs a second
	Coverage  map[string]int64 // how often each kind of thing happened
	Violation *Violation       // of the lowest seed that was found, shrunk; or nil
}

// batch is how many seeds a worker takes at once.
const batch = 64

// Search makes runs until all are made, one violates an invariant, or ctx ends, whose
// error it gives only when Runs were asked for and are not all made. What a seed comes to
// depends on nothing but the seed.
func Search(ctx context.Context, o Options) (Result, error) {
	s := &search{o: o, start: time.Now(), coverage: make([]counts, max(1, o.Workers))}
	if o.Workers <= 0 {
		s.coverage = make([]counts, runtime.GOMAXPROCS(0))
	}
	s.bad.Store(int64(durable.Never))
	done := make(chan struct{})
	var reporting sync.WaitGroup
	if o.Progress != nil {
		reporting.Go(func() { s.report(done) })
	}
	var workers sync.WaitGroup
	for i := range s.coverage {
		workers.Go(func() { s.work(ctx, &s.coverage[i]) })
	}
	workers.Wait()
	close(done)
	reporting.Wait()
	r := Result{Seed: o.Seed, Last: o.Seed + uint64(max(0, s.begun.Load()-1)), Runs: s.made.Load(), Steps: s.steps.Load(),
		Elapsed: time.Since(s.start), Coverage: s.merged(), Violation: s.violation}
	r.Rate = float64(r.Runs) / r.Elapsed.Seconds()
	if s.violation == nil && o.Runs > 0 && r.Runs < o.Runs {
		return r, ctx.Err()
	}
	return r, nil
}

type search struct {
	o        Options
	start    time.Time
	next     atomic.Int64 // seeds taken, from o.Seed
	begun    atomic.Int64
	made     atomic.Int64
	steps    atomic.Int64
	bad      atomic.Int64 // the lowest number of a run that violates something
	coverage []counts

	mu        sync.Mutex
	violation *Violation
}

// work makes runs. Those below the lowest that was found bad are made to the end, so
// that the result does not depend on who was faster.
func (s *search) work(ctx context.Context, count *counts) {
	l := newLab()
	defer l.close()
	for ctx.Err() == nil {
		first := s.next.Add(batch) - batch
		for n := first; n < first+batch; n++ {
			if s.o.Runs > 0 && n >= s.o.Runs || n > s.bad.Load() || ctx.Err() != nil {
				return
			}
			s.one(l, n, count)
		}
	}
}

func (s *search) one(l *lab, n int64, count *counts) {
	for b := s.begun.Load(); b <= n && !s.begun.CompareAndSwap(b, n+1); b = s.begun.Load() {
	}
	seed := s.o.Seed + uint64(n)
	l.choices.seeded(seed)
	w := l.simulate(s.o.Planted, count, false)
	s.made.Add(1)
	s.steps.Add(int64(w.steps))
	if w.bad == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < s.bad.Load() {
		s.bad.Store(n)
		t := l.shrunk(seed, w)
		if t.Violation == nil { // a run that cannot be made again is itself a fault
			t.Violation = w.bad
		}
		s.violation = t.Violation
		s.violation.Trace = t
	}
}

func (s *search) merged() map[string]int64 {
	m := make(map[string]int64, countKinds)
	for i := range s.coverage {
		for k, n := range s.coverage[i] {
			m[countNames[k]] += n
		}
	}
	return m
}

func (s *search) report(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p := Progress{Runs: s.made.Load(), Elapsed: time.Since(s.start)}
			p.Rate = float64(p.Runs) / p.Elapsed.Seconds()
			s.o.Progress(p)
		}
	}
}
