package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Limits of a Transport that a Config does not change.
const (
	// DefaultMaxHeaderBytes caps the headers of an answer unless
	// Config.MaxHeaderBytes says otherwise.
	DefaultMaxHeaderBytes = 16 << 10

	// DefaultTimeout is the time of an exchange that names none: the longest
	// that a profile may ask for (section 3, recovery.timeoutMs).
	DefaultTimeout = 10 * time.Second

	// connectTimeout bounds a connection attempt that outlives the read it was
	// begun for; net/http finishes it for the pool.
	connectTimeout = 30 * time.Second

	// connBuffer is that of a connection, in bytes each way: a submission makes
	// a new one, and requests and most answers are smaller.
	connBuffer = 2 << 10

	idleConns        = 256
	idleConnsPerHost = 64
	idleTimeout      = 4 * time.Second // less than services commonly keep one: a read over a broken one is not made again
	tlsSessions      = 64
)

// Config is what a host decides. The zero Config is safe and useless: it
// approves no origin.
type Config struct {
	// Origins are the approved origins, each in canonical form (D3) and compared
	// byte for byte. An http origin needs AllowLoopback.
	Origins []string

	// AllowLoopback is for local development: it accepts http origins on
	// localhost, 127.0.0.1 and [::1], and connections to loopback addresses,
	// also of an https origin. An http origin is never connected to any other
	// address, whatever its name resolves to.
	AllowLoopback bool

	// AllowAddress lets the host reach addresses that are not public, such as
	// 10.0.0.0/8 of its own network or a NAT64 prefix: it is asked for those
	// alone, with an IPv4 address in its IPv4 form and without a zone. With nil
	// only public unicast addresses are reached. It may be called concurrently.
	AllowAddress func(netip.Addr) bool

	// Credentials gives the headers that authenticate one exchange. It is called
	// once for each Submit and Get, before any connection, under the caller's
	// context and outside of the exchange's time; its headers go with that
	// exchange and nowhere else. An error, or a header that is not for
	// credentials (ReservedHeader), ends the exchange with nothing sent. It may
	// be called concurrently.
	Credentials func(context.Context, Credential) (http.Header, error)

	// RootCAs verify a server; nil are the system's. ClientCertificates are
	// offered to every approved origin that asks for one.
	RootCAs            *x509.CertPool
	ClientCertificates []tls.Certificate

	// Proxy chooses the proxy of an https origin as http.Transport.Proxy does;
	// its request tells the origin only. With nil there is none, whatever the
	// environment says. The address check then judges the proxy's address, and
	// the proxy decides which address the origin has. An http origin, which is a
	// loopback one, has no proxy.
	Proxy func(*http.Request) (*url.URL, error)

	MaxHeaderBytes int    // of an answer; 0 is DefaultMaxHeaderBytes
	UserAgent      string // "" is "agentic-go"
}

// WithDefaults is the Config with its zero limits and names filled in.
func (c Config) WithDefaults() Config {
	if c.MaxHeaderBytes == 0 {
		c.MaxHeaderBytes = DefaultMaxHeaderBytes
	}
	if c.UserAgent == "" {
		c.UserAgent = "agentic-go"
	}
	return c
}

// Transport is client.Transport over HTTP. It is safe for concurrent use.
type Transport struct {
	config  Config
	origins map[string]bool
	http    *http.Transport

	resolver *net.Resolver // nil is net.DefaultResolver; for tests of names
}

var _ client.Transport = (*Transport)(nil)

