package wiretest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// connTime bounds a connection of a server that nobody closes.
const connTime = 15 * time.Second

// server is the server of one try.
type server struct {
	stage    Stage
	origin   string
	listener net.Listener
	began    time.Time
	wg       sync.WaitGroup
	strikes  chan struct{} // closed by the first strike
	once     sync.Once     // of strikes

	mu       sync.Mutex
	conns    []*conn
	posts    []*Post
	warmUps  int // how many of posts came before arm
	armed    bool
	struck   bool
	opened   bool // struck a new connection
	closed   bool
	protocol string // of the last connection
	events   int    // how often something came
	log      []string
}

func newServer(stage Stage) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if stage.TLS {
		scheme = "https://"
	}
	s := &server{stage: stage, listener: l, origin: scheme + l.Addr().String(), began: time.Now(), strikes: make(chan struct{})}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accept(c.(*net.TCPConn))
		}
	})
	return s, nil
}

func (s *server) accept(tcp *net.TCPConn) {
	tcp.SetDeadline(time.Now().Add(connTime))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		tcp.Close()
		return
	}
	c := &conn{s: s, n: len(s.conns) + 1, tcp: tcp, rw: tcp}
	s.conns = append(s.conns, c)
	s.noteLocked("connection %d: accepted", c.n)
	s.wg.Go(c.serve)
}

// arm ends the warm-up. A fault that strikes an open connection strikes the idle
// ones of the warm-up here, at the moment the submission begins.
func (s *server) arm() {
	s.mu.Lock()
	s.armed = true
	s.warmUps = len(s.posts)
	var idle []*conn
	for _, c := range s.conns {
		if s.stage.fault.open && c.answered && !c.gone && c.protocol == s.stage.Protocol {
			idle = append(idle, c)
			s.struck = true
		}
	}
	s.mu.Unlock()
	for _, c := range idle {
		s.strike(c, nil)
	}
}

// strike makes the fault happen on c, to the request a if that has begun.
func (s *server) strike(c *conn, a *arrival) {
	s.note("connection %d: the server %s", c.n, s.stage.Does)
	s.once.Do(func() { close(s.strikes) })
	if a != nil {
		a.settled = true
	}
	if !s.stage.fault.keeps {
		c.silent.Store(true)
	}
	s.stage.fault.do(c, a)
}

// due reports whether the fault strikes now on c, where a is what has arrived of a
// request, nil before anything did. It strikes once, and never in the warm-up; on
// a new connection also after it has struck idle ones, which the submission may
// not have used.
func (s *server) due(c *conn, a *arrival) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.stage.fault
	if !s.armed || c.protocol != s.stage.Protocol || f.open != (a == nil) {
		return false
	}
	if a == nil {
		if s.opened || len(s.posts) > s.warmUps {
			return false
		}
		s.opened, s.struck = true, true
		return true
	}
	if s.struck || a.post == nil || !f.when(a) {
		return false
	}
	s.struck = true
	return true
}

func (s *server) close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for _, c := range s.conns {
		c.tcp.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *server) result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Result{Stage: s.stage, Connections: len(s.conns), Protocol: s.protocol, Struck: s.struck, Log: append([]string(nil), s.log...)}
	for i, p := range s.posts {
		if i < s.warmUps {
			r.WarmUp = append(r.WarmUp, *p)
			continue
		}
		r.Posts = append(r.Posts, *p)
	}
	if len(r.Posts) > 0 {
		r.Protocol = s.conns[r.Posts[0].Connection-1].protocol
	}
	return r
}

func (s *server) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(format, args...)
}

// settle waits until nothing new has come for a time, at most as long as most, or
// until done. It counts ticks: a process that gets no turn makes none.
func (s *server) settle(done <-chan struct{}, quiet, most time.Duration) {
	t := time.NewTicker(tick)
	defer t.Stop()
	seen, start := s.seen(), time.Now()
	for left := int(quiet / tick); left > 0 && time.Since(start) < most; left-- {
		select {
		case <-done:
			return
		case <-t.C:
			runtime.Gosched() // to the end of the queue: timers overtake who waits there
		}
		if now := s.seen(); now != seen {
			seen, left = now, int(quiet/tick)+1
		}
	}
}

