package mcpclients

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/ticket"
)

// installed says that the clients of package-lock.json are in node_modules.
var installed = os.Getenv("AGENTIC_MCP_CLIENTS") != ""

// program is the built command, when installed.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if !installed {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "mcpclients")
		if err == nil {
			defer os.RemoveAll(dir)
			program = filepath.Join(dir, "agentic.exe")
			build := exec.Command("go", "build", "-o", program, "github.com/agentic-go/agentic/cmd/agentic")
			build.Stderr = os.Stderr
			err = build.Run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// Exit codes of the inspector.
const (
	exitAuth      = 3
	exitToolError = 5
)

var tokens = []string{"token-of-ada", "token-of-bob"}

// house is two ticket services, one that takes its time and one that never decides,
// and 'agentic mcp' for both of their actions.
type house struct {
	late, pending     *ticket.Service
	tool, pendingTool string
	args, confirmArgs []string // of the command over stdio
	url, confirmURL   string
	home              string
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{home: t.TempDir()}
	var origins []string
	serve := func(fault ticket.Fault) (*ticket.Service, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		origin := "http://" + l.Addr().String()
		s, err := ticket.Open(t.Context(), ticket.Config{Origin: origin, Fault: fault})
		if err != nil {
			t.Fatal(err)
		}
		web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: s.Handler()}
		go web.Serve(l)
		t.Cleanup(func() { web.Close(); s.Close() })
		origins = append(origins, origin)
		return s, "at_" + strings.NewReplacer(".", "_", ":", "_").Replace(l.Addr().String()) + "_create-ticket"
	}
	h.late, h.tool = serve("late")
	h.pending, h.pendingTool = serve("pending")
	h.args = []string{"mcp", "--allow-loopback", "--ledger", filepath.Join(h.home, "ledger.db")}
	for _, origin := range origins {
		h.args = append(h.args, origin+"/agentic.json", "--approve", origin)
	}
	h.confirmArgs = append(slices.Clone(h.args), "--confirm")
	var file strings.Builder
	for i, name := range []string{"ada", "bob"} {
		fmt.Fprintf(&file, "%s %x\n", name, sha256.Sum256([]byte(tokens[i])))
	}
	path := filepath.Join(h.home, "tokens")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h.url = listen(t, append(slices.Clone(h.args), "--listen", "127.0.0.1:0", "--tokens", path))
	h.confirmURL = listen(t, append(slices.Clone(h.confirmArgs), "--listen", "127.0.0.1:0", "--tokens", path))
	return h
}

// listen runs the command over HTTP until the test ends, and gives its URL.
func listen(t *testing.T, args []string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	urls := make(chan string, 1)
	said := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), "listening at "); ok {
				urls <- url
			}
			all.WriteString(lines.Text() + "\n")
		}
		close(urls)
		said <- all.String()
	}()
	t.Cleanup(func() {
		cancel()
		words := <-said
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("the server said:\n%s", words)
		}
	})
	select {
	case url, ok := <-urls:
		if ok {
			return url
		}
		t.Fatal("the server ended at once")
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not listen")
	}
	return ""
}

// setup is what the driver is told.
func (h *house) setup(t *testing.T) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"command": program, "args": h.args, "confirmArgs": h.confirmArgs, "url": h.url, "confirmURL": h.confirmURL,
		"tokens": tokens, "tool": h.tool, "pendingTool": h.pendingTool,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// node runs a script, wants an exit code, and gives what is on standard output.
func (h *house) node(t *testing.T, code int, in []byte, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nodeProgram(), args...)
	cmd.Env = append(os.Environ(), "HOME="+h.home, "MCP_CATALOG_PATH="+filepath.Join(h.home, "catalog.json"))
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got, err = exit.ExitCode(), nil
	}
	if err != nil || got != code {
		t.Fatalf("node %s: exit code %d, want %d; %v\n%s\n%s", strings.Join(args, " "), got, code, err, out, stderr.String())
	}
	return out
}

// nodeProgram is the Node of the lock, which has one for Linux, or else the machine's.
func nodeProgram() string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	pinned := filepath.Join("node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	}
	return "node"
}
