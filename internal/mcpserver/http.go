package mcpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPConfig says who may use the server over HTTP.
type HTTPConfig struct {
	// Principal says whose bearer token a request has; its error refuses it. Nil is
	// for loopback only: everybody is Anonymous.
	Principal func(*http.Request) (string, error)
	Anonymous string

	TLS     *tls.Certificate // nil is plain HTTP, on loopback only
	Origins []string         // that pages of a browser may come from; a request without Origin is no browser's

	BodyTimeout time.Duration // how long a message may take to arrive; zero is DefaultBodyTimeout
}

// DefaultBodyTimeout is that of an HTTPConfig.
const DefaultBodyTimeout = 30 * time.Second

// Limits of HTTP.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	sessionTimeout = time.Hour // without any request
	maxSessions    = 1000      // of one principal at once
	maxHeader      = 32 << 10
	stateless      = "2026-07-28" // the first version of the protocol without sessions
)

// Path is where the protocol is spoken.
const Path = "/mcp"

// The errors of Serve and Check for a place where it would not be safe.
var (
	ErrNeedsTLS    = errors.New("off loopback the server needs a certificate")
	ErrNeedsTokens = errors.New("off loopback the server needs bearer tokens")
)

// Check refuses an address where it would not be safe, with ErrNeedsTLS or
// ErrNeedsTokens. Every address that is not one of loopback is one of the outside.
func (cfg *HTTPConfig) Check(addr net.Addr) error {
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsLoopback() {
		return nil
	}
	switch {
	case cfg.TLS == nil:
		return ErrNeedsTLS
	case cfg.Principal == nil:
		return ErrNeedsTokens
	}
	return nil
}

// Serve serves HTTP on a listener until ctx ends, and closes it. What runs then is
// for Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener, cfg HTTPConfig) error {
	defer l.Close()
	if err := cfg.Check(l.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.Handler(cfg), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() {
		if cfg.TLS != nil {
			server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cfg.TLS}}
			ended <- server.ServeTLS(l, "", "")
			return
		}
		ended <- server.Serve(l)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Streams of clients last as long as they like; answers of calls get a moment.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		_ = server.Close() // what is left are streams
	}
	return nil
}

// Handler serves the protocol at Path. It checks the Host on loopback, the Origin of
// browsers, and the token, before anything of a message is read.
func (s *Server) Handler(cfg HTTPConfig) http.Handler {
	patience := cfg.BodyTimeout
	if patience <= 0 {
		patience = DefaultBodyTimeout
	}
	principalOf := func(r *http.Request) (*principal, error) {
		name := cfg.Anonymous
		if cfg.Principal != nil {
			name = auth.TokenInfoFromContext(r.Context()).UserID
		}
		return s.of(name)
	}
	serverOf := func(r *http.Request) *mcp.Server {
		p, err := principalOf(r)
		if err != nil {
			return nil // it shuts down
		}
		return p.web
	}
	// Clients of older versions keep a session, which belongs to the principal that
	// opened it; those of newer ones have none.
	sessions := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxMessage, SessionTimeout: sessionTimeout})
	single := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true})
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := principalOf(r)
		switch {
		case errors.Is(err, ErrNotServed):
			http.Error(w, "the principal of this token is not served here: who runs the server has to add it", http.StatusForbidden)
			return
		case err != nil:
			http.Error(w, "this principal cannot be served now", http.StatusServiceUnavailable)
			return
		}
		if !wholeBody(w, r) {
			return
		}
		if r.Header.Get("MCP-Protocol-Version") >= stateless {
			single.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" { // it opens one
			n := 0
			for range p.web.Sessions() {
				n++
			}
			if n >= maxSessions {
				http.Error(w, "this principal has too many sessions: close some, or wait until those that are not used end", http.StatusServiceUnavailable)
				return
			}
		}
		sessions.ServeHTTP(w, r)
	})
	if cfg.Principal != nil {
		h = auth.RequireBearerToken(func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
			name, err := cfg.Principal(r)
			if err != nil || name == "" {
				return nil, auth.ErrInvalidToken
			}
			return &auth.TokenInfo{UserID: name}, nil
		}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.URL.Path != Path {
			http.NotFound(w, r)
			return
		}
		if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !slices.Contains(cfg.Origins, origins[0]) {
			http.Error(w, "this Origin is not allowed", http.StatusForbidden)
			return
		}
		if cfg.TLS == nil && !loopbackHost(r.Host) {
			http.Error(w, "this Host is not allowed", http.StatusForbidden)
			return
		}
		if page := r.Header.Get("Origin"); page != "" && shared(w, r, page) {
			return
		}
		if r.Method == http.MethodPost { // also of a body that nobody reads
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
		}
		h.ServeHTTP(w, r)
	})
}

// shared tells a browser that a page of an allowed origin may read the answer. It
// reports whether this was all the browser asked for.
func shared(w http.ResponseWriter, r *http.Request, page string) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", page)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// wholeBody reads the message of a POST before anything is done with it, so that a
// slow client holds nothing but its connection, and not for long. It reports false
// when it has answered. What is no message of the protocol is refused as over a pipe.
func wholeBody(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, "the message is larger than 1 MiB", http.StatusRequestEntityTooLarge)
		return false
	}
	if err != nil {
		http.Error(w, "the message could not be read", http.StatusBadRequest)
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if _, err := decode(data); err != nil {
		refused, ok := errors.AsType[*wrong](err)
		if !ok {
			refused = &wrong{code: jsonrpc.CodeInvalidRequest, why: err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(refused.answer())
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return true
}

// loopbackHost reports whether a Host names this machine: a page of another name
// that resolves to it does not.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil && len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		ip = net.ParseIP(host[1 : len(host)-1])
	}
	return ip != nil && ip.IsLoopback()
}
