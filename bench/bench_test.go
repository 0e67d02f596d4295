package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/bench/internal/database"
	"github.com/agentic-go/agentic/bench/internal/tickets"
)

func TestMain(m *testing.M) {
	tickets.Main()
	os.Exit(m.Run())
}

// TestSidesVerify runs fifty actions on every side and counts them on all of the
// places where they leave something.
func TestSidesVerify(t *testing.T) {
	server, err := database.Open()
	if err != nil {
		t.Fatal(err)
	}
	service, err := tickets.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	sides, err := open(t.Context(), server, service, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	const actions = 50
	r := &report{Actions: map[string]int{}}
	for _, s := range sides {
		done, err := turn(t.Context(), s, 8, time.Minute, actions)
		if err != nil {
			t.Fatal(err)
		}
		if done.actions != actions || len(done.latencies) != actions || done.rate() <= 0 {
			t.Errorf("%s: %d actions at %f a second, want %d", s.name, done.actions, done.rate(), actions)
		}
		r.Actions[s.name] = done.actions
		if s.saved != nil {
			if n, err := s.saved(t.Context()); err != nil || n != actions {
				t.Errorf("%s: the database has %d actions, %v, want %d", s.name, n, err, actions)
			}
		}
		s.close()
	}
	if err := r.settle(service); err != nil {
		t.Error(err)
	}
	r.Actions["bare"]-- // an action that nobody claims
	if err := r.settle(service); err == nil {
		t.Error("more POSTs than actions were not noticed")
	}
	if err := service.Stop(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// TestCommand runs the whole of it, shortly, and reads what it prints.
func TestCommand(t *testing.T) {
	var out strings.Builder
	if err := command(t.Context(), []string{"-callers", "4", "-rounds", "2", "-seconds", "0.2", "-pool", "4", "-json"}, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 1 || len(r.Results[0].Sides) != 4 || len(r.Results[0].Ratios) != 4 || r.Versions["github.com/jackc/pgx/v5"] == "" {
		t.Fatalf("the report is incomplete: %s", out.String())
	}
	for _, q := range r.Results[0].Ratios {
		if len(q.Rounds) != 2 || q.Median <= 0 {
			t.Errorf("ratio of %s to %s: %+v", q.Of, q.To, q)
		}
	}
	var text strings.Builder
	if err := r.print(&text); err != nil || !strings.Contains(text.String(), "agentic is ") {
		t.Errorf("%v, %s", err, text.String())
	}
	for _, bad := range [][]string{{"-callers", "0"}, {"-callers", "x"}, {"-rounds", "0"}, {"-pool", "1"}, {"more"}} {
		if err := command(t.Context(), bad, io.Discard); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
