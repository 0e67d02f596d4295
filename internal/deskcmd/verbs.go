package deskcmd

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

// verbFlags say who does something, and why.
type verbFlags struct {
	place  Place
	by     string
	reason string
}

func (c *Commands) verbFlags(cmd *cobra.Command, f *verbFlags) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for whoever reads it later (`TEXT`, required)")
	cmd.Flags().StringVar(&f.by, "by", "", "`NAME` of the person who decides (default: $AGENTIC_BY, else the user's name at this host)")
	complete(cmd, "reason")
	complete(cmd, "by")
	f.place = c.host.Place(cmd)
}

// act is what the flags say about one request; nothing was opened yet.
func (c *Commands) act(f *verbFlags, id string, n client.Note) (desk.Act, error) {
	a := desk.Act{Scope: f.place.Scope(), RequestID: id, By: f.by, Reason: f.reason}
	if a.By == "" {
		a.By = c.host.By()
	}
	if err := checkID(f.place, id); err != nil {
		return a, err
	}
	switch n.By, n.Reason = a.By, a.Reason; {
	case n.Reason == "":
		return a, advice.BadUsage("--reason is missing", "Say why, for whoever reads it later: --reason TEXT.")
	case n.By == "":
		return a, advice.BadUsage("nobody knows who you are", "Give your name with --by NAME or AGENTIC_BY.")
	}
	if strings.ContainsFunc(n.By, unicode.IsControl) {
		return a, advice.BadUsage("--by has a control character in it", "Give a name in one line.")
	}
	if err := n.Validate(); err != nil {
		return a, advice.BadUsage(err.Error(), "Give it as text that is not blank and not longer.")
	}
	return a, nil
}

func (c *Commands) recheck() *cobra.Command {
	var (
		f     verbFlags
		reach Reach
	)
	cmd := &cobra.Command{
		Use:   "recheck REQUEST_ID --reason TEXT",
		Short: "Have the status of a request read once more",
		Long: `Note who asks and why, then read the status of the request once more, and its
evidence if the service says that it succeeded. Nothing is sent. The receipt is
printed, and the exit code is that of its outcome, as with 'agentic resume'.

After the tracking window nothing is read either; the receipt says so then.`,
		Example: "  agentic requests recheck order-2026-117 --reason 'their outage is over' --approve https://support.example",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.recheckRequest(cmd.Context(), &f, reach, args[0])
		},
	}
	c.verbFlags(cmd, &f)
	reach = c.host.Reach(cmd, f.place)
	c.host.Leaf(cmd, 1, "REQUEST_ID")
	return cmd
}

// reaching opens a request for a verb that may talk to its service: what the command
// line says is checked before anything is opened. The caller closes what it gets.
func (c *Commands) reaching(ctx context.Context, f *verbFlags, reach Reach, id string, n client.Note) (desk.Act, *opened, error) {
	a, err := c.act(f, id, n)
	if err == nil {
		err = reach.Check()
	}
	if err != nil {
		return a, nil, err
	}
	o, err := c.one(ctx, f.place, id, false)
	if err != nil {
		return a, nil, err
	}
	if err := o.reach(reach); err != nil {
		o.close()
		return a, nil, err
	}
	return a, o, nil
}

func (c *Commands) recheckRequest(ctx context.Context, f *verbFlags, reach Reach, id string) error {
	a, o, err := c.reaching(ctx, f, reach, id, client.Note{Verb: client.Recheck})
	if err != nil {
		return err
	}
	defer o.close()
	return reach.Settle(func() (client.Result, error) { return o.desk.Recheck(ctx, a) })
}

func (c *Commands) attest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attest",
		Short: "Record what a person found at the service",
		Long: `Record what a person found who looked at the service itself. It settles the request,
so that nothing reads its status by itself any more, and touches no receipt: a
receipt that a later recheck brings counts more.`,
	}
	cmd.AddCommand(
		c.attestAs(client.AttestSucceeded, &cobra.Command{
			Use:   "succeeded REQUEST_ID --resource-id ID --reason TEXT",
			Short: "Record that a request was found done",
			Long: `Record that a person looked at the service and found the request done, and as which
resource. If that resource belongs to another request, work that was not done counts
as done.`,
			Example: "  agentic requests attest succeeded order-2026-117 --resource-id T-1042 --reason 'read it in their console'",
		}),
		c.attestAs(client.AttestFailed, &cobra.Command{
			Use:   "failed REQUEST_ID --reason TEXT",
			Short: "Record that a request was found not done",
			Long: `Record that a person looked at the service and the request did not happen, so that a
new one may be made. If it happened after all, or still does, the new one does it a
second time.`,
			Example: "  agentic requests attest failed order-2026-117 --reason 'their support says it never arrived'",
		}))
	c.host.Group(cmd)
	return cmd
}

