package story

import (
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// Flaw is what is wrong with a document or an input. One of the three is edited. In what
// comes in "{elsewhere}" is another origin and "{127.0.0.2}" one of that address: they count
// who comes.
type Flaw struct {
	conformance.Info
	In         string // "profile", "openapi" or "input"
	Old, Other string // Old becomes Other; for an input, Other is all of it
}

// Flawed is the group of the checks of flaws.
const Flawed = "Documents and input"

// Flaws are what a client may not act upon.
func Flaws() []Flaw {
	const group = Flawed
	refuse := func(id, title, sections, asks, in, old, other string) Flaw {
		return Flaw{must("documents/"+id, group, title+": nothing is sent", sections, asks), in, old, other}
	}
	all := []Flaw{
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
	large := Flaw{reading("documents/input-too-large", group, "the input is larger than 16 KiB: nothing is sent", "4 D18",
		"The reference client takes an input of at most 16 KiB; that others hold to it too is this project's reading."),
		"input", "", `{"subject":"` + strings.Repeat("x", agentic.MaxInputBytes) + `"}`}
	twice := Flaw{reading("documents/duplicate-member", group, "the profile has a member twice: nothing is sent", "2 D1",
		"Duplicate member names are invalid; that clients detect them is this project's reading."), "profile", `"actions"`, `"origin":"{elsewhere}","actions"`}
	return append(all, large, twice)
}
