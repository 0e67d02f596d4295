// Package mcpcmd has the command mcp, which serves the actions of approved profiles to
// agents over the Model Context Protocol.
//
// Its job is the command's flags and its configuration file, whom it allows what, and
// what runs the server. Not its job: the protocol, which package mcpserver has; what
// a call means, which package agentcall has; the ledger, the transport, credentials
// and exit codes, which its host (package cli) brings along. It imports package
// agentic, client, and of internal advice, agentcall, documents, escape, mcpserver,
// strictjson and ticket, whose form of a token file it reads.
package mcpcmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/mcpserver"
	"github.com/agentic-go/agentic/internal/ticket"
)

// Host is what the command brings along.
type Host interface {
	// Bare gives a command at least so many arguments, and no --json: standard output
	// belongs to the protocol.
	Bare(cmd *cobra.Command, least int, names string)

	// Agent adds the flags of a ledger, a scope in it, and of where requests may go.
	Agent(*cobra.Command) Reach

	Pipe() (io.Reader, io.Writer) // standard input and output
	Say(format string, args ...any)
	Log() *slog.Logger
	Version() string
}

// Reach is a ledger, a scope in it and the approved origins, as flags and a
// configuration file name them.
type Reach interface {
	Merge(Place)  // adds what the file says; a flag that was given wins
	Check() error // refuses what cannot be acted on, before anything is opened
	Scope() client.Scope
	AllowsLoopback() bool

	// Open opens the ledger, makes it when it is not there, and finds documents and
	// services by the approved origins alone.
	Open(ctx context.Context) (*Opened, error)
}

// Place is what a configuration file says of a Reach.
type Place struct {
	Ledger, Principal, Environment string
	Approve                        []string
	AllowLoopback                  bool
	Headers                        []string // ORIGIN Name=VAR
}

// Opened is what the server works with.
type Opened struct {
	Engine client.Config // without a scope
	Source documents.Source
	Turn   func(ctx context.Context, name ...string) (release func(), err error) // agentcall.Config.Turn
	Close  func()
}

// Commands makes the command of a host.
type Commands struct{ host Host }

// New makes Commands.
func New(h Host) *Commands { return &Commands{h} }

const help = `Serve the actions of profiles to an agent, as tools of the Model Context Protocol.

PROFILE is a file or a URL, as for run; its origin must be approved with --approve.
The agent cannot add a profile, an origin or a credential. Without --listen the
protocol is spoken on standard input and output, for hosts that start the server
themselves, and all requests belong to --principal.

An action is run at most once for each thing an agent means, although its answer
is lost or its host gives up waiting: the same input again finds the first request,
and another input is held back while a request of that action is not settled, or
succeeded within --recent without the agent being known to have read it. A call
waits --answer-within, and its execution goes on without it. What an agent leaves
open is in the same ledger as everything else: see 'agentic requests'.

With --confirm a person is asked through the agent's host before anything is sent;
a host that cannot ask is refused. --allow limits the actions for every principal, and
a principal's own list in the configuration file limits them further; without both
all actions of the profiles are allowed.

With --listen the protocol is spoken over HTTP. Off loopback that needs --tls-cert,
--tls-key and --tokens, a file as 'agentic serve --token-file' takes it: the token's
principal is the scope of its requests. Pages of a browser need --allow-origin.

A configuration file (--config, JSON) can say all of it; see docs/mcp.md. Flags win.`

// Command is the command mcp.
func (c *Commands) Command() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "mcp [PROFILE...]",
		Short: "Serve actions to an agent, as tools of the Model Context Protocol",
		Long:  help,
		Example: "  agentic mcp https://support.example/agentic.json --approve https://support.example --header-from-env 'Authorization=SUPPORT_AUTH'\n" +
			"  agentic mcp --config agents.json --listen 127.0.0.1:8722 --tokens tokens",
	}
	f.add(cmd)
	f.reach = c.host.Agent(cmd)
	c.host.Bare(cmd, 0, "[PROFILE...]")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd, f, args) }
	return cmd
}

// flags are those of the command.
type flags struct {
	reach  Reach
	config string
	Settings
}

