package wiretest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Limits of a try.
const (
	// Timeout is how long the context of a submission lasts after the server has
	// broken off and nothing new has come. It is counted in turns of this process,
	// as Linger is, so that a busy machine takes longer rather than miss a POST.
	Timeout = 1500 * time.Millisecond

	// MaxTime is the deadline of the context of every call.
	MaxTime = 20 * time.Second

	// Linger is how long the server waits for another POST after the submission
	// has returned and nothing new has come.
	Linger = 250 * time.Millisecond

	// maxLinger bounds it for clients that never rest.
	maxLinger = 12 * Linger

	// tick is how often a server that waits looks again.
	tick = 25 * time.Millisecond

	// grace is how long after the end of its context a submission may return.
	grace = 2 * time.Second
)

// Header carries the key of a submission.
const Header = "Idempotency-Key"

// Protocols of a Stage, as net/http names them.
const (
	HTTP1 = "HTTP/1.1"
	HTTP2 = "HTTP/2.0"
)

// Target is where one submission goes and what it carries.
type Target struct {
	URL     string         // of the POST, absolute, on loopback; other paths of its origin answer any GET
	RootCAs *x509.CertPool // that verify the server; the same pool for all targets of a process, also for plain ones
	Key     string         // the value of Header, of [A-Za-z0-9_-]
	Body    []byte         // a JSON object; 1 MiB in one stage

	// WarmUp says that this call is there to leave an idle connection behind: the
	// server answers in full, and a GET of the same origin does as well as the
	// POST.
	WarmUp bool
}

// Request makes the POST as http.NewRequest does, with a GetBody that lets
// net/http send the body again.
func (t Target) Request(ctx context.Context) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(t.Body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(Header, t.Key)
	return r, nil
}

// Stage is one way in which a server breaks off. Stages makes them.
type Stage struct {
	Name     string // stable, such as "http1-tls/reused/whole-reset"
	Protocol string // HTTP1 or HTTP2, which is always over TLS
	TLS      bool
	Reused   bool   // a warm-up came before, whose connection the server keeps open
	Does     string // what the server does, one clause
	Permits  string // which RFC lets a client send again here; "" is none

	fault fault
}

// Reach tells how much of a POST arrived.
type Reach string

// The reaches, each more than the one before.
const (
	Begun  Reach = "begun"  // a part of its header section
	Headed Reach = "header" // its whole header section
	Bodied Reach = "body"   // a part of its body
	Whole  Reach = "whole"
)

// Post is one POST that the server saw.
type Post struct {
	Key        string // the value of Header; "" until the header section was complete, or without one
	Connection int    // from 1, in the order of accepting
	Stream     uint32 // of HTTP/2, 0 otherwise
	Reused     bool   // its connection had carried a request before
	Reach      Reach
	Header     int           // bytes read of its header section; of HTTP/2 the sum of its names and values
	Body       int           // bytes read of its body, as it was framed
	At         time.Duration // since the server started
}

func (p Post) String() string {
	where := fmt.Sprintf("connection %d", p.Connection)
	if p.Stream != 0 {
		where += fmt.Sprintf(", stream %d", p.Stream)
	}
	if p.Reused {
		where += " (reused)"
	}
	what := map[Reach]string{Begun: "a part of its header", Headed: "its header", Bodied: "its header and a part of its body", Whole: "all of it"}[p.Reach]
	return fmt.Sprintf("at %v over %s: %s, %d + %d bytes", p.At.Round(100*time.Microsecond), where, what, p.Header, p.Body)
}

// Result is what the server saw in one stage.
type Result struct {
	Stage       Stage
	Key         string        // of the submission
	Posts       []Post        // after the warm-up, in the order in which they began
	WarmUp      []Post        // during the warm-up
	Connections int           // accepted, the warm-up's included
	Protocol    string        // of the connection of the first POST, or else of the last connection; "" without one
	Struck      bool          // the stage took place
	Returned    error         // what the submission returned; ErrNotReturned when it did not
	Took        time.Duration // the submission, without warm-up and Linger
	Log         []string      // what the server did and saw, in order; no header and no body
}

// ErrNotReturned is for a submission that goes on after its context has ended.
var ErrNotReturned = errors.New("the submission did not return when its context ended")

