package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
)

// environ sets the OTEL_ variables of this process to these and no others.
func environ(t *testing.T, pairs ...string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for _, kv := range pairs {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
}

// lines is a log and a console that a test can read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, change ...func(*Config)) (*Telemetry, *lines) {
	t.Helper()
	log := new(lines)
	cfg := Config{ServiceName: "agentic", Version: "1.2.3", LookupEnv: os.LookupEnv, ErrorLog: slog.New(slog.NewTextHandler(log, nil))}
	for _, c := range change {
		c(&cfg)
	}
	tel, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel, log
}

// record makes one span and one count.
func record(t *testing.T, tel *Telemetry) {
	t.Helper()
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "span-of-the-test")
	span.End()
	c, err := tel.MeterProvider.Meter("test").Int64Counter("count.of.the.test")
	if err != nil {
		t.Fatal(err)
	}
	c.Add(t.Context(), 7)
}

// collector is an OTLP/HTTP receiver: body of everything posted, by path.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string]string
	auth   string
	status int
}

func newCollector(t *testing.T) *collector {
	c := &collector{bodies: map[string]string{}, status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] += string(b)
		c.auth = r.Header.Get("Authorization")
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, echo(c.status, r))
	}))
	t.Cleanup(c.Close)
	return c
}

// echo is the answer of a collector that tells whoever asks what it was sent.
func echo(status int, r *http.Request) string {
	if status == http.StatusOK {
		return ""
	}
	return "no access with " + r.Header.Get("Authorization") + " at " + r.URL.String() + strings.Repeat(" because\x1b[31m", 500)
}

func (c *collector) body(path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies[path]
}

func TestWanted(t *testing.T) {
	for _, tt := range []struct {
		env             string
		traces, metrics string
	}{
		{"", "", ""},
		{"OTEL_SERVICE_NAME=a OTEL_EXPORTER_OTLP_HEADERS=a=b OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", "otlp", "otlp"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:1", "otlp", ""},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://localhost:1", "", "otlp"},
		{"OTEL_TRACES_EXPORTER=otlp", "otlp", ""},
		{"OTEL_METRICS_EXPORTER=prometheus", "", "prometheus"},
		{"OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", "", ""},
		{"OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1", "otlp", ""},
		{"OTEL_SDK_DISABLED=TRUE OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1 OTEL_TRACES_EXPORTER=otlp", "", ""},
		{"OTEL_SDK_DISABLED=false OTEL_TRACES_EXPORTER=console", "console", ""},
	} {
		lookup := func(name string) (string, bool) {
			for kv := range strings.FieldsSeq(tt.env) {
				if v, ok := strings.CutPrefix(kv, name+"="); ok {
					return v, true
				}
			}
			return "", false
		}
		traces, metrics := exporters(lookup)
		if traces != tt.traces || metrics != tt.metrics || Wanted(lookup) != (tt.traces+tt.metrics != "") {
			t.Errorf("%q: traces %q, metrics %q, wanted %v", tt.env, traces, metrics, Wanted(lookup))
		}
	}
}

func TestNothingIsSentUnasked(t *testing.T) {
	c := newCollector(t)
	for _, env := range [][]string{nil, {"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}} {
		environ(t, env...)
		tel, log := start(t)
		record(t, tel)
		if _, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "span"); span.IsRecording() {
			t.Error("a span is recorded")
		}
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if len(c.bodies) != 0 || log.String() != "" {
			t.Errorf("%q: collector got %q, log %q", env, c.bodies, log)
		}
	}
}

func TestOTLP(t *testing.T) {
	c := newCollector(t)
	environ(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20sesame-1234",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=staging")
	tel, log := start(t)
	record(t, tel)
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/v1/traces": "span-of-the-test", "/v1/metrics": "count.of.the.test"} {
		for _, w := range []string{want, "service.name", "agentic", "1.2.3", "staging", "service.instance.id"} {
			if !strings.Contains(c.body(path), w) {
				t.Errorf("%s: no %q in what was sent", path, w)
			}
		}
	}
	if c.auth != "Bearer sesame-1234" || log.String() != "" {
		t.Errorf("authorization %q, log %q", c.auth, log)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Errorf("second shutdown: %v", err)
	}
}

