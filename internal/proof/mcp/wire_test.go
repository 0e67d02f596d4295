//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// loss is what happens to one call.
type loss string

const (
	none   loss = ""
	cancel loss = "cancelled"     // the client gives it up, and says so
	hangup loss = "client killed" // its pipes or its connection are cut, also inside the answer
	kill   loss = "server killed"
	term   loss = "server stopped" // SIGTERM
)

var losses = []loss{cancel, hangup, kill, term}

// result is what a model reads of an answer; nil is a lost one.
type result struct {
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent struct {
		State        string
		RequestID    string `json:"request_id"`
		Repeated     bool
		Next         *struct{ Tool string }
		OpenRequests []struct {
			RequestID string `json:"request_id"`
			InputText string `json:"input_text"`
		} `json:"open_requests"`
		Requests []struct { // of list_requests
			RequestID string `json:"request_id"`
		}
		InputText string `json:"input_text"` // of show_request
	}
}

// wire is a client that speaks the protocol itself, to do what a library would not.
type wire interface {
	// call makes a call under a new JSON-RPC ID. It connects when it must.
	call(tool string, args any, l loss, after time.Duration) *result
}

type message struct {
	ID     *int
	Result json.RawMessage
	Error  *struct{ Message string }
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type object = map[string]any

var clientInfo = object{"name": "proof", "version": "1"}

func rpc(id int, method string, params any) object {
	m := object{"jsonrpc": "2.0", "method": method, "params": params}
	if id > 0 {
		m["id"] = id
	}
	return m
}

func read(t testing.TB, raw json.RawMessage) *result {
	r := &result{}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Errorf("a result that cannot be read: %v: %s", err, raw)
		return nil
	}
	return r
}

// pipe is a client over stdio, which starts the server itself as hosts do.
type pipe struct {
	t       testing.TB
	c       *command
	id      int
	p       *process
	lines   chan message
	orphans []*process // that were left to end by themselves
}

func (w *pipe) connect() {
	if w.p != nil && !w.p.gone() {
		return
	}
	w.p = w.c.start(w.t)
	lines, out := make(chan message, 100), w.p.out
	w.lines = lines
	go func() {
		defer close(lines)
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				w.t.Errorf("not the protocol on standard output: %q", line)
			}
			lines <- m
		}
	}()
	w.id++
	w.send(rpc(w.id, "initialize", object{"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": clientInfo}))
	if w.await(w.id, 20*time.Second) == nil {
		w.t.Errorf("the server does not answer: %s", w.p.said())
	}
	w.send(rpc(0, "notifications/initialized", object{}))
}

// send may write to a server that has died.
func (w *pipe) send(m object) { _, _ = w.p.in.Write(append(encode(m), '\n')) }

func (w *pipe) await(id int, d time.Duration) *message {
	for end := time.After(d); ; {
		select {
		case m, ok := <-w.lines:
			if !ok {
				return nil
			}
			if m.ID != nil && *m.ID == id {
				return &m
			}
		case <-end:
			return nil
		}
	}
}

func (w *pipe) call(tool string, args any, l loss, after time.Duration) *result {
	w.connect()
	w.id++
	id, p := w.id, w.p
	w.send(rpc(id, "tools/call", object{"name": tool, "arguments": args, "_meta": object{"progressToken": id}}))
	if l != none {
		time.Sleep(after)
		switch l {
		case cancel:
			w.send(rpc(0, "notifications/cancelled", object{"requestId": id}))
			return nil
		case hangup:
			_, _ = p.in.Close(), p.out.Close()
		case kill:
			p.signal(syscall.SIGKILL)
		case term:
			p.signal(syscall.SIGTERM)
		}
		w.p, w.orphans = nil, append(w.orphans, p) // the next one is started at once
		return nil
	}
	m := w.await(id, 20*time.Second)
	switch {
	case m == nil:
		w.t.Errorf("no answer of %s: %s", tool, p.said())
		return nil
	case m.Error != nil:
		w.t.Errorf("%s: %s", tool, m.Error.Message)
		return nil
	}
	return read(w.t, m.Result)
}

func (w *pipe) end() {
	if w.p != nil {
		_ = w.p.in.Close()
		w.p.mustEnd(w.t)
	}
	for _, p := range w.orphans {
		p.mustEnd(w.t)
	}
}

// site is a server over HTTP that comes up again when it has ended, elsewhere.
type site struct {
	t testing.TB
	c *command

	mu      sync.Mutex
	p       *process
	orphans []*process
}

// now is the server that runs now.
func (s *site) now() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil || s.p.gone() {
		s.p = s.c.start(s.t)
	}
	return s.p
}

// stop ends a server, once.
func (s *site) stop(p *process, how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.signal(how)
	if s.p == p {
		s.p, s.orphans = nil, append(s.orphans, p)
	}
}

func (s *site) end() {
	if s.p != nil {
		s.stop(s.p, syscall.SIGTERM)
	}
	for _, p := range s.orphans {
		p.mustEnd(s.t)
	}
}

