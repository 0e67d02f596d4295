package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/mcpserver"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// answerWithin is long, and yet shows in a test that waits for it.
const answerWithin = 2 * time.Second

// house is a ticket service and an MCP server for its action.
type house struct {
	t       *testing.T
	service *ticket.Service
	server  *mcpserver.Server
	hold    atomic.Pointer[chan struct{}] // a submission waits for it to be closed
	posted  chan struct{}                 // one waits
}

func open(t *testing.T, fault ticket.Fault, change func(*agentcall.Config)) *house {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, posted: make(chan struct{}, 1)}
	origin := "http://" + l.Addr().String()
	if h.service, err = ticket.Open(t.Context(), ticket.Config{Origin: origin, Fault: fault}); err != nil {
		t.Fatal(err)
	}
	inner := h.service.Handler()
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := h.hold.Load(); c != nil && r.Method == http.MethodPost {
			select {
			case h.posted <- struct{}{}:
			default:
			}
			<-*c
		}
		inner.ServeHTTP(w, r)
	})}
	go web.Serve(l)
	t.Cleanup(func() { web.Close(); h.service.Close() })
	ledger, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := agentic.Load(ticket.Profile(origin), ticket.OpenAPI(origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	h.server = mcpserver.New(mcpserver.Config{Version: "test", Drain: time.Second, AnswerWithin: answerWithin, Calls: func(principal string) (*agentcall.Calls, error) {
		if principal == "nobody" {
			return nil, fmt.Errorf("%w: not here", mcpserver.ErrNotServed)
		}
		cfg := agentcall.Config{
			Engine: client.Config{Ledger: ledger, Transport: tr, Scope: client.Scope{Principal: principal, Environment: "test"}},
			Plans:  []*agentic.Plan{plan},
		}
		if change != nil {
			change(&cfg)
		}
		return agentcall.New(cfg)
	}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		h.server.Shutdown(ctx)
	})
	return h
}

// pipe connects a client over a pipe, as stdio is one.
func (h *house) pipe(o *mcp.ClientOptions) *mcp.ClientSession {
	h.t.Helper()
	return h.pipeAt("", o)
}

// pipeAt is pipe with a client of a version of the protocol.
func (h *house) pipeAt(version string, o *mcp.ClientOptions) *mcp.ClientSession {
	h.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- h.server.Stdio(ctx, "ada", inR, outW) }()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(h.t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		s.Close()
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("stdio ended with %v", err)
		}
	})
	return s
}

const act = "create-ticket"

// told is the structured part of a result.
type told struct {
	State, RequestID string
	Repeated         bool
}

// call calls a tool and checks the structured result against the output schema.
func call(t *testing.T, s *mcp.ClientSession, tool string, args any) (told, *mcp.CallToolResult) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	if res.IsError {
		return told{}, res
	}
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range list.Tools {
		if have.Name == tool {
			valid(t, have.OutputSchema, res.StructuredContent)
		}
	}
	m := res.StructuredContent.(map[string]any)
	out := told{}
	out.State, _ = m["state"].(string)
	out.RequestID, _ = m["request_id"].(string)
	out.Repeated, _ = m["repeated"].(bool)
	return out, res
}

func valid(t *testing.T, schema, doc any) {
	t.Helper()
	plain := func(v any) any {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:schema", plain(schema)); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem:schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(plain(doc)); err != nil {
		t.Errorf("not valid by the output schema: %v", err)
	}
}

func (h *house) tickets(want int) {
	h.t.Helper()
	s, err := h.service.State(h.t.Context())
	if err != nil || s.Tickets != want {
		h.t.Errorf("the service has %d tickets, want %d; %v", s.Tickets, want, err)
	}
}

func (h *house) posts(want int) {
	h.t.Helper()
	s, err := h.service.State(h.t.Context())
	if err != nil || s.Posts != want {
		h.t.Errorf("the service got %d POSTs, want %d; %v", s.Posts, want, err)
	}
}

