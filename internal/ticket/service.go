// Package ticket is the reference ticket service: the one that every consumer
// of the draft knows, on SQLite or PostgreSQL, with the faults that clients are
// tested against.
//
// Its job is what a publisher has: a table of tickets, whose each row belongs to a
// principal, the business that makes one, and its own read. Package service keeps
// section 5 of the draft around them. When asked, it breaks one promise in one
// named way: everything that misbehaves is in faults.go and wraps the rest.
//
// Not its job: listening (the caller serves Handler), closing or listing tickets.
// It imports the root package, service with both of its stores, and
// internal/strictjson.
package ticket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
)

// Bounds of Config.Retention: those of request.retentionSeconds (section 3).
const (
	MinRetention     = 60 * time.Second
	MaxRetention     = 604800 * time.Second
	DefaultRetention = 24 * time.Hour
)

// Anonymous is whose every request is when Config.Principal is nil.
const Anonymous = "anonymous"

// Config says how to open a Service. Only Origin is required.
type Config struct {
	// Path of the SQLite file; it is made with mode 0600 when it is absent. "" is
	// a private temporary file that Close removes.
	Path string
	// Postgres is the URL of a PostgreSQL database, as pgx takes it; then there is
	// no file. All tables are in the schema agentic_ticket, which Open makes.
	Postgres string
	// Origin is the canonical origin that the documents name (D3), such as
	// "http://127.0.0.1:4318".
	Origin string
	// Principal says whose a request is, as service.Config.Principal does;
	// ReadTokens makes one. Without it all are of one principal, Anonymous, and
	// Origin must be on loopback.
	Principal func(*http.Request) (string, error)
	// Fault is the one promise to break; the zero Fault is Normal.
	Fault Fault
	// Inspect serves the State at GET /__state, to everybody: for loopback only.
	Inspect bool
	// Retention is how long a request is tracked, in whole seconds and within
	// MinRetention and MaxRetention; 0 is DefaultRetention. It is published in the
	// profile, and what counts is what the profile says. After it a request is a
	// tombstone (D23), which is kept for ever.
	Retention time.Duration
	// Clock is the time of the records in SQLite; nil is time.Now. PostgreSQL has
	// a clock of its own.
	Clock func() time.Time
	// Logger gets errors and what package service logs, without inputs and full
	// keys; nil discards.
	Logger *slog.Logger
}

// State is what a Service counted since it was opened and what it holds.
type State struct {
	Posts    int `json:"posts"`    // POSTs that arrived, refused ones too
	Tickets  int `json:"tickets"`  // tickets in the database
	Requests int `json:"requests"` // tracked requests in the database, tombstones too
	Reads    int `json:"reads"`    // GETs of a request's status or of a ticket
}

// Service is the ticket service. It is safe for concurrent use.
type Service struct {
	desk    reads
	handler http.Handler
	posts   atomic.Int64
	reads   atomic.Int64
	close   func() error
}

// Open makes the service ready. The context bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	cfg.Fault = cmp.Or(cfg.Fault, Normal)
	cfg.Retention = cmp.Or(cfg.Retention, DefaultRetention)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("ticket: %w", err)
	}
	if cfg.Postgres != "" {
		d, err := openPostgres(ctx, cfg.Postgres)
		if err != nil {
			return nil, fmt.Errorf("ticket: %w", err)
		}
		return open(cfg, d)
	}
	d, err := openSQLite(ctx, cfg.Path, cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("ticket: %w", err)
	}
	return open(cfg, d)
}

// check refuses, before anything is opened.
func (cfg *Config) check() error {
	if err := agentic.CheckOrigin(cfg.Origin, agentic.Options{AllowLoopback: true}); err != nil {
		return fmt.Errorf("the origin %q %w", cfg.Origin, err)
	}
	switch {
	case cfg.Postgres != "" && (cfg.Path != "" || cfg.Clock != nil):
		return errors.New("PostgreSQL has neither a file nor a clock to set")
	case cfg.Principal == nil && !isLoopback(cfg.host()):
		return fmt.Errorf("the origin %s is not on loopback, and nothing says whose a request is", cfg.Origin)
	case cfg.Retention < MinRetention || cfg.Retention > MaxRetention || cfg.Retention%time.Second != 0:
		return fmt.Errorf("a retention of %s: want whole seconds from %s to %s", cfg.Retention, MinRetention, MaxRetention)
	}
	_, err := cfg.Fault.spec()
	return err
}

