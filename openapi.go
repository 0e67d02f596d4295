package agentic

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/agentic-go/agentic/internal/strictjson"
)

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

// ParseOpenAPI checks what does not depend on an action: size, strict JSON,
// version, servers (section 4, D4). The document is nil on an error. What no
// binding looks at is not checked.
func ParseOpenAPI(data []byte) (*OpenAPI, Diagnostics) {
	root, ds := readDocument("openapi", data, MaxOpenAPIBytes)
	if ds != nil {
		return nil, ds
	}
	c := &checker{document: "openapi", source: data}
	if c.kind(root, strictjson.Object) {
		c.openAPI(root)
	}
	if c.found.HasErrors() {
		return nil, c.found
	}
	return &OpenAPI{root: root.value, source: bytes.Clone(data), digest: root.value.Digest()}, c.found
}

func (c *checker) openAPI(root node) {
	for _, name := range []string{"openapi", "paths"} {
		if root.member(name).missing() {
			c.fail(root, "missing-member", fmt.Sprintf("The document lacks the member %q.", name),
				fmt.Sprintf("Add the member %q of an OpenAPI 3.1 description.", name))
		}
	}
	if n := root.member("openapi"); c.kind(n, strictjson.String) {
		if version, _ := n.value.Text(); !isVersion31(version) {
			c.fail(n, "version", fmt.Sprintf("The OpenAPI version %s is not 3.1.N with N digits.", quoted(version)),
				`Describe the service with OpenAPI 3.1, such as "3.1.1".`)
		}
	}
	c.kind(root.member("paths"), strictjson.Object)
	if n := root.member("servers"); !n.missing() && (n.value.Kind() != strictjson.Array || n.value.Len() > 0) {
		c.fail(n, "servers", "The document has servers, and this binding sends to the profile's origin only.",
			`Delete the member "servers".`)
	}
}

// isVersion31 is ^3\.1\.[0-9]+$.
func isVersion31(s string) bool {
	patch, ok := strings.CutPrefix(s, "3.1.")
	return ok && patch != "" && strings.Trim(patch, "0123456789") == ""
}
