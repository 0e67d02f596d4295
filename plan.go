package agentic

import "github.com/agentic-go/agentic/internal/strictjson"

// Plan is one action bound to the three operations that carry it (section 4):
// everything that an execution needs to know of the publisher's documents. It is
// immutable and safe for concurrent use.
type Plan struct {
	Origin  string
	Action  Action
	Profile *Profile
	OpenAPI *OpenAPI

	// Warnings are the problems that did not keep the documents from being
	// used: those of the binding, and of both documents when Load made the plan.
	Warnings Diagnostics

	submitPath string
	statusPath pathTemplate
	verifyPath pathTemplate
	schema     strictjson.Value // of the request body; zero when the document has none
}

// pathTemplate is a path with exactly one placeholder: prefix {name} suffix. The
// placeholder may share its segment with other text.
type pathTemplate struct{ prefix, suffix string }

// Input is a checked input of one action (section 4, D18).
type Input struct {
	body   []byte
	digest string
	value  strictjson.Value
}

// Body is the input as it is saved and sent: without white space, its members
// and numbers as they were given. The caller must not change it.
func (in Input) Body() []byte { return in.body }

// Digest is the SHA-256 of the input's canonical form, in hexadecimal: two
// structurally equal inputs share it (D2).
func (in Input) Digest() string { return in.digest }

// RequestSchema is the operation's inline schema of the request body, as JSON,
// or nil when the document has none (D18).
func (p *Plan) RequestSchema() []byte {
	if p.schema.Kind() == strictjson.Invalid {
		return nil
	}
	return p.schema.Compact()
}

// SubmitURL is the absolute URL of the POST.
func (p *Plan) SubmitURL() string { return p.Origin + p.submitPath }

// Paths are the paths of the three operations as the document has them, each of
// the two reads with its placeholder in braces.
func (p *Plan) Paths() (submit, status, verify string) {
	template := func(t pathTemplate, name string) string { return t.prefix + "{" + name + "}" + t.suffix }
	return p.submitPath, template(p.statusPath, p.Action.StatusRequestID), template(p.verifyPath, p.Action.VerifyResourceID)
}
