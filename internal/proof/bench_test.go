package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
)

// BenchmarkExecute sets a verified action (two durable commits, a POST over its
// own connection, two reads) beside the bare three HTTP calls over kept-alive
// connections, against the same service. Slices of the two take turns, so that
// what else the machine does weighs on both; ratio is the rate of execute divided
// by the rate of bare, the median of the turns, and cpu-ratio the same of the
// processor time, where the system tells it. An op is one turn.
func BenchmarkExecute(b *testing.B) {
	s := serve(b, ticket.Normal, nil)
	c, ledger, err := newHost(b.Context(), s.origin, filepath.Join(b.TempDir(), "ledger.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ledger.Close()
	p, err := plan(s.origin)
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	execute := func() error {
		res, err := c.Execute(context.Background(), client.Request{Plan: p, Input: inputOf(strconv.FormatInt(n.Add(1), 10))})
		if err == nil && res.Receipt.Evidence == nil {
			err = fmt.Errorf("outcome %s: %s", res.Receipt.Outcome, res.Receipt.Reason)
		}
		return err
	}
	bareClient := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	bare := func() error { return threeCalls(bareClient, s.origin) }

	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			slice := 64 + 15*callers
			var wall, cpu [2]time.Duration
			var ratios []float64
			for b.Loop() {
				var turn [2]time.Duration
				for i, f := range []func() error{bare, execute} {
					start, used := time.Now(), processorTime()
					concurrently(b, callers, slice, f)
					turn[i] = time.Since(start)
					wall[i] += turn[i]
					cpu[i] += processorTime() - used
				}
				ratios = append(ratios, turn[0].Seconds()/turn[1].Seconds())
			}
			n := float64(b.N * slice)
			b.ReportMetric(n/wall[0].Seconds(), "bare/s")
			b.ReportMetric(n/wall[1].Seconds(), "execute/s")
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			if cpu[1] > 0 {
				b.ReportMetric(cpu[1].Seconds()*1e6/n, "execute-cpu-µs")
				b.ReportMetric(cpu[0].Seconds()/cpu[1].Seconds(), "cpu-ratio")
			}
		})
	}
}

// concurrently calls f n times, from so many goroutines.
func concurrently(b *testing.B, callers, n int, f func() error) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// threeCalls is what an agent without any of this does when all goes well.
func threeCalls(c *http.Client, origin string) error {
	id := uuid.Must(uuid.NewV7()).String()
	post, err := http.NewRequest(http.MethodPost, origin+"/tickets", bytes.NewReader(inputOf(id)))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Idempotency-Key", id)
	if _, err := call(c, post); err != nil {
		return err
	}
	get, err := http.NewRequest(http.MethodGet, origin+"/requests/"+id, nil)
	if err != nil {
		return err
	}
	body, err := call(c, get)
	if err != nil {
		return err
	}
	var status struct {
		ResourceID string `json:"resource_id"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return err
	}
	get, err = http.NewRequest(http.MethodGet, origin+"/tickets/"+status.ResourceID, nil)
	if err != nil {
		return err
	}
	_, err = call(c, get)
	return err
}

func call(c *http.Client, r *http.Request) ([]byte, error) {
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", r.Method, r.URL.Path, resp.Status)
	}
	return body, err
}
