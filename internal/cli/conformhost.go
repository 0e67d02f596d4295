package cli

import (
	"context"
	"net/http"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/conformcmd"
	"github.com/agentic-go/agentic/internal/documents"
)

// conformance makes the commands of package conformcmd, whose host this command is.
func (a *app) conformance() *conformcmd.Commands { return conformcmd.New(host{a}, output{a}) }

func (h host) LeafBetween(cmd *cobra.Command, least, most int, names string) {
	cmd.Args = arguments(least, most, names)
	h.jsonFlag(cmd)
}

func (h host) ReachOne(cmd *cobra.Command) conformcmd.Reach {
	r := &oneReach{app: h.app}
	r.reachFlags.add(cmd)
	return r
}

func (h host) HeaderFromEnv(flag string, specs []string) (http.Header, error) {
	return h.header(flag, specs)
}

func (h host) ReadFile(ctx context.Context, name string, limit int) ([]byte, error) {
	return documents.Read(ctx, h.stdin, name, limit)
}

func (h host) CheckSchema(plan *agentic.Plan, in agentic.Input) error {
	_, err := h.checkSchema(plan, in)
	return err
}

func (h host) Tool() conformance.Tool {
	v := version()
	return conformance.Tool{Name: "agentic", Version: v.Version, Go: v.Go, System: runtime.GOOS + "/" + runtime.GOARCH}
}

func (h host) Fail() { h.exit = exitError }

// oneReach is where --approve and the other flags of reachFlags let requests to one
// origin go.
type oneReach struct {
	*app
	reachFlags
	credentials http.Header
}

func (r *oneReach) Check() (err error) {
	if r.credentials, err = r.app.header(headerFlag, r.headers); err != nil {
		return err
	}
	_, err = r.transport("", nil)
	return err
}

func (r *oneReach) Header() http.Header { return r.credentials }

func (r *oneReach) AllowLoopback() bool { return r.allowLoopback }

func (r *oneReach) Plan(ctx context.Context, profile, openapi, action string) (*agentic.Plan, error) {
	t, err := r.transport("", nil)
	if err != nil {
		return nil, err
	}
	defer t.CloseIdleConnections()
	return r.findPlan(ctx, t, &r.reachFlags, profile, openapi, action)
}
