// Package ticket is the reference ticket service: the one that every consumer
// of the draft knows, on SQLite, with the faults that clients are tested against.
//
// Its job is to keep section 5 of the draft for one anonymous principal (a ticket
// and the record of its request commit in one transaction, a key names one input
// for ever, an expired key is a tombstone) and, when asked, to break one promise
// in one named way. The service itself is service.go, handler.go, store.go and
// documents.go; everything that misbehaves is in faults.go and wraps it.
//
// Not its job: listening (the caller serves Handler, on loopback), authentication,
// closing or listing tickets. It imports the root package for outcomes and for
// checking its own documents, internal/strictjson for bodies, and the SQLite
// driver.
package ticket

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
)

// Bounds of Config.Retention: those of request.retentionSeconds (section 3).
const (
	MinRetention     = 60 * time.Second
	MaxRetention     = 604800 * time.Second
	DefaultRetention = 24 * time.Hour
)

// Config says how to open a Service. Only Origin is required.
type Config struct {
	// Path of the database file; it is made with mode 0600 when it is absent. ""
	// is a private temporary file that Close removes.
	Path string
	// Origin is the canonical origin that the documents name (D3), such as
	// "http://127.0.0.1:4318".
	Origin string
	// Fault is the one promise to break; the zero Fault is Normal.
	Fault Fault
	// Inspect serves the State at GET /__state.
	Inspect bool
	// Retention is how long a request is tracked, in whole seconds and within
	// MinRetention and MaxRetention; 0 is DefaultRetention. After it a request is
	// a tombstone (D23), which is kept for ever.
	Retention time.Duration
	// Clock is the time of the records; nil is time.Now.
	Clock func() time.Time
	// Logger gets errors of the database, without keys or inputs; nil discards.
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
	store   *store
	handler http.Handler
	posts   atomic.Int64
	reads   atomic.Int64
}

// Open makes the service ready. The context bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	cfg.Fault = cmp.Or(cfg.Fault, Normal)
	cfg.Retention = cmp.Or(cfg.Retention, DefaultRetention)
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Retention < MinRetention || cfg.Retention > MaxRetention || cfg.Retention%time.Second != 0 {
		return nil, fmt.Errorf("ticket: a retention of %s: want whole seconds from %s to %s", cfg.Retention, MinRetention, MaxRetention)
	}
	spec, err := cfg.Fault.spec()
	if err != nil {
		return nil, err
	}
	profile := profile(cfg.Origin, cfg.Retention, cmp.Or(spec.timeout, exampleTimeout))
	openapi := OpenAPI(cfg.Origin)
	if _, err := agentic.Load(profile, openapi, "", agentic.Options{AllowLoopback: true}); err != nil {
		return nil, fmt.Errorf("ticket: the service's own documents: %w", err)
	}
	st, err := openStore(ctx, cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("ticket: %w", err)
	}
	s := &Service{store: st}
	c := &core{
		store:     st,
		decide:    decide,
		clock:     cfg.Clock,
		retention: cfg.Retention,
		log:       cfg.Logger,
		host:      cfg.Origin[strings.Index(cfg.Origin, "://")+len("://"):],
		profile:   newDocument(profile),
		openapi:   newDocument(openapi),
	}
	if cfg.Inspect {
		c.inspect = s.State
	}
	s.handler = s.count(c.guardHost(spec.build(c)))
	return s, nil
}

// Handler serves the operations and documents. It may be called at any time and
// its result used by any number of servers.
func (s *Service) Handler() http.Handler { return s.handler }

// State counts. Posts and Reads start at zero with Open; Tickets and Requests are
// rows of the database.
func (s *Service) State(ctx context.Context) (State, error) {
	tickets, requests, err := s.store.count(ctx)
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
// ones are answered with 500. A temporary database is removed.
func (s *Service) Close() error { return s.store.close() }

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
