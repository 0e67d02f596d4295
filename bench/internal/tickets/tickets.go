// Package tickets is the service that both sides of a comparison call: the three
// operations of the example profile, in memory, in a process of its own, and as
// cheap as net/http makes them, so that what is compared is not the service.
//
// A program that uses it calls [Main] first in its main function or TestMain.
//
// It imports the main module's example documents, and is for measurements only:
// it forgets everything when it ends and knows one principal.
package tickets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// barrierEnv makes a process the service; its value is the barrier.
const barrierEnv = "AGENTIC_BENCH_TICKETS"

// maxBody bounds the body of a submission (16 KiB by section 4 of the draft).
const maxBody = 16 << 10

// Counts is what the service saw.
type Counts struct {
	Posts   int64 `json:"posts"`   // submissions that arrived
	Repeats int64 `json:"repeats"` // of them, those whose Idempotency-Key had arrived before
	Tickets int64 `json:"tickets"`
	Peak    int64 `json:"peak"` // most submissions in flight at once
}

// Main serves, and does not return, when [Start] started this process as the
// service. Otherwise it returns at once.
func Main() {
	barrier, ok := os.LookupEnv(barrierEnv)
	if !ok {
		return
	}
	if err := serve(barrier); err != nil {
		fmt.Fprintln(os.Stderr, "tickets:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve prints its origin and serves until standard input ends, as it does when
// the process at its other end is gone.
func serve(barrier string) error {
	n, err := strconv.ParseInt(barrier, 10, 64)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := newService(n)
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Printf("http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// service keeps answers, ready to be sent, by request ID and by ticket.
type service struct {
	mu       sync.RWMutex
	statuses map[string][]byte
	tickets  map[string][]byte

	posts, repeats, inFlight, peak atomic.Int64

	barrier int64         // submissions that have to be in flight before any is answered; 0 is none
	full    chan struct{} // closed when they are
}

func newService(barrier int64) *service {
	return &service{statuses: map[string][]byte{}, tickets: map[string][]byte{}, barrier: barrier, full: make(chan struct{})}
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tickets", s.submit)
	mux.HandleFunc("GET /requests/{id}", func(w http.ResponseWriter, r *http.Request) { s.answer(w, s.statuses, r.PathValue("id")) })
	mux.HandleFunc("GET /tickets/{id}", func(w http.ResponseWriter, r *http.Request) { s.answer(w, s.tickets, r.PathValue("id")) })
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, r *http.Request) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		_ = json.NewEncoder(w).Encode(Counts{Posts: s.posts.Load(), Repeats: s.repeats.Load(), Tickets: int64(len(s.tickets)), Peak: s.peak.Load()})
	})
	return mux
}

type resource struct {
	ID        string `json:"id"`
	RequestID string `json:"request_id"`
	Subject   string `json:"subject"`
	Status    string `json:"status"`
}

type status struct {
	RequestID  string `json:"request_id"`
	Status     string `json:"status"`
	ResourceID string `json:"resource_id"`
}

func (s *service) submit(w http.ResponseWriter, r *http.Request) {
	s.posts.Add(1)
	now := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	for peak := s.peak.Load(); now > peak && !s.peak.CompareAndSwap(peak, now); peak = s.peak.Load() {
	}
	id := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var input struct {
		Subject string `json:"subject"`
	}
	if err != nil || json.Unmarshal(body, &input) != nil || id == "" || input.Subject == "" {
		http.Error(w, "not a ticket", http.StatusBadRequest)
		return
	}
	if s.barrier > 0 && !s.wait(r.Context(), now) {
		return
	}
	t := resource{ID: "t-" + id, RequestID: id, Subject: input.Subject, Status: "open"}
	created, _ := json.Marshal(t)
	result, _ := json.Marshal(status{RequestID: id, Status: "succeeded", ResourceID: t.ID})
	s.mu.Lock()
	_, repeated := s.statuses[id]
	if !repeated {
		s.statuses[id], s.tickets[t.ID] = result, created
	}
	s.mu.Unlock()
	if repeated {
		s.repeats.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(created)
}

// wait returns when as many submissions as the barrier says have been in flight at
// once, or false when the caller of this one has gone away.
func (s *service) wait(ctx context.Context, now int64) bool {
	if now == s.barrier {
		close(s.full)
	}
	select {
	case <-s.full:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *service) answer(w http.ResponseWriter, from map[string][]byte, id string) {
	s.mu.RLock()
	body, ok := from[id]
	s.mu.RUnlock()
	if !ok {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
