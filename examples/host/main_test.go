package main

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/ticket"
)

func TestRun(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + ln.Addr().String()
	s, err := ticket.Open(t.Context(), ticket.Config{Origin: origin, Fault: "response-lost"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv := &http.Server{Handler: s.Handler()}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()

	path := filepath.Join(t.TempDir(), "ledger.db")
	first, err := run(t.Context(), origin, []byte(`{"subject":"Printer on fire"}`), "my-request-1", path)
	if err != nil || first.Outcome != agentic.Succeeded {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := run(t.Context(), origin, []byte(`{"subject":"Printer on fire"}`), "my-request-1", path)
	if err != nil || string(again.Encode()) != string(first.Encode()) {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if st, err := s.State(t.Context()); err != nil || st.Posts != 1 || st.Tickets != 1 {
		t.Errorf("%+v, %v", st, err)
	}
}
