package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/ticket"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// TestNobodyReads: a client that does not read its answers does not keep the server.
func TestNobodyReads(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Stdio(ctx, "ada", inR, outW) }()
	if _, err := io.WriteString(inW, initialize); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server does not end")
	}
}

// TestWrongLines: what is no message is answered with an error, and a call that runs
// meanwhile gets its own answer, once.
func TestWrongLines(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":"run","method":"tools/call","params":{"name":"create-ticket","arguments":{"subject":"one"}}}`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		line, id string
		code     int
	}{
		"garbage":              {`not json`, `null`, -32700},
		"cut off":              {`{"jsonrpc":"2.0","id":3,"method":"pi`, `3`, -32700},
		"two":                  {`{"jsonrpc":"2.0","id":3,"method":"ping"}{}`, `3`, -32700},
		"no UTF-8":             {"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\xff\"}", `3`, -32600},
		"empty batch":          {`[]`, `null`, -32600},
		"batch":                {`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `null`, -32600},
		"text":                 {`"x"`, `null`, -32600},
		"deep":                 {`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create-ticket","arguments":` + deep(1001) + `}}`, `3`, -32600},
		"very deep":            {deep(20000), `null`, -32700},
		"long":                 {`{"jsonrpc":"2.0","id":"é","method":"` + long + long + `"}`, `"é"`, -32600},
		"long without ID":      {`{"jsonrpc":"2.0","method":"` + long + `"}`, `null`, -32600},
		"version":              {`{"jsonrpc":"1.0","id":3,"method":"ping"}`, `3`, -32600},
		"no version":           {`{"id":3,"method":"ping"}`, `3`, -32600},
		"object as ID":         {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`, -32600},
		"null as ID":           {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `null`, -32600},
		"fraction as ID":       {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `null`, -32600},
		"inexact ID":           {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `null`, -32600},
		"no method":            {`{"jsonrpc":"2.0","id":3}`, `3`, -32600},
		"nothing":              {`{"jsonrpc":"2.0"}`, `null`, -32600},
		"method is a number":   {`{"jsonrpc":"2.0","id":3,"method":7}`, `3`, -32600},
		"duplicate member":     {`{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}`, `3`, -32600},
		"duplicate ID":         {`{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}`, `null`, -32600},
		"duplicate deep ID":    {`{"jsonrpc":"2.0","id":` + deep(65) + `,"id":4,"method":"ping"}`, `null`, -32600},
		"duplicate spelled ID": {`{"jsonrpc":"2.0","\u0069d":4,"id":4,"method":"ping"}`, `null`, -32600},
		"IDs elsewhere":        {`{"a":"\"id\":7,","b":{"id":8},"c":[{"id":9}],"id":3,"jsonrpc":"2.0","method":"p","method":"p"}`, `3`, -32600},
		"duplicate argument":   {`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create-ticket","arguments":{"subject":"a","subject":"b"}}}`, `3`, -32600},
		"ID of what runs":      {call, `null`, -32600},
		"wrong, ID of another": {`{"jsonrpc":"1.0","id":"run","method":"ping"}`, `null`, -32600},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, ticket.Normal, nil)
			gate := make(chan struct{})
			h.hold.Store(&gate)
			say, answers := h.lines()
			say(initialize + call)
			<-h.posted
			if got := <-answers; string(got.ID) != "1" || got.Error != nil {
				t.Fatalf("initialize: %+v", got)
			}
			say("\r\n" + c.line)
			if got := <-answers; string(got.ID) != c.id || got.Error == nil || got.Error.Code != c.code {
				t.Errorf("got %+v %+v", got, got.Error)
			}
			say(`{"jsonrpc":"2.0","id":5,"result":{}}`) // of nothing
			say(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`)
			say(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
			if got := <-answers; string(got.ID) != "5" || got.Error != nil {
				t.Errorf("then ping: %+v", got)
			}
			close(gate)
			if got := <-answers; string(got.ID) != `"run"` || !strings.Contains(string(got.Result), `"succeeded"`) {
				t.Errorf("the call: %+v", got)
			}
			h.posts(1)
		})
	}
}

type answer struct {
	ID, Result, Params json.RawMessage
	Method             string
	Error              *struct {
		Code    int
		Message string
	}
}

// lines is a client that writes what it likes.
func (h *house) lines() (say func(string), answers <-chan answer) {
	h.t.Helper()
	in, out, done := h.raw(context.Background())
	h.t.Cleanup(func() { in.Close(); <-done })
	return func(s string) {
		h.t.Helper()
		if _, err := io.WriteString(in, s+"\n"); err != nil {
			h.t.Fatal(err)
		}
	}, out
}

// raw serves a pipe. The channel of answers is closed when the server closes its side.
func (h *house) raw(ctx context.Context) (in io.WriteCloser, out <-chan answer, done <-chan error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- h.server.Stdio(ctx, "ada", inR, outW) }()
	answers := make(chan answer, 100)
	go func() {
		defer close(answers)
		for dec := json.NewDecoder(outR); ; {
			var a answer
			if dec.Decode(&a) != nil {
				return
			}
			answers <- a
		}
	}()
	return inW, answers, ended
}

// TestEnd: what runs when the client closes its side, or the server is told to end, is
// answered before the server closes its own.
func TestEnd(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create-ticket","arguments":{"subject":"one"}}}`
	for name, c := range map[string]struct {
		closes, finishes bool
		want             string
	}{
		"closed":              {true, true, `"succeeded"`},
		"told":                {false, true, `"succeeded"`},
		"closed, too slow":    {true, false, `"running"`},
		"told, and it's slow": {false, false, `"running"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, ticket.Normal, nil)
			gate := make(chan struct{})
			h.hold.Store(&gate)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			in, out, done := h.raw(ctx)
			if _, err := io.WriteString(in, initialize+call); err != nil { // without a newline at the end
				t.Fatal(err)
			}
			if c.closes {
				in.Close()
			} else {
				_, _ = io.WriteString(in, "\n")
			}
			<-h.posted
			cancel()
			if c.finishes {
				close(gate)
			} else {
				defer close(gate)
			}
			if got := <-out; string(got.ID) != "1" || got.Error != nil {
				t.Errorf("initialize: %+v", got)
			}
			if got := <-out; string(got.ID) != "2" || !strings.Contains(string(got.Result), c.want) {
				t.Errorf("got %s", got.Result)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 { // an answer is never lost to a race with the end
		h := open(t, ticket.Normal, nil)
		in, out, done := h.raw(context.Background())
		go func() { _, _ = io.WriteString(in, strings.SplitAfter(initialize, "\n")[0]); in.Close() }()
		if got := <-out; string(got.ID) != "1" || got.Error != nil {
			t.Fatalf("got %+v", got)
		}
		<-done
	}
}

// TestClientDies: a client that has gone is no error of the server.
func TestClientDies(t *testing.T) {
	h := open(t, ticket.Normal, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	t.Cleanup(func() { inW.Close() })
	outR.Close()
	go func() { _, _ = io.WriteString(inW, initialize) }()
	if err := h.server.Stdio(t.Context(), "ada", inR, outW); err != nil {
		t.Errorf("got %v", err)
	}
}
