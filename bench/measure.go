package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// slice is what one side did in one turn.
type slice struct {
	actions   int
	took      time.Duration // until the last caller was done
	latencies []time.Duration
	wal       int64 // bytes that the server logged meanwhile, of all databases
}

func (s *slice) rate() float64 { return float64(s.actions) / s.took.Seconds() }

// turn has so many callers run actions, one after the other, until the time is over
// or there were as many as limit (0 is no limit). Every action that began is
// finished and counted. The first one that fails ends the turn.
func turn(ctx context.Context, s *side, callers int, d time.Duration, limit int) (*slice, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(int64(limit))
	each := make([][]time.Duration, callers)
	start := time.Now()
	end := start.Add(d)
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for now := start; now.Before(end) && ctx.Err() == nil && (limit == 0 || left.Add(-1) >= 0); {
				if err := s.act(ctx, n); err != nil {
					cancel(fmt.Errorf("%s: %w", s.name, err))
					return
				}
				then := time.Now()
				each[n] = append(each[n], then.Sub(now))
				now = then
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	all := slices.Concat(each...)
	slices.Sort(all)
	return &slice{actions: len(all), took: took, latencies: all}, nil
}

// meter measures turns of sides at one server.
type meter struct {
	conn     *pgx.Conn // of its own, to read the server's counters
	profiles string    // folder of processor profiles, one for each turn; "" is none
	turns    int
}

func (m *meter) turn(ctx context.Context, s *side, callers int, d time.Duration) (_ *slice, err error) {
	m.turns++
	if m.profiles != "" {
		f, err := os.Create(filepath.Join(m.profiles, fmt.Sprintf("%s-%d-%03d.pprof", s.name, callers, m.turns)))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	before, err := m.logged(ctx)
	if err != nil {
		return nil, err
	}
	r, err := turn(ctx, s, callers, d, 0)
	if err != nil {
		return nil, err
	}
	after, err := m.logged(ctx)
	r.wal = after - before
	return r, err
}

// logged is how many bytes the server has written to its log.
func (m *meter) logged(ctx context.Context) (n int64, err error) {
	return n, m.conn.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`).Scan(&n)
}
