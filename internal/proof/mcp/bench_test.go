//go:build unix

package mcp

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// BenchmarkToolCall is what a call by way of the command over a pipe takes longer than
// the same execution by the library: one of each in turn, with a ledger file each, at
// one service.
func BenchmarkToolCall(b *testing.B) {
	s := serve(b, "normal")
	w := &pipe{t: b, c: newCommand(b, s)}
	w.connect()
	ledger, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "ledger.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer ledger.Close()
	tr, err := transport.New(transport.Config{Origins: []string{s.origin}, AllowLoopback: true})
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(client.Config{Ledger: ledger, Transport: tr, Scope: client.Scope{Principal: "default", Environment: "default"}, DuplicateWindow: 24 * time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	plan, err := agentic.Load(ticket.Profile(s.origin), ticket.OpenAPI(s.origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		b.Fatal(err)
	}
	var library, tool []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		res, err := c.Execute(b.Context(), client.Request{Plan: plan, Input: fmt.Appendf(nil, `{"subject":"library %d"}`, n)})
		if err != nil || res.Receipt.Outcome != agentic.Succeeded {
			b.Fatalf("got %+v, %v", res, err)
		}
		library = append(library, time.Since(began))
		began = time.Now()
		r := w.call("create-ticket", object{"subject": fmt.Sprintf("tool %d", n)}, none, 0)
		if r == nil || r.StructuredContent.State != "succeeded" {
			b.Fatalf("got %+v", r)
		}
		tool = append(tool, time.Since(began))
	}
	w.end()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	l, t := median(library), median(tool)
	b.ReportMetric(ms(l), "library-ms")
	b.ReportMetric(ms(t), "tool-ms")
	b.ReportMetric(ms(t-l), "added-ms")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
