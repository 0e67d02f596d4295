package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/transport"
)

// reachFlags decide where requests may go and what they carry.
type reachFlags struct {
	approve       []string
	allowLoopback bool
	headers       []string // Name=VAR
}

func (f *reachFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.approve, "approve", nil, "approve this `ORIGIN`, such as https://support.example (repeat for more; none is approved by default)")
	cmd.Flags().BoolVar(&f.allowLoopback, "allow-loopback", false, "for local development: allow http origins on loopback, and loopback addresses")
	cmd.Flags().StringArrayVar(&f.headers, "header-from-env", nil, "send header Name with the value of environment variable VAR, to the profile's origin only (`Name=VAR`, repeat for more)")
	complete(cmd, "approve")
	complete(cmd, "header-from-env")
}

// args are the flags again, for a command that a person can copy.
func (f *reachFlags) args() string {
	var b strings.Builder
	for _, o := range f.approve {
		b.WriteString(" --approve " + escape.Shell(o))
	}
	if f.allowLoopback {
		b.WriteString(" --allow-loopback")
	}
	for _, h := range f.headers {
		b.WriteString(" --header-from-env " + escape.Shell(h))
	}
	return b.String()
}

const headerFlag = "--header-from-env"

// header reads the environment once, so that nothing is saved before every value
// is known. No message tells a value.
func (a *app) header(flag string, specs []string) (http.Header, error) {
	h := make(http.Header)
	for _, spec := range specs {
		name, variable, ok := strings.Cut(spec, "=")
		usage := func(problem, remedy string) error {
			return advice.BadUsage(flag+" "+spec+": "+problem, remedy)
		}
		switch {
		case !ok || variable == "" || !httpguts.ValidHeaderFieldName(name):
			return nil, usage("it is not NAME=VARIABLE with the name of a header", "Write it as "+flag+" 'Authorization=TOKEN_VARIABLE'.")
		case transport.ReservedHeader(name):
			return nil, usage("this header is not for credentials", "Name the header that carries the credential, such as Authorization.")
		case h.Get(name) != "":
			return nil, usage("this header is given twice", "Name each header once; the case of its letters does not count.")
		}
		value, ok := a.lookupEnv(variable)
		switch {
		case !ok:
			return nil, usage("the environment variable "+variable+" is not set", "Set it for this command, or leave the header out.")
		case value == "":
			return nil, usage("the environment variable "+variable+" is empty", "Give it a value for this command, or leave the header out.")
		case !httpguts.ValidHeaderFieldValue(value) || value != strings.TrimSpace(value):
			return nil, usage("the value of "+variable+" cannot be sent in a header", "Look for a line break or blanks around it.")
		}
		h.Set(name, value)
	}
	return h, nil
}

// transport makes the transport of approved origins. The header goes to the one
// origin only; with "" it goes nowhere.
func (f *reachFlags) transport(origin string, h http.Header) (*transport.Transport, error) {
	return f.transportTo(map[string]http.Header{origin: h})
}

// transportTo is transport with the header of each origin.
func (f *reachFlags) transportTo(headers map[string]http.Header) (*transport.Transport, error) {
	t, err := transport.New(transport.Config{
		Origins:       f.approve,
		AllowLoopback: f.allowLoopback,
		UserAgent:     "agentic/" + strings.Trim(version().Version, "()"),
		Credentials: func(_ context.Context, c transport.Credential) (http.Header, error) {
			return headers[c.Origin], nil
		},
	})
	if e, ok := errors.AsType[*client.OriginError](err); ok {
		remedy := "Write it as scheme, host and port alone, such as https://support.example."
		if neverApproved(unquoted(e.Origin)) == nil {
			remedy = "For a service on this machine add --allow-loopback."
		}
		return nil, advice.BadUsage("--approve "+unquoted(e.Origin)+": "+e.Reason, remedy)
	}
	return t, err
}

// ledgerFlags name the ledger and the scope in it (D8).
type ledgerFlags struct {
	path        string
	principal   string
	environment string
}

const defaultScope = "default"

func placeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "ledger", "", "the ledger, a file or postgres://USER@HOST/DATABASE (`FILE|URL`, default $AGENTIC_LEDGER, else agentic/ledger.db in $XDG_STATE_HOME or ~/.local/state)")
}

func (f *ledgerFlags) add(cmd *cobra.Command) {
	placeFlag(cmd, &f.path)
	cmd.Flags().StringVar(&f.principal, "principal", defaultScope, "`NAME` of the principal whose requests these are")
	cmd.Flags().StringVar(&f.environment, "environment", defaultScope, "`NAME` of the environment these requests belong to")
	complete(cmd, "principal")
	complete(cmd, "environment")
}

// maxScopeBytes bounds each part of a client.Scope.
const maxScopeBytes = 256

// check refuses a scope that client.New refuses, before anything is opened.
func (f *ledgerFlags) check() error {
	for _, part := range []struct{ flag, value string }{{"--principal", f.principal}, {"--environment", f.environment}} {
		switch {
		case strings.TrimSpace(part.value) == "":
			return advice.BadUsage(part.flag+" is blank", "Give a name, or leave it out for "+defaultScope+".")
		case !utf8.ValidString(part.value):
			return advice.BadUsage(part.flag+" is not UTF-8", "Give the name in UTF-8.")
		case len(part.value) > maxScopeBytes:
			return advice.BadUsage(fmt.Sprintf("%s is longer than %d bytes", part.flag, maxScopeBytes), "Give a shorter name.")
		}
	}
	return nil
}

// checkNew is check for a command that makes requests. What was saved with a control
// character in a name stays within reach of the others.
func (f *ledgerFlags) checkNew() error {
	for flag, value := range map[string]string{"--principal": f.principal, "--environment": f.environment} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return advice.BadUsage(flag+" has a control character in it", "Give a name in one line.")
		}
	}
	return f.check()
}

func (f *ledgerFlags) scope() client.Scope {
	return client.Scope{Principal: f.principal, Environment: f.environment}
}

func (f *ledgerFlags) args() string {
	var b strings.Builder
	if f.path != "" {
		shown := f.path
		if p, err := place.Parse(f.path); err == nil {
			shown = p.String() // without a password
		}
		b.WriteString(" --ledger " + escape.Shell(shown))
	}
	if f.principal != defaultScope {
		b.WriteString(" --principal " + escape.Shell(f.principal))
	}
	if f.environment != defaultScope {
		b.WriteString(" --environment " + escape.Shell(f.environment))
	}
	return b.String()
}

// ledger is an open ledger. What it says is durable when it says it, so an error of
// close changes nothing.
type ledger struct {
	desk.Ledger
	close func() error
	at    *place.Ledger
}

func openPlace(ctx context.Context, p place.Place, o place.Options) (ledger, error) {
	l, err := p.Open(ctx, o)
	if err != nil {
		return ledger{}, err
	}
	return ledger{l, l.Close, l}, nil
}

// openLedger opens the ledger, and makes a file when it is not there.
func (a *app) openLedger(ctx context.Context, flag string) (ledger, error) {
	return a.openAt(ctx, flag, place.Options{})
}

// openSavedLedger opens a ledger that has to be there. With readOnly nothing of it is
// changed.
func (a *app) openSavedLedger(ctx context.Context, flag string, readOnly bool) (ledger, error) {
	return a.openAt(ctx, flag, place.Options{MustExist: true, ReadOnly: readOnly})
}

func (a *app) openAt(ctx context.Context, flag string, o place.Options) (ledger, error) {
	p, err := place.Find(flag, a.lookupEnv)
	if err != nil {
		return ledger{}, err
	}
	if !o.ReadOnly {
		if o, err = a.ledgerOptions(o); err != nil {
			return ledger{}, err
		}
	}
	return a.open(ctx, p, o)
}

// closeLedger says on stderr alone that a ledger did not close well: the result may
// be printed already, and its exit code stands.
func (a *app) closeLedger(l ledger) {
	if err := l.close(); err != nil {
		a.say("the ledger did not close well, which changes nothing of what it has saved: %s", escape.Terminal(render.OneLine(err.Error())))
	}
}
