package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// mustExclude checks that what one handle holds, the other waits for.
func mustExclude(t *testing.T, first, second client.Ledger) {
	t.Helper()
	h, err := first.Begin(t.Context(), request("request-1"), client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var held *client.HeldError
	if _, err := second.Begin(t.Context(), request("request-1"), client.IntendSubmit, 50*time.Millisecond); !errors.As(err, &held) {
		t.Fatalf("Begin while another handle holds: %v", err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	h, err = second.Begin(t.Context(), request("request-1"), client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
}

// A closed ledger says so, wakes those who wait, and gives free what it held.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, sqlite.Config{Path: path})
	b := request("request-1")
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() {
		_, err := l.Begin(context.Background(), b, client.IntendSubmit, time.Minute)
		waiting <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	closed := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, sqlite.ErrClosed) || !errors.Is(err, client.ErrLedger) {
			t.Errorf("%s: %v", what, err)
		}
	}
	select {
	case err := <-waiting:
		closed("Begin that waited", err)
	case <-time.After(10 * time.Second):
		t.Fatal("a waiter was not woken")
	}
	_, err = l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	closed("Begin", err)
	_, err = l.Take(t.Context(), b.Scope, b.RequestID, client.IntendSubmit, time.Minute)
	closed("Take", err)
	_, err = l.Load(t.Context(), b.Scope, b.RequestID)
	closed("Load", err)
	_, err = l.List(t.Context(), client.Filter{}.In(b.Scope))
	closed("List", err)
	closed("Observe", h.Observe(t.Context(), nil))
	closed("Finish", h.Finish(t.Context(), nil, succeeded(b)))
	if err := h.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	next, err := open(t, sqlite.Config{Path: path}).Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if next.MaySubmit() || next.Record().Last() != nil {
		t.Error("the next holder may submit, or there is a receipt")
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}
