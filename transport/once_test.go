package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"

// breakAfter reads k bytes of the first request (-1: all), writes the first w
// bytes of an answer and breaks. Every later connection is served in full, so
// that a request sent again would be seen and would succeed.
func breakAfter(t testing.TB, k, w int, hard bool) *rawServer {
	return newRawServer(t, func(s *rawServer, c *net.TCPConn, n int64) {
		if n > 1 {
			s.readBytes(c, -1)
			io.WriteString(c, okAnswer)
			return
		}
		s.readBytes(c, k)
		io.WriteString(c, okAnswer[:w])
		if hard {
			if w > 0 {
				time.Sleep(5 * time.Millisecond) // an RST would overtake what was written
			}
			reset(c)
		}
	})
}

// TestOnceHTTP1 breaks the connection at every byte of the request and of the
// answer: at most one POST and one connection, and never an answer.
func TestOnceHTTP1(t *testing.T) {
	headers, all := requestSize(t, func(origin string) { newTransport(t, origin).Submit(context.Background(), submission(origin)) })
	type point struct{ k, w int }
	var points []point
	for k := range all {
		points = append(points, point{k, 0})
	}
	for w := range len(okAnswer) {
		points = append(points, point{-1, w})
	}
	for _, hard := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", hard), func(t *testing.T) {
			for _, p := range points {
				s := breakAfter(t, p.k, p.w, hard)
				e := newTransport(t, s.origin).Submit(context.Background(), submission(s.origin))
				s.Close()
				s.wg.Wait()
				posts := int64(0)
				if p.k < 0 || p.k >= headers {
					posts = 1
				}
				if got, conns := s.posts.Load(), s.conns.Load(); got != posts || conns != 1 {
					t.Errorf("%+v: %d POSTs over %d connections, want %d over 1", p, got, conns, posts)
				}
				if e.Class == "" || e.Answer.Body != nil {
					t.Errorf("%+v: %+v", p, e)
				}
				// A reset before the first read can fail the connection attempt itself.
				if e.Reach == client.NotSent && p.k != 0 {
					t.Errorf("%+v: not-sent, with a connection", p)
				}
			}
		})
	}
}

// TestReplayIsReal shows what Submit avoids, with the same server: net/http sends a
// POST with an Idempotency-Key twice when a reused connection breaks. Without it
// TestOnceHTTP1 could not fail.
func TestReplayIsReal(t *testing.T) {
	s := newRawServer(t, func(s *rawServer, c *net.TCPConn, n int64) {
		for i := 0; ; i++ {
			if _, ok := s.readBytes(c, -1); !ok || n == 1 && i == 1 {
				return // the first connection breaks on its second request
			}
			io.WriteString(c, okAnswer)
		}
	})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	post := func() {
		req, err := http.NewRequest("POST", s.origin+"/tickets", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "request-0001")
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	post()
	if n := s.posts.Load(); n != 1 {
		t.Fatalf("%d POSTs after the first", n)
	}
	post()
	if n := s.posts.Load(); n != 3 {
		t.Errorf("%d POSTs for two: net/http does not replay any more", n)
	}
}

// TestPoolIsNotUsed leaves an idle connection behind and breaks the next request
// on any of them: the POST arrives once, on a connection of its own.
func TestPoolIsNotUsed(t *testing.T) {
	s := newRawServer(t, func(s *rawServer, c *net.TCPConn, n int64) {
		s.readBytes(c, -1)
		if n != 2 {
			io.WriteString(c, okAnswer)
			s.readBytes(c, -1)
		}
	})
	tr := newTransport(t, s.origin)
	expect(t, tr.Get(context.Background(), read(s.origin, "/requests/1")), result{200, client.Answered, ""})
	expect(t, tr.Submit(context.Background(), submission(s.origin)), result{0, client.MaybeSent, client.ClassBroken})
	if posts, conns := s.posts.Load(), s.conns.Load(); posts != 1 || conns != 2 {
		t.Errorf("%d POSTs over %d connections, want 1 over 2", posts, conns)
	}
	tr.CloseIdleConnections() // the server waits for the pool's connection to end
}
