package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/bench/internal/tickets"
)

func TestMain(m *testing.M) {
	tickets.Main()
	os.Exit(m.Run())
}

// TestInFlight is the same over two connections, with fewer requests.
func TestInFlight(t *testing.T) {
	var out strings.Builder
	if err := command(t.Context(), []string{"-requests", "50", "-pool", "2", "-json"}, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Peak != 50 || r.Connections < 1 {
		t.Errorf("%v: %s", err, out.String())
	}
}