// web is a client over HTTP. It has a connection for each message, to cut it.
type web struct {
	t         testing.TB
	site      *site
	principal string
	version   string
	rng       *rand.Rand
	id        int
	session   string // of a server, for the older versions
	of        *process
}

const stateless = "2026-07-28"

// post sends a message and reads the answer with an ID, as far as it comes. after
// is when the connection is cut, and part after how many bytes of the answer; below
// zero it is not.
func (w *web) post(p *process, m object, after time.Duration, part int) (*message, *http.Response, error) {
	var mu sync.Mutex
	var conns []net.Conn
	cut := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
		return c, err
	}}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(encode(m)))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer token-of-"+w.principal)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", w.version)
	if w.version >= stateless {
		r.Header.Set("Mcp-Method", m["method"].(string))
		if params, ok := m["params"].(object); ok && params["name"] != nil {
			r.Header.Set("Mcp-Name", params["name"].(string))
		}
		if params, ok := m["params"].(object); ok && params["uri"] != nil {
			r.Header.Set("Mcp-Name", params["uri"].(string))
		}
	} else if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	if after >= 0 {
		defer time.AfterFunc(after, cut).Stop()
	}
	res, err := tr.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if part >= 0 {
		_, _ = io.CopyN(io.Discard, res.Body, int64(part))
		cut()
		return nil, res, io.ErrUnexpectedEOF
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, res, err
	}
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = rest
		}
		var got message
		if json.Unmarshal(line, &got) == nil && got.ID != nil && *got.ID == m["id"] {
			return &got, res, nil
		}
	}
	return nil, res, fmt.Errorf("HTTP status %d: %s", res.StatusCode, bytes.TrimSpace(body))
}

func (w *web) next() int { w.id++; return w.id }

// connect opens a session at a server, where the version has them.
func (w *web) connect(p *process) bool {
	if w.version >= stateless || w.of == p && w.session != "" {
		return true
	}
	w.session = ""
	_, res, err := w.post(p, rpc(w.next(), "initialize", object{"protocolVersion": w.version, "capabilities": object{}, "clientInfo": clientInfo}), -1, -1)
	if err != nil {
		return false
	}
	w.session, w.of = res.Header.Get("Mcp-Session-Id"), p
	_, _, _ = w.post(p, rpc(0, "notifications/initialized", object{}), -1, -1)
	return w.session != ""
}

func (w *web) call(tool string, args any, l loss, after time.Duration) *result {
	p := w.site.now()
	if !w.connect(p) {
		return nil // somebody else has ended the server
	}
	id := w.next()
	params := object{"name": tool, "arguments": args, "_meta": w.meta(id)}
	cutAfter, part := time.Duration(-1), -1
	switch l {
	case hangup:
		if cutAfter = after; w.rng.IntN(2) == 0 {
			cutAfter, part = -1, w.rng.IntN(2000)
		}
	case cancel:
		if w.version >= stateless {
			cutAfter = after // that is how it is said there
			break
		}
		defer time.AfterFunc(after, func() {
			_, _, _ = w.post(p, rpc(0, "notifications/cancelled", object{"requestId": id}), -1, -1)
		}).Stop()
	case kill:
		time.AfterFunc(after, func() { w.site.stop(p, syscall.SIGKILL) })
	case term:
		time.AfterFunc(after, func() { w.site.stop(p, syscall.SIGTERM) })
	}
	m, res, err := w.post(p, rpc(id, "tools/call", params), cutAfter, part)
	switch {
	case l == cancel, l == hangup:
		return nil // what came is dropped
	case err != nil && res != nil && (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusForbidden):
		w.session = ""
		return nil
	case err != nil && (res == nil || res.StatusCode == http.StatusOK || strings.Contains(err.Error(), "no server available")):
		return nil
	case err != nil:
		w.t.Errorf("%s: %v", tool, err)
		return nil
	case m.Error != nil:
		w.t.Errorf("%s: %s", tool, m.Error.Message)
		return nil
	}
	return read(w.t, m.Result)
}

// meta is what goes with each request.
func (w *web) meta(id int) object {
	m := object{"progressToken": id}
	if w.version >= stateless {
		m["io.modelcontextprotocol/protocolVersion"] = w.version
		m["io.modelcontextprotocol/clientInfo"] = clientInfo
		m["io.modelcontextprotocol/clientCapabilities"] = object{}
	}
	return m
}

// resource reads a resource; ok is whether there is one.
func (w *web) resource(uri string) (text string, ok bool) {
	p := w.site.now()
	w.connect(p)
	id := w.next()
	m, _, err := w.post(p, rpc(id, "resources/read", object{"uri": uri, "_meta": w.meta(id)}), -1, -1)
	if err != nil {
		w.t.Logf("%s: %v", uri, err)
		return "", false
	}
	return string(m.Result), m.Error == nil
}
