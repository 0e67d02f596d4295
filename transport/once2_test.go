package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameServer speaks HTTP/2 frame by frame. fault handles the first POST that
// arrives; every later request is answered, so that a second POST would succeed.
type frameServer struct {
	origin string
	ca     *authority
	conns  atomic.Int64
	posts  atomic.Int64
}

// peer is the server's end of one HTTP/2 connection.
type peer struct {
	*http2.Framer
	conn net.Conn
}

// errHangUp ends a connection.
var errHangUp = errors.New("hang up")

// stage is where a fault strikes.
type stage string

const (
	atStart   stage = "start"   // before the client's first frame is read
	atHeaders stage = "headers" // HEADERS of the POST arrived
	atData    stage = "data"    // its whole body arrived
)

func newFrameServer(t *testing.T, at stage, fault func(p peer, id uint32) error) *frameServer {
	t.Helper()
	s := &frameServer{ca: newAuthority(t)}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{s.ca.server(t)}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s.origin = "https://" + l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			first := s.conns.Add(1) == 1
			wg.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(5 * time.Second))
				s.serve(c, func(now stage, p peer, id uint32) (struck bool, err error) {
					if !first || now != at {
						return false, nil
					}
					first = false
					return true, fault(p, id)
				})
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

func (s *frameServer) serve(c net.Conn, fault func(stage, peer, uint32) (bool, error)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	p := peer{http2.NewFramer(c, c), c}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if p.WriteSettings() != nil {
		return
	}
	if _, err := fault(atStart, p, 0); err != nil {
		return
	}
	lost := uint32(0) // the stream that the fault struck gets no answer
	strike := func(now stage, id uint32) error {
		struck, err := fault(now, p, id)
		if struck {
			lost = id
		}
		return err
	}
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() && p.WriteSettingsAck() != nil {
				return
			}
		case *http2.MetaHeadersFrame:
			if f.PseudoValue("method") == http.MethodPost {
				s.posts.Add(1)
			}
			if strike(atHeaders, f.StreamID) != nil {
				return
			}
			ended = f.StreamEnded()
		case *http2.DataFrame:
			if ended = f.StreamEnded(); ended && strike(atData, f.StreamID) != nil {
				return
			}
		}
		if id := f.Header().StreamID; ended && id != lost && p.answer(id, `{"ok":true}`, true) != nil {
			return
		}
	}
}

func (p peer) answer(id uint32, body string, end bool) error {
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/json"}} {
		if err := e.WriteField(f); err != nil {
			return err
		}
	}
	if err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndHeaders: true}); err != nil {
		return err
	}
	return p.WriteData(id, end, []byte(body))
}

func goAway(code http2.ErrCode) func(peer, uint32) error {
	return func(p peer, _ uint32) error { return p.WriteGoAway(0, code, nil) }
}

func rst(code http2.ErrCode) func(peer, uint32) error {
	return func(p peer, id uint32) error { return p.WriteRSTStream(id, code) }
}

// then runs faults one after the other.
func then(faults ...func(peer, uint32) error) func(peer, uint32) error {
	return func(p peer, id uint32) error {
		for _, f := range faults {
			if err := f(p, id); err != nil {
				return err
			}
		}
		return nil
	}
}

func hangUp(peer, uint32) error { return errHangUp }

// part answers with headers and an unfinished body.
func part(p peer, id uint32) error { return p.answer(id, `{"ok":`, false) }

