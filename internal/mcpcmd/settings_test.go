package mcpcmd

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/mcpserver"
	"github.com/agentic-go/agentic/internal/ticket"
)

// TestParse: a file with every member is read whole, and names of files are from its
// folder.
func TestParse(t *testing.T) {
	dir := t.TempDir()
	f, err := parse([]byte(`{"profiles":["a.json","https://a.example/agentic.json",{"profile":"b.json","openapi":"c.json"}],"approve":["https://a.example"],
		"allow_loopback":true,"headers_from_env":{"https://a.example":{"Authorization":"A_AUTH"}},"ledger":"l.db","principal":"p","environment":"e",
		"principals":{"ada":{},"bob":{"allow":[]}},"allow":["x"],"confirm":true,"same_input_guard":false,"open_guard":false,"repeat_within":"1h","recent":"0s",
		"answer_within":"5s","listen":"127.0.0.1:0","tls_cert":"c.pem","tls_key":"/k.pem","tokens":"t","allow_origins":["https://b.example"]}`), dir)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	want := Settings{
		Profiles:   []Profile{{Name: in("a.json")}, {Name: "https://a.example/agentic.json"}, {Name: in("b.json"), OpenAPI: in("c.json")}},
		Allow:      []string{"x"},
		Principals: map[string][]string{"ada": nil, "bob": {}},
		Confirm:    true, RepeatWithin: time.Hour, AnswerWithin: 5 * time.Second,
		Listen: "127.0.0.1:0", TLSCert: in("c.pem"), TLSKey: "/k.pem", Tokens: in("t"), AllowOrigins: []string{"https://b.example"},
	}
	if d := cmp.Diff(want, f.Settings, cmp.AllowUnexported(Settings{})); d != "" {
		t.Error(d)
	}
	place := Place{Ledger: in("l.db"), Principal: "p", Environment: "e", Approve: []string{"https://a.example"}, AllowLoopback: true, Headers: []string{"https://a.example Authorization=A_AUTH"}}
	if d := cmp.Diff(place, f.Place); d != "" {
		t.Error(d)
	}
	s := Settings{Confirm: false, Allow: []string{"y"}, AnswerWithin: time.Second, SameInputGuard: true}
	s.merge(f, func(flag string) bool { return flag == "allow" || flag == "confirm" })
	if s.Confirm || s.Allow[0] != "y" || s.AnswerWithin != 5*time.Second || s.SameInputGuard {
		t.Errorf("merged to %+v", s)
	}
}

// TestListen: --listen ” leaves all of HTTP that the file has, and what is not safe is
// refused before anything is bound.
func TestListen(t *testing.T) {
	f, err := parse([]byte(`{"profiles":["a"],"listen":"127.0.0.1:0","tls_cert":"c","tls_key":"k","tokens":"t","allow_origins":["https://b.example"]}`), "/")
	if err != nil {
		t.Fatal(err)
	}
	given := func(flag string) bool { return flag == "listen" }
	s := Settings{AnswerWithin: time.Second}
	s.merge(f, given)
	if err := s.check(); err != nil || s.Listen+s.TLSCert+s.TLSKey+s.Tokens != "" || s.AllowOrigins != nil {
		t.Errorf("merged to %+v: %v", s, err)
	}
	s = Settings{AnswerWithin: time.Second, Listen: "127.0.0.1:1"}
	s.merge(f, given)
	if s.Listen != "127.0.0.1:1" || s.Tokens != "/t" {
		t.Errorf("merged to %+v", s)
	}

	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for address, want := range map[string]string{
		"0.0.0.0:" + port: "needs a certificate", // and not that it is in use
		":" + port:        "needs a certificate",
		"127.0.0.1:0":     "", "localhost:0": "", "": "",
		"127.0.0.1": "missing port",
	} {
		err := (&Settings{Listen: address}).checkListen(mcpserver.HTTPConfig{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "",
		`[]`:                                 "the file is not an object",
		`{"ledger":1}`:                       "ledger is not a text",
		`{"ledger":""}`:                      "ledger is not a text",
		`{"confirm":"yes"}`:                  "confirm is not true or false",
		`{"confirm":true,"confirm":true}`:    "duplicate",
		`{"Confirm":true}`:                   `unknown member "Confirm"`,
		`{"confirm":true} {}`:                "",
		`{"allow":"x"}`:                      "allow is not a list of texts",
		`{"allow":[1]}`:                      "allow[] is not a text",
		`{"principals":{"a":{"alow":[]}}}`:   `unknown member "alow"`,
		`{"principals":["a"]}`:               "principals is not an object",
		`{"profiles":[{"openapi":"a"}]}`:     "profiles[].profile is not there",
		`{"profiles":{}}`:                    "profiles is not a list",
		`{"recent":5}`:                       "recent is not",
		`{"headers_from_env":{"o":"x"}}`:     "headers_from_env.o is not an object",
		`{"headers_from_env":{"o":{"h":1}}}`: "a variable of headers_from_env is not a text",
		`{"\u001b[2J":1}`:                    "unknown member",
		"{\"ledger\":\"\xff\"}":              "",
		`{"ledger":"` + strings.Repeat("a", maxConfig) + `"}`: "larger than 1 MiB",
	} {
		_, err := parse([]byte(text), "/")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
}

// TestAllowed: a principal's own list allows nothing that the list for all does not.
func TestAllowed(t *testing.T) {
	const origin = "https://a.example"
	p, err := agentic.Load(ticket.Profile(origin), ticket.OpenAPI(origin), "", agentic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	it := []string{p.Action.ID}
	for name, c := range map[string]struct {
		s              Settings
		allowed, known bool
	}{
		"nothing said":      {Settings{}, true, true},
		"allowed":           {Settings{Allow: it}, true, true},
		"by origin":         {Settings{Allow: []string{origin + " " + p.Action.ID}}, true, true},
		"of another origin": {Settings{Allow: []string{"https://b.example " + p.Action.ID}}, false, true},
		"none":              {Settings{Allow: []string{}}, false, true},
		"not known":         {Settings{Principals: map[string][]string{"bob": nil}}, true, false},
		"no list":           {Settings{Principals: map[string][]string{"ada": nil}}, true, true},
		"empty list":        {Settings{Principals: map[string][]string{"ada": {}}}, false, true},
		"own list alone":    {Settings{Principals: map[string][]string{"ada": it}}, true, true},
		"own list is wider": {Settings{Allow: []string{}, Principals: map[string][]string{"ada": it}}, false, true},
		"own list narrows":  {Settings{Allow: it, Principals: map[string][]string{"ada": {}}}, false, true},
	} {
		allow, known := c.s.allowed("ada")
		if known != c.known || known && allow(p) != c.allowed {
			t.Errorf("%s: allowed %v, known %v", name, allow(p), known)
		}
		if err := c.s.checkAllowed([]*agentic.Plan{p}, "ada"); (err != nil) == (known && !strings.Contains(name, "another")) {
			t.Errorf("%s: checked as %v", name, err)
		}
	}
}
