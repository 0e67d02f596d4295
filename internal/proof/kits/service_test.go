package kits

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// tickets is 'agentic serve' as a process, which can be killed and started again in the
// same place.
type tickets struct {
	args []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	origin string
}

// startTickets starts a service with two principals; args say where it keeps its
// tickets. It ends with the test.
func startTickets(t *testing.T, args ...string) *tickets {
	t.Helper()
	s := &tickets{args: args}
	var lines strings.Builder
	for _, who := range []string{"ana", "bob"} {
		sum := sha256.Sum256([]byte("token-of-" + who))
		fmt.Fprintf(&lines, "%s %s\n", who, hex.EncodeToString(sum[:]))
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{"serve", "--inspect", "--token-file", tokens}, args...)
	if err := s.start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kill()
	})
	return s
}

// start starts the process and waits until it serves. The caller has s.mu, or is the
// first.
func (s *tickets) start(addr string) error {
	cmd := exec.Command("agentic", append(s.args, "--addr", addr)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	s.cmd = cmd
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var first struct{ Origin string }
	if err == nil {
		err = json.Unmarshal(line, &first)
	}
	if err == nil && s.origin != "" && first.Origin != s.origin {
		err = fmt.Errorf("it was at %s and is at %s", s.origin, first.Origin)
	}
	if err != nil {
		s.kill()
		return fmt.Errorf("serve: %w", err)
	}
	s.origin = first.Origin
	return nil
}

// kill ends the process without a word. The caller has s.mu.
func (s *tickets) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // with the signal
}

// ServeHTTP kills the service and starts it again, for whoever asks.
func (s *tickets) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	if err := s.start(strings.TrimPrefix(s.origin, "http://")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Our service passes every check of the service kit on each database, killed and
// started again in between. Not exercised is what takes as long as the window, a profile
// of several actions, or a crash inside a transaction, which the rest of package proof has.
func TestService(t *testing.T) {
	a := readAsked(t)
	build(t)
	for name, place := range map[string]func(*testing.T) []string{
		"sqlite":     func(t *testing.T) []string { return []string{"--db", filepath.Join(t.TempDir(), "tickets.db")} },
		"postgresql": func(t *testing.T) []string { return []string{"--postgres", pgtest.Shared(t).NewDatabase(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			s := startTickets(t, place(t)...)
			restart := httptest.NewServer(s)
			t.Cleanup(restart.Close)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			restarter, err := json.Marshal([]string{self})
			if err != nil {
				t.Fatal(err)
			}
			rep := a.kit(t, "service-"+name,
				[]string{restartRole + "=" + restart.URL, "FIRST=Bearer token-of-ana", "SECOND=Bearer token-of-bob"},
				"service", s.origin+"/agentic.json", "--approve", s.origin, "--allow-loopback", "--i-own-this-service",
				"--input", `{"subject":"The printer is on fire"}`, "--other-input", `{"subject":"The printer is wet"}`, "--refused-input", `{"subject":""}`,
				"--header-from-env", "Authorization=FIRST", "--second-principal-header-from-env", "Authorization=SECOND",
				"--count-url", "/__state", "--count-pointer", "/tickets", "--restart-command", string(restarter))
			notHere := []string{"scope/action", "retention/window", "retention/expiry", "atomicity/crash"}
			if diff := cmp.Diff(notHere, missing(rep)); diff != "" || rep.Summary.Passed+rep.Summary.NotExercised != len(rep.Checks) {
				t.Errorf("not exercised (-want +got):\n%s", diff)
			}
		})
	}
}

// A restart command that fails says so.
func TestRestartCommand(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer answers.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), restartRole+"="+answers.URL)
	if _, err := cmd.Output(); err == nil {
		t.Error("it ended well")
	} else if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Error(err)
	}
}
