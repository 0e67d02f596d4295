package agentic

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var openAPICases = []documentCase{
	{"unchanged", nil, nil},
	{"not an object", []string{"*", `"openapi"`}, []string{"openapi/wrong-type"}},
	{"empty object", []string{"*", "{}"}, []string{"openapi/missing-member", "openapi/missing-member"}},
	{"3.1.0", []string{"3.1.1", "3.1.0"}, nil},
	{"3.1.42", []string{"3.1.1", "3.1.42"}, nil},
	{"3.0", []string{"3.1.1", "3.0.3"}, []string{"openapi/version /openapi"}},
	{"3.2", []string{"3.1.1", "3.2.0"}, []string{"openapi/version /openapi"}},
	{"no patch number", []string{"3.1.1", "3.1"}, []string{"openapi/version /openapi"}},
	{"empty patch number", []string{"3.1.1", "3.1."}, []string{"openapi/version /openapi"}},
	{"candidate", []string{"3.1.1", "3.1.0-rc1"}, []string{"openapi/version /openapi"}},
	{"other digits", []string{"3.1.1", "3.1.١"}, []string{"openapi/version /openapi"}},
	{"version as a number", []string{`"3.1.1"`, "3.1"}, []string{"openapi/wrong-type /openapi"}},
	{"paths as an array", []string{"*", `{"openapi":"3.1.0","paths":[]}`}, []string{"openapi/wrong-type /paths"}},
	{"no servers", []string{`"info"`, `"servers": [], "info"`}, nil},
	{"servers", []string{`"info"`, `"servers": [{"url": "/"}], "info"`}, []string{"openapi/servers /servers"}},
	{"servers that are no array", []string{`"info"`, `"servers": {}, "info"`}, []string{"openapi/servers /servers"}},
	{"servers null", []string{`"info"`, `"servers": null, "info"`}, []string{"openapi/servers /servers"}},
	{"extensions and what nobody looks at", []string{`"info"`, `"x-a": 1, "webhooks": [], "info"`}, nil},
}

const (
	submitPath = "/paths/~1tickets"
	statusPath = "/paths/~1requests~1{requestId}"
	verifyPath = "/paths/~1tickets~1{ticketId}"
	keyHeader  = `"name": "Idempotency-Key",
            "in": "header",
            "required": true,`
	statusParameter = `{ "name": "requestId", "in": "path", "required": true, "schema": { "type": "string" } }`
	verifyParameter = `{ "name": "ticketId", "in": "path", "required": true, "schema": { "type": "string" } }`
)

