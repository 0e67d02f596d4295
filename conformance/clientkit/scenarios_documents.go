package clientkit

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// flaw is what is wrong with a document or an input. One of the three is edited. In what
// comes in "{elsewhere}" is another origin and "{127.0.0.2}" one of that address: they count
// who comes.
type flaw struct {
	conformance.Info
	in         string // "profile", "openapi" or "input"
	old, other string // for an input, other is all of it
}

// documentScenarios give the client what it may not act upon, and once what it may.
func documentScenarios() []scenario {
	const group = "Documents and input"
	refuse := func(id, title, sections, asks, in, old, other string) scenario {
		f := flaw{must("documents/"+id, group, title+": nothing is sent", sections, asks), in, old, other}
		return scenario{Info: f.Info, run: f.run}
	}
	all := []scenario{
		refuse("unknown-member", "the profile has a member that no schema knows", "2",
			"Unknown fields of a profile are rejected.", "profile", `"actions"`, `"extra":1,"actions"`),
		refuse("missing-member", "the profile's action lacks its recovery", "2 3",
			"All fields of an action are required.", "profile", `"recovery"`, `"recover"`),
		refuse("other-version", "the profile is of another version", "2",
			"Version 0.1.0-draft is the only one that is supported.", "profile", `"0.1.0-draft"`, `"0.2.0"`),
		refuse("automatic-retry", "the profile asks for automatic retries", "3",
			"recovery.retry is never-automatically in 0.1.", "profile", `"never-automatically"`, `"automatically"`),
		refuse("origin-with-path", "the profile's origin has a path", "2",
			"The origin is canonical, without a path.", "profile", "{origin}", "{origin}/api"),
		refuse("origin-plain-http", "the profile's origin is plain HTTP to what is not a name of this machine", "2",
			"Plain HTTP is for localhost, 127.0.0.1 and [::1] only.", "profile", "{origin}", "{127.0.0.2}"),
		refuse("operation-missing", "the document has no operation of the status's ID", "4",
			"Operation IDs resolve exactly once.", "openapi", `"getRequestStatus"`, `"getStatus"`),
		refuse("operation-twice", "the document has two operations of the same ID", "4",
			"Operation IDs resolve exactly once.", "openapi", `"paths": {`, `"paths": {"/twice": {"get": {"operationId": "getTicket", "responses": {}}},`),
		refuse("operations-not-distinct", "status and resource are the same operation", "4",
			"Submission, status and verification are distinct operations.", "profile", `"getTicket"`, `"getRequestStatus"`),
		refuse("submission-not-post", "the submission is a PUT", "4",
			"The submission is a POST.", "openapi", `"post"`, `"put"`),
		refuse("key-not-required", "the submission does not require its Idempotency-Key", "4",
			"The submission has a required Idempotency-Key header.", "openapi", `"in": "header",
            "required": true`, `"in": "header",
            "required": false`),
		refuse("server-override", "the document names a server of its own", "2 4",
			"Server overrides are unsupported.", "openapi", `"paths": {`, `"servers": [{"url": "{elsewhere}"}], "paths": {`),
		refuse("traversal", "the path of the submission climbs", "2",
			"Paths have no traversal segments.", "openapi", `"/tickets":`, `"/a/../tickets":`),
		refuse("input-no-object", "the input is an array", "4",
			"The input is a JSON object.", "input", "", `["subject"]`),
		refuse("input-without-evidence", "the input lacks the member that the evidence compares", "4 6.1",
			"The input evidence is checked before anything is sent.", "input", "", `{"title":"Printer"}`),
	}
	large := flaw{reading("documents/input-too-large", group, "the input is larger than 16 KiB: nothing is sent", "4 D18",
		"The reference client takes an input of at most 16 KiB; that others hold to it too is this project's reading."),
		"input", "", `{"subject":"` + strings.Repeat("x", agentic.MaxInputBytes) + `"}`}
	twice := flaw{reading("documents/duplicate-member", group, "the profile has a member twice: nothing is sent", "2 D1",
		"Duplicate member names are invalid; that clients detect them is this project's reading."), "profile", `"actions"`, `"origin":"{elsewhere}","actions"`}
	return append(all, scenario{Info: large.Info, run: large.run}, scenario{Info: twice.Info, run: twice.run},
		scenario{Info: must("documents/schema-not-fetched", group, "the profile's $schema is a URL of somebody else: it is not fetched", "2",
			"The supported schema is pinned; one that a publisher names is never fetched."), run: schemaNotFetched})
}

func (f flaw) run(ctx context.Context, t *trial) (err error) {
	if err := t.ticket(ctx, "normal"); err != nil {
		return err
	}
	old, other := withOrigin(f.old, t.judge.origin), withOrigin(f.other, t.judge.origin)
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
	switch f.in {
	case "profile":
		a.profile, err = changed(a.profile, old, other)
	case "openapi":
		a.openapi, err = changed(a.openapi, old, other)
	default:
		a.input = []byte(f.other)
	}
	if err != nil {
		return err
	}
	rep, err := t.call(ctx, a)
	if err != nil {
		return err
	}
	t.Expect(whatTime, !rep.late, "within "+t.limit.String(), "still running then")
	none := rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown
	t.Expect(whatRefusal, none, "no receipt, or one of unknown", fmt.Sprintf("exit code %d%s", rep.exit, rep.outcome()))
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
