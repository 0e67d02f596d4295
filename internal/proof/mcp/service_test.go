//go:build unix

package mcp

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/agentic-go/agentic/internal/ticket"
)

// program is the built command.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "proof-mcp-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "agentic")
		build := exec.Command("go", "build", "-o", program, "github.com/agentic-go/agentic/cmd/agentic")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// service is the ticket service on a real socket. It counts the POSTs of each request
// ID, which the service itself forgives.
type service struct {
	origin, path string

	mu    sync.Mutex
	posts map[string]int
}

func serve(t testing.TB, fault ticket.Fault) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{origin: "http://" + l.Addr().String(), path: filepath.Join(t.TempDir(), "tickets.db"), posts: map[string]int{}}
	inner, err := ticket.Open(t.Context(), ticket.Config{Origin: s.origin, Fault: fault, Path: s.path})
	if err != nil {
		t.Fatal(err)
	}
	h := inner.Handler()
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.mu.Lock()
			s.posts[r.Header.Get("Idempotency-Key")]++
			s.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() {
		_ = web.Close()
		if err := inner.Close(); err != nil {
			t.Errorf("closing the service: %v", err)
		}
	})
	return s
}

// posted is how often each request ID was posted.
func (s *service) posted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for id, n := range s.posts {
		out[id] = n
	}
	return out
}

// tickets are the subjects of the tickets in the service's own database, by request
// ID.
func (s *service) tickets(t testing.TB) map[string]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), "SELECT request_id, subject FROM ticket")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var id, subject string
		if err := rows.Scan(&id, &subject); err != nil {
			t.Fatal(err)
		}
		if _, twice := out[id]; twice {
			t.Errorf("request %s has two tickets", id)
		}
		out[id] = subject
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