func TestServiceNameAndSamplerOfTheEnvironment(t *testing.T) {
	c := newCollector(t)
	environ(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_SERVICE_NAME=tickets-worker", "OTEL_TRACES_SAMPLER=always_off")
	tel, _ := start(t)
	record(t, tel)
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.body("/v1/traces") != "" {
		t.Error("a span was sent")
	}
	if m := c.body("/v1/metrics"); !strings.Contains(m, "tickets-worker") {
		t.Errorf("metrics without the service's name: %q", m)
	}
}

func TestConsole(t *testing.T) {
	environ(t, "OTEL_TRACES_EXPORTER=console", "OTEL_METRICS_EXPORTER=console")
	console := new(lines)
	tel, _ := start(t, func(c *Config) { c.Console = console })
	record(t, tel)
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := console.String(); !strings.Contains(s, "span-of-the-test") || !strings.Contains(s, "count.of.the.test") {
		t.Errorf("console: %q", s)
	}
}

// A wrong variable costs its own signal and a line in the log, and stops nothing.
func TestWrongVariables(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"OTEL_TRACES_EXPORTER=console", "keeps its terminal"},
		{"OTEL_METRICS_EXPORTER=console", "keeps its terminal"},
		{"OTEL_TRACES_EXPORTER=jaeger\x1b[2J", `OTEL_TRACES_EXPORTER=jaeger\\x1b[2J: unknown`},
		{"OTEL_METRICS_EXPORTER=statsd", "OTEL_METRICS_EXPORTER=statsd: unknown"},
	} {
		t.Run(tt.env[:20], func(t *testing.T) {
			environ(t, tt.env)
			tel, log := start(t, func(c *Config) { c.Prometheus = true })
			record(t, tel)
			if s := log.String(); !strings.Contains(s, tt.want) || strings.Count(s, "\n") != 1 {
				t.Errorf("log %q; want one line with %q", s, tt.want)
			}
			if text := body(t, get(t, tel.Handler(nil), "GET", "/metrics")); !strings.Contains(text, "count_of_the_test_total 7") {
				t.Errorf("the page suffers: %.300s", text)
			}
		})
	}
}

// What exporters say about themselves never has what they were given to keep.
func TestNoCredentialInTheLog(t *testing.T) {
	c := newCollector(t)
	c.status = http.StatusForbidden
	host := strings.TrimPrefix(c.URL, "http://")
	environ(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://ann:pass-word-1@"+host+"/hook-token-2",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20sesame-3333,X-Key=key-4444",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Bearer%20sesame-3333,loose-5555,bad key=val-6666,X=%zz-7777")
	tel, log := start(t)
	record(t, tel)
	err := tel.Shutdown(t.Context())
	if err == nil {
		t.Error("shutdown saw no failure")
	}
	otel.Handle(errors.New("sent sesame-3333 and Bearer%20sesame-3333"))
	all := log.String()
	if err != nil {
		all += err.Error()
	}
	for _, s := range []string{"pass-word-1", "hook-token-2", "sesame-3333", "key-4444", "loose-5555", "val-6666", "zz-7777", "\x1b"} {
		if strings.Contains(all, s) {
			t.Errorf("%q is told: %s", s, all)
		}
	}
	if !strings.Contains(all, "403") || !strings.Contains(all, redacted) || !strings.Contains(all, "parse headers") {
		t.Errorf("the failure is not told: %s", all)
	}
	for line := range strings.Lines(all) {
		if len(line) > 3*maxText {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestShutdownIsBounded(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(release)
	environ(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+hanging.URL)
	tel, _ := start(t)
	record(t, tel)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if err := tel.Shutdown(ctx); err == nil {
		t.Error("no error")
	}
	if d := time.Since(begun); d > 2*time.Second {
		t.Errorf("shutdown took %v", d)
	}
}

// An exporter that does not even look at its context keeps nobody longer than 5 s.
func TestShutdownIsBoundedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tel := &Telemetry{stops: []func(context.Context) error{func(context.Context) error { <-release; return nil }}}
		begun := time.Now()
		if err := tel.Shutdown(context.Background()); err == nil {
			t.Error("no error")
		}
		if d := time.Since(begun); d != shutdownTime {
			t.Errorf("shutdown took %v", d)
		}
		close(release)
	})
}