// bindCases are of section 4 and D4.
var bindCases = []documentCase{
	{"unchanged", nil, nil},

	{"no such operation", []string{"getTicket", "readTicket"}, []string{"binding/operation-missing /actions/0/verify"}},
	{"operation IDs have case", []string{"getTicket", "GetTicket"}, []string{"binding/operation-missing /actions/0/verify"}},
	{"operation in an extension", []string{`"/tickets/{ticketId}"`, `"x-tickets"`}, []string{"binding/operation-missing /actions/0/verify"}},
	{"operation behind a reference", []string{`"paths": {`, `"paths": {"/t/{ticketId}": {"$ref": "#/components/pathItems/T"},`, "getTicket", "other"},
		[]string{"binding/operation-missing /actions/0/verify"}},
	{"method in upper case is no method", []string{`"post": {`, `"POST": {`}, []string{"binding/operation-missing /actions/0/submit"}},
	{"operation in a path item that is no object", []string{`"paths": {`, `"paths": {"/a": "createTicket", "/b": {"get": "createTicket"}, "/c": {"get": {"operationId": ["createTicket"]}},`}, nil},
	{"another operation under put", []string{`"post": {`, `"put": {"operationId": "replaceTickets"}, "post": {`}, nil},

	{"submission by put", []string{`"post": {`, `"put": {`}, []string{"binding/method " + submitPath + "/put"}},
	{"status by head", []string{`"get": {`, `"head": {`}, []string{"binding/method " + statusPath + "/head"}},
	{"verify by post", []string{"\"/tickets/{ticketId}\": {\n      \"get\"", "\"/tickets/{ticketId}\": {\n      \"post\""}, []string{"binding/method " + verifyPath + "/post"}},

	{"path item with a reference", []string{`"post": {`, `"$ref": "#/components/pathItems/T", "post": {`}, []string{"binding/reference " + submitPath + "/$ref"}},
	{"path item with parameters", []string{`"get": {`, `"parameters": [], "get": {`}, []string{"binding/path-item-parameters " + statusPath + "/parameters"}},
	{"path item with servers", []string{`"get": {`, `"servers": [], "get": {`}, []string{"binding/servers " + statusPath + "/servers"}},
	{"operation with servers", []string{`"operationId": "getRequestStatus",`, `"operationId": "getRequestStatus", "servers": [{"url": "https://evil.example"}],`},
		[]string{"binding/servers " + statusPath + "/get/servers"}},
	{"operation with a reference", []string{`"operationId": "getRequestStatus",`, `"operationId": "getRequestStatus", "$ref": "#/x",`},
		[]string{"binding/reference " + statusPath + "/get/$ref"}},
	{"faults of other path items do not matter", []string{`"paths": {`, `"paths": {"/a": {"parameters": [], "servers": [], "$ref": "b", "get": {"operationId": "a"}},`}, nil},
	{"summary and description", []string{`"get": {`, `"summary": "a", "description": "b", "x-c": 1, "get": {`}, nil},

	{"no parameters", []string{"parameters", "x-parameters"}, []string{"binding/key-header-missing " + submitPath + "/post"}},
	{"parameters that are no array", []string{`"parameters": [
          {
            "name"`, `"parameters": {}, "x-p": [
          {
            "name"`}, []string{"binding/wrong-type " + submitPath + "/post/parameters", "binding/key-header-missing " + submitPath + "/post"}},
	{"parameters by reference", []string{`"parameters": [
          {
            "name"`, `"parameters": {"$ref": "#/x"}, "x-p": [
          {
            "name"`}, []string{"binding/reference " + submitPath + "/post/parameters/$ref", "binding/key-header-missing " + submitPath + "/post"}},
	{"parameter that is no object", []string{verifyParameter, verifyParameter + `, "a"`}, []string{"binding/wrong-type " + verifyPath + "/get/parameters/1"}},
	{"parameter by reference", []string{verifyParameter, `{"$ref": "#/components/parameters/ticketId"}`},
		[]string{"binding/reference " + verifyPath + "/get/parameters/0/$ref", "binding/path-parameter-missing " + verifyPath + "/get"}},
	{"reference beside a parameter", []string{keyHeader, keyHeader + `"$ref": "#/x",`},
		[]string{"binding/reference " + submitPath + "/post/parameters/0/$ref", "binding/key-header-missing " + submitPath + "/post"}},
	{"parameter without a name", []string{verifyParameter, verifyParameter + `, {"in": "query"}`}, []string{"binding/parameter " + verifyPath + "/get/parameters/1"}},
	{"parameter in the body", []string{verifyParameter, verifyParameter + `, {"name": "a", "in": "body"}`}, []string{"binding/parameter " + verifyPath + "/get/parameters/1"}},
	{"parameter twice", []string{verifyParameter, verifyParameter + ", " + verifyParameter}, []string{"binding/parameter-duplicate " + verifyPath + "/get/parameters/1"}},
	{"one name in two places", []string{verifyParameter, verifyParameter + `, {"name": "ticketId", "in": "query"}`}, nil},
	{"query names have case", []string{verifyParameter, verifyParameter + `, {"name": "a", "in": "query"}, {"name": "A", "in": "query"}`}, nil},

	{"key header in lower case", []string{"Idempotency-Key", "idempotency-key"}, nil},
	{"key header twice", []string{"{\n            " + keyHeader, `{"name": "IDEMPOTENCY-KEY", "in": "header", "required": true}, {` + keyHeader},
		[]string{"binding/parameter-duplicate " + submitPath + "/post/parameters/1"}},
	{"other key header", []string{"Idempotency-Key", "X-Idempotency-Key"}, []string{"binding/key-header-missing " + submitPath + "/post",
		"binding/not-sent " + submitPath + "/post/parameters/0"}},
	{"key in the query", []string{`"in": "header"`, `"in": "query"`}, []string{"binding/key-header-missing " + submitPath + "/post",
		"binding/not-sent " + submitPath + "/post/parameters/0"}},
	{"key header not required", []string{keyHeader, `"name": "Idempotency-Key", "in": "header", "required": false,`}, []string{"binding/parameter-optional " + submitPath + "/post/parameters/0"}},
	{"key header without required", []string{keyHeader, `"name": "Idempotency-Key", "in": "header",`}, []string{"binding/parameter-optional " + submitPath + "/post/parameters/0"}},
	{"key header required by text", []string{keyHeader, `"name": "Idempotency-Key", "in": "header", "required": "true",`}, []string{"binding/parameter-optional " + submitPath + "/post/parameters/0"}},
	{"key header required by a number", []string{keyHeader, `"name": "Idempotency-Key", "in": "header", "required": 1,`}, []string{"binding/parameter-optional " + submitPath + "/post/parameters/0"}},
	{"key header as JSON", []string{keyHeader, keyHeader + `"content": {"application/json": {}},`}, []string{"binding/parameter-style " + submitPath + "/post/parameters/0"}},

	{"submission with a placeholder", []string{`"/tickets":`, `"/{tenant}/tickets":`}, []string{"binding/submit-placeholder /paths/~1{tenant}~1tickets"}},
	{"submission with a path parameter", []string{"{\n            " + keyHeader, `{"name": "tenant", "in": "path", "required": true}, {` + keyHeader},
		[]string{"binding/submit-path-parameter " + submitPath + "/post/parameters/0"}},
	{"submission without a body", []string{"requestBody", "x-body"}, []string{"binding/body-not-json " + submitPath + "/post"}},
	{"submission of a form", []string{"application/json", "application/x-www-form-urlencoded"}, []string{"binding/body-not-json " + submitPath + "/post/requestBody"}},
	{"submission of a form or JSON", []string{`"application/json"`, `"text/plain": {}, "application/json"`}, nil},
	{"body by reference", []string{`"requestBody": {`, `"requestBody": {"$ref": "#/components/requestBodies/T",`}, []string{"binding/reference " + submitPath + "/post/requestBody/$ref"}},
	{"media type by reference", []string{`"application/json": {`, `"application/json": {"$ref": "#/x",`},
		[]string{"binding/reference " + submitPath + "/post/requestBody/content/application~1json/$ref"}},
	{"media type that is no object", []string{`"application/json": {`, `"application/json": true, "x": {`}, []string{"binding/body-not-json " + submitPath + "/post/requestBody"}},

	{"read without a placeholder", []string{"/requests/{requestId}", "/requests/requestId"}, []string{"binding/read-placeholder /paths/~1requests~1requestId"}},
	{"read with two placeholders", []string{"/requests/{requestId}", "/{tenant}/{requestId}"}, []string{"binding/read-placeholder /paths/~1{tenant}~1{requestId}"}},
	{"placeholder twice", []string{"/requests/{requestId}", "/{requestId}/{requestId}"}, []string{"binding/read-placeholder /paths/~1{requestId}~1{requestId}"}},
	{"nested braces", []string{"/requests/{requestId}", "/requests/{{requestId}}"}, []string{"binding/read-placeholder /paths/~1requests~1{{requestId}}"}},
	{"open brace", []string{"/requests/{requestId}", "/requests/{requestId"}, []string{"binding/read-placeholder /paths/~1requests~1{requestId"}},
	{"closing brace first", []string{"/requests/{requestId}", "/requests/}{requestId}"}, []string{"binding/read-placeholder /paths/~1requests~1}{requestId}"}},
	{"placeholder over a slash", []string{"/requests/{requestId}", "/requests/{request/Id}"}, []string{"binding/read-placeholder /paths/~1requests~1{request~1Id}"}},
	{"placeholder of another name", []string{"/requests/{requestId}", "/requests/{requestid}"}, []string{"binding/placeholder-name /paths/~1requests~1{requestid}"}},
	{"placeholder with an operator", []string{"/requests/{requestId}", "/requests/{+requestId}"}, []string{"binding/placeholder-name /paths/~1requests~1{+requestId}"}},
	{"placeholder inside a segment", []string{"/requests/{requestId}", "/requests/r-{requestId}.json"}, nil},
	{"segments after the placeholder", []string{"/requests/{requestId}", "/requests/{requestId}/status"}, nil},
	{"placeholder in the query", []string{"/requests/{requestId}", "/requests?id={requestId}"}, []string{"binding/path-not-allowed /paths/~1requests?id={requestId}"}},
	{"parameter of another name", []string{statusParameter, `{"name": "id", "in": "path", "required": true}`},
		[]string{"binding/path-parameter-missing " + statusPath + "/get", "binding/path-parameter-unbound " + statusPath + "/get/parameters/0"}},
	{"path parameter names have case", []string{`"name": "requestId"`, `"name": "requestID"`},
		[]string{"binding/path-parameter-missing " + statusPath + "/get", "binding/path-parameter-unbound " + statusPath + "/get/parameters/0"}},
	{"parameter in the query instead", []string{`"requestId", "in": "path"`, `"requestId", "in": "query"`},
		[]string{"binding/path-parameter-missing " + statusPath + "/get", "binding/not-sent " + statusPath + "/get/parameters/0"}},
	{"path parameter not required", []string{`"in": "path", "required": true`, `"in": "path"`}, []string{"binding/parameter-optional " + statusPath + "/get/parameters/0"}},
	{"path parameter required by text", []string{`"in": "path", "required": true`, `"in": "path", "required": "true"`}, []string{"binding/parameter-optional " + statusPath + "/get/parameters/0"}},
	{"second path parameter", []string{statusParameter, statusParameter + `, {"name": "tenant", "in": "path", "required": true}`},
		[]string{"binding/path-parameter-unbound " + statusPath + "/get/parameters/1"}},
	{"path parameter of a style", []string{`"in": "path", "required": true`, `"in": "path", "required": true, "style": "label"`}, []string{"binding/parameter-style " + statusPath + "/get/parameters/0"}},
	{"path parameter of the plain style", []string{`"in": "path", "required": true`, `"in": "path", "required": true, "style": "simple"`}, nil},

	{"traversal", []string{`"/tickets":`, `"/a/../tickets":`}, []string{"binding/path-not-allowed /paths/~1a~1..~1tickets"}},
	{"traversal after the placeholder", []string{"/requests/{requestId}", "/requests/{requestId}/.."}, []string{"binding/path-not-allowed /paths/~1requests~1{requestId}~1.."}},
	{"traversal by a tab", []string{`"/tickets":`, `"/.\t./tickets":`}, []string{"binding/path-not-allowed /paths/~1.\t.~1tickets"}},
	{"network path", []string{`"/tickets":`, `"//evil.example/tickets":`}, []string{"binding/path-not-allowed /paths/~1~1evil.example~1tickets"}},
	{"other host by a newline", []string{`"/tickets":`, `"/\n/evil.example":`}, []string{"binding/path-not-allowed /paths/~1\n~1evil.example"}},
	{"absolute URL", []string{`"/tickets":`, `"https://evil.example/tickets":`}, []string{"binding/path-not-allowed /paths/https:~1~1evil.example~1tickets"}},
	{"credentials trick", []string{`"/tickets":`, `"@evil.example/tickets":`}, []string{"binding/path-not-allowed /paths/@evil.example~1tickets"}},
	{"no slash", []string{`"/tickets":`, `"tickets":`}, []string{"binding/path-not-allowed /paths/tickets"}},
	{"empty path", []string{`"/tickets":`, `"":`}, []string{"binding/path-not-allowed /paths/"}},
	{"trailing slash", []string{`"/tickets":`, `"/tickets/":`}, []string{"binding/path-not-allowed /paths/~1tickets~1"}},
	{"escape", []string{`"/tickets":`, `"/%2e%2e/tickets":`}, []string{"binding/path-not-allowed /paths/~1%2e%2e~1tickets"}},
	{"query", []string{`"/tickets":`, `"/tickets?dry=1":`}, []string{"binding/path-not-allowed /paths/~1tickets?dry=1"}},
	{"fragment", []string{`"/tickets":`, `"/tickets#new":`}, []string{"binding/path-not-allowed /paths/~1tickets#new"}},
	{"backslash", []string{`"/tickets":`, `"/\\evil.example":`}, []string{`binding/path-not-allowed /paths/~1\evil.example`}},
	{"letter that is not ASCII", []string{`"/tickets":`, `"/tïckets":`}, []string{"binding/path-not-allowed /paths/~1tïckets"}},

	{"required query parameter", []string{statusParameter, statusParameter + `, {"name": "tenant", "in": "query", "required": true}`}, []string{"binding/not-sent " + statusPath + "/get/parameters/1"}},
	{"required header", []string{statusParameter, statusParameter + `, {"name": "X-Tenant", "in": "header", "required": true}`}, []string{"binding/not-sent " + statusPath + "/get/parameters/1"}},
	{"required cookie", []string{statusParameter, statusParameter + `, {"name": "session", "in": "cookie", "required": "yes"}`}, []string{"binding/not-sent " + statusPath + "/get/parameters/1"}},
	{"optional query parameter", []string{statusParameter, statusParameter + `, {"name": "a", "in": "query", "required": false}, {"name": "b", "in": "query"}`}, nil},
	{"headers that OpenAPI ignores", []string{statusParameter, statusParameter + `, {"name": "authorization", "in": "header", "required": true}, {"name": "Accept", "in": "header", "required": true}`}, nil},
	{"read with a body", []string{`"operationId": "getTicket",`, `"operationId": "getTicket", "requestBody": {"required": true},`}, []string{"binding/not-sent " + verifyPath + "/get/requestBody"}},
	{"read with an optional body", []string{`"operationId": "getTicket",`, `"operationId": "getTicket", "requestBody": {},`}, nil},
	{"other dialect", []string{`"info"`, `"jsonSchemaDialect": "https://example.com/dialect", "info"`}, []string{"binding/schema-dialect /jsonSchemaDialect"}},
	{"dialect of OpenAPI", []string{`"info"`, `"jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base", "info"`}, nil},

	{"everything at once", []string{`"/tickets":`, `"/tickets/":`, "requestBody", "x-body", "getRequestStatus", "x", statusParameter, "7", verifyParameter, "7"}, []string{
		"binding/operation-missing /actions/0/status", "binding/path-not-allowed /paths/~1tickets~1", "binding/body-not-json /paths/~1tickets~1/post",
		"binding/wrong-type " + verifyPath + "/get/parameters/0", "binding/path-parameter-missing " + verifyPath + "/get"}},
}

