package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/mcpserver"
	"github.com/agentic-go/agentic/internal/ticket"
)

// tokens knows the principal NAME by the token "token of NAME".
func tokens(r *http.Request) (string, error) {
	_, name, ok := strings.Cut(r.Header.Get("Authorization"), "Bearer token-of-")
	if !ok {
		return "", errors.New("no such token")
	}
	return name, nil
}

// serve serves the house over HTTP and gives the URL.
func (h *house) serve(cfg mcpserver.HTTPConfig) string {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.server.Serve(ctx, l, cfg) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + l.Addr().String() + "/mcp"
}

type bearer struct{ name string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer token-of-"+b.name)
	return http.DefaultTransport.RoundTrip(r)
}

func (h *house) web(url, name, version string) *mcp.ClientSession {
	h.t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(h.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{name}}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	return s
}

// TestPrincipals: the same inputs at once are separate requests, and nothing of one
// principal reaches the other.
func TestPrincipals(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			h := open(t, "pending", nil)
			url := h.serve(mcpserver.HTTPConfig{Principal: tokens})
			names := []string{"ada", "bob"}
			sessions := map[string]*mcp.ClientSession{}
			for _, name := range names {
				sessions[name] = h.web(url, name, version)
			}
			var mu sync.Mutex
			ids := map[string]string{}
			var wg sync.WaitGroup
			for _, name := range names {
				for range 3 {
					wg.Go(func() {
						got, res := call(t, sessions[name], act, map[string]any{"subject": "one"})
						mu.Lock()
						defer mu.Unlock()
						if got.State != "pending" && got.State != "running" || ids[name] != "" && ids[name] != got.RequestID {
							t.Errorf("%s: got %+v: %s", name, got, text(res))
						}
						ids[name] = got.RequestID
					})
				}
			}
			wg.Wait()
			h.posts(2)
			if ids["ada"] == ids["bob"] {
				t.Fatal("they share a request")
			}
			for i, name := range names {
				s, other := sessions[name], ids[names[1-i]]
				for _, tool := range []string{"show_request", "resume_request", "submit_request"} {
					if _, res := call(t, s, tool, map[string]any{"request_id": other}); !res.IsError || !strings.Contains(text(res), "This principal has no request") {
						t.Errorf("%s: %s gives %s", name, tool, text(res))
					}
				}
				if r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "agentic://requests/" + other}); err == nil {
					t.Errorf("%s reads %v", name, r)
				}
				r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "agentic://requests"})
				if err != nil || strings.Contains(r.Contents[0].Text, other) || !strings.Contains(r.Contents[0].Text, ids[name]) {
					t.Errorf("%s lists %v, %v", name, r, err)
				}
				if _, res := call(t, s, "list_requests", map[string]any{}); strings.Contains(text(res), other) {
					t.Errorf("%s lists %s", name, text(res))
				}
				held, res := call(t, s, act, map[string]any{"subject": "another"})
				if held.State != "held_back" || strings.Contains(text(res), other) {
					t.Errorf("%s: got %s", name, text(res))
				}
			}
		})
	}
}

// TestSessionsAreOwned: the ID of a session is worth nothing with another token.
func TestSessionsAreOwned(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens})
	ada := h.web(url, "ada", "2025-06-18")
	if ada.ID() == "" {
		t.Fatal("there is no session")
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		res := request(t, method, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": ada.ID(), "Authorization": "Bearer token-of-bob"})
		if res != http.StatusForbidden && res != http.StatusNotFound {
			t.Errorf("%s with the session of another: HTTP status %d", method, res)
		}
	}
	if _, err := ada.ListTools(t.Context(), nil); err != nil {
		t.Errorf("the session is gone: %v", err)
	}
}

