package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// TestAnswers sends whole answers, byte for byte, to a submission and a read. Each
// is one connection and one request, whatever comes back.
func TestAnswers(t *testing.T) {
	full := strings.Repeat("x", agentic.MaxResponseBytes)
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
	for _, tc := range []struct {
		name   string
		answer string
		want   result
	}{
		{"largest body", "HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + full, result{200, client.Answered, ""}},
		{"largest chunked body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(full), result{200, client.Answered, ""}},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", result{204, client.Answered, ""}},
		{"server error", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", result{503, client.Answered, ""}},
		{"identity", "HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\nContent-Length: 0\r\n\r\n", result{200, client.Answered, ""}},
		{"body to the end of the connection", "HTTP/1.0 200 OK\r\n\r\n{}", result{200, client.Answered, ""}},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			result{200, client.Answered, ""}},

		{"body too large", "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n" + full + "x", result{200, client.Answered, client.ClassTooLarge}},
		{"announced too large", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", result{200, client.Answered, client.ClassTooLarge}},
		{"chunked body too large", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(full+"x"), result{200, client.Answered, client.ClassTooLarge}},
		{"endless body too large", "HTTP/1.0 200 OK\r\n\r\n" + full + "x", result{200, client.Answered, client.ClassTooLarge}},
		{"headers too large", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", DefaultMaxHeaderBytes) + "\r\nContent-Length: 0\r\n\r\n",
			result{0, client.MaybeSent, client.ClassTooLarge}},
		{"headers too many", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", DefaultMaxHeaderBytes/6+1) + "Content-Length: 0\r\n\r\n",
			result{0, client.MaybeSent, client.ClassTooLarge}},

		{"gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", result{200, client.Answered, client.ClassEncoded}},
		{"identity and gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
			result{200, client.Answered, client.ClassEncoded}},
		{"gzip in a list", "HTTP/1.1 200 OK\r\nContent-Encoding: identity, gzip\r\nContent-Length: 2\r\n\r\n{}",
			result{200, client.Answered, client.ClassEncoded}},

		{"body cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", result{200, client.Answered, client.ClassBroken}},
		{"chunks cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", result{200, client.Answered, client.ClassBroken}},
		{"headers cut", "HTTP/1.1 200 OK\r\nX: y\r\n", result{0, client.MaybeSent, client.ClassBroken}},
		{"header cut", "HTTP/1.1 200 OK\r\nContent-Le", result{0, client.MaybeSent, client.ClassProtocol}}, // a line without a colon
		{"nothing", "", result{0, client.MaybeSent, client.ClassBroken}},

		{"not HTTP", "SSH-2.0-s3cret\r\n\r\n", result{0, client.MaybeSent, client.ClassProtocol}},
		{"no status", "HTTP/1.1 s3cret\r\n\r\n", result{0, client.MaybeSent, client.ClassProtocol}},
		{"status 0", "HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n", result{0, client.MaybeSent, client.ClassProtocol}},
		{"status 999", "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", result{999, client.Answered, client.ClassProtocol}},
		{"switching protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", result{101, client.Answered, client.ClassProtocol}},
		{"bad header", "HTTP/1.1 200 OK\r\ns3cret\r\n\r\n", result{0, client.MaybeSent, client.ClassProtocol}},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", result{0, client.MaybeSent, client.ClassProtocol}},
		{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", result{0, client.MaybeSent, client.ClassProtocol}},
		{"unknown transfer coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunk("{}"), result{0, client.MaybeSent, client.ClassProtocol}},
		{"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ns3cret\r\n", result{200, client.Answered, client.ClassProtocol}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newRawServer(t, func(s *rawServer, c *net.TCPConn, _ int64) {
				s.readBytes(c, -1)
				io.WriteString(c, tc.answer)
				c.CloseWrite()
				io.Copy(io.Discard, c)
			})
			tr := newTransport(t, s.origin)
			expect(t, tr.Submit(context.Background(), submission(s.origin)), tc.want)
			expect(t, tr.Get(context.Background(), read(s.origin, "/requests/1")), tc.want)
			if posts, conns := s.posts.Load(), s.conns.Load(); posts != 1 || conns != 2 {
				t.Errorf("%d POSTs over %d connections", posts, conns)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		for _, location := range []string{"", "/tickets/1", "http://127.0.0.1:1/", "::"} {
			t.Run(fmt.Sprintf("%d %s", status, location), func(t *testing.T) {
				requests := 0
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests++
					if location != "" {
						w.Header().Set("Location", location)
					}
					w.WriteHeader(status)
				}))
				defer srv.Close()
				tr := newTransport(t, srv.URL)
				want := result{status, client.Answered, client.ClassRedirect}
				expect(t, tr.Submit(context.Background(), submission(srv.URL)), want)
				expect(t, tr.Get(context.Background(), read(srv.URL, "/requests/1")), want)
				if requests != 2 {
					t.Errorf("%d requests for two", requests)
				}
			})
		}
	}
}

// TestTime is silent at every point of an exchange; the exchange's own limit ends
// it, or the caller, and each is told from the other.
func TestTime(t *testing.T) {
	const limit = 60 * time.Millisecond
	drip := func(c net.Conn, head string) {
		io.WriteString(c, head)
		for range 200 {
			time.Sleep(5 * time.Millisecond)
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	}
	wait := func(c net.Conn) { io.Copy(io.Discard, c) }
	for _, tc := range []struct {
		name   string
		serve  func(s *rawServer, c *net.TCPConn)
		tls    bool
		status int
		reach  client.Reach
	}{
		{"TLS handshake", func(_ *rawServer, c *net.TCPConn) { wait(c) }, true, 0, client.NotSent},
		{"headers", func(_ *rawServer, c *net.TCPConn) { wait(c) }, false, 0, client.MaybeSent},
		{"dripping headers", func(s *rawServer, c *net.TCPConn) { s.readBytes(c, -1); drip(c, "HTTP/1.1 200 OK\r\nX: ") }, false, 0, client.MaybeSent},
		{"interim answers", func(s *rawServer, c *net.TCPConn) {
			s.readBytes(c, -1)
			for {
				time.Sleep(20 * time.Millisecond)
				if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
					return
				}
			}
		}, false, 0, client.MaybeSent},
		{"body", func(s *rawServer, c *net.TCPConn) {
			s.readBytes(c, -1)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
			wait(c)
		}, false, 200, client.Answered},
		{"dripping body", func(s *rawServer, c *net.TCPConn) {
			s.readBytes(c, -1)
			drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
		},
			false, 200, client.Answered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newRawServer(t, func(s *rawServer, c *net.TCPConn, _ int64) { tc.serve(s, c) })
			origin := s.origin
			if tc.tls {
				origin = "https://" + s.Addr().String()
			}
			tr := newTransport(t, origin)
			calls := map[string]func(context.Context, time.Duration) client.Exchange{
				"submit": func(ctx context.Context, d time.Duration) client.Exchange {
					sub := submission(origin)
					sub.Timeout = d
					return tr.Submit(ctx, sub)
				},
				"get": func(ctx context.Context, d time.Duration) client.Exchange {
					r := read(origin, "/requests/1")
					r.Timeout = d
					return tr.Get(ctx, r)
				},
			}
			for name, call := range calls {
				start := time.Now()
				expect(t, call(context.Background(), limit), result{tc.status, tc.reach, client.ClassTimeout})

				ctx, cancel := context.WithTimeout(context.Background(), limit)
				e := call(ctx, testTimeout)
				cancel()
				expect(t, e, result{tc.status, tc.reach, client.ClassCanceled})
				if !errors.Is(e.Err, context.DeadlineExceeded) {
					t.Errorf("%s: %v does not match the context's error", name, e.Err)
				}

				ctx, cancel = context.WithCancel(context.Background())
				time.AfterFunc(limit, cancel)
				e = call(ctx, testTimeout)
				expect(t, e, result{tc.status, tc.reach, client.ClassCanceled})
				if !errors.Is(e.Err, context.Canceled) {
					t.Errorf("%s: %v does not match the context's error", name, e.Err)
				}
				if d := time.Since(start); d > 2*time.Second {
					t.Errorf("%s: three calls took %v", name, d)
				}
			}
		})
	}
}

// TestNothingStays: exchanges that end badly leave no goroutine behind.
func TestNothingStays(t *testing.T) {
	s := newRawServer(t, func(s *rawServer, c *net.TCPConn, n int64) {
		s.readBytes(c, -1)
		if n%2 == 0 {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
		}
		io.Copy(io.Discard, c)
	})
	tr := newTransport(t, s.origin)
	before := runtime.NumGoroutine()
	for range 20 {
		sub, r := submission(s.origin), read(s.origin, "/requests/1")
		sub.Timeout, r.Timeout = 5*time.Millisecond, 5*time.Millisecond
		tr.Submit(context.Background(), sub)
		tr.Get(context.Background(), r)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestCanceledBefore(t *testing.T) {
	s := newRawServer(t, func(*rawServer, *net.TCPConn, int64) {})
	tr := newTransport(t, s.origin, func(c *Config) {
		c.Credentials = func(context.Context, Credential) (http.Header, error) { return nil, errors.New("asked in vain") }
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	want := result{0, client.NotSent, client.ClassCanceled}
	expect(t, tr.Submit(ctx, submission(s.origin)), want)
	expect(t, tr.Get(ctx, read(s.origin, "/requests/1")), want)
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestRefusedConnection(t *testing.T) {
	s := newRawServer(t, nil)
	s.Close()
	tr := newTransport(t, s.origin)
	want := result{0, client.NotSent, client.ClassConnect}
	expect(t, tr.Submit(context.Background(), submission(s.origin)), want)
	expect(t, tr.Get(context.Background(), read(s.origin, "/requests/1")), want)
}

func TestContentTypes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json", "text/html"}
	}))
	defer srv.Close()
	e := newTransport(t, srv.URL).Get(context.Background(), read(srv.URL, "/requests/1"))
	if e.Answer.ContentType != "application/json, text/html" {
		t.Errorf("two Content-Type headers came as %q", e.Answer.ContentType)
	}
}
