package agentic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// methods are the operations of a path item in OpenAPI 3.1, all of which an
// operation ID is looked up in (D4).
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Bind resolves the three operations of one action in the document (section 4,
// D4). The action must be one of the profile's; the plan is nil on an error.
// Warnings are returned with a plan, and are its Warnings too.
func Bind(profile *Profile, actionID string, doc *OpenAPI) (*Plan, Diagnostics) {
	i := slices.IndexFunc(profile.Actions, func(a Action) bool { return a.ID == actionID })
	if i < 0 {
		return nil, Diagnostics{{Severity: SeverityError, Document: "profile", Code: "binding/action-missing", Pointer: "/actions",
			Problem: fmt.Sprintf("The profile has no action %s.", quoted(actionID)),
			Remedy:  "Name one of the profile's actions."}}
	}
	action := profile.Actions[i]
	p := &Plan{Origin: profile.Origin, Action: action, Profile: profile, OpenAPI: doc}
	b := &binder{checker: checker{document: "binding", source: doc.source}, root: node{value: doc.root}}
	ds := Diagnostics{}
	for _, role := range []struct {
		name, id string
		bind     func(operation)
	}{
		{"submit", action.Submit, func(op operation) { b.submission(op, p) }},
		{"status", action.Status, func(op operation) { p.statusPath = b.read(op, action.StatusRequestID, "statusRequestId") }},
		{"verify", action.Verify, func(op operation) { p.verifyPath = b.read(op, action.VerifyResourceID, "verifyResourceId") }},
	} {
		switch ops := b.lookUp(role.id); len(ops) {
		case 0:
			ds = append(ds, b.operationMissing(profile, i, role.name, role.id))
		case 1:
			role.bind(ops[0])
		default:
			b.ambiguous(role.name, role.id, ops)
		}
	}
	for _, d := range b.found {
		d.Document = "openapi"
		ds = append(ds, d)
	}
	if ds.HasErrors() {
		return nil, ds
	}
	p.Warnings = ds
	return p, ds
}

// binder checks the operations of one action. Its codes begin with "binding/",
// its places are in the OpenAPI document.
type binder struct {
	checker
	root node
}

// operation is one operation of the document: where it is and what holds it.
type operation struct {
	node          // the operation object
	item   node   // its path item
	path   string // key of the path item, as it was written
	method string // in lower case
}

func (op operation) String() string {
	return strings.ToUpper(op.method) + " " + quoted(op.path)
}

// lookUp gives every operation of that ID. Members of "paths" that begin with
// "x-" are extensions and hold none.
func (b *binder) lookUp(id string) (ops []operation) {
	paths := b.root.member("paths")
	for _, m := range paths.value.Members() {
		if strings.HasPrefix(m.Name, "x-") {
			continue
		}
		for _, method := range methods {
			// Plain values first: nodes cost a pointer for each of thousands.
			v, _ := m.Value.Member(method)
			named, _ := v.Member("operationId")
			if s, ok := named.Text(); ok && s == id {
				item := node{value: m.Value, pointer: paths.pointer + "/" + strictjson.EscapeToken(m.Name)}
				ops = append(ops, operation{node: item.member(method), item: item, path: m.Name, method: method})
			}
		}
	}
	return ops
}

func (b *binder) operationMissing(profile *Profile, action int, role, id string) Diagnostic {
	d := Diagnostic{Severity: SeverityError, Document: "profile", Code: "binding/operation-missing",
		Pointer: fmt.Sprintf("/actions/%d/%s", action, role),
		Problem: fmt.Sprintf("The OpenAPI document has no operation %s, which the action names for %s.", quoted(id), role),
		Remedy:  "Name the operationId of an operation of the OpenAPI document, or add it there.",
	}
	for _, m := range b.root.member("paths").value.Members() {
		if _, ok := m.Value.Member("$ref"); ok {
			d.Remedy += " Path items that are only a $ref are not followed."
			break
		}
	}
	if root, err := strictjson.Parse(profile.source); err == nil {
		if v, ok := root.Lookup(d.Pointer); ok {
			d.Line, d.Column = strictjson.Position(profile.source, v.Offset())
		}
	}
	return d
}

func (b *binder) ambiguous(role, id string, ops []operation) {
	const shown = 4
	var places []string
	for _, op := range ops[:min(len(ops), shown)] {
		places = append(places, op.String())
	}
	more := ""
	if len(ops) > shown {
		more = fmt.Sprintf(" and %d more", len(ops)-shown)
	}
	b.fail(ops[1].member("operationId"), "operation-ambiguous",
		fmt.Sprintf("The operation %s for %s is there %d times: %s%s.", quoted(id), role, len(ops), strings.Join(places, ", "), more),
		"Give every operation an operationId of its own.")
}

// submission checks the POST and takes its path and its request schema.
func (b *binder) submission(op operation, p *Plan) {
	b.inline(op, "post")
	if fault := pathFault(op.path); strings.ContainsAny(op.path, "{}") {
		b.fail(op.item, "submit-placeholder", fmt.Sprintf("The submission %s has a path placeholder, which this binding cannot fill.", op),
			"Describe a submission without path parameters.")
	} else if fault != "" {
		b.pathNotAllowed(op, fault)
	}
	p.submitPath = op.path

	ps := b.parameters(op)
	key, others := pick(ps, func(q parameter) bool { return q.in == "header" && strings.EqualFold(q.name, p.Action.Header) })
	if len(key) == 0 {
		b.fail(op.node, "key-header-missing", fmt.Sprintf("The submission %s does not declare the header %s.", op, p.Action.Header),
			fmt.Sprintf("Add a required header parameter %q to the operation.", p.Action.Header))
	}
	for _, q := range key {
		b.sent(q)
	}
	inPath, others := pick(others, func(q parameter) bool { return q.in == "path" })
	for _, q := range inPath {
		b.fail(q.node, "submit-path-parameter", fmt.Sprintf("The submission has the path parameter %s, which this binding cannot fill.", quoted(q.name)),
			"Describe a submission without path parameters.")
	}
	b.unsendable(others)

	body := op.member("requestBody")
	content := body.member("content")
	media := content.member("application/json")
	switch {
	case b.reference(body), b.reference(media):
	case media.value.Kind() != strictjson.Object:
		at := op.node
		if !body.missing() {
			at = body
		}
		b.fail(at, "body-not-json", fmt.Sprintf("The submission %s declares no request body of the media type application/json.", op),
			`Add "application/json" to the content of the request body.`)
	default:
		p.schema = b.requestSchema(media.member("schema"))
	}
}

// requestSchema is the schema of the request body, unless the document puts its
// schemas into a dialect that is not JSON Schema 2020-12.
func (b *binder) requestSchema(schema node) strictjson.Value {
	dialect := b.root.member("jsonSchemaDialect")
	s, _ := dialect.value.Text()
	if dialect.missing() || s == "https://json-schema.org/draft/2020-12/schema" || strings.HasPrefix(s, "https://spec.openapis.org/oas/3.1/") {
		return schema.value
	}
	b.warn(dialect, "schema-dialect", fmt.Sprintf("The dialect of the schemas, %s, is unknown, so no input is checked against them.", show(dialect.value)),
		`Delete "jsonSchemaDialect" and write the schemas in JSON Schema 2020-12.`)
	return strictjson.Value{}
}

// read checks a GET and takes its path. binding is the member of the profile
// that holds name.
//
// The placeholder may be a part of its segment, as in /tickets/{id}.json: an ID
// is never empty, "." or ".." (D14), so what stands around it cannot make the
// segment a traversal.
func (b *binder) read(op operation, name, binding string) (t pathTemplate) {
	b.inline(op, "get")
	prefix, rest, opened := strings.Cut(op.path, "{")
	placeholder, suffix, closed := strings.Cut(rest, "}")
	if !opened || !closed || strings.ContainsAny(prefix+placeholder+suffix, "{}") || strings.Contains(placeholder, "/") {
		b.fail(op.item, "read-placeholder", fmt.Sprintf("The path of %s does not have exactly one placeholder.", op),
			fmt.Sprintf(`Write one placeholder "{%s}" in the path.`, name))
	} else {
		if placeholder != name {
			b.fail(op.item, "placeholder-name", fmt.Sprintf("The placeholder of %s is not %s, which the profile's bindings.%s names.",
				op, quoted(name), binding), fmt.Sprintf(`Write "{%s}" in the path, or mend the profile.`, name))
		}
		if fault := pathFault(prefix + "x" + suffix); fault != "" {
			b.pathNotAllowed(op, fault)
		}
		t = pathTemplate{prefix: prefix, suffix: suffix}
	}

	inPath, others := pick(b.parameters(op), func(q parameter) bool { return q.in == "path" })
	bound, unbound := pick(inPath, func(q parameter) bool { return q.name == name })
	if len(bound) == 0 {
		b.fail(op.node, "path-parameter-missing", fmt.Sprintf("The operation %s does not declare the path parameter %s of bindings.%s.",
			op, quoted(name), binding), fmt.Sprintf("Add a required path parameter %q to the operation itself.", name))
	}
	for _, q := range bound {
		b.sent(q)
	}
	for _, q := range unbound {
		b.fail(q.node, "path-parameter-unbound", fmt.Sprintf("The operation %s has the path parameter %s, which this binding cannot fill.",
			op, quoted(q.name)), "Describe a read with one path parameter.")
	}
	b.unsendable(others)
	if body := op.member("requestBody"); !body.missing() {
		if required := body.member("required"); !required.missing() && !isFalse(required) {
			b.warn(body, "not-sent", fmt.Sprintf("The operation %s requires a request body, which this binding does not send.", op),
				"Describe a read without a request body.")
		}
	}
	return t
}

func (b *binder) pathNotAllowed(op operation, fault string) {
	b.fail(op.item, "path-not-allowed", fmt.Sprintf("The path %s %s.", quoted(op.path), fault),
		"Write a root-relative path of visible ASCII, without empty or traversal segments, escapes, query or fragment.")
}

// inline checks the method of an operation and that nothing but itself says how
// it is called.
func (b *binder) inline(op operation, method string) {
	if op.method != method {
		b.fail(op.node, "method", fmt.Sprintf("The operation %s is not a %s.", op, strings.ToUpper(method)),
			fmt.Sprintf("Name the operationId of a %s in the profile.", strings.ToUpper(method)))
	}
	b.reference(op.item)
	b.reference(op.node)
	if n := op.item.member("parameters"); !n.missing() {
		b.fail(n, "path-item-parameters", fmt.Sprintf("The path item of %s has parameters, which this binding does not inherit.", op),
			"Move the parameters into the operations.")
	}
	for _, holder := range []node{op.item, op.node} {
		if n := holder.member("servers"); !n.missing() {
			b.fail(n, "servers", fmt.Sprintf("The operation %s has servers of its own, and this binding sends to the profile's origin only.", op),
				`Delete the member "servers".`)
		}
	}
}

// reference reports a $ref, which this binding does not follow.
func (b *binder) reference(n node) bool {
	ref := n.member("$ref")
	if ref.missing() {
		return false
	}
	b.fail(ref, "reference", fmt.Sprintf("%s is or has a $ref, which this binding does not follow.", place(n)),
		"Write what it refers to in its place.")
	return true
}

// parameter is one inline parameter of an operation.
type parameter struct {
	node
	name, in string
}

// parameters reads the parameters of an operation. Those that it reports are not
// among them.
func (b *binder) parameters(op operation) (ps []parameter) {
	list := op.member("parameters")
	if list.missing() || b.reference(list) || !b.kind(list, strictjson.Array) {
		return nil
	}
	seen := map[string]bool{}
	for _, n := range list.elements() {
		if !b.kind(n, strictjson.Object) || b.reference(n) {
			continue
		}
		name, hasName := n.member("name").value.Text()
		in, _ := n.member("in").value.Text()
		if !hasName || !slices.Contains([]string{"query", "header", "path", "cookie"}, in) {
			b.fail(n, "parameter", fmt.Sprintf(`%s is not a parameter with a name, and "query", "header", "path" or "cookie" as "in".`, place(n)),
				`Mend "name" and "in" of the parameter.`)
			continue
		}
		key := in + " " + name
		if in == "header" {
			key = strings.ToLower(key)
		}
		if seen[key] {
			b.fail(n, "parameter-duplicate", fmt.Sprintf("The operation %s has the %s parameter %s twice.", op, in, quoted(name)),
				"Delete one of the two.")
			continue
		}
		seen[key] = true
		ps = append(ps, parameter{node: n, name: name, in: in})
	}
	return ps
}

// sent checks a parameter that this binding sends: required, and with a plain
// value.
func (b *binder) sent(q parameter) {
	if required := q.member("required").value; !required.Truth() {
		b.fail(q.node, "parameter-optional", fmt.Sprintf("The %s parameter %s is not required.", q.in, quoted(q.name)),
			`Write "required": true in it.`)
	}
	style := q.member("style")
	if s, _ := style.value.Text(); (style.missing() || s == "simple") && q.member("content").missing() {
		return
	}
	b.warn(q.node, "parameter-style", fmt.Sprintf("The %s parameter %s has a style or content of its own, and this binding sends the plain value.",
		q.in, quoted(q.name)), `Delete "style" and "content" and describe the parameter with a schema.`)
}

// unsendable warns of required parameters that this binding does not send. The
// three header names that OpenAPI tells to ignore are none of them.
func (b *binder) unsendable(ps []parameter) {
	for _, q := range ps {
		required := q.member("required")
		ignored := q.in == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(q.name))
		if required.missing() || isFalse(required) || ignored {
			continue
		}
		b.warn(q.node, "not-sent", fmt.Sprintf("The %s parameter %s is required, and this binding does not send it.", q.in, quoted(q.name)),
			"Make it optional, unless it is a credential that hosts send anyway.")
	}
}

func isFalse(n node) bool { return n.value.Kind() == strictjson.Bool && !n.value.Truth() }

// pick divides parameters into those that match and the others.
func pick(ps []parameter, match func(parameter) bool) (yes, no []parameter) {
	for _, q := range ps {
		if match(q) {
			yes = append(yes, q)
		} else {
			no = append(no, q)
		}
	}
	return yes, no
}