// TestTooManySessions: one principal cannot fill the memory with sessions, and takes
// none from another.
func TestTooManySessions(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens})
	message, _, _ := strings.Cut(initialize, "\n")
	ada, bob := map[string]string{"Authorization": "Bearer token-of-ada"}, map[string]string{"Authorization": "Bearer token-of-bob"}
	for n := range 1000 {
		if got := request(t, http.MethodPost, url, message, ada); got != http.StatusOK {
			t.Fatalf("session %d: HTTP status %d", n, got)
		}
	}
	if got := request(t, http.MethodPost, url, message, ada); got != http.StatusServiceUnavailable {
		t.Errorf("one too many: HTTP status %d", got)
	}
	if got := request(t, http.MethodPost, url, message, bob); got != http.StatusOK {
		t.Errorf("another principal: HTTP status %d", got)
	}
}

func request(t *testing.T, method, url, body string, header map[string]string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		r.Header.Set(k, v)
		if k == "Host" {
			r.Host = v
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func TestRefusedOverHTTP(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens, Origins: []string{"https://app.example"}})
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ada := "Bearer token-of-ada"
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		want   int
	}{
		"right":              {initialize, map[string]string{"Authorization": ada}, 200},
		"no token":           {initialize, nil, 401},
		"wrong token":        {initialize, map[string]string{"Authorization": "Bearer x"}, 401},
		"not bearer":         {initialize, map[string]string{"Authorization": "Basic token-of-ada"}, 401},
		"no such principal":  {initialize, map[string]string{"Authorization": "Bearer token-of-nobody"}, 403},
		"duplicate member":   {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`, map[string]string{"Authorization": ada}, 400},
		"batch":              {"[" + initialize + "]", map[string]string{"Authorization": ada}, 400},
		"ID null":            {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, map[string]string{"Authorization": ada}, 400},
		"response of none":   {`{"jsonrpc":"2.0","id":{},"result":{}}`, map[string]string{"Authorization": ada}, 400},
		"allowed origin":     {initialize, map[string]string{"Authorization": ada, "Origin": "https://app.example"}, 200},
		"other origin":       {initialize, map[string]string{"Authorization": ada, "Origin": "https://evil.example"}, 403},
		"null origin":        {initialize, map[string]string{"Authorization": ada, "Origin": "null"}, 403},
		"rebound host":       {initialize, map[string]string{"Authorization": ada, "Host": "evil.example"}, 403},
		"localhost":          {initialize, map[string]string{"Authorization": ada, "Host": "localhost:1"}, 200},
		"too large":          {`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + strings.Repeat("x", 1<<20) + `"}`, map[string]string{"Authorization": ada}, 413},
		"too large, no auth": {strings.Repeat("x", 1<<20+1), nil, 401},
	} {
		if got := request(t, http.MethodPost, url, c.body, c.header); got != c.want {
			t.Errorf("%s: HTTP status %d, want %d", name, got, c.want)
		}
	}
	for _, path := range []string{"", "/", "/mcp/", "/mcp/x", "/.well-known/oauth-protected-resource"} {
		if got := request(t, http.MethodPost, strings.TrimSuffix(url, mcpserver.Path)+path, initialize, map[string]string{"Authorization": ada}); got != http.StatusNotFound {
			t.Errorf("at %q: HTTP status %d", path, got)
		}
	}
	h.posts(0)
}

// TestNotServed: a token whose principal may not use the server is told so, and who
// runs the server reads it once.
func TestNotServed(t *testing.T) {
	var log strings.Builder
	s := mcpserver.New(mcpserver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Calls: func(string) (*agentcall.Calls, error) {
		return nil, fmt.Errorf("%w: secret reasons", mcpserver.ErrNotServed)
	}})
	handler := s.Handler(mcpserver.HTTPConfig{Principal: tokens})
	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Authorization", "Bearer token-of-eve")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(body, "not served here") || strings.Contains(body, "secret") || strings.Contains(body, "eve") {
			t.Errorf("HTTP status %d: %s", w.Code, body)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "eve") {
		t.Errorf("the log has %s", &log)
	}
}

