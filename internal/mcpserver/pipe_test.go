package mcpserver_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/ticket"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// TestNobodyReads: a client that does not read its answers does not keep the server.
func TestNobodyReads(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Stdio(ctx, "ada", inR, outW) }()
	if _, err := io.WriteString(inW, initialize); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server does not end")
	}
}

// TestNoProtocol: what is no message ends the connection and says so, and writes
// nothing that is none.
func TestNoProtocol(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	for _, junk := range []string{"not json\n", "[]\n", `{"jsonrpc":"2.0","id":3,"method":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"} {
		var out strings.Builder
		err := h.server.Stdio(t.Context(), "ada", io.NopCloser(strings.NewReader(junk)), nopWriter{&out})
		if err == nil || !strings.Contains(err.Error(), "no message of the protocol") || strings.Contains(err.Error(), "not json") {
			t.Errorf("%.20s: got %v", junk, err)
		}
		if out.Len() > 0 && !strings.HasPrefix(out.String(), "{") {
			t.Errorf("%.20s: wrote %s", junk, &out)
		}
	}
}

type nopWriter struct{ io.Writer }

func (nopWriter) Close() error { return nil }

// TestClientDies: a client that has gone is no error of the server.
func TestClientDies(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.Cleanup(func() { inW.Close() })
	outR.Close()
	go func() { _, _ = io.WriteString(inW, initialize) }()
	if err := h.server.Stdio(t.Context(), "ada", inR, outW); err != nil {
		t.Errorf("got %v", err)
	}
}
