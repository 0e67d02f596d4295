package clientkit

import (
	"context"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit/internal/story"
)

// documentScenarios give the client what it may not act upon, and once what it may.
func documentScenarios() []scenario {
	var all []scenario
	for _, f := range story.Flaws() {
		all = append(all, scenario{Info: f.Info, run: func(ctx context.Context, t *trial) error { return t.flawed(ctx, f) }})
	}
	return append(all, scenario{Info: must("documents/schema-not-fetched", story.Flawed, "the profile's $schema is a URL of somebody else: it is not fetched", "2",
		"The supported schema is pinned; one that a publisher names is never fetched."), run: schemaNotFetched})
}

// flawed gives the client what it has to refuse.
func (t *trial) flawed(ctx context.Context, f story.Flaw) (err error) {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	old, other := withOrigin(f.Old, t.judge.origin), withOrigin(f.Other, t.judge.origin)
	for place, host := range map[string]string{"{elsewhere}": "127.0.0.1", "{127.0.0.2}": "127.0.0.2"} {
		if !strings.Contains(other, place) {
			continue
		}
		j, err := t.strangerAt(host)
		if err != nil { // not every system has all of 127.0.0.0/8
			t.NotExercised("This system has no address " + host + " to be sent to: one that has it, such as Linux, would show it.")
			return nil
		}
		other = strings.ReplaceAll(other, place, j.origin)
	}
	a := t.ask()
	switch f.In {
	case "profile":
		a.profile, err = changed(a.profile, old, other)
	case "openapi":
		a.openapi, err = changed(a.openapi, old, other)
	default:
		a.input = []byte(f.Other)
	}
	if err != nil {
		return err
	}
	rep, err := t.call(ctx, a)
	if err != nil {
		return err
	}
	t.inTime(rep)
	none := rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown
	t.Expect(whatRefusal, none, "no receipt, or one of unknown", "exit code "+rep.code()+rep.outcome())
	t.idle(t.judge.record())
	t.tickets(ctx, 0)
	return nil
}

func schemaNotFetched(ctx context.Context, t *trial) error {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	j, err := t.stranger()
	if err != nil {
		return err
	}
	a := t.ask()
	if a.profile, err = changed(a.profile, `https://ruagentic.org/schemas/agentic-0.1.schema.json`, j.origin+"/schema.json"); err != nil {
		return err
	}
	rep, err := t.call(ctx, a)
	if err != nil {
		return err
	}
	t.finished(rep, agentic.Succeeded)
	conformance.Equal(t.Recorder, "requests for the schema", 0, len(j.record()))
	return nil
}
