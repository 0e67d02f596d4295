package proof

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkServiceTracking compares submissions through a tracker with the same
// endpoint without one: the same insert, committed the same way, in the same
// process, called by 64 callers over HTTP. The two take turns in slices of one
// run; the ratio of their rates is what counts, and on a busy machine the median
// of the ratios of neighbours.
func BenchmarkServiceTracking(b *testing.B) {
	for name, open := range shopKinds {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			s.open()
			const callers, slice = 64, 512
			client := newCaller(b, callers)
			var key atomic.Int64
			post := func(path string, want int) error {
				r, err := http.NewRequest(http.MethodPost, s.spec.Origin+path, strings.NewReader(`{"subject":"Printer on fire","do":"done"}`))
				if err != nil {
					return err
				}
				r.Header.Set("Authorization", "Bearer ann")
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", fmt.Sprintf("0198c0de-%026d", key.Add(1)))
				resp, err := client.Do(r)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
					return fmt.Errorf("%s: %d, %v", path, resp.StatusCode, err)
				}
				return nil
			}
			paths := []string{"/thing", "/bare"}
			run := func(path string) time.Duration {
				begin := time.Now()
				var left atomic.Int64
				left.Store(slice)
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if err := post(path, http.StatusCreated); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				return time.Since(begin)
			}
			for _, path := range paths { // connections and pages are there
				run(path)
			}
			took := map[string]time.Duration{}
			var ratios []float64
			n := 0
			for b.Loop() {
				pair := map[string]time.Duration{}
				for i := range paths {
					path := paths[(i+n)%2]
					pair[path] = run(path)
					took[path] += pair[path]
				}
				ratios = append(ratios, pair["/bare"].Seconds()/pair["/thing"].Seconds())
				n++
			}
			slices.Sort(ratios)
			rate := func(path string) float64 { return float64(n*slice) / took[path].Seconds() }
			b.ReportMetric(rate("/thing"), "tracked/s")
			b.ReportMetric(rate("/bare"), "untracked/s")
			b.ReportMetric(rate("/thing")/rate("/bare"), "ratio")
			b.ReportMetric(ratios[n/2], "median-ratio")
			b.ReportMetric(0, "ns/op")
			if rows, err := count(b.Context(), s); err != nil || rows != (n+1)*2*slice {
				b.Errorf("%d rows of %d submissions, %v", rows, (n+1)*2*slice, err)
			}
		})
	}
}

func count(ctx context.Context, s *shop) (n int, err error) {
	return n, s.db.QueryRowContext(ctx, `SELECT count(*) FROM thing`).Scan(&n)
}
