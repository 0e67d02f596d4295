package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/ticket"
)

// Tickets is a running ticket service.
type Tickets struct {
	*ticket.Service
	Origin string
	Ended  <-chan error // gets the error that ended it before Stop

	http *http.Server
}

// Start opens the ticket service and listens on loopback; port 0 is any free one.
// cfg.Origin is set here. With a nil log it is silent. The caller must Stop it. The
// error is an *advice.Error.
func Start(ctx context.Context, addr string, cfg ticket.Config, log slog.Handler) (*Tickets, error) {
	host, err := loopback(addr)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, advice.New("address-in-use", fmt.Errorf("%s is in use by another program", addr), "Stop it, or choose another port with --addr, such as 127.0.0.1:0 for any free one.")
	case err != nil:
		return nil, advice.New("address", fmt.Errorf("cannot listen on %s: %w", addr, err), "Choose another address with --addr, such as 127.0.0.1:0 for any free port.")
	}
	cfg.Origin = "http://" + originHost(host, l.Addr().(*net.TCPAddr).Port)
	if log == nil {
		log = slog.NewTextHandler(io.Discard, nil)
	}
	cfg.Logger = slog.New(log)
	service, err := ticket.Open(ctx, cfg)
	if err != nil {
		return nil, advice.New("database", errors.Join(err, l.Close()), "Mend it, or give another file with --db, or none for a temporary one.")
	}
	ended := make(chan error, 1)
	s := &Tickets{Service: service, Origin: cfg.Origin, Ended: ended, http: &http.Server{
		Handler:           service.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log, slog.LevelWarn),
	}}
	go func() { ended <- s.http.Serve(l) }()
	return s, nil
}

// loopback checks an address before anything listens on it. Other loopback
// addresses are no origin that a profile may name (section 2).
func loopback(addr string) (host string, err error) {
	const remedy = "Write it as 127.0.0.1:4318."
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", advice.BadUsage("--addr: "+err.Error(), remedy)
	}
	if host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return "", advice.BadUsage("--addr "+addr+": the ticket service has no authentication and listens on localhost, 127.0.0.1 or [::1] only", remedy)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", advice.BadUsage("--addr "+addr+": the port is not a number from 0 to 65535", remedy)
	}
	return host, nil
}

// originHost is host and port as a canonical origin has them (D3).
func originHost(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 80 {
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
