package agentic

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// ParseProfile checks a profile: size, strict JSON, schema, then meaning (origin
// D3, unique action IDs, distinct operations, paths D4). It reports every
// problem it can find; the profile is nil when one of them is an error.
func ParseProfile(data []byte, opts Options) (*Profile, Diagnostics) {
	root, ds := readDocument("profile", data, MaxProfileBytes)
	if ds != nil {
		return nil, ds
	}
	c := &checker{document: "profile", source: data}
	p := c.profile(root)
	c.profileMeaning(root, p, opts)
	if c.found.HasErrors() {
		return nil, c.found
	}
	p.source, p.digest = bytes.Clone(data), root.value.Digest()
	return p, c.found
}

// readDocument is parseDocument with a size limit in bytes: code "too-large".
func readDocument(document string, data []byte, limit int) (node, Diagnostics) {
	if len(data) > limit {
		return node{}, Diagnostics{{Severity: SeverityError, Document: document, Code: document + "/too-large",
			Problem: fmt.Sprintf("The document has %d bytes, and %d is the most.", len(data), limit),
			Remedy:  "Write a smaller document."}}
	}
	return parseDocument(document, data)
}

// profile is the profile schema and nothing more: what it accepts, and what
// schemas/agentic-0.1.schema.json accepts, is the same. Members that it reports
// stay zero.
func (c *checker) profile(root node) *Profile {
	p := &Profile{}
	if !c.object(root, []string{"agentic", "origin", "actions"}, []string{"$schema"}) {
		return p
	}
	c.text(root.member("$schema"), 1, 0)
	c.oneOf(root.member("agentic"), Version)
	if s, ok := c.match(root.member("origin"), 1, 256, isOriginForm, `an origin such as "https://api.example", without a path`); ok {
		p.Origin = s
	}
	actions, _ := c.array(root.member("actions"), 1, 32)
	for _, n := range actions {
		p.Actions = append(p.Actions, c.action(n))
	}
	return p
}

func (c *checker) action(n node) (a Action) {
	if !c.object(n, []string{"id", "description", "openapi", "submit", "status", "verify",
		"request", "bindings", "evidence", "recovery"}, nil) {
		return a
	}
	keep := func(to *string, s string, ok bool) {
		if ok {
			*to = s
		}
	}
	name := func(to *string, n node) {
		s, ok := c.name(n)
		keep(to, s, ok)
	}
	pointer := func(to *string, n node) {
		s, ok := c.pointer(n)
		keep(to, s, ok)
	}
	name(&a.ID, n.member("id"))
	s, ok := c.text(n.member("description"), 1, 300)
	keep(&a.Description, s, ok)
	s, ok = c.match(n.member("openapi"), 1, 256, isPathForm, `a path such as "/openapi.json", without empty segments, query, fragment or backslash`)
	keep(&a.OpenAPI, s, ok)
	name(&a.Submit, n.member("submit"))
	name(&a.Status, n.member("status"))
	name(&a.Verify, n.member("verify"))

	if request := n.member("request"); !request.missing() && c.object(request, []string{"header", "scope", "retentionSeconds"}, nil) {
		a.Header, _ = c.oneOf(request.member("header"), "Idempotency-Key")
		a.Scope, _ = c.oneOf(request.member("scope"), "principal-action")
		a.Retention = time.Second * c.duration(request.member("retentionSeconds"), 60, 604800)
	}
	if bindings := n.member("bindings"); !bindings.missing() && c.object(bindings, []string{"statusRequestId", "verifyResourceId"}, nil) {
		name(&a.StatusRequestID, bindings.member("statusRequestId"))
		name(&a.VerifyResourceID, bindings.member("verifyResourceId"))
	}
	if evidence := n.member("evidence"); !evidence.missing() && c.object(evidence, []string{"resourceIdPointer",
		"requestIdPointer", "statePointer", "successValues", "inputBindings"}, nil) {
		pointer(&a.Evidence.ResourceIDPointer, evidence.member("resourceIdPointer"))
		pointer(&a.Evidence.RequestIDPointer, evidence.member("requestIdPointer"))
		pointer(&a.Evidence.StatePointer, evidence.member("statePointer"))
		values, _ := c.array(evidence.member("successValues"), 1, 10)
		c.unique(values)
		for _, v := range values {
			s, _ := c.text(v, 1, 64)
			a.Evidence.SuccessValues = append(a.Evidence.SuccessValues, s)
		}
		pairs, _ := c.array(evidence.member("inputBindings"), 1, 20)
		for _, n := range pairs {
			pair, _ := c.pair(n)
			a.Evidence.InputBindings = append(a.Evidence.InputBindings, pair)
		}
	}
	if recovery := n.member("recovery"); !recovery.missing() && c.object(recovery, []string{"maxChecks", "checkDelayMs", "timeoutMs", "retry"}, nil) {
		checks, _ := c.integer(recovery.member("maxChecks"), 1, 10)
		a.Recovery.MaxChecks = int(checks)
		a.Recovery.CheckDelay = time.Millisecond * c.duration(recovery.member("checkDelayMs"), 0, 5000)
		a.Recovery.Timeout = time.Millisecond * c.duration(recovery.member("timeoutMs"), 100, 10000)
		a.Recovery.Retry, _ = c.oneOf(recovery.member("retry"), "never-automatically")
	}
	return a
}

