package agentic

import "github.com/agentic-go/agentic/internal/strictjson"

// OpenAPI is a parsed OpenAPI 3.1 document, ready to bind actions to.
type OpenAPI struct {
	root   strictjson.Value
	source []byte
	digest string
}

// Source is the document as it was parsed. The caller must not change it.
func (o *OpenAPI) Source() []byte { return o.source }

// Digest is the SHA-256 of the document's canonical form, in hexadecimal.
func (o *OpenAPI) Digest() string { return o.digest }

// Plan is one action bound to the three operations that carry it (section 4):
// everything that an execution needs to know of the publisher's documents. It is
// immutable and safe for concurrent use.
type Plan struct {
	Origin  string
	Action  Action
	Profile *Profile
	OpenAPI *OpenAPI

	submitPath string
	statusPath pathTemplate
	verifyPath pathTemplate
	schema     strictjson.Value // of the request body; zero when the document has none
}

// pathTemplate is a path with exactly one placeholder: prefix {name} suffix.
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

// Load parses both documents and binds the action, the whole way from bytes to a
// Plan. With actionID "" it takes the profile's only action. The error is an
// *InvalidError or an *UnknownActionError.
func Load(profile, openapi []byte, actionID string, opts Options) (*Plan, error) {
	panic("unwritten")
}

// ParseProfile checks a profile: size, strict JSON, schema, then meaning (origin
// D3, unique action IDs, distinct operations, paths D4). It reports every
// problem it can find; the profile is nil when one of them is an error.
func ParseProfile(data []byte, opts Options) (*Profile, Diagnostics) { panic("unwritten") }

// ParseOpenAPI checks what does not depend on an action: size, strict JSON,
// version, servers (section 4, D4). The document is nil on an error.
func ParseOpenAPI(data []byte) (*OpenAPI, Diagnostics) { panic("unwritten") }

// Bind resolves the three operations of one action in the document (section 4,
// D4). The action must be one of the profile's; the plan is nil on an error.
func Bind(profile *Profile, actionID string, doc *OpenAPI) (*Plan, Diagnostics) {
	panic("unwritten")
}

// RequestSchema is the operation's inline schema of the request body, as JSON,
// or nil when the document has none (D18).
func (p *Plan) RequestSchema() []byte { panic("unwritten") }

// SubmitURL is the absolute URL of the POST.
func (p *Plan) SubmitURL() string { return p.Origin + p.submitPath }
