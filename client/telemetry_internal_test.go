package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
)

// off is what telemetry does in a verified action of three exchanges.
func off(ctx context.Context, t *telemetry) {
	ctx, op := t.begin(ctx, "agentic.execute")
	op.names("request-0001", "create-ticket", "https://support.example")
	for _, kind := range []ExchangeKind{ExchangeSubmit, ExchangeStatus, ExchangeVerify} {
		sctx, span := t.exchange(ctx, kind)
		if kind == ExchangeSubmit {
			t.submitted(sctx, "https://support.example", "create-ticket")
		}
		t.exchanged(sctx, span, kind, 1, time.Millisecond, Exchange{Reach: Answered, Answer: agentic.Answer{Status: 200}})
	}
	t.noticed(ctx, "finish", nil)
	t.refused(ctx, "https://support.example", "create-ticket", nil)
	op.end(ctx, Result{Receipt: agentic.Receipt{Outcome: agentic.Succeeded}, Sent: true}, nil)
}

// What telemetry costs a host that did not ask for it: under 2 µs for each action.
func BenchmarkTelemetryOff(b *testing.B) {
	t, err := newTelemetry(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		off(ctx, t)
	}
}

// One span's context and what remembers the call: attributes are not even made.
func TestTelemetryOffAllocatesLittle(t *testing.T) {
	tel, err := newTelemetry(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { off(t.Context(), tel) }); n > 6 {
		t.Errorf("%v allocations for each action", n)
	}
}

func TestPairsAreBounded(t *testing.T) {
	var p pairs
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * maxPairs {
				p.bound("https://service.example", fmt.Sprintf("action-%d", i))
			}
		})
	}
	wg.Wait()
	if len(p.seen) != maxPairs {
		t.Errorf("%d pairs", len(p.seen))
	}
	apart := 0
	for i := range 3 * maxPairs {
		switch o, a := p.bound("https://service.example", fmt.Sprintf("action-%d", i)); {
		case o == "https://service.example" && a == fmt.Sprintf("action-%d", i):
			apart++
		case o != other || a != other:
			t.Fatalf("%q %q", o, a)
		}
	}
	if apart != maxPairs {
		t.Errorf("%d pairs counted apart", apart)
	}
	if o, a := p.bound("", ""); o != none || a != none {
		t.Errorf("%q %q for nothing", o, a)
	}
	long := new(pairs)
	if o, a := long.bound(strings.Repeat("é", 200), strings.Repeat("a", 1000)); o != strings.Repeat("é", 128) || a != strings.Repeat("a", 256) {
		t.Errorf("%d and %d bytes", len(o), len(a))
	}
	if o, _ := long.bound("x"+strings.Repeat("é", 200), "a"); o != "x"+strings.Repeat("é", 127) {
		t.Errorf("%q is cut inside a character", o)
	}
}

func TestErrorTypes(t *testing.T) {
	for want, err := range map[string]error{
		"lost":        errors.Join(&InterruptedError{Err: context.Canceled}, ErrLost),
		"ledger":      errors.Join(&InterruptedError{Err: context.Canceled}, &LedgerError{Op: "observe", Err: context.DeadlineExceeded}),
		"interrupted": &InterruptedError{Err: context.Canceled},
		"held":        fmt.Errorf("host: %w", &HeldError{}),
		"duplicate":   &DuplicateError{},
		"binding":     &BindingError{},
		"not-found":   &NotFoundError{},
		"prepared":    &PreparedError{},
		"settled":     &SettledError{},
		"purged":      &PurgedError{},
		"request-id":  &RequestIDError{},
		"origin":      &OriginError{},
		"input":       &agentic.InputError{},
		"other":       errors.New("host: not today"),
	} {
		if got := errorType(err); got != want {
			t.Errorf("errorType(%T) = %q, want %q", err, got, want)
		}
	}
}

func TestWordsOfATransport(t *testing.T) {
	for want, ex := range map[string]Exchange{
		"2xx":     {Answer: agentic.Answer{Status: 204}},
		"5xx":     {Answer: agentic.Answer{Status: 599}},
		"timeout": {Class: ClassTimeout, Answer: agentic.Answer{Status: 200}},
		"other":   {Class: "my words"},
	} {
		if got := resultName(ex); got != want {
			t.Errorf("%+v is %q, want %q", ex, got, want)
		}
	}
	for _, status := range []int{-1, 0, 99, 600, 1 << 40} {
		if got := resultName(Exchange{Answer: agentic.Answer{Status: status}}); got != other {
			t.Errorf("status %d is %q", status, got)
		}
	}
}