func TestParseOpenAPI(t *testing.T) {
	example := readTestdata(t, "openapi.json")
	for _, tt := range append(textCases("openapi", MaxOpenAPIBytes), openAPICases...) {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.whole(t, example)
			doc, ds := ParseOpenAPI(data)
			if diff := cmp.Diff(tt.want, codesAt(ds)); diff != "" {
				t.Error(diff)
			}
			if (doc != nil) != (tt.want == nil) {
				t.Errorf("document is %v", doc)
			}
			checkDiagnostics(t, ds, data)
		})
	}
}

// bindExample binds the example profile to a document that ParseOpenAPI accepts.
func bindExample(t testing.TB, openapi []byte) (*Plan, Diagnostics) {
	t.Helper()
	profile, ds := ParseProfile(readTestdata(t, "profile.json"), Options{})
	if ds != nil {
		t.Fatal(ds)
	}
	doc, ds := ParseOpenAPI(openapi)
	if ds != nil {
		t.Fatal(ds)
	}
	return Bind(profile, "create-ticket", doc)
}

func TestBind(t *testing.T) {
	example := readTestdata(t, "openapi.json")
	warnings := []string{"binding/not-sent", "binding/parameter-style", "binding/schema-dialect"}
	for _, tt := range bindCases {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.whole(t, example)
			plan, ds := bindExample(t, data)
			if diff := cmp.Diff(tt.want, codesAt(ds)); diff != "" {
				t.Error(diff)
			}
			checkDiagnostics(t, ds, data)
			valid := true
			for _, d := range ds {
				warning := slices.Contains(warnings, d.Code)
				valid = valid && warning
				if warning != (d.Severity == SeverityWarning) {
					t.Errorf("severity of %v", d)
				}
				if want := map[bool]string{true: "profile", false: "openapi"}[d.Code == "binding/operation-missing"]; d.Document != want {
					t.Errorf("%v is not of the document %s", d, want)
				}
			}
			if (plan != nil) != valid {
				t.Fatalf("plan is %v", plan)
			}
			if plan != nil && len(plan.Warnings) != len(tt.want) {
				t.Errorf("warnings %v", plan.Warnings)
			}
		})
	}
}