// TestBrowser: a page of an allowed origin may ask before it has a token, and read the
// answer; other pages may not.
func TestBrowser(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens, Origins: []string{"https://app.example"}})
	for _, c := range []struct {
		method, origin string
		status         int
		allowed        string
	}{
		{http.MethodOptions, "https://app.example", 204, "https://app.example"},
		{http.MethodPost, "https://app.example", 401, "https://app.example"},
		{http.MethodOptions, "https://evil.example", 403, ""},
		{http.MethodOptions, "", 401, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,mcp-session-id")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != c.status || got != c.allowed {
			t.Errorf("%s of %q: HTTP status %d and the allowed origin %q", c.method, c.origin, res.StatusCode, got)
		}
		if c.status == 204 && res.Header.Get("Access-Control-Allow-Headers") != "authorization,mcp-session-id" {
			t.Errorf("got %v", res.Header)
		}
	}
}

// TestSlowBody: a message that does not arrive holds nothing for long, with a token
// and without, and a call may last longer than its message.
func TestSlowBody(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	const patience = 300 * time.Millisecond
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens, BodyTimeout: patience})
	for _, name := range []string{"ada", ""} {
		c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-"+name+"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 40") {
			t.Errorf("%q: got %q, %v", name, all, err)
		}
	}
	gate := make(chan struct{})
	h.hold.Store(&gate)
	time.AfterFunc(2*patience, func() { close(gate) })
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		if a, res := call(t, h.web(url, "ada", version), act, map[string]any{"subject": "one"}); a.State != "succeeded" {
			t.Errorf("%s: got %+v %s", version, a, text(res))
		}
	}
}

// TestOffLoopback: without TLS and tokens nothing is served to others.
func TestOffLoopback(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	for _, cfg := range []mcpserver.HTTPConfig{{Anonymous: "x"}, {Principal: tokens}} {
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.server.Serve(t.Context(), l, cfg); !errors.Is(err, mcpserver.ErrNeedsTLS) {
			t.Errorf("got %v", err)
		}
	}
}

// TestConfirmOverHTTP: the state that goes through the client is worth nothing to
// another principal.
func TestConfirmOverHTTP(t *testing.T) {
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Confirm = true })
	url := h.serve(mcpserver.HTTPConfig{Principal: tokens})
	connect := func(name string) *mcp.ClientSession {
		o := &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return nil, errors.New("not asked here")
			}}
		s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{name}}}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ada, bob := connect("ada"), connect("bob")
	one := &mcp.CallToolParams{Name: act, Arguments: map[string]any{"subject": "one"}}
	ask, err := ada.CallTool(t.Context(), one)
	if err != nil || !ask.NeedsInput() || ask.RequestState == "" {
		t.Fatalf("got %+v, %v", ask, err)
	}
	yes := *one
	yes.RequestState = ask.RequestState
	yes.InputResponses = mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": true}}}
	forged, other := yes, yes
	forged.RequestState = "A" + yes.RequestState[1:]
	if forged.RequestState == yes.RequestState {
		forged.RequestState = "B" + yes.RequestState[1:]
	}
	other.Arguments = map[string]any{"subject": "two"}
	for name, c := range map[string]struct {
		s *mcp.ClientSession
		p *mcp.CallToolParams
	}{"another principal": {bob, &yes}, "forged": {ada, &forged}, "another input": {ada, &other}} {
		if res, err := c.s.CallTool(t.Context(), c.p); err != nil || !res.NeedsInput() {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
	h.posts(0)
	for range 2 { // the second is a re-issue, of the same request
		res, err := ada.CallTool(t.Context(), &yes)
		if err != nil || res.IsError || res.NeedsInput() {
			t.Fatalf("got %+v, %v", res, err)
		}
		valid(t, map[string]any{"properties": map[string]any{"state": map[string]any{"const": "succeeded"}}}, res.StructuredContent)
	}
	h.posts(1)
}
