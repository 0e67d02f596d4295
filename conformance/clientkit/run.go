package clientkit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentic-go/agentic/conformance"
)

// DefaultTimeout bounds one call of a client: the example profile allows a little over
// twenty seconds of waiting.
const DefaultTimeout = 30 * time.Second

// Config says what to run against which client. Only Adapter is required.
type Config struct {
	Adapter Adapter
	// Dir is the folder of the adapter's file: a relative program with a slash in it
	// is looked up from there, and the client runs there. "" is the current folder.
	Dir string
	// Match has patterns of conformance.Select; none is all.
	Match    []string
	Repeat   int           // each check so often; 0 is 1
	Parallel int           // so many checks at once; 0 is 1
	Seed     uint64        // of what the kit chooses: the request IDs
	Timeout  time.Duration // of one call of the client; 0 is DefaultTimeout
	Tool     conformance.Tool
	Progress func(done, total int, last conformance.Result)
}

// most is how many calls of the client one check makes, with time to spare.
const most = 6

// giveUp is after how many checks in a row, in which every call only ran into its time
// limit, the rest is not run: hundreds of them would take hours and show no more.
const giveUp = 5

// Run tries the client and reports what was observed. The error says that nothing could
// be tried: a bad adapter, a program that is not there, a pattern that fits no check,
// or the end of ctx.
func Run(ctx context.Context, c Config) (*conformance.Report, error) {
	if err := c.Adapter.check(); err != nil {
		return nil, fmt.Errorf("clientkit: adapter: %w", err)
	}
	client, err := find(c.Adapter.Command, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("clientkit: %w", err)
	}
	return c.try(ctx, client)
}

// try runs the chosen checks against a client.
func (c Config) try(ctx context.Context, client client) (*conformance.Report, error) {
	chosen, err := choose(catalog(), c.Match)
	if err != nil {
		return nil, fmt.Errorf("clientkit: %w", err)
	}
	limit := c.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	cases := make([]conformance.Case, len(chosen))
	for i, s := range chosen {
		cases[i] = s.against(c.Adapter, client, limit)
	}
	return conformance.Run(ctx, conformance.Client,
		conformance.Subject{Name: c.Adapter.Name, Authorship: c.Adapter.Authorship}, c.Tool, cases,
		conformance.Options{Repeat: c.Repeat, Parallel: c.Parallel, Seed: c.Seed, Timeout: most*limit + time.Minute, GiveUp: giveUp, Progress: c.Progress})
}

// Checks lists all checks in the order of a run.
func Checks() []conformance.Info {
	all := catalog()
	infos := make([]conformance.Info, len(all))
	for i, s := range all {
		infos[i] = s.Info
	}
	return infos
}

// against makes the scenario a case for one client.
func (s scenario) against(a Adapter, client client, limit time.Duration) conformance.Case {
	return conformance.Case{Info: s.Info, Run: func(ctx context.Context, r *conformance.Recorder) error {
		if s.feature != "" && !a.knows(s.feature) {
			r.NotExercised(fmt.Sprintf("%s An adapter that takes the member %s and lists it in its features would show it.",
				features[s.feature], s.feature))
			return nil
		}
		t, err := newTrial(r, client, limit)
		if err != nil {
			return err
		}
		defer t.close()
		err = s.run(ctx, t)
		first, _ := r.Failed()
		r.Hint(hint(first, cmp.Or(s.hint, s.Asks)))
		return err
	}}
}

// choose takes what a pattern names.
func choose(all []scenario, patterns []string) ([]scenario, error) {
	infos, err := conformance.Select(Checks(), patterns)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, i := range infos {
		named[i.ID] = true
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !named[s.ID] }), nil
}
