package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/deskcmd"
	"github.com/agentic-go/agentic/internal/render"
)

// desk makes the commands of package deskcmd, whose host this command is.
func (a *app) desk() *deskcmd.Commands { return deskcmd.New(host{a}, output{a}) }

// host is the app as the rooms of commands see it.
type host struct{ *app }

func (h host) Group(cmd *cobra.Command) { h.asGroup(cmd) }

func (h host) Leaf(cmd *cobra.Command, args int, names string) {
	cmd.Args = arguments(args, args, names)
	if args > 0 {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	h.jsonFlag(cmd)
}

func (h host) Place(cmd *cobra.Command) deskcmd.Place {
	p := &deskPlace{app: h.app}
	p.ledgerFlags.add(cmd)
	return p
}

func (h host) Reach(cmd *cobra.Command, p deskcmd.Place) deskcmd.Reach {
	r := &deskReach{deskPlace: p.(*deskPlace)}
	r.reachFlags.add(cmd)
	return r
}

// By is AGENTIC_BY, or the user's name at this host.
func (h host) By() string {
	if name, _ := h.lookupEnv("AGENTIC_BY"); name != "" {
		return name
	}
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return u.Username
	}
	return u.Username + "@" + host
}

// deskPlace is where --ledger, --principal and --environment point.
type deskPlace struct {
	*app
	ledgerFlags
}

func (p *deskPlace) Check() error {
	p.ledgerArgs = p.args()
	return p.check()
}

func (p *deskPlace) Scope() client.Scope { return p.scope() }

func (p *deskPlace) Args() string { return p.args() }

func (p *deskPlace) Open(ctx context.Context, readOnly bool) (desk.Ledger, func(), error) {
	l, err := p.openSavedLedger(ctx, p.path, readOnly)
	if err != nil {
		return nil, nil, err
	}
	return l, func() { p.closeLedger(l) }, nil
}

func (p *deskPlace) Unsettled(err error, requestID string) error {
	return unsettled(err, requestID, false, true)
}

// deskReach is where --approve and the other flags of reachFlags let requests go.
type deskReach struct {
	*deskPlace
	reachFlags
	header http.Header
}

func (r *deskReach) Check() (err error) {
	r.reachArgs = r.reachFlags.args()
	if r.header, err = r.app.header(headerFlag, r.headers); err != nil {
		return err
	}
	_, err = r.transport("", nil) // wrong flags come before a missing ledger
	return err
}

func (r *deskReach) Client(l client.Ledger, origin string) (*client.Client, error) {
	return r.newClient(l, origin, r.header, &r.reachFlags, &r.ledgerFlags)
}

func (r *deskReach) Settle(execute func() (client.Result, error)) error {
	return r.settle(true, execute)
}

func (r *deskReach) SendCommand(requestID string) string {
	return r.resumeCommand(requestID, " --send")
}

// output is what they write to.
type output struct{ *app }

func (o output) JSON() bool { return o.json }

func (o output) Print(b []byte) error { return o.print(b) }

func (o output) Say(format string, args ...any) { o.say(format, args...) }

func (o output) Terminal() bool { return o.terminal() }

func (o output) Ask(ctx context.Context, shown []byte, question, declined string) error {
	return o.ask(ctx, shown, question, advice.New("declined", errors.New(declined), "Run it again and answer y if you agree."))
}

// Progress draws a bar on standard error, over itself.
func (o output) Progress(done, total int) {
	if total == 0 {
		_, _ = fmt.Fprint(o.stderr, "\r\x1b[K") // progress is not worth an error
		return
	}
	const width = 30
	full := width * done / max(1, total)
	_, _ = fmt.Fprintf(o.stderr, "\r[%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(" ", width-full), done, total)
}

// writeRecord prints a request that prepare has saved: its input was typed here, so it
// is shown. Of one that was attempted before, what checks found is not.
func (a *app) writeRecord(rec *client.Record, unchecked string) error {
	r := render.NewRecord(rec)
	if rec.State != client.Prepared {
		r = r.Redact()
	}
	r.Unchecked = unchecked
	if a.json {
		return a.writeJSON(r)
	}
	return a.print(r.Text())
}