// TestBindAmbiguous holds that an operation ID is looked up over every method of
// every path (D4), and that the message names the places.
func TestBindAmbiguous(t *testing.T) {
	example := string(readTestdata(t, "openapi.json"))
	for _, method := range methods {
		for _, id := range []string{"createTicket", "getRequestStatus", "getTicket"} {
			data := edit(t, example, `"paths": {`, fmt.Sprintf(`"paths": {"/other": {"%s": {"operationId": "%s"}},`, method, id))
			plan, ds := bindExample(t, []byte(data))
			if plan != nil || len(ds) != 1 || ds[0].Code != "binding/operation-ambiguous" {
				t.Fatalf("%s twice, once under %s: %v", id, method, ds)
			}
			for _, want := range []string{`"` + id + `"`, strings.ToUpper(method) + ` "/other"`, `"/tickets`, "2 times"} {
				if want = strings.Replace(want, `"/tickets`, map[bool]string{true: `"/requests`, false: `"/tickets`}[id == "getRequestStatus"], 1); !strings.Contains(ds[0].Problem, want) {
					t.Errorf("%q does not name %s", ds[0].Problem, want)
				}
			}
		}
	}
	same := edit(t, example, `"post": {`, `"put": {"operationId": "createTicket"}, "post": {`)
	if _, ds := bindExample(t, []byte(same)); len(ds) != 1 || !strings.Contains(ds[0].Problem, `PUT "/tickets", POST "/tickets"`) {
		t.Errorf("twice in one path item: %v", ds)
	}
	var many strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, `"/%d": {"get": {"operationId": "getTicket"}},`, i)
	}
	if _, ds := bindExample(t, []byte(edit(t, example, `"paths": {`, `"paths": {`+many.String()))); len(ds) != 1 || !strings.Contains(ds[0].Problem, "51 times") || len(ds[0].Problem) > 300 {
		t.Errorf("many times: %v", ds)
	}
}

