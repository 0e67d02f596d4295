package clientkit

import (
	"context"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit/internal/story"
)

// actionScenarios name one action of a profile that has two, whose operations differ.
func actionScenarios() []scenario {
	const group = "Several actions"
	of := func(i conformance.Info, run func(context.Context, *trial) error) scenario {
		return scenario{Info: i, feature: FeatureActionID, run: run}
	}
	one := func(action string, want agentic.Outcome) func(context.Context, *trial) error {
		return func(ctx context.Context, t *trial) error {
			if err := t.twoActions(action); err != nil {
				return err
			}
			rep, err := t.call(ctx, t.ask().with(action))
			if err == nil {
				t.finished(rep, want)
			}
			return err
		}
	}
	return []scenario{
		of(must("actions/first", group, "the first of two actions: its operations alone are used, succeeded", "3 4 6.1", "An action names its three operations."), one("create-ticket", agentic.Succeeded)),
		of(must("actions/second", group, "the second of two actions: its operations alone are used, succeeded", "3 4 6.1", "An action names its three operations."), one("create-note", agentic.Succeeded)),
		of(must("actions/unknown", group, "the action is none of the profile's: nothing is sent", "3 6.1", "Actions have stable identifiers, and only one that is described can be bound."),
			func(ctx context.Context, t *trial) error {
				if err := t.twoActions("create-ticket"); err != nil {
					return err
				}
				rep, err := t.call(ctx, t.ask().with("create-tickets"))
				if err == nil {
					t.Expect(whatOutcome, rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown, "no receipt, or one of unknown", string(rep.stdout))
					t.idle(t.judge.record())
				}
				return err
			}),
		of(must("actions/other-on-resume", group, "the same request ID is used again for the other action: nothing is sent for it", "6.2 6.4",
			"A request is bound to its action before it is sent, and is submitted at most once."),
			func(ctx context.Context, t *trial) error {
				if err := t.twoActions("create-ticket"); err != nil {
					return err
				}
				first, err := t.call(ctx, t.ask().with("create-ticket"))
				if err != nil {
					return err
				}
				t.finished(first, agentic.Succeeded)
				again, err := t.call(ctx, t.ask().with("create-note"))
				if err == nil {
					r := again.receipt
					t.Expect(whatOutcome, r == nil || r.ActionID == "create-ticket" || r.Outcome == agentic.Unknown, "no receipt of the other action but unknown", string(again.stdout))
					t.sent(t.ask(), 1)
				}
				return err
			}),
	}
}

// with is the ask with an action.
func (a ask) with(action string) ask {
	a.action = action
	return a
}

// twoActions gives the trial a profile of two actions, create-ticket and create-note, and
// an honest service of the one.
func (t *trial) twoActions(action string) error {
	note := strings.NewReplacer("create-ticket", "create-note", "createTicket", "createNote", "getRequestStatus", "getNoteStatus", "getTicket", "getNote", "ticketId", "noteId")
	var s story.Terms
	profile := withOrigin(s.Profile(), t.judge.origin)
	begin := strings.Index(profile, `[{"id"`) + 1
	second := note.Replace(profile[begin : len(profile)-2])
	profile = profile[:len(profile)-2] + "," + second + "]}"
	openapi := s.OpenAPI()
	begin = strings.Index(openapi, `"/tickets"`)
	paths := strings.NewReplacer(`"/tickets`, `"/notes`, `"/requests`, `"/note-requests`).Replace(openapi[begin : len(openapi)-2])
	openapi = openapi[:len(openapi)-2] + "," + note.Replace(paths) + "}}"
	plan, err := agentic.Load([]byte(profile), []byte(openapi), action, agentic.Options{AllowLoopback: true})
	if err != nil {
		return err
	}
	t.plan, t.profile, t.openapi, t.input = plan, []byte(profile), []byte(openapi), []byte(exampleInput)
	t.judge.mu.Lock()
	p := &t.judge.paths
	p.submit, p.status, p.resource = plan.Paths()
	t.judge.mu.Unlock()
	t.tell(story.Story{})
	return nil
}
