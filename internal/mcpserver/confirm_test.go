package mcpserver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/ticket"
)

const (
	older = "2025-11-25" // the server asks
	newer = "2026-07-28" // the client asks itself
)

func confirming(c *agentcall.Config) { c.Confirm = true }

// TestNoYes: whatever a client gives that is no yes is a result that says that nothing
// was sent.
func TestNoYes(t *testing.T) {
	for name, c := range map[string]struct {
		answer   *mcp.ElicitResult
		err      error
		versions []string // a newer client fails at its own side
		want     string
	}{
		"error":           {nil, errors.New("no window"), []string{older}, "could not be asked"},
		"cancel":          {&mcp.ElicitResult{Action: "cancel"}, nil, []string{older, newer}, "closed the question"},
		"decline":         {&mcp.ElicitResult{Action: "decline"}, nil, []string{older, newer}, "did not agree"},
		"no":              {&mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": false}}, nil, []string{older, newer}, "did not agree"},
		"without send":    {&mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil, []string{older}, "could not be asked"},
		"without content": {&mcp.ElicitResult{Action: "accept"}, nil, []string{older}, "did not agree"},
		"send is a text":  {&mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": "true"}}, nil, []string{older}, "could not be asked"},
	} {
		for _, version := range c.versions {
			t.Run(name+" "+version, func(t *testing.T) {
				h := open(t, ticket.Normal, confirming)
				s := h.pipeAt(version, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return c.answer, c.err
				}})
				_, res := call(t, s, act, map[string]any{"subject": "one"})
				if !res.IsError || !strings.Contains(text(res), c.want) || !strings.Contains(text(res), "Nothing was sent by this call.") {
					t.Errorf("got %s", text(res))
				}
				h.posts(0)
			})
		}
	}
}

// TestSlowPerson: a call does not wait for a person longer than for anything else; the
// same call waits for the same answer, and nobody is asked twice.
func TestSlowPerson(t *testing.T) {
	h := open(t, ticket.Normal, confirming)
	var asked atomic.Int32
	answer := make(chan struct{})
	s := h.pipeAt(older, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		<-answer
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": true}}, nil
	}})
	began := time.Now()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, res := call(t, s, act, map[string]any{"subject": "one"})
			if !res.IsError || !strings.Contains(text(res), "has not answered yet") || !strings.Contains(text(res), "Nothing was sent by this call.") {
				t.Errorf("got %s", text(res))
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took < answerWithin || took > 5*answerWithin {
		t.Errorf("it took %v", took)
	}
	h.posts(0)
	close(answer)
	ids := map[string]bool{}
	var mu sync.Mutex
	for range 3 {
		wg.Go(func() {
			got, res := call(t, s, act, map[string]any{"subject": "one"})
			if got.State != "succeeded" {
				t.Errorf("got %s", text(res))
			}
			mu.Lock()
			defer mu.Unlock()
			ids[got.RequestID] = true
		})
	}
	wg.Wait()
	if asked.Load() != 1 || len(ids) != 1 {
		t.Errorf("asked %d times for requests %v", asked.Load(), ids)
	}
	h.posts(1)
	if got, _ := call(t, s, act, map[string]any{"subject": "two"}); got.State != "succeeded" || asked.Load() != 2 {
		t.Errorf("another input: got %+v, asked %d times", got, asked.Load())
	}
}

// TestAgreedOnce: a yes is for one request.
func TestAgreedOnce(t *testing.T) {
	h := open(t, ticket.Normal, func(c *agentcall.Config) { c.Confirm, c.NoSameGuard, c.NoOpenGuard = true, true, true })
	var asked atomic.Int32
	s := h.pipeAt(older, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"send": true}}, nil
	}})
	for n := range int32(2) {
		prepared, _ := call(t, s, "prepare_request", map[string]any{"tool": act, "input": map[string]any{"subject": "one"}})
		for range 2 {
			if got, res := call(t, s, "submit_request", map[string]any{"request_id": prepared.RequestID}); got.State != "succeeded" {
				t.Errorf("got %s", text(res))
			}
		}
		if got, res := call(t, s, act, map[string]any{"subject": "one"}); got.State != "succeeded" {
			t.Errorf("got %s", text(res))
		}
		if asked.Load() != 2*n+2 {
			t.Errorf("round %d: asked %d times", n, asked.Load())
		}
	}
	h.posts(4)
}

// TestEndWhileAsking: a call that waits for a person is answered when the client closes
// its side.
func TestEndWhileAsking(t *testing.T) {
	h := open(t, ticket.Normal, confirming)
	in, out, done := h.raw(context.Background())
	hello := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	go func() {
		_, _ = in.Write([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create-ticket","arguments":{"subject":"one"}}}` + "\n"))
	}()
	for a := range out {
		switch {
		case a.Method == "elicitation/create":
			in.Close()
		case string(a.ID) == "2" && a.Method == "":
			if !strings.Contains(string(a.Result), "before the person has answered. Nothing was sent by this call.") {
				t.Errorf("got %s", a.Result)
			}
			<-done
			h.posts(0)
			return
		}
	}
	t.Error("the call was not answered")
}
