package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/mcpcmd"
	"github.com/agentic-go/agentic/internal/place"
)

// mcp makes the command of package mcpcmd, whose host this command is.
func (a *app) mcp() *mcpcmd.Commands { return mcpcmd.New(host{a}) }

func (h host) Bare(cmd *cobra.Command, least int, names string) {
	cmd.Args = arguments(least, 1<<10, names)
}

func (h host) Agent(cmd *cobra.Command) mcpcmd.Reach {
	w := h.ReachAll(cmd).(*workReach)
	return &agentReach{w, cmd.Flags().Changed}
}

func (h host) Pipe() (io.Reader, io.Writer) { return h.stdin, h.stdout }

func (h host) Say(format string, args ...any) { h.say(format, args...) }

func (h host) Version() string { return version().Version }

// agentReach is a workReach that a configuration file adds to.
type agentReach struct {
	*workReach
	changed func(flag string) bool
}

func (r *agentReach) Merge(p mcpcmd.Place) {
	for flag, v := range map[string]struct {
		field *string
		value string
	}{"ledger": {&r.path, p.Ledger}, "principal": {&r.principal, p.Principal}, "environment": {&r.environment, p.Environment}} {
		if v.value != "" && !r.changed(flag) {
			*v.field = v.value
		}
	}
	for _, origin := range p.Approve {
		if !slices.Contains(r.approve, origin) {
			r.approve = append(r.approve, origin)
		}
	}
	r.headers = append(r.headers, p.Headers...)
	r.allowLoopback = r.allowLoopback || p.AllowLoopback
}

func (r *agentReach) Check() error { return r.checkNew() }

func (r *agentReach) AllowsLoopback() bool { return r.allowLoopback }

func (r *agentReach) Open(ctx context.Context) (*mcpcmd.Opened, error) {
	headers, err := r.originHeaders()
	if err != nil {
		return nil, err
	}
	t, err := r.transportTo(headers)
	if err != nil {
		return nil, err
	}
	l, err := r.openAt(ctx, r.path, place.Options{})
	if err != nil {
		return nil, err
	}
	turns, err := l.at.Turns(ctx)
	if err != nil {
		r.closeLedger(l)
		return nil, err
	}
	return &mcpcmd.Opened{
		Engine: r.instrumented(client.Config{Ledger: l, Transport: t, Logger: r.operators()}),
		Source: documents.Source{Transport: t, Names: r.names, Options: agentic.Options{AllowLoopback: r.allowLoopback}},
		Turn:   turns.Take,
		Close:  func() { _ = turns.Close(); r.closeLedger(l) },
	}, nil
}
