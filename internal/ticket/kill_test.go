package ticket

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
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
	s, err := openStore(context.Background(), path)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range 4 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				if _, _, err := s.submit(context.Background(), key, "d", made, time.Now()); err != nil {
					failed <- err
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
	s := open(t, path)
	for _, key := range acknowledged {
		rec, found, err := s.request(t.Context(), key)
		if err != nil || !found {
			t.Fatalf("%s: %v %v", key, found, err)
		}
		row, found, err := s.find(t.Context(), rec.ticket)
		equal(t, key, []any{row.requestID, found, err}, []any{key, true, nil})
	}
	tickets, requests, err := s.count(t.Context())
	equal(t, "one ticket for each request", []any{tickets, err}, []any{requests, nil})
}
