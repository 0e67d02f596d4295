package ticket

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childFile makes this test binary a process that submits to that file until it
// is killed, with one line for each submission that was acknowledged.
const childFile = "TICKET_TEST_CHILD_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		fmt.Fprintln(os.Stderr, submitForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func submitForEver(path string) error {
	s, err := Open(context.Background(), Config{Path: path, Origin: "http://127.0.0.1:4318"})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:4318/tickets", strings.NewReader(subject))
				r.Header.Set("Idempotency-Key", key)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if s.Handler().ServeHTTP(w, r); w.Code != http.StatusCreated {
					failed <- fmt.Errorf("%d %s", w.Code, w.Body)
				}
				fmt.Println(key)
			}
		}()
	}
	return <-failed
}

// What was acknowledged survives a killed process, and no ticket is there without
// its request (section 5).
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if acknowledged = append(acknowledged, lines.Text()); len(acknowledged) == 200 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if len(acknowledged) < 200 {
		t.Fatalf("only %d submissions", len(acknowledged))
	}
	s := start(t, Config{Path: path})
	for _, key := range acknowledged {
		status := s.get("/requests/" + key)
		equal(t, key, s.get("/tickets/"+status.member("resource_id")).member("request_id"), key)
	}
	state, err := s.svc.State(t.Context())
	equal(t, "one ticket for each request", []any{state.Tickets, err}, []any{state.Requests, nil})
}
