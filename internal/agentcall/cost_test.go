package agentcall_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/ticket"
)

// BenchmarkCall tells what a tool call adds to the same execution through the library:
// both are made in turn, and their medians compared.
func BenchmarkCall(b *testing.B) {
	h := open(b, ticket.Normal)
	engine := h.config.Engine
	engine.Scope.Principal = "library"
	library, err := client.New(engine)
	if err != nil {
		b.Fatal(err)
	}
	var calls, bare []time.Duration
	for i := 0; b.Loop(); i++ {
		input := fmt.Sprintf(`{"subject":"%d"}`, i)
		began := time.Now()
		if _, err := h.calls.Call(b.Context(), agentcall.Call{Tool: act, Arguments: []byte(input), Session: "one"}); err != nil {
			b.Fatal(err)
		}
		calls = append(calls, time.Since(began))
		began = time.Now()
		if _, err := library.Execute(b.Context(), client.Request{Plan: h.config.Plans[0], Input: []byte(input)}); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(began))
	}
	median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Microseconds()) / 1000 }
	b.ReportMetric(median(bare), "library-ms")
	b.ReportMetric(median(calls)-median(bare), "added-ms")
	h.state(ticket.State{Posts: len(calls) + len(bare), Tickets: len(calls) + len(bare)})
}