// New makes a Transport. The error is a *client.OriginError for an origin that
// cannot be approved, or says which other setting is wrong.
func New(config Config) (*Transport, error) {
	c := config.WithDefaults()
	if c.MaxHeaderBytes < 0 {
		return nil, fmt.Errorf("transport: MaxHeaderBytes is %d", c.MaxHeaderBytes)
	}
	if !validHeaderValue(c.UserAgent) {
		return nil, fmt.Errorf("transport: UserAgent is not a header value")
	}
	t := &Transport{config: c, origins: make(map[string]bool, len(c.Origins))}
	for _, o := range c.Origins {
		if err := agentic.CheckOrigin(o, agentic.Options{AllowLoopback: c.AllowLoopback}); err != nil {
			return nil, &client.OriginError{Origin: quoteOrigin(o), Reason: "it " + err.Error()}
		}
		t.origins[o] = true
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t.http = &http.Transport{
		Proxy:       t.proxy,
		DialContext: t.dial,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            c.RootCAs,
			Certificates:       slices.Clone(c.ClientCertificates),
			ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
		},
		TLSHandshakeTimeout:    connectTimeout,
		DisableCompression:     true,
		ReadBufferSize:         connBuffer,
		WriteBufferSize:        connBuffer,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idleConnsPerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: int64(c.MaxHeaderBytes),
		Protocols:              &protocols,
	}
	return t, nil
}

// Approve reports whether the host approved the origin; the error is a
// *client.OriginError. Every action of an approved origin is approved.
func (t *Transport) Approve(origin, actionID string) error {
	if t.origins[origin] {
		return nil
	}
	return &client.OriginError{Origin: quoteOrigin(origin), Reason: "the host has not approved it"}
}

// Submit sends the POST over a connection of its own, at most once (section
// 6.4). The connection is closed before it returns.
func (t *Transport) Submit(ctx context.Context, s client.Submission) client.Exchange {
	x := exchange{t: t, origin: s.Origin, actionID: s.ActionID, url: s.URL, timeout: s.Timeout,
		limit: agentic.MaxResponseBytes, submission: &s}
	return x.run(ctx)
}

// Get reads one of the two GET operations. It may use a connection that an
// earlier read left open.
func (t *Transport) Get(ctx context.Context, r client.Read) client.Exchange {
	x := exchange{t: t, origin: r.Origin, actionID: r.ActionID, url: r.URL, timeout: r.Timeout,
		limit: agentic.MaxResponseBytes}
	return x.run(ctx)
}

// Fetch reads a document, a profile or its OpenAPI description, from an approved
// origin: without credentials, under the same rules as Get, at most limit bytes.
// Anything but HTTP 200 with a JSON media type is an error, and so is every
// Exchange without an answer.
func (t *Transport) Fetch(ctx context.Context, address string, limit int, timeout time.Duration) ([]byte, error) {
	origin, ok := originOf(address)
	if !ok {
		return nil, fmt.Errorf("fetch: not an absolute http or https URL")
	}
	x := exchange{t: t, origin: origin, url: address, timeout: timeout, limit: limit, anonymous: true}
	e := x.run(ctx)
	if e.Err != nil {
		return nil, fmt.Errorf("fetch: %w", e.Err)
	}
	if e.Answer.Status != http.StatusOK {
		return nil, fmt.Errorf("fetch: %s answered with HTTP status %d", origin, e.Answer.Status)
	}
	media, _, err := mime.ParseMediaType(e.Answer.ContentType)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, fmt.Errorf("fetch: %s answered with a media type that is not JSON", origin)
	}
	return e.Answer.Body, nil
}

// CloseIdleConnections closes the connections that no read is using.
func (t *Transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

// originKey is the context key of the origin an exchange goes to, for dial and
// proxy.
type originKey struct{}

func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	origin, _ := ctx.Value(originKey{}).(string)
	plain := !strings.HasPrefix(origin, "https://")
	d := net.Dialer{
		Timeout:   connectTimeout,
		Resolver:  t.resolver,
		KeepAlive: -1, // no connection outlives an exchange by more than idleTimeout
		ControlContext: func(_ context.Context, _, address string, _ rawConn) error {
			return t.checkAddress(address, plain)
		},
	}
	return d.DialContext(ctx, network, address)
}

// proxy asks the host's function with the origin alone: submissions and reads get
// the same answer, and no path reaches it.
func (t *Transport) proxy(req *http.Request) (*url.URL, error) {
	if t.config.Proxy == nil {
		return nil, nil
	}
	origin, _ := req.Context().Value(originKey{}).(string)
	if !strings.HasPrefix(origin, "https://") {
		return nil, nil
	}
	r, err := http.NewRequestWithContext(req.Context(), http.MethodGet, origin+"/", nil)
	if err != nil {
		return nil, err
	}
	return t.config.Proxy(r)
}
