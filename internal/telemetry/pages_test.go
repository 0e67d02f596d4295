package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func get(t *testing.T, h http.Handler, method, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMetricsPage(t *testing.T) {
	environ(t)
	tel, _ := start(t, func(c *Config) { c.Prometheus = true })
	record(t, tel)
	res := get(t, tel.Handler(nil), "GET", "/metrics")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"count_of_the_test_total", "go_goroutines", "target_info"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	if f := families["count_of_the_test_total"]; f != nil && f.GetMetric()[0].GetCounter().GetValue() != 7 {
		t.Errorf("count = %v", f)
	}
}

func TestMetricsPageWhenDisabled(t *testing.T) {
	environ(t, "OTEL_SDK_DISABLED=true", "OTEL_METRICS_EXPORTER=prometheus")
	tel, _ := start(t, func(c *Config) { c.Prometheus = true })
	record(t, tel)
	text := body(t, get(t, tel.Handler(nil), "GET", "/metrics"))
	if strings.Contains(text, "count_of_the_test") || !strings.Contains(text, "go_goroutines") {
		t.Errorf("page: %.300s", text)
	}
}

// A variable that asks for Prometheus opens no second port beside the command's own.
func TestPrometheusOfTheEnvironmentIsThePage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // taken, so that another listener would fail
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	environ(t, "OTEL_METRICS_EXPORTER=prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST=127.0.0.1", "OTEL_EXPORTER_PROMETHEUS_PORT="+port)
	tel, _ := start(t, func(c *Config) { c.Prometheus = true })
	record(t, tel)
	if text := body(t, get(t, tel.Handler(nil), "GET", "/metrics")); !strings.Contains(text, "count_of_the_test_total 7") {
		t.Errorf("page: %.300s", text)
	}
	other, log := start(t) // a command that does not listen
	record(t, other)
	if !strings.Contains(log.String(), "there are no metrics") {
		t.Errorf("log %q", log)
	}
}

func TestPages(t *testing.T) {
	environ(t)
	tel, _ := start(t)
	h := tel.Handler(func(context.Context) error { return nil })
	for _, tt := range []struct {
		method, path string
		want         int
		body         string
	}{
		{"GET", "/healthz", 200, `{"status":"ok"}`},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/readyz", 200, `{"status":"ready"}`},
		{"POST", "/readyz", 405, ""},
		{"DELETE", "/healthz", 405, ""},
		{"GET", "/metrics", 404, ""},
		{"GET", "/", 404, ""},
		{"GET", "/debug/pprof/", 404, ""},
		{"GET", "/healthz/", 404, ""},
	} {
		res := get(t, h, tt.method, tt.path)
		if text := body(t, res); res.StatusCode != tt.want || tt.body != "" && strings.TrimSpace(text) != tt.body {
			t.Errorf("%s %s: %d %q", tt.method, tt.path, res.StatusCode, text)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s %s: headers %v", tt.method, tt.path, res.Header)
		}
	}
}

func TestNotReady(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"told", NotReady("the worker drains"), `{"status":"not ready","reason":"the worker drains"}`},
		{"kept", errors.New("postgres://ann:secret@db/x: refused"), `{"status":"not ready","reason":"not available"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tel := new(Telemetry)
			res := get(t, tel.Handler(func(context.Context) error { return tt.err }), "GET", "/readyz")
			if text := strings.TrimSpace(body(t, res)); res.StatusCode != 503 || text != tt.want {
				t.Errorf("%d %s", res.StatusCode, text)
			}
		})
	}
}

// A function that hangs answers 503 in time, and is never called twice at once.
func TestReadyHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int32
		state := &readiness{ask: func(context.Context) error {
			calls.Add(1)
			<-release
			return nil
		}}
		for range 3 {
			begun := time.Now()
			if reason := state.reason(context.Background()); reason != "no answer in time" || time.Since(begun) != readyTime {
				t.Errorf("%q after %v", reason, time.Since(begun))
			}
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
		close(release)
		synctest.Wait()
		if reason := state.reason(context.Background()); reason != "" || calls.Load() != 1 {
			t.Errorf("%q after %d calls: the answer that came late does not count", reason, calls.Load())
		}
		time.Sleep(readyFresh)
		if reason := state.reason(context.Background()); reason != "" || calls.Load() != 2 {
			t.Errorf("%q after %d calls", reason, calls.Load())
		}
	})
}

func TestServe(t *testing.T) {
	environ(t)
	tel, _ := start(t, func(c *Config) { c.Prometheus = true })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- tel.Serve(ctx, l, nil) }()
	client := &http.Client{Timeout: 5 * time.Second}
	res, err := client.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close() != nil || res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not end")
	}
	if _, err := client.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
		t.Error("the listener is open")
	}
}
