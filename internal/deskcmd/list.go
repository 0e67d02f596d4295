package deskcmd

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

const listHelp = `List saved requests of one principal and environment, or with --all of every one.

--open leaves out what is final or settled: what remains was prepared, attempted
without a receipt, pending or unknown. --needs-person leaves only what was attempted,
is open, and whose tracking window has ended.

OUTCOME  of the last receipt, or none; what a person settled is attested-succeeded,
         attested-failed, abandoned or superseded, and a tombstone is purged
LEFT     of the window in which the service keeps track, or ended; it begins when a
         request is prepared, and after it nothing is sent or read
NEEDS    reading (of its status, by 'agentic work' or resume), sending (it was only
         prepared), preparing anew (that was too long ago), or a person

The most urgent come first: the least time left, then those that need a person, then
what was only prepared, then what is settled, the newest first.
--sort says otherwise.`

func (c *Commands) list() *cobra.Command {
	var (
		filter filterFlags
		place  Place
		sort   string
		limit  int
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List saved requests",
		Long:    listHelp,
		Example: "  agentic requests list --open\n  agentic requests list --needs-person --all\n  agentic requests list --outcome unknown --older-than 2h --json",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := filter.filter(cmd, place, c.now())
		if err != nil {
			return err
		}
		switch {
		case limit < 0:
			return advice.BadUsage("--limit is below zero", "Give how many requests to list at most, or 0 for all.")
		case sort == "urgent":
			f.Order = client.UrgentFirst
		case sort != "newest":
			return advice.BadUsage(`--sort "`+sort+`" is neither urgent nor newest`, "Name one of the two.")
		}
		f.Limit = limit
		return c.listRequests(cmd.Context(), place, f, filter.all)
	}
	filter.add(cmd)
	cmd.Flags().StringVar(&sort, "sort", "urgent", "`ORDER` of the list, urgent or newest")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most `N` requests (0 is all)")
	complete(cmd, "sort", "urgent", "newest")
	complete(cmd, "limit")
	place = c.host.Place(cmd)
	c.host.Leaf(cmd, 0, "")
	return cmd
}

func (c *Commands) listRequests(ctx context.Context, p Place, f client.Filter, all bool) error {
	l, closer, err := p.Open(ctx, true)
	if err != nil {
		return err
	}
	defer closer()
	list, err := l.List(ctx, f)
	if err != nil {
		return err
	}
	switch {
	case c.out.JSON():
		return c.printJSON(render.Lines(list, c.now()))
	case len(list) > 0:
		return c.out.Print(render.Listing(list, p.Scope(), c.now()))
	case all:
		c.out.Say("no such requests")
	default:
		c.out.Say("no such requests of principal %s in environment %s", escape.Terminal(p.Scope().Principal), escape.Terminal(p.Scope().Environment))
	}
	return nil
}

// filterFlags choose requests.
type filterFlags struct {
	all         bool
	open        bool
	needsPerson bool
	outcome     string
	action      string
	origin      string
	older       age
	newer       age
}

func (f *filterFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "of every principal and environment, but for those that are given")
	cmd.Flags().BoolVar(&f.open, "open", false, "only requests that still wait for something")
	cmd.Flags().BoolVar(&f.needsPerson, "needs-person", false, "only requests that nothing but a person can settle")
	cmd.Flags().StringVar(&f.outcome, "outcome", "", "only requests whose last receipt has this `OUTCOME`")
	cmd.Flags().StringVar(&f.action, "action", "", "only requests of the action with this `ID`")
	cmd.Flags().StringVar(&f.origin, "origin", "", "only requests to this `ORIGIN`")
	cmd.Flags().Var(&f.older, "older-than", "only requests made longer than this `DURATION` ago, such as 2h or 7d")
	cmd.Flags().Var(&f.newer, "newer-than", "only requests made less than this `DURATION` ago")
	complete(cmd, "outcome", string(agentic.Succeeded), string(agentic.Failed), string(agentic.Pending), string(agentic.Unknown))
	complete(cmd, "action")
	complete(cmd, "origin")
	complete(cmd, "older-than", "1h", "1d", "7d")
	complete(cmd, "newer-than", "1h", "1d", "7d")
}

// filter is what the flags choose; ages are against now.
func (f *filterFlags) filter(cmd *cobra.Command, p Place, now time.Time) (client.Filter, error) {
	if err := p.Check(); err != nil {
		return client.Filter{}, err
	}
	out := client.Filter{Open: f.open, NeedsPerson: f.needsPerson, Outcome: agentic.Outcome(f.outcome), ActionID: f.action, Origin: f.origin}
	if f.outcome != "" && !out.Outcome.Valid() {
		return out, advice.BadUsage(`--outcome "`+f.outcome+`" is none of succeeded, failed, pending and unknown`, "Name one of the four.")
	}
	if !utf8.ValidString(f.action) {
		return out, advice.BadUsage("--action is not UTF-8", "Name the action as 'agentic requests list' does.")
	}
	if f.origin != "" {
		if err := agentic.CheckOrigin(f.origin, agentic.Options{AllowLoopback: true}); err != nil {
			return out, advice.BadUsage(`--origin "`+f.origin+`": it `+err.Error(), "Write it as scheme, host and port alone, such as https://support.example.")
		}
	}
	if f.older > 0 {
		out.Before = now.Add(-time.Duration(f.older))
	}
	if f.newer > 0 {
		out.After = now.Add(-time.Duration(f.newer))
	}
	out.Principal, out.Environment = within(cmd, p, f.all)
	return out, nil
}

// within is the principal and the environment that flags choose; nil is any.
func within(cmd *cobra.Command, p Place, all bool) (principal, environment *string) {
	s := p.Scope()
	if !all || cmd.Flags().Changed("principal") {
		principal = &s.Principal
	}
	if !all || cmd.Flags().Changed("environment") {
		environment = &s.Environment
	}
	return principal, environment
}

// age is a duration of the past as a flag: like 90m, 2h30m or 7d.
type age time.Duration

const day = 24 * time.Hour

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type is the word for the value.
func (a *age) Type() string { return "age" }

// Set reads a value.
func (a *age) Set(s string) error {
	d, err := parseAge(s)
	*a = age(d)
	return err
}

var errAge = errors.New("it is no duration above zero, such as 90m, 2h30m or 7d")

func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 64)
		if n > int64(math.MaxInt64/day) {
			return 0, errAge
		}
		d = time.Duration(n) * day
	}
	if err != nil || d <= 0 {
		return 0, errAge
	}
	return d, nil
}
