package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agentic-go/agentic/client"
)

// BenchmarkPost sets Submit, which opens a connection each time, beside a POST and
// a GET over connections that are kept.
func BenchmarkPost(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"1"}`)
	}))
	defer srv.Close()
	tr := newTransport(b, srv.URL)
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer plain.CloseIdleConnections()
	ctx := context.Background()
	s := submission(srv.URL)
	ways := []struct {
		name string
		call func() bool
	}{
		{"submit", func() bool { return tr.Submit(ctx, s).Reach == client.Answered }},
		{"keepalive", func() bool {
			resp, err := plain.Post(s.URL, "application/json", bytes.NewReader(s.Body))
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			return err == nil
		}},
		{"get", func() bool { return tr.Get(ctx, read(srv.URL, "/requests/1")).Reach == client.Answered }},
	}
	for _, callers := range []int{1, 16, 64} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/%d", way.name, callers), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism((callers + 1) / 2) // times GOMAXPROCS, which is 2 on the machine of the figures
				if callers == 1 {
					for b.Loop() {
						if !way.call() {
							b.Fatal("no answer")
						}
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if !way.call() {
								b.Error("no answer")
								return
							}
						}
					})
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}
