package demo

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/ticket"
)

// Tickets is a running ticket service.
type Tickets struct {
	*ticket.Service
	Origin string
	Addr   net.Addr     // where it listens
	Ended  <-chan error // gets the error that ended it before Stop

	http *http.Server
}

// Place says where the ticket service listens, and under which name.
type Place struct {
	Addr   string           // host and port; port 0 is any free one
	Origin string           // "" is that of Addr
	TLS    *tls.Certificate // nil is plain HTTP, on loopback only
}

// Start opens the ticket service and listens on loopback, as StartAt does.
func Start(ctx context.Context, addr string, cfg ticket.Config, log slog.Handler) (*Tickets, error) {
	return StartAt(ctx, Place{Addr: addr}, cfg, log)
}

// StartAt opens the ticket service and listens. Off loopback it wants both a
// certificate and cfg.Principal, and refuses cfg.Inspect. cfg.Origin is set here. With a nil log it is
// silent. The caller must Stop it. The error is an *advice.Error.
func StartAt(ctx context.Context, at Place, cfg ticket.Config, log slog.Handler) (*Tickets, error) {
	host, err := at.host(cfg.Principal != nil, cfg.Inspect)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at.Addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, advice.New("address-in-use", fmt.Errorf("%s is in use by another program", at.Addr), "Stop it, or choose another port with --addr, such as 127.0.0.1:0 for any free one.")
	case err != nil:
		return nil, advice.New("address", fmt.Errorf("cannot listen on %s: %w", at.Addr, err), "Choose another address with --addr, such as 127.0.0.1:0 for any free port.")
	}
	if cfg.Origin = at.Origin; cfg.Origin == "" {
		cfg.Origin = at.scheme() + "://" + at.originHost(host, l.Addr().(*net.TCPAddr).Port)
	}
	if err := agentic.CheckOrigin(cfg.Origin, agentic.Options{AllowLoopback: true}); err != nil {
		return nil, errors.Join(advice.BadUsage("the origin "+cfg.Origin+" "+err.Error(), "Give the one that clients see with --origin."), l.Close())
	}
	if log == nil {
		log = slog.NewTextHandler(io.Discard, nil)
	}
	cfg.Logger = slog.New(log)
	service, err := ticket.Open(ctx, cfg)
	if err != nil {
		remedy := "Mend it, or give another file with --db, or none for a temporary one."
		if cfg.Postgres != "" {
			remedy = "Look at --postgres, at the server, and at the rights of that user: the schema agentic_ticket is made and used."
		}
		return nil, advice.New("database", errors.Join(err, l.Close()), remedy)
	}
	ended := make(chan error, 1)
	s := &Tickets{Service: service, Origin: cfg.Origin, Addr: l.Addr(), Ended: ended, http: &http.Server{
		Handler:           service.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log, slog.LevelWarn),
	}}
	if at.TLS == nil {
		go func() { ended <- s.http.Serve(l) }()
		return s, nil
	}
	s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*at.TLS}, MinVersion: tls.VersionTLS12}
	go func() { ended <- s.http.ServeTLS(l, "", "") }()
	return s, nil
}

// host checks the place before anything listens there, and gives the host of Addr.
// What others can reach needs TLS, and principals that are told apart, and is not
// inspected.
func (at Place) host(principals, inspect bool) (string, error) {
	if at.Origin != "" {
		if err := agentic.CheckOrigin(at.Origin, agentic.Options{AllowLoopback: true}); err != nil {
			return "", advice.BadUsage("--origin "+at.Origin+": it "+err.Error(), "Write it as https://support.example.")
		}
		if !strings.HasPrefix(at.Origin, at.scheme()+":") {
			return "", advice.BadUsage("--origin "+at.Origin+": the service answers "+at.scheme(), "With --tls-cert and --tls-key it answers https, without them http.")
		}
	}
	host, err := loopback(at.Addr)
	if err == nil && onLoopback(at.Origin) {
		return host, nil
	}
	if !principals || at.TLS == nil {
		return "", cmp.Or(err, advice.BadUsage("--origin "+at.Origin+": it is not on loopback", needed))
	}
	if host, err = splitAddr(at.Addr); err != nil {
		return "", err
	}
	if inspect {
		return "", advice.BadUsage("--inspect off loopback: it tells everybody what the service holds", "Leave --inspect out, or serve on loopback, such as with --addr 127.0.0.1:4318 and no --origin.")
	}
	if ip := net.ParseIP(host); at.Origin == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return "", advice.BadUsage("--addr "+at.Addr+": it does not say under which name clients reach it", "Give their origin with --origin, such as https://support.example.")
	}
	return host, nil
}

// needed is what a service that others can reach must have.
const needed = "Off loopback the service needs --token-file, --tls-cert and --tls-key."

// onLoopback reports whether an origin is one of this machine; "" is.
func onLoopback(origin string) bool {
	u, err := url.Parse(origin)
	return origin == "" || err == nil && isLoopback(u.Hostname())
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

func (at Place) scheme() string {
	if at.TLS != nil {
		return "https"
	}
	return "http"
}

// loopback checks that an address is on loopback. Other loopback addresses are no
// origin that a profile may name (section 2).
func loopback(addr string) (host string, err error) {
	if host, err = splitAddr(addr); err != nil {
		return "", err
	}
	if !isLoopback(host) {
		return "", advice.BadUsage("--addr "+addr+": it is not localhost, 127.0.0.1 or [::1]", needed)
	}
	return host, nil
}

func splitAddr(addr string) (host string, err error) {
	const remedy = "Write it as 127.0.0.1:4318."
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", advice.BadUsage("--addr: "+err.Error(), remedy)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", advice.BadUsage("--addr "+addr+": the port is not a number from 0 to 65535", remedy)
	}
	return host, nil
}

// originHost is host and port as a canonical origin has them (D3).
func (at Place) originHost(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if at.TLS == nil && port == 80 || at.TLS != nil && port == 443 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// Stop answers what has begun, for a few seconds, and closes the service.
func (s *Tickets) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return errors.Join(err, s.Service.Close())
}