func TestBindActionMissing(t *testing.T) {
	profile, _ := ParseProfile(readTestdata(t, "profile.json"), Options{})
	doc, _ := ParseOpenAPI(readTestdata(t, "openapi.json"))
	plan, ds := Bind(profile, "delete-ticket", doc)
	if diff := cmp.Diff([]string{"binding/action-missing /actions"}, codesAt(ds)); diff != "" || plan != nil {
		t.Error(diff, plan)
	}
}

func TestBindOperationMissingPlace(t *testing.T) {
	_, ds := bindExample(t, []byte(edit(t, string(readTestdata(t, "openapi.json")), "getTicket", "readTicket")))
	want := Diagnostics{{Severity: SeverityError, Code: "binding/operation-missing", Document: "profile", Pointer: "/actions/0/verify", Line: 12, Column: 17,
		Problem: `The OpenAPI document has no operation "getTicket", which the action names for verify.`,
		Remedy:  "Name the operationId of an operation of the OpenAPI document, or add it there."}}
	if diff := cmp.Diff(want, ds); diff != "" {
		t.Error(diff)
	}
}

func TestRequestSchema(t *testing.T) {
	example := string(readTestdata(t, "openapi.json"))
	for _, tt := range []struct {
		name   string
		oldnew []string
		want   string
	}{
		{"none", []string{`"schema": {
                "type": "object"`, `"x-schema": {
                "type": "object"`}, ""},
		{"boolean", []string{`"schema": {
                "type": "object"`, `"schema": true, "x-schema": {
                "type": "object"`}, "true"},
		{"unknown dialect", []string{`"info"`, `"jsonSchemaDialect": "https://example.com/", "info"`}, ""},
	} {
		plan, ds := bindExample(t, []byte(edit(t, example, tt.oldnew...)))
		if plan == nil || string(plan.RequestSchema()) != tt.want {
			t.Errorf("%s: %v", tt.name, ds)
		}
	}
}

