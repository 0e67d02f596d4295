package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Times of the end of a server.
const (
	// DefaultDrain is that of a Config.
	DefaultDrain = 10 * time.Second

	// partingTime is how long answers may take to leave after that. A client that does
	// not read must not keep the server.
	partingTime = 2 * time.Second
)

// Stdio serves one principal over a pipe until ctx ends or the client closes it. What
// runs then is answered, and has Config.Drain for it; then the principal's calls are
// shut down. Nothing but the protocol is written to out. A goroutine may stay in a
// read or a write of the pipe until the other side closes it.
func (s *Server) Stdio(ctx context.Context, principal string, in io.ReadCloser, out io.WriteCloser) error {
	p, err := s.of(principal)
	if err != nil {
		return fmt.Errorf("cannot serve this principal: %w", err)
	}
	session := "pipe-" + rand.Text()
	c := newPipe(in, out, func() { p.calls.GaveUp(session) })
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.server(session, c.stopped).Run(life, c); err != nil && !c.isClosed() {
			s.cfg.Logger.Warn("the connection ended", "error", err)
		}
	}()
	select {
	case <-ctx.Done():
		c.stop()
	case <-c.stopped:
	case <-ended:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Drain)
	defer cancel()
	c.idle(bounded, ended)    // all calls that were read are answered ...
	p.calls.Shutdown(bounded) // ... or are told now that they are interrupted
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	c.idle(parting, ended)
	c.leave()
	select {
	case <-ended:
	case <-parting.Done():
		s.cfg.Logger.Warn("the client does not read what it is told")
	}
	return nil
}

// pipe is a connection of lines, one message each, strictly checked. What is wrong is
// answered, and the connection lives on. Calls that it gave to the SDK are counted
// until their answers are written, so that the end of the input loses none.
type pipe struct {
	in     io.ReadCloser
	out    io.WriteCloser
	gaveUp func() // the client gives a call up: its answer may be on the way already, and the SDK tells nobody

	lines   chan line
	stopped chan struct{} // no more is read
	left    chan struct{} // Read says so
	closed  chan struct{}
	stop    func()
	leave   func()
	close   func()

	writing sync.Mutex

	mu      sync.Mutex
	unread  int // lines that are on their way from scan through Read
	pending map[jsonrpc.ID]bool
	changed chan struct{} // closed and made anew when these change
}

type line struct {
	data []byte
	long bool // it is the beginning of a line that is too long
}

func newPipe(in io.ReadCloser, out io.WriteCloser, gaveUp func()) *pipe {
	c := &pipe{in: in, out: out, gaveUp: gaveUp, lines: make(chan line), stopped: make(chan struct{}), left: make(chan struct{}),
		closed: make(chan struct{}), pending: map[jsonrpc.ID]bool{}, changed: make(chan struct{})}
	c.stop = sync.OnceFunc(func() { close(c.stopped) })
	c.leave = sync.OnceFunc(func() { close(c.left) })
	c.close = sync.OnceFunc(func() { close(c.closed); c.stop(); _ = in.Close(); _ = out.Close() })
	go c.scan()
	return c
}

// scan reads lines. Of one that is too long, the rest is thrown away. The end of the
// input is the end of reading, after all that came before.
func (c *pipe) scan() {
	r := bufio.NewReaderSize(c.in, 64<<10)
	var l line
	for {
		part, err := r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if !l.long {
			room := maxMessage + 1 - len(l.data) // one more than a message, for its newline
			l.long = len(part) > room || len(part) == room && part[len(part)-1] != '\n'
			l.data = append(l.data, part[:min(len(part), room)]...)
		}
		if full {
			continue
		}
		if l.data = bytes.TrimSpace(l.data); len(l.data) > 0 {
			c.count(func() { c.unread++ })
			select {
			case c.lines <- l:
			case <-c.stopped:
				c.count(func() { c.unread-- })
				return
			}
		}
		if err != nil {
			c.stop()
			return
		}
		l = line{}
	}
}

// Connect implements mcp.Transport.
func (c *pipe) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *pipe) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *pipe) Close() error { c.close(); return nil }

func (c *pipe) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Read implements mcp.Connection.
func (c *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-c.lines:
		case <-c.left:
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		m, err := c.take(l)
		if w, ok := errors.AsType[*wrong](err); ok {
			err = c.write(w.answer())
			if err != nil {
				return nil, err
			}
		}
		c.count(func() { c.unread-- })
		if m != nil {
			return m, nil
		}
	}
}

// count changes what idle waits for.
func (c *pipe) count(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// take reads a line, and counts the call that it is.
func (c *pipe) take(l line) (m jsonrpc.Message, err error) {
	if l.long {
		err = &wrong{jsonrpc.CodeInvalidRequest, "the message is longer than 1 MiB", loneID(l.data)}
	} else {
		m, err = decode(l.data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := errors.AsType[*wrong](err); ok && w.id != nil {
		// The answer must not be taken for that of a call that runs.
		if r, err := badResponse(w.id); err != nil || c.pending[r.(*jsonrpc.Response).ID] {
			w.id = nil
		}
	}
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
	case r.IsCall() && c.pending[r.ID]:
		return nil, &wrong{jsonrpc.CodeInvalidRequest, "the ID is that of a request that is not answered yet", nil}
	case r.IsCall():
		c.pending[r.ID] = true // counted before unread is less
	case r.Method == "notifications/cancelled":
		c.gaveUp()
	}
	return m, err
}

// Write implements mcp.Connection.
func (c *pipe) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = c.write(append(data, '\n'))
	if r, ok := m.(*jsonrpc.Response); ok {
		c.count(func() { delete(c.pending, r.ID) })
	}
	return err
}

// write writes one line. When nobody reads any more, which is how a client ends that
// dies, the connection is over.
func (c *pipe) write(data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(data)
	if err != nil {
		c.close()
	}
	return err
}

// idle waits until every call is answered, nobody reads answers, or ctx ends.
func (c *pipe) idle(ctx context.Context, ended <-chan struct{}) {
	for {
		c.mu.Lock()
		n, changed := len(c.pending)+c.unread, c.changed
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}
