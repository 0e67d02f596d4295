package clientkit

import (
	"bytes"
	"context"
	"fmt"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/ticket"
)

// A change is what the second call is given otherwise. The service is such that a client
// that goes by the new thing gives itself away.
type change struct {
	name, title, sections, asks string
	fault                       string // of the service
	make                        func(context.Context, *trial) (ask, error)
}

const hintBound = "Save digests of both documents, the input, the origin and the action with the request ID, and compare them before going on."

// changeScenarios change one thing between two calls with the same identity. What the
// draft says of it is that the request stays bound to what was saved; that the call is
// refused is D8.
func changeScenarios() []scenario {
	const group = "Changes under one request ID"
	var all []scenario
	for _, c := range []change{
		{"profile", "the profile has changed (one more success value)", "2 6.2",
			"A running request stays bound to its saved profile.",
			"wrong-state", changedProfile(`"open"`, `"deleted","open"`)},
		{"openapi", "the OpenAPI document has changed (the status is elsewhere)", "2 6.2",
			"A running request stays bound to its saved OpenAPI snapshot.",
			"pending", changedOpenAPI},
		{"input", "the input has changed", "6.2 6.4",
			"A request ID is associated with its exact input.",
			"wrong-input", changedInput},
		{"action", "the action has another ID", "2 6.2",
			"A request ID is associated with its action.",
			"pending", changedProfile(`"create-ticket"`, `"file-ticket"`)},
		{"origin", "the documents are of another origin", "2 6.2",
			"A request ID is associated with its origin, and is submitted once.",
			"pending", changedOrigin},
	} {
		all = append(all,
			scenario{Info: must("change/"+c.name, group, c.title+": no second POST, and a receipt holds under what was saved", c.sections+" 6.4", c.asks), hint: hintBound, run: c.run(false)},
			scenario{Info: reading("change/"+c.name+"-refused", group, c.title+": the call is refused", c.sections+" D8",
				"Reuse of a request ID with something else than what was saved is refused."), hint: hintBound, run: c.run(true)})
	}
	return all
}

func (c change) run(refused bool) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.ticket(ctx, c.fault); err != nil {
			return err
		}
		first, err := t.call(ctx, t.ask())
		if err != nil {
			return err
		}
		t.finished(first, "pending", "unknown")
		a, err := c.make(ctx, t)
		if err != nil {
			return err
		}
		rep, err := t.call(ctx, a)
		if err != nil {
			return err
		}
		if refused {
			t.refused(rep)
			return nil
		}
		t.held(rep)
		t.sent(t.ask(), 1)
		for _, j := range t.strangers {
			conformance.Equal(t.Recorder, "requests at the other origin", 0, len(j.record()))
		}
		return nil
	}
}

// changed is a document with one text of it replaced everywhere.
func changed(document []byte, old, other string) ([]byte, error) {
	if !bytes.Contains(document, []byte(old)) {
		return nil, fmt.Errorf("the document does not hold %s", old)
	}
	return bytes.ReplaceAll(document, []byte(old), []byte(other)), nil
}

func changedProfile(old, other string) func(context.Context, *trial) (ask, error) {
	return func(_ context.Context, t *trial) (a ask, err error) {
		a = t.ask()
		a.profile, err = changed(a.profile, old, other)
		return a, err
	}
}

func changedOpenAPI(_ context.Context, t *trial) (a ask, err error) {
	a = t.ask()
	a.openapi, err = changed(a.openapi, `"/requests/{requestId}"`, `"/moved/{requestId}"`)
	return a, err
}

// changedInput is the subject that the service of wrong-input shows.
func changedInput(_ context.Context, t *trial) (ask, error) {
	a := t.ask()
	a.input = []byte(`{"subject":"another subject"}`)
	return a, nil
}

// changedOrigin has a service of its own there, which would take the request.
func changedOrigin(ctx context.Context, t *trial) (ask, error) {
	j, err := t.stranger()
	if err != nil {
		return ask{}, err
	}
	if _, err := t.open(ctx, j, "normal"); err != nil {
		return ask{}, err
	}
	a := t.ask()
	a.profile, a.openapi = ticket.Profile(j.origin), ticket.OpenAPI(j.origin)
	return a, nil
}