// ErrSentTwice matches the error of Check when a POST was sent twice.
var ErrSentTwice = errors.New("sent twice")

// Check is nil when at most one POST was sent for each key, and otherwise says in
// lines what arrived. It is ErrSentTwice, or the submission was none that this
// package can judge: another key than it was given, or no return.
func (r Result) Check() error {
	var b strings.Builder
	tell := func(posts []Post) {
		for _, p := range posts {
			fmt.Fprintf(&b, "\n  %v", p)
		}
	}
	switch {
	case len(r.Posts) > 1:
		fmt.Fprintf(&b, "%d POSTs of one submission; the server %s", len(r.Posts), r.Stage.Does)
		if r.Stage.Permits != "" {
			fmt.Fprintf(&b, " (HTTP itself would let a client send again: %s)", r.Stage.Permits)
		}
		tell(r.Posts)
	case len(r.WarmUp) > 1:
		fmt.Fprintf(&b, "%d POSTs of the warm-up, which was answered", len(r.WarmUp))
		tell(r.WarmUp)
	case len(r.Posts) == 1 && r.Posts[0].Reach != Begun && r.Posts[0].Key != r.Key:
		return fmt.Errorf("%s: the POST did not carry the %s that it was given", r.Stage.Name, Header)
	case errors.Is(r.Returned, ErrNotReturned):
		return fmt.Errorf("%s: %w", r.Stage.Name, ErrNotReturned)
	default:
		return nil
	}
	return fmt.Errorf("%s: %w: %s", r.Stage.Name, ErrSentTwice, b.String())
}

// SubmitFunc sends one POST to target with the Header target.Key, and returns when
// it knows no more or ctx ends. What it returns is kept and not judged.
type SubmitFunc = func(ctx context.Context, target Target) error

// Try runs one stage: a server of its own, in a stage on a reused connection a
// call of submit as warm-up, the call that counts, and Linger. The error is of
// this package: a Stage that Stages did not make, no port, or the end of ctx.
// Tries may run at the same time.
func Try(ctx context.Context, stage Stage, submit SubmitFunc) (Result, error) {
	if stage.fault.do == nil {
		return Result{}, errors.New("wiretest: the stage is not one of Stages")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	s, err := newServer(stage)
	if err != nil {
		return Result{}, fmt.Errorf("wiretest: %w", err)
	}
	defer s.close()
	target := Target{URL: s.origin + "/tickets", RootCAs: identity().roots, Body: []byte(`{"subject":"wiretest"}`)}
	if stage.Reused {
		warm := target
		warm.Key, warm.WarmUp = newKey(), true
		start := time.Now()
		if err := bounded(ctx, s, nil, warm, submit); err != nil {
			s.note("the warm-up returned an error")
		}
		if time.Since(start) >= MaxTime {
			return Result{}, fmt.Errorf("wiretest: %s: the warm-up, which was answered, took over %v", stage.Name, MaxTime)
		}
	}
	if stage.fault.large {
		target.Body = fmt.Appendf(nil, `{"subject":%q}`, strings.Repeat("x", 1<<20))
	}
	target.Key = newKey()
	s.arm()
	start := time.Now()
	returned := bounded(ctx, s, s.strikes, target, submit)
	took := time.Since(start)
	s.note("the submission returned")
	s.settle(ctx.Done(), Linger, maxLinger)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	r := s.result()
	r.Key, r.Returned, r.Took = target.Key, returned, took
	return r, nil
}

// bounded calls submit until Timeout after struck was closed, MaxTime at most, and
// leaves it behind after grace.
func bounded(ctx context.Context, s *server, struck <-chan struct{}, target Target, submit SubmitFunc) error {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	var result error
	done := make(chan struct{})
	go func() {
		result = submit(ctx, target)
		close(done)
	}()
	select {
	case <-done:
		return result
	case <-struck:
		s.settle(done, Timeout, MaxTime)
		cancel()
	case <-ctx.Done():
	}
	select {
	case <-done:
		return result
	case <-time.After(grace):
		return ErrNotReturned
	}
}

func newKey() string { return "wiretest-" + rand.Text() }
