package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func asError[E error](err error, target *E) bool { return errors.As(err, target) }

// rawServer accepts TCP connections on loopback and hands each to serve, with its
// number from 1. It counts what arrives.
type rawServer struct {
	net.Listener
	origin string
	conns  atomic.Int64
	posts  atomic.Int64
	wg     sync.WaitGroup
}

func newRawServer(t testing.TB, serve func(s *rawServer, c *net.TCPConn, n int64)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{Listener: l, origin: "http://" + l.Addr().String()}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := s.conns.Add(1)
			s.wg.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(10 * time.Second))
				serve(s, c.(*net.TCPConn), n)
			})
		}
	})
	t.Cleanup(func() { l.Close(); s.wg.Wait() })
	return s
}

// readBytes reads exactly n bytes of a request, or with n < 0 the whole request,
// and counts a POST when its header section was complete. ok is false when the
// peer sent less.
func (s *rawServer) readBytes(c net.Conn, n int) (got []byte, ok bool) {
	counted := false
	one := make([]byte, 1)
	for n < 0 || len(got) < n {
		if n < 0 && whole(got) {
			return got, true
		}
		if _, err := c.Read(one); err != nil {
			return got, false
		}
		got = append(got, one[0])
		if !counted && bytes.HasPrefix(got, []byte("POST ")) && bytes.HasSuffix(got, []byte("\r\n\r\n")) {
			counted = true
			s.posts.Add(1)
		}
	}
	return got, true
}

// whole reports whether b is a request with its body of Content-Length.
func whole(b []byte) bool {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return false
	}
	_, rest, ok := bytes.Cut(head, []byte("Content-Length: "))
	if !ok {
		return true
	}
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	return err == nil && len(body) >= n
}

// reset closes with an RST, as a crash of the peer's host would.
func reset(c *net.TCPConn) { c.SetLinger(0); c.Close() }

// requestSize is the number of bytes of the headers and of the whole request that
// send makes.
func requestSize(t *testing.T, send func(origin string)) (headers, all int) {
	t.Helper()
	var got []byte
	s := newRawServer(t, func(s *rawServer, c *net.TCPConn, _ int64) {
		got, _ = s.readBytes(c, -1)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	send(s.origin)
	s.Close()
	s.wg.Wait()
	return bytes.Index(got, []byte("\r\n\r\n")) + 4, len(got)
}