func TestLoadKeepsWarnings(t *testing.T) {
	openapi := edit(t, string(readTestdata(t, "openapi.json")), statusParameter, statusParameter+`, {"name": "tenant", "in": "query", "required": true}`)
	plan, err := Load(readTestdata(t, "profile.json"), []byte(openapi), "create-ticket", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"binding/not-sent " + statusPath + "/get/parameters/1"}, codesAt(plan.Warnings)); diff != "" {
		t.Error(diff)
	}
}

// FuzzBind holds that a plan's three URLs stay below the profile's origin,
// whatever the document and the ID say.
func FuzzBind(f *testing.F) {
	example := readTestdata(f, "openapi.json")
	for _, c := range bindCases {
		f.Add(c.whole(f, example), "t-1")
	}
	for _, id := range []string{"..", ".", "a/../b", "%2e%2e", "?", "#", "\\", "//evil.example", "é", "a b"} {
		f.Add(example, id)
	}
	f.Fuzz(func(t *testing.T, openapi []byte, id string) {
		profile, _ := ParseProfile(readTestdata(t, "profile.json"), Options{})
		doc, ds := ParseOpenAPI(openapi)
		if (doc == nil) != ds.HasErrors() {
			t.Fatalf("document %v with %v", doc, ds)
		}
		if doc == nil {
			return
		}
		plan, ds := Bind(profile, "create-ticket", doc)
		if (plan == nil) != ds.HasErrors() {
			t.Fatalf("plan %v with %v", plan, ds)
		}
		if plan == nil {
			return
		}
		urls := []string{plan.SubmitURL()}
		for _, address := range []func(string) (string, error){plan.StatusURL, plan.ResourceURL} {
			if u, err := address(id); err == nil {
				urls = append(urls, u)
			}
		}
		for _, s := range urls {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(s, plan.Origin+"/") || u.Scheme+"://"+u.Host != plan.Origin || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
				t.Errorf("%q leaves the origin", s)
			}
			for segment := range strings.SplitSeq(strings.TrimPrefix(u.EscapedPath(), "/"), "/") {
				if plain, err := url.PathUnescape(segment); err != nil || plain == "" || plain == "." || plain == ".." {
					t.Errorf("%q has the segment %q", s, segment)
				}
			}
		}
	})
}
