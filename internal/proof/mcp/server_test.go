//go:build unix

package mcp

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// command is how the command is started for a service and a ledger.
type command struct {
	service *service
	ledger  string
	more    []string // flags
	tokens  string   // a file; then it speaks HTTP
}

func newCommand(t testing.TB, s *service, more ...string) *command {
	return &command{service: s, ledger: filepath.Join(t.TempDir(), "ledger.db"), more: more}
}

// overHTTP has it speak HTTP to principals, whose token is "token of NAME".
func (c *command) overHTTP(t testing.TB, principals ...string) *command {
	t.Helper()
	var b strings.Builder
	for _, name := range principals {
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256([]byte("token-of-"+name)))
	}
	c.tokens = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(c.tokens, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// process is a server under way.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	url   string // of HTTP
	ended chan struct{}

	mu  sync.Mutex
	err strings.Builder // what it said, for people
}

func (c *command) start(t testing.TB) *process {
	t.Helper()
	args := append([]string{"mcp", c.service.origin + "/agentic.json", "--approve", c.service.origin, "--allow-loopback", "--ledger", c.ledger, "--answer-within", "2s"}, c.more...)
	if c.tokens != "" {
		args = append(args, "--listen", "127.0.0.1:0", "--tokens", c.tokens)
	}
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		p.out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "listening at "); ok {
				listening <- url
				continue
			}
			p.mu.Lock()
			p.err.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
		_, _ = p.cmd.Process.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	if c.tokens != "" {
		select {
		case p.url = <-listening:
		case <-p.ended:
			t.Fatalf("the server ended: %s", p.said())
		case <-time.After(20 * time.Second):
			t.Fatalf("the server does not listen: %s", p.said())
		}
	}
	return p
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// signal does not mind that the process has ended.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// mustEnd fails when a server that was told to end, or lost its client, stays.
func (p *process) mustEnd(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		t.Errorf("a server stays: %s", p.said())
	}
}