func (f *flags) add(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.config, "config", "", "configuration `FILE` (JSON)")
	s.StringVar(&f.openapi, "openapi", "", "OpenAPI document `FILE` of the one PROFILE (default: read from the profile's approved origin)")
	s.StringArrayVar(&f.Allow, "allow", nil, "allow this action only (`[ORIGIN ]ACTION`, repeat for more)")
	s.BoolVar(&f.Confirm, "confirm", false, "have a person asked before anything is sent")
	s.BoolVar(&f.SameInputGuard, "same-input-guard", true, "answer the same action and input again with the first request")
	s.BoolVar(&f.OpenGuard, "open-guard", true, "hold another input back while a request of the action is not settled")
	s.DurationVar(&f.RepeatWithin, "repeat-within", agentcall.DefaultRepeat, "a success answers the same input for this `DURATION`; 0 is open requests only")
	s.DurationVar(&f.Recent, "recent", agentcall.DefaultRecent, "hold another input back for this `DURATION` after a success that the agent perhaps has not read; 0 is open requests only")
	s.DurationVar(&f.AnswerWithin, "answer-within", agentcall.DefaultAnswerWithin, "answer a call after this `DURATION` at most; its execution goes on")
	s.StringVar(&f.Listen, "listen", "", "speak HTTP at this `ADDRESS`, such as 127.0.0.1:8722 (default, and with '': standard input and output)")
	s.StringVar(&f.TLSCert, "tls-cert", "", "PEM `FILE` of the certificate, and those between it and its root")
	s.StringVar(&f.TLSKey, "tls-key", "", "PEM `FILE` of its private key")
	s.StringVar(&f.Tokens, "tokens", "", "`FILE` of principals and the hashes of their bearer tokens")
	s.StringArrayVar(&f.AllowOrigins, "allow-origin", nil, "allow pages of this `ORIGIN` in browsers (repeat for more)")
	for flag, words := range map[string][]string{"allow": nil, "repeat-within": {"1h", "24h"}, "recent": {"0", "2m"}, "answer-within": {"10s", "20s", "50s"}, "listen": {"127.0.0.1:8722"}, "allow-origin": nil} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// drain is how long what runs may go on after the end of a server.
const drain = 10 * time.Second

func (c *Commands) run(cmd *cobra.Command, f *flags, args []string) error {
	ctx := cmd.Context()
	s := f.Settings
	for _, name := range args {
		s.Profiles = append(s.Profiles, Profile{Name: name})
	}
	if f.config != "" {
		data, err := documents.Read(ctx, strings.NewReader(""), f.config, maxConfig+1)
		if err != nil {
			return err
		}
		file, err := parse(data, filepath.Dir(f.config))
		if err != nil {
			return advice.BadUsage("--config "+f.config+": "+err.Error(), "See docs/mcp.md.")
		}
		s.merge(file, cmd.Flags().Changed)
		f.reach.Merge(file.Place)
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := f.reach.Check(); err != nil {
		return err
	}
	web, err := s.web(ctx, f.reach.Scope().Principal)
	if err != nil {
		return err
	}
	if err := s.checkListen(web); err != nil {
		return err
	}
	o, err := f.reach.Open(ctx)
	if err != nil {
		return err
	}
	defer o.Close()
	plans, err := plans(ctx, o, s.Profiles, f.reach.AllowsLoopback())
	if err != nil {
		return err
	}
	if err := s.checkAllowed(plans, f.reach.Scope().Principal); err != nil {
		return err
	}
	server := mcpserver.New(mcpserver.Config{
		Version: c.host.Version(), Logger: c.host.Log(), AnswerWithin: s.AnswerWithin, Drain: drain,
		Calls: func(principal string) (*agentcall.Calls, error) {
			allow, ok := s.allowed(principal)
			if !ok {
				return nil, fmt.Errorf("%w: it is not in principals of the configuration file", mcpserver.ErrNotServed)
			}
			engine := o.Engine
			engine.Scope = client.Scope{Principal: principal, Environment: f.reach.Scope().Environment}
			return agentcall.New(agentcall.Config{
				Engine: engine, Plans: plans, Turn: o.Turn, Allow: allow,
				Repeat: orOff(s.RepeatWithin), Recent: orOff(s.Recent), AnswerWithin: s.AnswerWithin,
				NoSameGuard: !s.SameInputGuard, NoOpenGuard: !s.OpenGuard, Confirm: s.Confirm, AllowLoopback: f.reach.AllowsLoopback(),
			})
		},
	})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		server.Shutdown(ctx)
	}()
	if s.Listen != "" {
		return c.serve(ctx, server, &s, web)
	}
	in, out := c.host.Pipe()
	return server.Stdio(ctx, f.reach.Scope().Principal, io.NopCloser(in), closing{out})
}