// TestOnceHTTP2 refuses and breaks HTTP/2 at every stage: at most one POST and one
// connection, and never an answer.
func TestOnceHTTP2(t *testing.T) {
	for _, tc := range []struct {
		name  string
		at    stage
		fault func(peer, uint32) error
		posts int64 // at most
		want  client.Reach
	}{
		{"close at start", atStart, hangUp, 0, client.MaybeSent},
		{"GOAWAY at start", atStart, then(goAway(http2.ErrCodeNo), hangUp), 0, client.MaybeSent},
		{"GOAWAY", atHeaders, goAway(http2.ErrCodeNo), 1, client.MaybeSent},
		{"GOAWAY and close", atHeaders, then(goAway(http2.ErrCodeNo), hangUp), 1, client.MaybeSent},
		{"GOAWAY calm", atHeaders, goAway(http2.ErrCodeEnhanceYourCalm), 1, client.MaybeSent},
		{"GOAWAY after data", atData, then(goAway(http2.ErrCodeNo), hangUp), 1, client.MaybeSent},
		{"REFUSED_STREAM", atHeaders, rst(http2.ErrCodeRefusedStream), 1, client.MaybeSent},
		{"REFUSED_STREAM after data", atData, rst(http2.ErrCodeRefusedStream), 1, client.MaybeSent},
		{"PROTOCOL_ERROR", atHeaders, rst(http2.ErrCodeProtocol), 1, client.MaybeSent},
		{"PROTOCOL_ERROR after data", atData, rst(http2.ErrCodeProtocol), 1, client.MaybeSent},
		{"CANCEL", atData, rst(http2.ErrCodeCancel), 1, client.MaybeSent},
		{"HTTP_1_1_REQUIRED", atHeaders, rst(http2.ErrCodeHTTP11Required), 1, client.MaybeSent},
		{"close after headers", atHeaders, hangUp, 1, client.MaybeSent},
		{"close after data", atData, hangUp, 1, client.MaybeSent},
		{"close in the answer", atData, then(part, hangUp), 1, client.Answered},
		{"REFUSED_STREAM in the answer", atData, then(part, rst(http2.ErrCodeRefusedStream)), 1, client.Answered},
		{"GOAWAY in the answer", atData, then(part, goAway(http2.ErrCodeNo), hangUp), 1, client.Answered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newFrameServer(t, tc.at, tc.fault)
			tr := newTransport(t, s.origin, func(c *Config) { c.RootCAs = s.ca.pool() })
			sub := submission(s.origin)
			sub.Timeout = 500 * time.Millisecond // for faults that leave the connection open
			e := tr.Submit(context.Background(), sub)
			if e.Reach != tc.want || e.Answer.Body != nil {
				t.Errorf("%+v", e)
			}
			if e.Class != client.ClassBroken && !(e.Class == client.ClassTimeout && strings.Contains(tc.name, "GOAWAY")) {
				t.Errorf("class %q: %v", e.Class, e.Err)
			}
			if posts, conns := s.posts.Load(), s.conns.Load(); posts > tc.posts || conns != 1 {
				t.Errorf("%d POSTs over %d connections, want at most %d over 1", posts, conns, tc.posts)
			}
		})
	}
}

// TestSubmitHTTP2 is the control: without a fault the same server answers, and
// net/http itself sends a refused POST again.
func TestSubmitHTTP2(t *testing.T) {
	s := newFrameServer(t, "never", nil)
	tr := newTransport(t, s.origin, func(c *Config) { c.RootCAs = s.ca.pool() })
	expect(t, tr.Submit(context.Background(), submission(s.origin)), result{200, client.Answered, ""})
	expect(t, tr.Get(context.Background(), read(s.origin, "/requests/1")), result{200, client.Answered, ""})

	for name, fault := range map[string]func(peer, uint32) error{
		"REFUSED_STREAM": rst(http2.ErrCodeRefusedStream), "GOAWAY": then(goAway(http2.ErrCodeNo), hangUp),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFrameServer(t, atHeaders, fault)
			plain := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.pool()}, ForceAttemptHTTP2: true}
			defer plain.CloseIdleConnections()
			resp, err := (&http.Client{Transport: plain}).Post(s.origin+"/tickets", "application/json", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if n := s.posts.Load(); n != 2 {
				t.Errorf("%d POSTs: net/http does not replay any more", n)
			}
		})
	}
}
