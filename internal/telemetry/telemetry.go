// Package telemetry sets OpenTelemetry up for the command: providers by the standard
// OTEL_ environment variables, and the pages that a monitoring system asks a worker
// for (/metrics, /healthz, /readyz).
//
// Nothing is sent anywhere unless those variables ask for it, and nothing that the
// exporters report ends up in a log with the credentials they were given.
//
// Not its job: what is recorded (package client), and where the pages listen. It
// imports internal/escape, the SDK and the exporters. The library never imports it, so
// that only the command pays for them.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Config says what the command wants beside the environment.
type Config struct {
	ServiceName string // unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES names another
	Version     string

	// LookupEnv reads the environment of this process. The exporters read it by
	// themselves too; this one decides whether there are any.
	LookupEnv func(string) (string, bool)

	// Prometheus collects metrics, of the engine, the Go runtime and the process, for
	// Handler. It needs no variable.
	Prometheus bool

	// Console gets what an exporter named "console" writes. Nil refuses that name:
	// standard output is for what the command has to say.
	Console io.Writer

	// ErrorLog gets what exporters could not do, bounded and without credentials. Nil
	// is silent.
	ErrorLog *slog.Logger
}

// Telemetry has the providers of one process. They are never nil, and do nothing
// where nothing was asked for.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	registry *prometheus.Registry // nil without Config.Prometheus
	log      *slog.Logger
	secrets  []string

	mu    sync.Mutex
	stops []func(context.Context) error
}

// shutdownTime bounds Shutdown: an exporter that hangs must not keep a command.
const shutdownTime = 5 * time.Second

// maxText bounds what an exporter's error puts into a line, in bytes: it may quote a
// server's whole answer.
const maxText = 400

// Wanted reports whether the environment asks for any telemetry: it names an exporter
// or an OTLP endpoint, and does not disable the SDK. It costs a few look-ups.
func Wanted(lookupEnv func(string) (string, bool)) bool {
	traces, metrics := exporters(lookupEnv)
	return traces != "" || metrics != ""
}

// exporters gives the exporter of each signal, "" for none. The OpenTelemetry
// specification would send to localhost when nothing is set; a command that nobody
// asked to does not.
func exporters(lookupEnv func(string) (string, bool)) (traces, metrics string) {
	get := func(name string) string { s, _ := lookupEnv(name); return s }
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return "", ""
	}
	choose := func(exporter, endpoint string) string {
		switch e := get(exporter); {
		case e == "none":
			return ""
		case e == "" && (get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get(endpoint) != ""):
			return "otlp"
		default:
			return e
		}
	}
	return choose("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		choose("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
}

// Start makes the providers. It makes no network call; an exporter that cannot reach
// its collector tells ErrorLog. A variable that asks for what cannot be done is told
// there too, and costs its signal alone, as the OpenTelemetry specification wants: no
// action stops for it. The error is that Prometheus cannot collect, and nothing is left
// running.
//
// It sets the error handler and logger of package otel, which are the process's: both
// would write header values to standard error.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	t := &Telemetry{
		TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(),
		log: cfg.ErrorLog, secrets: secrets(cfg.LookupEnv),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.warn("telemetry failed", err.Error()) }))
	otel.SetLogger(logr.FromSlogHandler(ownLog{t}))

	traces, metrics := exporters(cfg.LookupEnv)
	disabled, _ := cfg.LookupEnv("OTEL_SDK_DISABLED")
	res, err := resource.New(ctx,
		resource.WithService(), // an instance ID of its own for each process
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", cfg.ServiceName), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv())
	if err != nil {
		t.warn("OTEL_RESOURCE_ATTRIBUTES", err.Error())
	}
	t.startTraces(ctx, cfg, traces, res)
	if err := t.startMetrics(ctx, cfg, metrics, strings.EqualFold(disabled, "true"), res); err != nil {
		_ = t.Shutdown(ctx) // nothing was recorded yet
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, cfg Config, exporter string, res *resource.Resource) {
	if exporter == "" {
		return
	}
	var to sdktrace.SpanExporter
	var err error
	switch {
	case exporter != "console":
		to, err = autoexport.NewSpanExporter(ctx)
	case cfg.Console == nil:
		err = errNoConsole
	default:
		to, err = stdouttrace.New(stdouttrace.WithWriter(cfg.Console))
	}
	if err != nil {
		t.without("traces", "OTEL_TRACES_EXPORTER", exporter, err)
		return
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(res))
	t.TracerProvider = p
	t.stops = append(t.stops, p.Shutdown)
}

func (t *Telemetry) startMetrics(ctx context.Context, cfg Config, exporter string, disabled bool, res *resource.Resource) error {
	opts := []sdkmetric.Option{sdkmetric.WithResource(res)}
	if cfg.Prometheus {
		t.registry = prometheus.NewRegistry()
		t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		if !disabled {
			reader, err := promexporter.New(promexporter.WithRegisterer(t.registry), promexporter.WithoutScopeInfo())
			if err != nil {
				return fmt.Errorf("telemetry: --listen: %s", t.safe(err.Error()))
			}
			opts = append(opts, sdkmetric.WithReader(reader))
		}
	}
	if exporter == "prometheus" {
		// It is served where the command listens. A port of its own would be free for
		// one process only, so that of two commands at once the second would fail.
		exporter = ""
		if !cfg.Prometheus {
			t.warn("OTEL_METRICS_EXPORTER", "prometheus is for a worker that listens; there are no metrics")
		}
	}
	if exporter != "" {
		reader, err := metricReader(ctx, cfg, exporter)
		if err != nil {
			t.without("metrics for it", "OTEL_METRICS_EXPORTER", exporter, err)
		} else {
			opts = append(opts, sdkmetric.WithReader(reader))
		}
	}
	if len(opts) > 1 {
		p := sdkmetric.NewMeterProvider(opts...)
		t.MeterProvider = p
		t.stops = append(t.stops, p.Shutdown)
	}
	return nil
}

var errNoConsole = errors.New("this command keeps its terminal for itself")

// metricReader collects for an exporter of the environment.
func metricReader(ctx context.Context, cfg Config, exporter string) (sdkmetric.Reader, error) {
	switch {
	case exporter != "console":
		return autoexport.NewMetricReader(ctx)
	case cfg.Console == nil:
		return nil, errNoConsole
	}
	to, err := stdoutmetric.New(stdoutmetric.WithWriter(cfg.Console))
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewPeriodicReader(to), nil
}

// without tells which variable asked for what cannot be done.
func (t *Telemetry) without(signal, variable, value string, err error) {
	const limit = 40
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "…"
	}
	t.warn("there are no "+signal, variable+"="+value+": "+err.Error())
}

// Shutdown sends what is left, for 5 s at most and not longer than ctx. Calling it
// again does nothing. What could not be sent is an error without credentials.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	stops := t.stops
	t.stops = nil
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	results := make(chan error, len(stops))
	for _, stop := range stops {
		go func() { results <- stop(ctx) }()
	}
	var text []string
	for range stops {
		select {
		case err := <-results:
			if err != nil {
				text = append(text, t.safe(err.Error()))
			}
		case <-ctx.Done():
			return errors.New("telemetry: what was left could not be sent in time")
		}
	}
	if len(text) > 0 {
		return fmt.Errorf("telemetry: what was left could not be sent: %s", strings.Join(text, "; "))
	}
	return nil
}
