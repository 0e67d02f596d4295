package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/ticket"
)

// agent starts 'agentic mcp' as a host of agents does, and connects a client.
func agent(t *testing.T, ledger string, args ...string) (*mcp.ClientSession, *bytes.Buffer) {
	t.Helper()
	cmd := command(t, append([]string{"mcp", "--ledger", ledger}, args...)...)
	var diag bytes.Buffer
	cmd.Stderr = &diag
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, diag.String())
	}
	t.Cleanup(func() { s.Close() })
	return s, &diag
}

// makeTicket calls the tool of the ticket service.
func makeTicket(t *testing.T, s *mcp.ClientSession, args map[string]any) (state, id string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "create-ticket", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	if res.IsError {
		t.Fatalf("got the error %v", res.Content[0].(*mcp.TextContent).Text)
	}
	m := res.StructuredContent.(map[string]any)
	state, _ = m["state"].(string)
	id, _ = m["request_id"].(string)
	return state, id
}

// TestMCPOverStdio: what one server process did, the next one finds, and so does the
// command line.
func TestMCPOverStdio(t *testing.T) {
	tickets, err := demo.Start(t.Context(), "127.0.0.1:0", ticket.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tickets.Stop() })
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	args := []string{tickets.Origin + "/agentic.json", "--approve", tickets.Origin, "--allow-loopback"}
	first, diag := agent(t, ledger, args...)
	state, id := makeTicket(t, first, map[string]any{"subject": "one"})
	if state != "succeeded" {
		t.Fatalf("got %s", state)
	}
	if err := first.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if diag.Len() > 0 {
		t.Errorf("standard error has %s", diag)
	}
	second, _ := agent(t, ledger, args...)
	if state, _ := makeTicket(t, second, map[string]any{"subject": "one, please"}); state != "held_back" {
		t.Errorf("the reworded repeat is %s", state)
	}
	if state, again := makeTicket(t, second, map[string]any{"subject": "one"}); state != "succeeded" || again != id {
		t.Errorf("the next process got %s %s, want %s", state, again, id)
	}
	code, out, _ := exitOf(t, command(t, "requests", "show", id, "--ledger", ledger, "--json"))
	if code != 0 || !strings.Contains(out, `"succeeded"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if s, err := tickets.State(t.Context()); err != nil || s.Posts != 1 || s.Tickets != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestMCPOverHTTP: a configuration file with two principals.
func TestMCPOverHTTP(t *testing.T) {
	tickets, err := demo.Start(t.Context(), "127.0.0.1:0", ticket.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tickets.Stop() })
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens", fmt.Appendf(nil, "ada %x\nbob %x\neve %x\n", sha256.Sum256([]byte("a-token")), sha256.Sum256([]byte("b-token")), sha256.Sum256([]byte("e-token"))))
	write("agentic.json", ticket.Profile(tickets.Origin))
	write("openapi.json", ticket.OpenAPI(tickets.Origin))
	config, err := json.Marshal(map[string]any{
		"profiles": []any{map[string]any{"profile": "agentic.json", "openapi": "openapi.json"}}, "approve": []string{tickets.Origin}, "allow_loopback": true,
		"principals": map[string]any{"ada": map[string]any{}, "bob": map[string]any{"allow": []string{}}},
		"ledger":     "ledger.db", "listen": "127.0.0.1:0", "tokens": "tokens", "answer_within": "10s",
	})
	if err != nil {
		t.Fatal(err)
	}
	write("config.json", config)
	cmd := command(t, "mcp", "--config", filepath.Join(dir, "config.json"))
	diag := &lines{found: make(chan string, 16)}
	cmd.Stderr = diag
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	select {
	case line := <-diag.found:
		_, url, _ = strings.Cut(line, "listening at ")
	case <-time.After(processTime):
		t.Fatal("the server does not listen")
	}
	connect := func(token string) (*mcp.ClientSession, error) {
		return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken(token)}}, nil)
	}
	ada, err := connect("a-token")
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := makeTicket(t, ada, map[string]any{"subject": "one"}); state != "succeeded" {
		t.Errorf("got %s", state)
	}
	bob, err := connect("b-token")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := bob.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "create-ticket", Arguments: map[string]any{"subject": "one"}}); err == nil && !res.IsError {
		t.Errorf("bob is not allowed anything, and got %+v", res)
	}
	for _, token := range []string{"e-token", "x-token"} {
		if _, err := connect(token); err == nil {
			t.Errorf("%s is let in", token)
		}
	}
	ada.Close()
	bob.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if s, err := tickets.State(t.Context()); err != nil || s.Posts != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// lines gives what is written line by line.
type lines struct {
	rest  string
	found chan string
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest += string(b)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		select {
		case l.found <- line:
		default:
		}
	}
}

type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}

// TestMCPRefuses: a command line or file that cannot be acted on starts nothing.
func TestMCPRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12])
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	profile, openapi := file(string(ticket.Profile("https://a.example"))), file(string(ticket.OpenAPI("https://a.example")))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no profile":         {nil, "no profile is named"},
		"standard input":     {[]string{"-"}, "belongs to the protocol"},
		"unknown member":     {[]string{"--config", file(`{"profile":[]}`)}, "unknown member"},
		"twice":              {[]string{"--config", file(`{"confirm":true,"confirm":false}`)}, "duplicate"},
		"wrong duration":     {[]string{"--config", file(`{"recent":"soon"}`)}, "recent is not a duration"},
		"key without cert":   {[]string{"x", "--tls-key", "k"}, "belong together"},
		"tokens without web": {[]string{"x", "--tokens", "k"}, "are for HTTP"},
		"not approved":       {[]string{profile, "--openapi", openapi}, "not approved"},
		"no such action":     {[]string{profile, "--openapi", openapi, "--approve", "https://a.example", "--allow", "fly"}, "no profile has the allowed action"},
		"off loopback":       {[]string{profile, "--openapi", openapi, "--approve", "https://a.example", "--listen", "0.0.0.0:0"}, "needs a certificate"},
		"two openapi":        {[]string{profile, profile, "--openapi", openapi}, "for one PROFILE"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, diag := exitOf(t, command(t, append([]string{"mcp"}, c.args...)...))
			if code == 0 || out != "" || !strings.Contains(diag, c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %s", code, out, diag)
			}
		})
	}
}
