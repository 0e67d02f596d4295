package servicekit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
)

// exchange bounds one exchange, connection, headers and body: more than a profile may grant.
const exchange = 15 * time.Second

// Limits of one exchange.
const (
	maxBody   = 1 << 20           // of an answer that is read: more than any client takes
	maxAnswer = maxBody + 128<<10 // with its headers and framing
)

// errSpent says that MaxRequests is used up.
var errSpent = errors.New("the limit of requests is used up")

// prober sends single requests to one origin. It is safe for concurrent use.
type prober struct {
	host, address string // of the origin: as it is written, and with its port
	plain         bool   // http
	loopback      bool   // allowed
	tls           *tls.Config
	agent         string
	limit         time.Duration // of one exchange
	max           int64
	sent          atomic.Int64
}

func newProber(origin string, c Config) (*prober, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, errors.New("the origin is not a URL")
	}
	p := &prober{host: u.Host, plain: u.Scheme == "http", loopback: c.AllowLoopback, agent: "agentic-conformance", limit: cmp.Or(c.Timeout, exchange)}
	p.max = int64(c.MaxRequests)
	if p.max == 0 {
		p.max = DefaultMaxRequests * int64(max(1, c.Repeat))
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if p.plain {
			port = "80"
		}
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	p.tls = &tls.Config{ServerName: u.Hostname(), RootCAs: c.RootCAs, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	return p, nil
}

// request is one request as it is written, byte for byte.
type request struct {
	method, target string
	header         [][2]string // beside those that frame the request and the credentials
	who            *Principal
	body           []byte
	cut            cut // how the prober drops the connection; the zero cut does not
}

// cut says where a connection is dropped.
type cut struct {
	at    cutAt
	reset bool // by a TCP reset instead of an orderly end
}

type cutAt int

const (
	never       cutAt = iota
	afterHeader       // the header is sent, with the length of a body that never comes
	inBody            // half of the body is sent
	afterBody         // everything is sent, nothing is read
	inAnswer          // the first byte of the answer is read
)

// answer is what came back.
type answer struct {
	agentic.Answer             // the zero Answer when there was none
	header         http.Header // of the answer
	lost           string      // why there is no usable answer, in words of this package
	partial        bool        // its end was not seen: it broke off, or never ends
	late           bool        // because its time was over
	took           time.Duration
}

// do sends one request over a connection of its own. The error says that nothing
// is known of the service: it cannot be reached, the limit of requests is used up,
// or ctx has ended.
func (p *prober) do(ctx context.Context, q request) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	if p.sent.Add(1) > p.max {
		return answer{}, errSpent
	}
	began := time.Now()
	deadline := began.Add(p.limit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	conn, err := p.dial(ctx, deadline)
	if err != nil {
		return answer{}, fmt.Errorf("no connection to the service: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a := p.exchange(conn, q)
	a.took = time.Since(began)
	return a, ctx.Err()
}

// dial connects, and never to another machine without TLS.
func (p *prober) dial(ctx context.Context, deadline time.Time) (net.Conn, error) {
	d := net.Dialer{Deadline: deadline}
	conn, err := d.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	addr, _ := conn.RemoteAddr().(*net.TCPAddr)
	local := addr != nil && addr.IP.IsLoopback()
	if p.plain && !local || local && !p.loopback {
		_ = conn.Close()
		return nil, errors.New("its address is not one that may be talked to")
	}
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if p.plain {
		return conn, nil
	}
	t := tls.Client(conn, p.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return t, nil
}

// head is the header of the request as it goes onto the wire.
func (p *prober) head(q request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nAccept: application/json\r\nAccept-Encoding: identity\r\nConnection: close\r\n",
		q.method, q.target, p.host, p.agent)
	for _, h := range q.header {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if q.who != nil {
		for name, values := range q.who.Header {
			for _, v := range values {
				fmt.Fprintf(&b, "%s: %s\r\n", name, v)
			}
		}
	}
	if q.method == http.MethodPost || len(q.body) > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(q.body))
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// exchange writes the request and reads the answer, up to the cut.
func (p *prober) exchange(conn net.Conn, q request) answer {
	whole := append(p.head(q), q.body...)
	end := len(whole)
	switch q.cut.at {
	case afterHeader:
		end -= len(q.body)
	case inBody:
		end -= (len(q.body) + 1) / 2
	}
	// A server may answer and close before it has read everything: its answer counts.
	_, writeErr := conn.Write(whole[:end])
	if q.cut.at != never {
		if q.cut.at == inAnswer && writeErr == nil {
			_, _ = io.ReadFull(conn, make([]byte, 1))
		}
		drop(conn, q.cut.reset)
		return answer{lost: "the prober dropped the connection"}
	}
	resp, err := readResponse(conn, q.method)
	if err != nil {
		return answer{lost: why(err), partial: true, late: timedOut(err)}
	}
	defer resp.Body.Close()
	a := answer{header: resp.Header, Answer: agentic.Answer{Status: resp.StatusCode, ContentType: strings.Join(resp.Header.Values("Content-Type"), ", ")}}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		a.lost, a.partial, a.late = "the answer ended early: "+why(err), true, timedOut(err)
	case len(body) > maxBody:
		a.lost, a.partial = fmt.Sprintf("the answer has more than %d bytes", maxBody), true
	case slices.ContainsFunc(resp.Header.Values("Content-Encoding"), func(v string) bool { return !strings.EqualFold(strings.TrimSpace(v), "identity") }):
		a.lost = "the answer is encoded, which was not asked for"
	default:
		a.Body = body
	}
	return a
}

// readResponse reads the final answer, past any that only inform.
func readResponse(conn net.Conn, method string) (*http.Response, error) {
	br := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	for range 8 {
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
		_ = resp.Body.Close()
	}
	return nil, errors.New("nothing but answers that only inform")
}

// drop closes what is below TLS, which would say goodbye.
func drop(conn net.Conn, reset bool) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// noAnswer is why there is none when its time was over.
const noAnswer = "no answer in time"

// why puts an error of a connection into words that hold nothing of the service.
func why(err error) string {
	switch {
	case timedOut(err):
		return noAnswer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.Is(err, net.ErrClosed):
		return "the connection is closed"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "the connection broke"
	}
	return "not an answer of HTTP/1.1"
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// whole reports whether there was an answer with an end. What streams for ever has none,
// whatever it begins with.
func (a answer) whole() bool { return a.Status != 0 && !a.partial }

// code is the answer for people.
func (a answer) code() string {
	switch {
	case a.Status == 0:
		return "no answer: " + a.lost
	case a.lost != "":
		return strconv.Itoa(a.Status) + ", " + a.lost
	}
	return strconv.Itoa(a.Status)
}

// refuses reports whether an answer is about credentials.
func refuses(a answer) bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

func (a answer) is2xx() bool { return a.Status >= 200 && a.Status < 300 }
func (a answer) is4xx() bool { return a.Status >= 400 && a.Status < 500 }