// closing is a writer that is not closed: it is the process's own.
type closing struct{ io.Writer }

// Close implements io.Closer.
func (closing) Close() error { return nil }

// orOff makes an agentcall duration of one whose zero means off.
func orOff(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return d
}

// web reads the files that HTTP needs.
func (s *Settings) web(ctx context.Context, anonymous string) (cfg mcpserver.HTTPConfig, err error) {
	cfg.Anonymous, cfg.Origins = anonymous, s.AllowOrigins
	if s.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			return cfg, advice.New("certificate", fmt.Errorf("the certificate %s with the key %s: %w", s.TLSCert, s.TLSKey, err), "Both are files of PEM, and the key is that of the first certificate.")
		}
		cfg.TLS = &pair
	}
	if s.Tokens != "" {
		data, err := documents.Read(ctx, strings.NewReader(""), s.Tokens, maxConfig)
		if err != nil {
			return cfg, err
		}
		var principal func(*http.Request) (string, error)
		if principal, err = ticket.ReadTokens(bytes.NewReader(data)); err != nil {
			return cfg, advice.New("token-file", fmt.Errorf("%s: %w", s.Tokens, err), "A line is a principal, a blank and the SHA-256 of its token in hexadecimal.")
		}
		cfg.Principal = principal
	}
	return cfg, nil
}

// serve speaks HTTP.
func (c *Commands) serve(ctx context.Context, server *mcpserver.Server, s *Settings, web mcpserver.HTTPConfig) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return advice.New("listen", err, "Give another address with --listen, such as 127.0.0.1:0.")
	}
	scheme := "http"
	if web.TLS != nil {
		scheme = "https"
	}
	c.host.Say("listening at %s://%s%s", scheme, l.Addr(), mcpserver.Path)
	return server.Serve(ctx, l, web)
}

// checkListen refuses an address where HTTP would not be safe, before anything is
// opened or bound.
func (s *Settings) checkListen(web mcpserver.HTTPConfig) error {
	if s.Listen == "" {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", s.Listen)
	if err != nil {
		return advice.New("listen", err, "Give another address with --listen, such as 127.0.0.1:0.")
	}
	if err := web.Check(addr); err != nil {
		return advice.BadUsage("--listen "+s.Listen+": "+err.Error(), "Give --tls-cert, --tls-key and --tokens, or listen on 127.0.0.1.")
	}
	return nil
}

// plans reads the profiles and binds all of their actions.
func plans(ctx context.Context, o *Opened, profiles []Profile, loopback bool) ([]*agentic.Plan, error) {
	var out []*agentic.Plan
	seen := map[string]bool{}
	for _, p := range profiles {
		first, err := o.Source.Plan(ctx, p.Name, p.OpenAPI, "")
		var list []*agentic.Plan
		if several, ok := errors.AsType[*agentic.UnknownActionError](err); ok && several.Action == "" {
			for _, id := range several.Known {
				plan, err := o.Source.Plan(ctx, p.Name, p.OpenAPI, id)
				if err != nil {
					return nil, err
				}
				list = append(list, plan)
			}
		} else if err != nil {
			return nil, err
		} else {
			list = append(list, first)
		}
		for _, plan := range list {
			key := plan.Origin + " " + plan.Action.ID
			if seen[key] {
				return nil, advice.BadUsage("the action "+plan.Action.ID+" of "+plan.Origin+" is in two profiles", "Name each profile once.")
			}
			seen[key] = true
			if err := o.Engine.Transport.Approve(plan.Origin, plan.Action.ID); err != nil {
				return nil, err
			}
			out = append(out, plan)
		}
	}
	return out, nil
}

// allows reports whether a list of [ORIGIN ]ACTION has an action; nil has all.
func allows(list []string, p *agentic.Plan) bool {
	return list == nil || slices.Contains(list, p.Action.ID) || slices.Contains(list, p.Origin+" "+p.Action.ID)
}