// host is that of the origin, with its port.
func (cfg *Config) host() string {
	_, host, _ := strings.Cut(cfg.Origin, "://")
	return host
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// actionID is the one action of the profile.
const actionID = "create-ticket"

// open puts the service together around one kind of database, which it closes when
// that fails.
func open[Tx any](cfg Config, d desk[Tx]) (_ *Service, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("ticket: %w", err), d.close())
		}
	}()
	fault, err := cfg.Fault.spec()
	if err != nil {
		return nil, err
	}
	twist := fault.twist()
	store := d.store()
	if twist.record != nil {
		store = edited[Tx]{store, twist.record}
	}
	handle := func(ctx context.Context, tx Tx, r service.Request) (service.Result, error) {
		input, err := strictjson.Parse(r.Input)
		if err != nil {
			return service.Result{}, err
		}
		v := decide(input)
		if twist.decide != nil {
			v = twist.decide(r.Key, v)
		}
		switch v.state {
		case service.Refused:
			return service.RefusedWith(http.StatusUnprocessableEntity, v.problem().Body()), nil
		case service.Pending:
			return service.PendingWith(nil), nil
		}
		id, err := d.add(ctx, tx, r.Key, v.subject)
		if err != nil {
			return service.Result{}, err
		}
		return service.DoneWith(ticketID(id), newTicket(id, r.Key, v.subject)), nil
	}
	principal := cfg.Principal
	if principal == nil {
		principal = func(*http.Request) (string, error) { return Anonymous, nil }
	}
	profile, openapi := profile(cfg.Origin, cfg.Retention, cmp.Or(fault.timeout, exampleTimeout)), OpenAPI(cfg.Origin)
	tracker, err := service.New(service.Config[Tx]{
		Store:         store,
		Principal:     principal,
		Profile:       profile,
		OpenAPI:       openapi,
		AllowLoopback: true,
		Logger:        cfg.Logger,
	}, service.Action[Tx]{ID: actionID, Handle: handle})
	if err != nil {
		return nil, err
	}
	page, err := newPage(cfg, profile, openapi)
	if err != nil {
		return nil, err
	}
	s := &Service{desk: d}
	c := &core{
		submit:    tracker.Submit(actionID),
		status:    tracker.Status(actionID),
		profile:   tracker.Profile(),
		openapi:   tracker.OpenAPI(),
		page:      page,
		principal: principal,
		desk:      d,
		log:       cfg.Logger,
		host:      cfg.host(),
	}
	if cfg.Inspect {
		c.inspect = s.State
	}
	c.complete = func(ctx context.Context, k service.Key, subject string) error {
		err := store.Transact(ctx, func(ctx context.Context, tx Tx) error {
			id, err := d.add(ctx, tx, k, subject)
			if err != nil {
				return err
			}
			return tracker.Complete(ctx, tx, k, ticketID(id), newTicket(id, k, subject))
		})
		if errors.Is(err, service.ErrNotPending) {
			return nil
		}
		return err
	}
	if err := tracker.Check(func(_, path string) http.Handler { return c.route(path) }); err != nil {
		return nil, err
	}
	serve := http.Handler(c)
	if twist.serve != nil {
		serve = twist.serve(c)
	}
	s.handler = s.count(c.guardHost(serve))

	sweeping, stop := context.WithCancel(context.Background())
	var sweeper sync.WaitGroup
	sweeper.Go(func() { _ = tracker.Run(sweeping, service.DefaultSweepInterval) })
	s.close = sync.OnceValue(func() error {
		stop()
		sweeper.Wait()
		return d.close()
	})
	return s, nil
}

// Handler serves the operations, the documents and a page about them. It may be
// called at any time and its result used by any number of servers.
func (s *Service) Handler() http.Handler { return s.handler }

// State counts. Posts and Reads start at zero with Open; Tickets and Requests are
// rows of the database.
func (s *Service) State(ctx context.Context) (State, error) {
	tickets, requests, err := s.desk.count(ctx)
	if err != nil {
		return State{}, fmt.Errorf("ticket: %w", err)
	}
	return State{
		Posts:    int(s.posts.Load()),
		Tickets:  tickets,
		Requests: requests,
		Reads:    int(s.reads.Load()),
	}, nil
}

// Close ends the service: submissions that are being committed are finished, later
// ones are answered with 503. A temporary database is removed.
func (s *Service) Close() error { return s.close() }

// count sees every exchange before any fault does.
func (s *Service) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			s.posts.Add(1)
		case http.MethodGet:
			if isStatus(r) || isResource(r) {
				s.reads.Add(1)
			}
		}
		next.ServeHTTP(w, r)
	})
}

func isStatus(r *http.Request) bool   { return strings.HasPrefix(r.URL.EscapedPath(), pathStatus) }
func isResource(r *http.Request) bool { return strings.HasPrefix(r.URL.EscapedPath(), pathResource) }

// segment is the one path segment after the prefix, decoded once.
func segment(r *http.Request, prefix string) (string, error) {
	return url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), prefix))
}
