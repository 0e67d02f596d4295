package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
)

func bindingOf(id string) client.Binding {
	return client.Binding{
		Scope: client.Scope{Principal: "alice", Environment: "production"}, RequestID: id,
		Origin: "https://support.example", ActionID: "create-ticket",
		Profile:     client.Snapshot{Digest: "p", Body: []byte(`{"agentic":"0.1.0-draft"}`)},
		OpenAPI:     client.Snapshot{Digest: "o", Body: []byte(`{"openapi":"3.1.0"}`)},
		InputDigest: fmt.Sprintf("%064s", id), Input: fmt.Appendf(nil, `{"subject":"printer %s","description":"It is on fire, and has been for some time."}`, id),
		Window: 24 * time.Hour, Term: time.Minute,
		Guard: client.Guard{On: true},
	}
}

func receiptOf(b client.Binding, o agentic.Outcome) agentic.Receipt {
	r := agentic.Receipt{Agentic: agentic.Version, RequestID: b.RequestID, ActionID: b.ActionID, Origin: b.Origin, Outcome: o,
		ObservedAt: "2026-03-01T12:30:16.000001Z", Reason: "The service said so."}
	if o == agentic.Succeeded {
		id := "T/1"
		r.ResourceID = &id
		r.Evidence = &agentic.ReceiptEvidence{URL: b.Origin + "/tickets/T%2F1", ResourceID: id, RequestID: b.RequestID, State: "open",
			Matched: []agentic.Pair{{InputPointer: "/subject", ResourcePointer: "/subject"}}}
	}
	return r
}

// exchanges are those of a verified action.
var exchanges = []client.Observation{
	{Kind: client.ExchangeSubmit, At: time.Unix(1772368215, 0).UTC(), Duration: time.Millisecond, Reach: client.Answered, Status: 201},
	{Kind: client.ExchangeStatus, At: time.Unix(1772368215, 0).UTC(), Duration: time.Millisecond, Reach: client.Answered, Status: 200, Outcome: agentic.Succeeded,
		Checks: []agentic.Check{{Name: "status", OK: true, Expected: "200", Found: "200"}, {Name: "request_id", OK: true, Expected: "x", Found: "x"}}},
	{Kind: client.ExchangeVerify, At: time.Unix(1772368215, 0).UTC(), Duration: time.Millisecond, Reach: client.Answered, Status: 200,
		Checks: []agentic.Check{{Name: "/subject", OK: true, Expected: "printer", Found: "printer"}}},
}

// BenchmarkLedger is what the ledger has to do for a verified action: a new request is
// bound, guarded, attempted and held, and gets its receipt. The rate is that of such
// pairs; what counts is how it grows with the callers, whose writes are folded.
func BenchmarkLedger(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			d := newLedgerDatabase(b, pgtest.Shared(b))
			c, err := pgxpool.ParseConfig(d.url)
			if err != nil {
				b.Fatal(err)
			}
			c.MaxConns = 20
			l := d.openLedger(b, d.newPool(b, c), nil)
			ctx := context.Background()
			var n atomic.Int64
			b.ResetTimer()
			concurrently(b, callers, func() error {
				req := bindingOf(fmt.Sprintf("request-%d", n.Add(1)))
				h, err := l.Begin(ctx, req, client.IntendSubmit, time.Minute)
				if err != nil {
					return err
				}
				if !h.MaySubmit() {
					return fmt.Errorf("%s may not be sent", req.RequestID)
				}
				if err := h.Finish(ctx, exchanges, receiptOf(req, agentic.Succeeded)); err != nil {
					return err
				}
				return h.Release()
			})
		})
	}
}