func text(res *mcp.CallToolResult) string {
	var all []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

func TestToolsAndResources(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	s := h.pipe(nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	hints := map[string]mcp.ToolAnnotations{}
	for _, tool := range list.Tools {
		hints[tool.Name] = *tool.Annotations
	}
	for name, readOnly := range map[string]bool{act: false, "prepare_request": false, "submit_request": false, "list_requests": true, "show_request": true,
		"resume_request": true, "validate_profile": true, "read_spec": true} {
		if got, ok := hints[name]; !ok || got.ReadOnlyHint != readOnly || !got.IdempotentHint || readOnly && *got.DestructiveHint {
			t.Errorf("%s: %+v", name, got)
		}
	}
	first, res := call(t, s, act, map[string]any{"subject": "one"})
	if first.State != "succeeded" || !strings.Contains(text(res), "It was done, once.") {
		t.Errorf("got %+v: %s", first, text(res))
	}
	again, _ := call(t, s, act, map[string]any{"subject": "one"})
	if again.RequestID != first.RequestID || !again.Repeated {
		t.Errorf("got %+v", again)
	}
	two, _ := call(t, s, act, map[string]any{"subject": "two"})
	if two.State != "succeeded" || two.Repeated {
		t.Errorf("over a pipe, the next action is %+v", two)
	}
	for _, uri := range []string{"agentic://requests", "agentic://requests/" + first.RequestID} {
		r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(r.Contents[0].Text, first.RequestID) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{"agentic://requests/no-such-request", "agentic://requests/..", "agentic://other"} {
		if r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s gives %v", uri, r)
		}
	}
	if _, res := call(t, s, act, map[string]any{"subject": 1}); !res.IsError || !strings.Contains(text(res), "Nothing was sent by this call.") {
		t.Errorf("a wrong input: %s", text(res))
	}
	h.tickets(2)
}

// TestProgressAndLoss: progress follows the engine; a cancelled call goes on, and the
// next one finds it.
func TestProgressAndLoss(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	gate := make(chan struct{})
	h.hold.Store(&gate)
	steps := make(chan *mcp.ProgressNotificationParams, 64)
	s := h.pipe(&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { steps <- r.Params }})
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		p := &mcp.CallToolParams{Name: act, Arguments: map[string]any{"subject": "one"}}
		p.SetProgressToken("one")
		_, err := s.CallTool(ctx, p)
		lost <- err
	}()
	last := 0.0
	for p := range steps {
		if p.Progress <= last || p.ProgressToken != "one" {
			t.Errorf("after %v came %+v", last, p)
		}
		last = p.Progress
		if strings.HasPrefix(p.Message, "Sending") {
			break
		}
	}
	cancel()
	if err := <-lost; err == nil {
		t.Error("the cancelled call has a result")
	}
	close(gate)
	again, _ := call(t, s, act, map[string]any{"subject": "one"})
	if again.State != "succeeded" || !again.Repeated {
		t.Errorf("got %+v", again)
	}
	h.posts(1)
	h.tickets(1)
}

// TestGivenUp: a success that was on its way when the client gave the call up holds
// another input back.
func TestGivenUp(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	s := h.pipe(nil)
	if first, _ := call(t, s, act, map[string]any{"subject": "one"}); first.State != "succeeded" {
		t.Fatalf("got %+v", first)
	}
	gate := make(chan struct{})
	h.hold.Store(&gate)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-h.posted; cancel() }()
	_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: act, Arguments: map[string]any{"subject": "two"}})
	if err == nil {
		t.Error("the call did not end")
	}
	close(gate)
	if held, _ := call(t, s, act, map[string]any{"subject": "two!"}); held.State != "held_back" {
		t.Errorf("got %+v", held)
	}
	if again, _ := call(t, s, act, map[string]any{"subject": "two"}); again.State != "succeeded" || !again.Repeated {
		t.Errorf("got %+v", again)
	}
	h.posts(2)
}

func TestConfirm(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Confirm = true })
			var asked atomic.Int32
			yes := atomic.Bool{}
			s := h.pipeAt(version, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked.Add(1)
				if !strings.Contains(r.Params.Message, `{"subject":"one"}`) || !strings.Contains(r.Params.Message, "/tickets") {
					t.Errorf("the person reads %s", r.Params.Message)
				}
				if yes.Load() {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": true}}, nil
				}
				return &mcp.ElicitResult{Action: "decline"}, nil
			}})
			if _, res := call(t, s, act, map[string]any{"subject": "one"}); !res.IsError || !strings.Contains(text(res), "did not agree") {
				t.Errorf("got %s", text(res))
			}
			h.posts(0)
			yes.Store(true)
			first, res := call(t, s, act, map[string]any{"subject": "one"})
			if first.State != "succeeded" {
				t.Fatalf("got %+v %s", first, text(res))
			}
			if again, _ := call(t, s, act, map[string]any{"subject": "one"}); again.RequestID != first.RequestID {
				t.Errorf("got %+v", again)
			}
			if asked.Load() != 2 {
				t.Errorf("the person was asked %d times, want 2: a repeat sends nothing", asked.Load())
			}
			h.posts(1)
		})
	}
}

// TestNobodyToAsk: a client without a way to ask, or with none that shows a form,
// gets a refusal.
func TestNobodyToAsk(t *testing.T) {
	onlyURL := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": true}}, nil
		}}
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		for name, o := range map[string]*mcp.ClientOptions{"none": nil, "URL": onlyURL} {
			h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Confirm = true })
			s := h.pipeAt(version, o)
			if _, res := call(t, s, act, map[string]any{"subject": "one"}); !res.IsError || !strings.Contains(text(res), "no way to ask") {
				t.Errorf("%s, %s: got %s", version, name, text(res))
			}
			h.posts(0)
		}
	}
}
