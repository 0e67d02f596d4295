package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// BenchmarkAction is the ledger's part of one verified action: Begin and Finish,
// two durable commits.
func BenchmarkAction(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "ledger.db")})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						if err := action(b.Context(), l, fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "actions/s")
		})
	}
}

// BenchmarkSaved is Begin on a request with a final receipt: no write at all.
func BenchmarkSaved(b *testing.B) {
	l, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "ledger.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := action(b.Context(), l, "request-1"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		h, err := l.Begin(b.Context(), request("request-1"), client.IntendSubmit, time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen is what every short process pays.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	for b.Loop() {
		l, err := sqlite.Open(b.Context(), sqlite.Config{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func action(ctx context.Context, l client.Ledger, id string) error {
	r := request(id)
	h, err := l.Begin(ctx, r, client.IntendSubmit, time.Minute)
	if err != nil {
		return err
	}
	defer h.Release()
	obs := make([]client.Observation, 3)
	for i := range obs {
		obs[i] = client.Observation{Kind: client.ExchangeStatus, At: h.Now(), Reach: client.Answered, Status: 200}
	}
	return h.Finish(ctx, obs, succeeded(r))
}

// Documents of the size of the example's.
var (
	profileBody = []byte(`{"p":"` + strings.Repeat("p", 1500) + `"}`)
	openapiBody = []byte(`{"o":"` + strings.Repeat("o", 9000) + `"}`)
)

func request(id string) client.Binding {
	return client.Binding{
		Scope:       client.Scope{Principal: "alice", Environment: "production"},
		RequestID:   id,
		Origin:      "https://support.example",
		ActionID:    "create-ticket",
		Profile:     client.Snapshot{Digest: "p", Body: profileBody},
		OpenAPI:     client.Snapshot{Digest: "o", Body: openapiBody},
		InputDigest: "of " + id,
		Guard:       client.Guard{On: true},
		Input:       []byte(`{"subject":"printer on fire"}`),
	}
}

func succeeded(b client.Binding) agentic.Receipt {
	id := "T1"
	return agentic.Receipt{
		Agentic: agentic.Version, RequestID: b.RequestID, ActionID: b.ActionID, Origin: b.Origin,
		Outcome: agentic.Succeeded, ObservedAt: "2026-03-01T12:30:16.000001Z", ResourceID: &id, Reason: "Verified.",
		Evidence: &agentic.ReceiptEvidence{URL: b.Origin + "/tickets/T1", ResourceID: id, RequestID: b.RequestID, State: "open",
			Matched: []agentic.Pair{{InputPointer: "/subject", ResourcePointer: "/subject"}}},
	}
}