func (c *Commands) attestAs(found client.Verb, cmd *cobra.Command) *cobra.Command {
	var (
		f        verbFlags
		resource string
	)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if found == client.AttestSucceeded && resource == "" {
			return advice.BadUsage("--resource-id is missing", "Give the ID of what was found at the service: --resource-id ID.")
		}
		a, err := c.act(&f, args[0], client.Note{Verb: found, ResourceID: resource})
		if err != nil {
			return err
		}
		return c.settle(cmd.Context(), &f, a, nil, func(o *opened) error { return o.desk.Attest(cmd.Context(), a, found, resource) })
	}
	if found == client.AttestSucceeded {
		cmd.Flags().StringVar(&resource, "resource-id", "", "`ID` of the resource that was found (required)")
		complete(cmd, "resource-id")
	}
	c.verbFlags(cmd, &f)
	c.host.Leaf(cmd, 1, "REQUEST_ID")
	return cmd
}

func (c *Commands) abandon() *cobra.Command {
	var (
		f   verbFlags
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "abandon REQUEST_ID --reason TEXT",
		Short: "Take a request off the desk as it is",
		Long: `Take a request off the desk as it is, after a question (or with --yes). Nothing reads
its status by itself any more, and one that was only prepared is never sent. Nobody
will know whether it happened, and a new request may do it a second time. Of one that
was superseded, what can still be sent is the new request: abandon that one.`,
		Example: "  agentic requests abandon order-2026-117 --reason 'the customer has cancelled'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.agreed(yes, "abandoning"); err != nil {
				return err
			}
			a, err := c.act(&f, args[0], client.Note{Verb: client.Abandon})
			if err != nil {
				return err
			}
			ask := func(o *opened) error {
				return c.ask(cmd.Context(), yes, o, client.Abandon, "This would be taken off the desk:", "Abandon it? [y/N] ")
			}
			return c.settle(cmd.Context(), &f, a, ask, func(o *opened) error { return o.desk.Abandon(cmd.Context(), a) })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: it is decided")
	c.verbFlags(cmd, &f)
	c.host.Leaf(cmd, 1, "REQUEST_ID")
	return cmd
}

// ask shows a request, where it stands and what a choice risks, and asks. A choice
// that would be refused is refused before, and one that was made already is told.
func (c *Commands) ask(ctx context.Context, yes bool, o *opened, v client.Verb, head, question string) error {
	if err := desk.Admits(o.rec, v); err != nil || yes {
		return err
	}
	judged := desk.CaseOf(o.rec, c.now())
	var b bytes.Buffer
	b.WriteString(head + "\n")
	render.Field(&b, "  request", o.rec.RequestID)
	render.Field(&b, "  action", o.rec.ActionID+" of "+o.rec.Origin)
	render.Field(&b, "  principal", o.rec.Scope.Principal+" in environment "+o.rec.Scope.Environment)
	render.Field(&b, "  why", judged.Why)
	if judged.Post != "" {
		render.Field(&b, "  the POST", judged.Post)
	}
	if n := o.rec.Settled(); n != nil {
		render.Field(&b, "  settled", fmt.Sprintf("%s at %s by %s: %s", n.Verb, agentic.FormatTime(n.At), n.By, n.Reason))
	}
	risk := "None that is new: it is settled so already."
	for _, choice := range judged.Choices {
		if choice.Name == string(v) {
			risk = choice.Risk
		}
	}
	render.Field(&b, "  risk", risk)
	return c.out.Ask(ctx, b.Bytes(), question, "you did not agree, so nothing was changed")
}

// settle carries out a verb that settles and prints the note.
func (c *Commands) settle(ctx context.Context, f *verbFlags, a desk.Act, ask, do func(*opened) error) error {
	o, err := c.one(ctx, f.place, a.RequestID, false)
	if err != nil {
		return err
	}
	defer o.close()
	if ask != nil {
		if err := ask(o); err != nil {
			return err
		}
	}
	if err := do(o); err != nil {
		return f.place.Unsettled(err, a.RequestID)
	}
	rec, _, err := o.desk.Show(ctx, a.Scope, a.RequestID)
	if err != nil {
		return f.place.Unsettled(err, a.RequestID)
	}
	n := rec.Settled()
	if n == nil { // purged in the meantime
		return &client.PurgedError{RequestID: rec.RequestID, Outcome: rec.Purged, PurgedAt: rec.PurgedAt}
	}
	if next := desk.Successor(rec); next != "" {
		c.sayStands(ctx, o, next)
	}
	result := render.Noted(rec.RequestID, *n)
	if c.out.JSON() {
		result, err = render.JSON(noted{rec.RequestID, *n})
	}
	if err == nil {
		err = c.out.Print(result)
	}
	return c.printed(err, "request "+rec.RequestID+" is settled as "+string(n.Verb), seeIt(f.place, rec.RequestID))
}

// sayStands says that a note about a superseded request leaves its successor as it is.
func (c *Commands) sayStands(ctx context.Context, o *opened, next string) {
	stands := "is not changed by that"
	if rec, err := o.ledger.Load(ctx, o.rec.Scope, next); err == nil {
		stands = "is " + stateOf(rec)
		if sendable(rec, c.now()) {
			stands += "; if it is not to be sent any more, abandon it"
		}
	}
	c.out.Say("It was superseded by request %s, which %s.", escape.Terminal(next), stands)
}

