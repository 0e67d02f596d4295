package tickets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/ticket"
)

// Service is the running service, in its own process.
type Service struct {
	Origin string

	cmd   *exec.Cmd
	stdin io.Closer
}

// Start starts this very program again as the service. With a barrier, it answers
// no submission before so many are in flight at once. The caller must Stop it.
func Start(barrier int) (*Service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", barrierEnv, barrier))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Service{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the ticket service does not start: %w", err), s.Stop())
	}
	s.Origin = strings.TrimSpace(line)
	return s, nil
}

// Stop ends the service and returns when its process is gone.
func (s *Service) Stop() error { return errors.Join(s.stdin.Close(), s.cmd.Wait()) }

// Plan is the action of the example profile at this service, with the longest time
// limit that a profile may name, so that a crowded machine makes no outcome unknown.
func (s *Service) Plan() (*agentic.Plan, error) {
	example := ticket.Profile(s.Origin)
	profile := bytes.Replace(example, []byte(`"timeoutMs": 3000`), []byte(`"timeoutMs": 10000`), 1)
	if bytes.Equal(profile, example) {
		return nil, errors.New("the example profile has no timeoutMs of 3000")
	}
	return agentic.Load(profile, ticket.OpenAPI(s.Origin), "create-ticket", agentic.Options{AllowLoopback: true})
}

// Counts asks the service what it saw.
func (s *Service) Counts() (c Counts, err error) {
	resp, err := http.Get(s.Origin + "/counts")
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}
