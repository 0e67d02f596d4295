package transport

import (
	"context"
	"fmt"
	"io"
	"net"
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