func (s *server) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// noteLocked keeps the log short: a client may connect without end.
func (s *server) noteLocked(format string, args ...any) {
	s.events++
	if len(s.log) < 100 {
		s.log = append(s.log, fmt.Sprintf("%v ", time.Since(s.began).Round(100*time.Microsecond))+fmt.Sprintf(format, args...))
	}
}

// conn is the server's end of one connection. One goroutine reads it; what is
// written may also come from arm.
type conn struct {
	s   *server
	n   int
	tcp *net.TCPConn
	tls *tls.Conn // nil when it is plain
	rw  net.Conn  // tls or tcp
	bad *injector // under tls

	protocol string // set before the first request
	silent   atomic.Bool
	answered bool // a request of it was answered; under s.mu
	gone     bool // under s.mu

	writing sync.Mutex
	framer  *http2.Framer // of HTTP/2, nil otherwise
}

func (c *conn) serve() {
	defer c.tcp.Close()
	defer c.end()
	protocol := HTTP1
	if c.s.stage.TLS {
		next := []string{"http/1.1"}
		if c.s.stage.Protocol == HTTP2 {
			next = []string{"h2", "http/1.1"}
		}
		c.bad = &injector{Conn: c.tcp, s: c.s}
		c.tls = tls.Server(c.bad, &tls.Config{Certificates: []tls.Certificate{identity().certificate}, NextProtos: next})
		c.rw = c.tls
		if err := c.tls.Handshake(); err != nil {
			c.s.note("connection %d: no TLS", c.n)
			return
		}
		if c.tls.ConnectionState().NegotiatedProtocol == "h2" {
			protocol = HTTP2
		}
	}
	c.s.mu.Lock()
	c.protocol, c.s.protocol = protocol, protocol
	c.s.mu.Unlock()
	if protocol == HTTP2 {
		c.serve2()
	} else {
		c.serve1()
	}
	io.Copy(io.Discard, c.tcp) // until the client closes too: unread bytes would turn a FIN into an RST
}

func (c *conn) end() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.gone = true
	c.s.noteLocked("connection %d: ended", c.n)
}

// write writes to the client; an error is the client's, and shows in what comes
// next.
func (c *conn) write(text string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	io.WriteString(c.rw, text)
}

// wait lets the client take what was written: what breaks a connection could
// overtake it.
func (c *conn) wait() { time.Sleep(5 * time.Millisecond) }

// How a connection ends. Each is a fault, or the end of one.

// fin closes the server's direction in good order; under TLS with close_notify.
func (c *conn) fin() {
	if c.tls != nil {
		c.tls.CloseWrite()
	}
	c.tcp.CloseWrite()
}

// cut closes the server's direction of TCP without a word of TLS.
func (c *conn) cut() { c.tcp.CloseWrite() }

// reset ends both directions with an RST, as a crash of the peer's host would.
func (c *conn) reset() {
	c.tcp.SetLinger(0)
	c.tcp.Close()
}

// alert ends TLS with a fatal alert, which crypto/tls sends when it is made to
// read a record that nobody encrypted. Only the reading goroutine may.
func (c *conn) alert() {
	c.bad.record = "\x17\x03\x03\x00\x20" + strings.Repeat("\x00", 0x20)
	io.Copy(io.Discard, c.tls)
	c.tcp.CloseWrite()
}

// injector puts a record in front of what a connection has to read, and counts
// what comes, so that a server waits for the end of a handshake.
type injector struct {
	net.Conn
	record string
	s      *server
}

func (i *injector) Read(p []byte) (int, error) {
	if i.record == "" {
		n, err := i.Conn.Read(p)
		i.s.mu.Lock()
		i.s.events++
		i.s.mu.Unlock()
		return n, err
	}
	n := copy(p, i.record)
	i.record = i.record[n:]
	return n, nil
}