func seeIt(p Place, requestID string) string {
	return "To see it: " + withID("agentic requests show", p.Args(), requestID)
}

// noted is a note that was just made, and of which request.
type noted struct {
	RequestID string      `json:"request_id"`
	Note      client.Note `json:"note"`
}

const supersedeHelp = `Make a new request with the documents and the input of an old one, linked to it, and
save it as prepared. It is not sent: the command that sends it is printed, and sends
it once, after a question of its own.

The first request may have happened; the new one may do it a second time. So this
asks (or takes --yes), and the old request is settled as superseded.

Run again it gives the same new request, also when it was interrupted in between: a
request has one successor, and if that one is abandoned, supersede that. What a person
attested as succeeded is refused; if that was wrong, attest first that it failed. The
origin has to be approved, as when the new request is sent.`

func (c *Commands) supersede() *cobra.Command {
	var (
		f     verbFlags
		reach Reach
		newID string
		yes   bool
	)
	cmd := &cobra.Command{
		Use:     "supersede REQUEST_ID --reason TEXT",
		Short:   "Make a new request instead, which may do it a second time",
		Long:    supersedeHelp,
		Example: "  agentic requests supersede order-2026-117 --reason 'agreed with their support' --approve https://support.example",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.agreed(yes, "superseding"); err != nil {
				return err
			}
			return c.supersedeRequest(cmd.Context(), &f, reach, args[0], newID, yes)
		},
	}
	cmd.Flags().StringVar(&newID, "new-id", "", "`ID` of the new request (default: one that follows from the old request)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: that it may happen twice is accepted")
	complete(cmd, "new-id")
	c.verbFlags(cmd, &f)
	reach = c.host.Reach(cmd, f.place)
	c.host.Leaf(cmd, 1, "REQUEST_ID")
	return cmd
}

func (c *Commands) supersedeRequest(ctx context.Context, f *verbFlags, reach Reach, id, newID string, yes bool) error {
	n := client.Note{Verb: client.Supersede, NewID: newID}
	if newID == "" {
		n.NewID = desk.SuccessorID(f.place.Scope(), id)
	} else if !client.ValidRequestID(newID) {
		return advice.BadUsage(`--new-id "`+newID+`" is not 8 to 128 characters of A-Z, a-z, 0-9, _ and -`, "Leave it out for one that follows from the old request.")
	}
	a, o, err := c.reaching(ctx, f, reach, id, n)
	if err != nil {
		return err
	}
	defer o.close()
	if desk.Successor(o.rec) == "" {
		err := c.ask(ctx, yes, o, client.Supersede, "A new request would be made of this one's documents and input:", "It may happen twice. Make the new request? [y/N] ")
		if err != nil {
			return err
		}
	}
	done, err := o.desk.Supersede(ctx, a, desk.SupersedeOptions{NewID: newID})
	if err != nil {
		return f.place.Unsettled(err, id)
	}
	next := done.New
	out := successor{RequestID: id, NewID: next.RequestID, Already: done.Already, State: next.State}
	switch until := next.Summary().WindowEnds; {
	case next.State != client.Prepared || next.Settled() != nil:
	case !sendable(next, c.now()):
		c.out.Say("The new one is not sent any more: its tracking window ended at %s. Supersede that one.", agentic.FormatTime(until))
	default:
		out.Send = reach.SendCommand(next.RequestID)
		if o.rec.State == client.Attempted || o.rec.Supersedes != "" {
			c.out.Say("The first request may have happened; the new one may do it a second time.")
		} else {
			c.out.Say("The first request was never sent, and never will be.")
		}
		c.out.Say("To send the new one: %s", escape.Quoted(out.Send))
		c.out.Say("%s", render.Until(next, c.now()))
	}
	was := "is superseded by"
	if done.Already {
		was = "was superseded before by"
	}
	result := fmt.Sprintf("request %s %s request %s, which is %s", id, was, next.RequestID, stateOf(next))
	if c.out.JSON() {
		err = c.printJSON(out)
	} else {
		err = c.out.Print([]byte(escape.Terminal(result) + "\n"))
	}
	return c.printed(err, result, seeIt(f.place, id))
}

// sendable reports whether a request is still there to be sent.
func sendable(rec *client.Record, now time.Time) bool {
	return rec.State == client.Prepared && rec.PurgedAt.IsZero() && rec.Settled() == nil && now.Before(rec.Summary().WindowEnds)
}

func stateOf(rec *client.Record) string {
	sum := rec.Summary()
	switch {
	case sum.Outcome != "":
		return string(sum.Outcome)
	case sum.Settled != "":
		return "settled (" + string(sum.Settled) + ")"
	case rec.State == client.Prepared:
		return "prepared and not sent"
	}
	return string(rec.State)
}

// successor is what supersede made.
type successor struct {
	RequestID string       `json:"request_id"`
	NewID     string       `json:"new_id"`
	State     client.State `json:"state"` // of the new request
	Already   bool         `json:"already"`
	Send      string       `json:"send,omitempty"` // the command that sends it, once
}
