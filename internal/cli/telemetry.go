package cli

import (
	"context"
	"log/slog"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/telemetry"
)

// startTelemetry sets OpenTelemetry up once, if the environment asks for it or pages
// are to be served. Nothing of it is sent where nobody asked for it, and no command
// that neither opens a ledger for writing nor executes calls it.
func (a *app) startTelemetry(pages bool) error {
	if a.telemetry != nil || !pages && !telemetry.Wanted(a.lookupEnv) {
		return nil
	}
	t, err := telemetry.Start(context.Background(), telemetry.Config{
		ServiceName: "agentic", Version: version().Version, LookupEnv: a.lookupEnv, Prometheus: pages, ErrorLog: a.operators(),
	})
	if err != nil {
		return advice.New("telemetry", err, "Leave --listen out to do without.")
	}
	a.telemetry = t
	return nil
}

// endTelemetry sends what is left. What the command came to stands either way.
func (a *app) endTelemetry(ctx context.Context) {
	if a.telemetry == nil {
		return
	}
	if err := a.telemetry.Shutdown(context.WithoutCancel(ctx)); err != nil {
		a.say("%s", escape.Terminal(render.OneLine(err.Error())))
	}
}

// operators is a log for those who run a worker.
func (a *app) operators() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// instrumented gives a client the providers, if there are any.
func (a *app) instrumented(cfg client.Config) client.Config {
	if a.telemetry != nil {
		cfg.TracerProvider, cfg.MeterProvider = a.telemetry.TracerProvider, a.telemetry.MeterProvider
	}
	return cfg
}

// ledgerOptions are those of a ledger that an execution may write to.
func (a *app) ledgerOptions(o place.Options) (place.Options, error) {
	o.Logger = a.operators()
	if err := a.startTelemetry(false); err != nil {
		return o, err
	}
	if a.telemetry != nil {
		lost, err := client.LeasesLost(a.telemetry.MeterProvider)
		if err != nil {
			return o, err
		}
		o.Lost = lost
	}
	return o, nil
}
