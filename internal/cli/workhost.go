package cli

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/telemetry"
	"github.com/agentic-go/agentic/internal/workcmd"
)

// work makes the commands of package workcmd, whose host this command is.
func (a *app) work() *workcmd.Commands { return workcmd.New(host{a}, output{a}) }

func (h host) ReachAll(cmd *cobra.Command) workcmd.Reach {
	r := &workReach{app: h.app}
	r.ledgerFlags.add(cmd)
	r.reachFlags.add(cmd)
	cmd.Flags().Lookup("header-from-env").Usage = "send header Name with the value of environment variable VAR to the one approved origin, or to ORIGIN (`[ORIGIN ]Name=VAR`, repeat for more)"
	return r
}

func (h host) Telemetry(pages bool) (*telemetry.Telemetry, error) {
	err := h.startTelemetry(pages)
	return h.telemetry, err
}

func (h host) Log() *slog.Logger { return h.operators() }

func (h host) Exit(o agentic.Outcome) { h.exit = outcomeExit(o) }

// workReach is where the flags of a worker point.
type workReach struct {
	*app
	ledgerFlags
	reachFlags
}

func (r *workReach) Check() error { return r.check() }

func (r *workReach) Scope() client.Scope { return r.scope() }

func (r *workReach) Approved() bool { return len(r.approve) > 0 }

func (r *workReach) InFile() bool {
	p, err := place.Find(r.path, r.lookupEnv)
	return err == nil && !p.Postgres()
}

func (r *workReach) Open(ctx context.Context, concurrency int) (*workcmd.Opened, error) {
	headers, err := r.originHeaders()
	if err != nil {
		return nil, err
	}
	t, err := r.transportTo(headers)
	if err != nil {
		return nil, err
	}
	l, err := r.openAt(ctx, r.path, place.Options{MustExist: true, Conns: place.WorkerConns(concurrency)})
	if err != nil {
		return nil, err
	}
	c, err := client.New(r.instrumented(client.Config{Ledger: l, Transport: t, Scope: r.scope()}))
	if err != nil {
		r.closeLedger(l)
		return nil, err
	}
	return &workcmd.Opened{Ledger: l, Place: l.at, Client: c, Close: func() { r.closeLedger(l) }}, nil
}

// originHeaders reads the headers of a command that talks to several origins: each
// credential goes to exactly one that is approved.
func (r *workReach) originHeaders() (map[string]http.Header, error) {
	specs := make(map[string][]string)
	for _, spec := range r.headers {
		origin, rest, named := strings.Cut(spec, " ")
		switch {
		case !named && len(r.approve) == 1:
			origin, rest = r.approve[0], spec
		case !named:
			return nil, advice.BadUsage("--header-from-env "+spec+": it does not say to which of the approved origins the header goes", "Write it as --header-from-env 'ORIGIN "+spec+"'.")
		case !slices.Contains(r.approve, origin):
			return nil, advice.BadUsage("--header-from-env "+spec+": its origin is not approved", "Name one of those of --approve.")
		}
		specs[origin] = append(specs[origin], rest)
	}
	headers := make(map[string]http.Header)
	for origin, specs := range specs {
		h, err := r.app.header(headerFlag, specs)
		if err != nil {
			return nil, err
		}
		headers[origin] = h
	}
	return headers, nil
}

func (o output) Live() bool { return o.live() }

func (o output) Failure(err error) any {
	o.mute = true // it is said, in the one value
	return o.explain(err)
}
