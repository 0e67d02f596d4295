package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the pages.
const (
	readyTime   = 2 * time.Second  // for the answer of /readyz
	readyFresh  = time.Second      // how long the last answer stands, so that asking costs nothing
	scrapeTime  = 10 * time.Second // for /metrics
	drainTime   = 2 * time.Second  // for requests that are under way when Serve ends
	maxScrapes  = 4                // at once
	maxHeaders  = 16 << 10
	metricsPath = "/metrics"
)

// NotReady is an error of a ready function whose text may be shown to whoever asks
// /readyz. Any other error is not shown.
type NotReady string

func (e NotReady) Error() string { return string(e) }

// Handler serves GET and HEAD of three pages, and 404 elsewhere:
//
//	/metrics  in the Prometheus text format; 404 without Config.Prometheus
//	/healthz  200: the process is alive
//	/readyz   200 when ready returns nil within 2 s, otherwise 503 with
//	          {"status":"not ready","reason":"..."}. Nil is always ready.
//
// It asks nobody who they are; the caller decides where it listens.
func (t *Telemetry) Handler(ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	if t.registry != nil {
		mux.Handle("GET "+metricsPath, promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
			ErrorLog: scrapeLog{t}, ErrorHandling: promhttp.ContinueOnError,
			MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime,
		}))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, page{Status: "ok"})
	})
	state := &readiness{ask: ready}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if reason := state.reason(r.Context()); reason != "" {
			answer(w, http.StatusServiceUnavailable, page{Status: "not ready", Reason: reason})
			return
		}
		answer(w, http.StatusOK, page{Status: "ready"})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// Serve runs Handler on a listener, with time limits, until ctx ends. It closes the
// listener. Its error is nil when ctx ended it.
func (t *Telemetry) Serve(ctx context.Context, l net.Listener, ready func(context.Context) error) error {
	s := &http.Server{
		Handler: t.Handler(ready), MaxHeaderBytes: maxHeaders,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: scrapeTime + 5*time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what it says is about strangers
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		_ = s.Close() // who is still there had its time
	}
	<-ended
	return nil
}

type page struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func answer(w http.ResponseWriter, code int, p page) {
	b, _ := json.Marshal(p) // two strings
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, string(b)+"\n") // the client may have gone
}

// readiness asks once for all who ask at the same time, and never has more than one
// call running, also if that one hangs.
type readiness struct {
	ask func(context.Context) error

	mu      sync.Mutex
	running chan struct{} // closed when the call that runs has ended; nil when none does
	at      time.Time
	err     error
}

// reason is why it is not ready, or "".
func (r *readiness) reason(ctx context.Context) string {
	if r.ask == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	r.mu.Lock()
	if r.running == nil && (r.at.IsZero() || time.Since(r.at) >= readyFresh) {
		done := make(chan struct{})
		r.running = done
		go r.call(context.WithoutCancel(ctx), done)
	}
	running := r.running
	r.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return "no answer in time"
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return ""
	}
	if reason, ok := errors.AsType[NotReady](r.err); ok {
		return string(reason)
	}
	return "not available"
}

func (r *readiness) call(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := r.ask(ctx)
	r.mu.Lock()
	r.err, r.at, r.running = err, time.Now(), nil
	r.mu.Unlock()
	close(done)
}

// scrapeLog has what went wrong with collecting.
type scrapeLog struct{ t *Telemetry }

func (l scrapeLog) Println(v ...any) {
	for _, x := range v {
		if err, ok := x.(error); ok {
			l.t.warn("metrics were not collected", err.Error())
		}
	}
}
