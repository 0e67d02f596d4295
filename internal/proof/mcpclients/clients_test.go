package mcpclients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/internal/ticket"
)

// expectations is expected.json: what each client has to have seen, by the path of a
// member in what the driver writes. A text "=path" is the same as another member,
// "!path" another than it, and "~regexp" is matched; the elements of a list are joined
// by blanks.
type expectations struct {
	Clients    map[string]map[string]any `json:"clients"`
	Transports map[string]map[string]any `json:"transports"`
	All        map[string]any            `json:"all"`
}

func expected(t *testing.T) expectations {
	t.Helper()
	data, err := os.ReadFile("expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var e expectations
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

// flat gives every member of what was seen by its path.
func flat(out map[string]any, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			flat(out, strings.TrimPrefix(path+"."+name, "."), m)
		}
	case []any:
		words := make([]string, len(v))
		for i, e := range v {
			words[i] = fmt.Sprint(e)
		}
		out[path] = strings.Join(words, " ")
	default:
		out[path] = v
	}
}

// differs says how what was seen is not what was expected, or "".
func differs(saw map[string]any, path string, want any) string {
	got, there := saw[path]
	if !there {
		return fmt.Sprintf("%s was not seen", path)
	}
	text, _ := want.(string)
	ok := got == want
	switch {
	case strings.HasPrefix(text, "="), strings.HasPrefix(text, "!"):
		other, there := saw[text[1:]]
		ok = there && other != nil && other != "" && (got == other) == (text[0] == '=')
	case strings.HasPrefix(text, "~"):
		s, isText := got.(string)
		ok = isText && regexp.MustCompile(text[1:]).MatchString(s)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s is %v, want %v", path, got, want)
}

// TestExpectations: the file of expectations can be met, and asks for something of
// every tool call that the driver writes down.
func TestExpectations(t *testing.T) {
	e := expected(t)
	driver, err := os.ReadFile("driver.mjs")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	groups := []map[string]any{e.All}
	for _, named := range []map[string]map[string]any{e.Clients, e.Transports} {
		for name, group := range named {
			if len(group) == 0 || !bytes.Contains(driver, []byte(name)) {
				t.Errorf("%s is empty, or unknown to the driver", name)
			}
			groups = append(groups, group)
		}
	}
	for _, group := range groups {
		for path, want := range group {
			step, _, _ := strings.Cut(path, ".")
			asked[step] = true
			text, _ := want.(string)
			switch {
			case strings.HasPrefix(text, "~"):
				if _, err := regexp.Compile(text[1:]); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			case strings.HasPrefix(text, "="), strings.HasPrefix(text, "!"):
				if step, _, _ := strings.Cut(text[1:], "."); !bytes.Contains(driver, []byte("saw."+step+" =")) {
					t.Errorf("%s refers to %s, which the driver does not write", path, text[1:])
				}
			}
			if !strings.HasSuffix(strings.ToLower(step), "service") && !bytes.Contains(driver, []byte("saw."+step+" =")) {
				t.Errorf("%s is nothing that the driver writes", path)
			}
		}
	}
	for _, m := range regexp.MustCompile(`saw\.(\w+) =`).FindAllSubmatch(driver, -1) {
		if step := string(m[1]); !asked[step] && step != "thrown" {
			t.Errorf("nothing is expected of %s", step)
		}
	}
	saw := map[string]any{"a": "x", "b": "x", "c": "y", "n": 1.0, "none": nil}
	for path, want := range map[string]any{"a": "=b", "b": "!c", "c": "~^y$", "n": 1.0, "none": nil} {
		if d := differs(saw, path, want); d != "" {
			t.Error(d)
		}
	}
	for path, want := range map[string]any{"a": "=c", "b": "!a", "c": "~^x$", "n": 2.0, "none": "", "gone": nil} {
		if differs(saw, path, want) == "" {
			t.Errorf("%s is taken for %v", path, want)
		}
	}
}

// TestLock: what is installed is pinned to its bytes, and comes from no other registry.
func TestLock(t *testing.T) {
	read := func(name string, v any) {
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	type dependencies struct{ Dependencies, OptionalDependencies map[string]string }
	var wanted dependencies
	var lock struct {
		LockfileVersion int
		Packages        map[string]struct {
			dependencies
			Version, Resolved, Integrity string
			Link                         bool
		}
	}
	read("package.json", &wanted)
	read("package-lock.json", &lock)
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	if lock.LockfileVersion != 3 || len(wanted.Dependencies) < 4 {
		t.Fatalf("lock version %d, %d dependencies", lock.LockfileVersion, len(wanted.Dependencies))
	}
	for _, list := range []map[string]string{wanted.Dependencies, wanted.OptionalDependencies} {
		for name, version := range list {
			if got := lock.Packages["node_modules/"+name].Version; !exact.MatchString(version) || got != version {
				t.Errorf("%s is %s, and the lock has %q", name, version, got)
			}
		}
	}
	for path, p := range lock.Packages {
		public := p.Resolved == "" || strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/") // without it npm asks its own registry
		if path != "" && (!public || !strings.HasPrefix(p.Integrity, "sha512-") || p.Link) {
			t.Errorf("%s comes from %q, integrity %q", path, p.Resolved, p.Integrity)
		}
	}
}

// TestSDK runs every client of the SDK over every transport, where they are installed.
func TestSDK(t *testing.T) {
	e := expected(t)
	if !installed {
		t.Log("the clients themselves are run by 'make mcp-clients'")
	}
	for client, wantClient := range e.Clients {
		for transport, wantTransport := range e.Transports {
			if !installed {
				continue
			}
			t.Run(client+" over "+transport, func(t *testing.T) {
				h := open(t)
				var saw map[string]any
				out := h.node(t, 0, h.setup(t), "driver.mjs", client, transport)
				if err := json.Unmarshal(out, &saw); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				count(t, saw, "service", h.late)
				count(t, saw, "pendingService", h.pending)
				if saw["thrown"] != nil {
					t.Errorf("the driver ended with %s", saw["thrown"])
				}
				got := map[string]any{}
				flat(got, "", saw)
				for _, group := range []map[string]any{e.All, wantClient, wantTransport} {
					for path, want := range group {
						if d := differs(got, path, want); d != "" {
							t.Error(d)
						}
					}
				}
				t.Logf("protocol %v, %d progress notifications, tickets %v", got["version"], int(got["progress.steps"].(float64)), got["service.tickets"])
			})
		}
	}
}

func count(t *testing.T, saw map[string]any, name string, s *ticket.Service) {
	t.Helper()
	state, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	saw[name] = map[string]any{"posts": float64(state.Posts), "tickets": float64(state.Tickets)}
}

// TestInspector runs the command line of the inspector in both eras of the protocol
// over both transports, where it is installed.
func TestInspector(t *testing.T) {
	if !installed {
		t.Log("the inspector itself is run by 'make mcp-clients'")
	}
	for _, era := range []string{"legacy", "modern"} {
		for _, transport := range []string{"stdio", "http"} {
			if installed {
				t.Run(era+" over "+transport, func(t *testing.T) { inspect(t, era, transport) })
			}
		}
	}
}

func inspect(t *testing.T, era, transport string) {
	h := open(t)
	var to []string
	if transport == "stdio" {
		to = append([]string{"--", program}, h.args...)
	} else {
		to = []string{"--server-url", h.url, "--header", "Authorization: Bearer " + tokens[0]}
	}
	run := func(code int, args ...string) map[string]any {
		t.Helper()
		all := slices.Concat([]string{filepath.Join("node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
			"--cli", "--format", "json", "--quiet", "--protocol-era", era}, args, to)
		var out map[string]any
		raw := h.node(t, code, nil, all...)
		if err := json.Unmarshal(raw, &out); err != nil && code != exitAuth {
			t.Fatalf("%v: %s", err, raw)
		}
		got := map[string]any{}
		flat(got, "", out["result"])
		if out["schemaFindings"] != nil {
			t.Errorf("the inspector says of the schemas: %v", out["schemaFindings"])
		}
		return got
	}
	list := run(0, "--method", "tools/list", "--strict")
	if s, _ := list["tools"].(string); strings.Count(s, "outputSchema:") < 9 {
		t.Errorf("the tools are %s", s)
	}
	call := []string{"--method", "tools/call", "--tool-name", h.tool, "--tool-args-json"}
	first := run(0, append(call, `{"subject":"one"}`)...)
	again := run(0, append(call, `{"subject":"one"}`)...)
	held := run(0, append(call, `{"subject":"one, please"}`)...)
	for path, want := range map[string]any{"structuredContent.state": "succeeded", "structuredContent.receipt.outcome": "succeeded", "structuredContent.repeated": false} {
		if d := differs(first, path, want); d != "" {
			t.Error(d)
		}
	}
	id := first["structuredContent.request_id"]
	if again["structuredContent.request_id"] != id || again["structuredContent.repeated"] != true || held["structuredContent.state"] != "held_back" {
		t.Errorf("the repeat is %v %v; another input is %v", again["structuredContent.request_id"], again["structuredContent.repeated"], held["structuredContent.state"])
	}
	run(exitToolError, append(call, `{"subject":1}`)...)
	resources := run(0, "--method", "resources/list")
	read := run(0, "--method", "resources/read", "--uri", fmt.Sprintf("agentic://requests/%v", id))
	if s := fmt.Sprint(resources["resources"], read["contents"]); !strings.Contains(s, "uri:agentic://requests]") || !strings.Contains(s, `"outcome":"succeeded"`) {
		t.Errorf("the resources are %s", s)
	}
	if transport == "http" {
		to = []string{"--server-url", h.url, "--stored-auth-only"}
		run(exitAuth, "--method", "tools/list")
	}
	if s, err := h.late.State(t.Context()); err != nil || s.Posts != 1 || s.Tickets != 1 {
		t.Errorf("the service has %+v, %v", s, err)
	}
}