// duration is an integer that the caller multiplies by its unit.
func (c *checker) duration(n node, least, most int64) time.Duration {
	i, _ := c.integer(n, least, most)
	return time.Duration(i)
}

// isOriginForm is ^https?://[^/]+$ of limits.md.
func isOriginForm(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return ok && rest != "" && !strings.Contains(rest, "/")
}

// isPathForm is ^/[^/\\?#]+(?:/[^/\\?#]+)*$ of limits.md.
func isPathForm(s string) bool {
	rest, ok := strings.CutPrefix(s, "/")
	return ok && rest != "" && !strings.ContainsAny(rest, `\?#`) &&
		!strings.HasSuffix(rest, "/") && !strings.HasPrefix(rest, "/") && !strings.Contains(rest, "//")
}

// profileMeaning checks what the schema cannot say. It passes over members that
// the schema has refused, which are zero in p.
func (c *checker) profileMeaning(root node, p *Profile, opts Options) {
	if p.Origin != "" {
		c.origin(root.member("origin"), p.Origin, opts)
	}
	seen := map[string]string{}
	for i, n := range root.member("actions").elements() {
		a := p.Actions[i]
		if first, ok := seen[a.ID]; ok {
			c.fail(n.member("id"), "duplicate-action", fmt.Sprintf("The action ID %s is that of %s too.", quoted(a.ID), first),
				"Give every action an ID of its own.")
		} else if a.ID != "" {
			seen[a.ID] = n.pointer
		}
		if a.OpenAPI != "" {
			if fault := pathFault(a.OpenAPI); fault != "" {
				c.fail(n.member("openapi"), "path-not-allowed", fmt.Sprintf("The path %s %s.", quoted(a.OpenAPI), fault),
					`Write a root-relative path such as "/openapi.json".`)
			}
		}
		operations := map[string]string{}
		for _, role := range []struct{ name, id string }{{"submit", a.Submit}, {"status", a.Status}, {"verify", a.Verify}} {
			if first, ok := operations[role.id]; ok {
				c.fail(n.member(role.name), "operation-repeated", fmt.Sprintf("The operation %s is used for %s and for %s.",
					quoted(role.id), first, role.name), "Name three different operations for submit, status and verify.")
			} else if role.id != "" {
				operations[role.id] = role.name
			}
		}
	}
}

// origin checks section 2: a canonical HTTPS origin, or HTTP on a loopback host
// when that was asked for.
func (c *checker) origin(n node, origin string, opts Options) {
	err := CheckOrigin(origin, opts)
	if err == nil {
		return
	}
	code, remedy := "origin-insecure", "Serve the origin over HTTPS; for local development, allow HTTP on loopback."
	if originFault(origin) != "" {
		code = "origin-not-canonical"
		remedy = `Write scheme, host and port as a URL parser serializes them, such as "https://api.example" or "https://api.example:8443".`
	}
	c.fail(n, code, fmt.Sprintf("The origin %s %s.", quoted(origin), err), remedy)
}
