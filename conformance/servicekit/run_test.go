package servicekit_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/ticket"
)

func TestRunRefuses(t *testing.T) {
	f := newFake("")
	good := f.start(t, httptest.NewServer)
	for name, c := range map[string]struct {
		spoil func(*servicekit.Config)
		want  string
	}{
		"not owned":              {func(c *servicekit.Config) { c.Owned = false }, "the operator's word"},
		"bad profile":            {func(c *servicekit.Config) { c.Profile = []byte("{}") }, "invalid document"},
		"loopback":               {func(c *servicekit.Config) { c.AllowLoopback = false }, "invalid document"},
		"no such action":         {func(c *servicekit.Config) { c.Action = "other" }, "other"},
		"no input":               {func(c *servicekit.Config) { c.Input = nil }, "Input: "},
		"input without evidence": {func(c *servicekit.Config) { c.Input = []byte(`{"x":1}`) }, "Input: "},
		"equal inputs":           {func(c *servicekit.Config) { c.OtherInput = []byte(` { "subject":"Printer on fir\u0065"}`) }, "structurally equal"},
		"refused input":          {func(c *servicekit.Config) { c.RefusedInput = []byte(`[]`) }, "RefusedInput"},
		"other action":           {func(c *servicekit.Config) { c.OtherAction = "create-ticket" }, "the action itself"},
		"unknown other action":   {func(c *servicekit.Config) { c.OtherAction = "x" }, "OtherAction: "},
		"absolute count":         {func(c *servicekit.Config) { c.CountURL = "http://127.0.0.1/x" }, "CountURL is not"},
		"another host's count":   {func(c *servicekit.Config) { c.CountURL = "//127.0.0.1/x" }, "CountURL is not"},
		"count with a line feed": {func(c *servicekit.Config) { c.CountURL = "/x HTTP/1.1\r\nX: y" }, "CountURL is not"},
		"bad pointer":            {func(c *servicekit.Config) { c.CountPointer = "x" }, "CountPointer"},
		"pointer alone":          {func(c *servicekit.Config) { c.CountURL, c.CountPointer = "", "/x" }, "CountPointer"},
		"reserved header":        {func(c *servicekit.Config) { c.Second.Header = http.Header{"idempotency-key": {"x"}} }, "is not for credentials"},
		"header with a line":     {func(c *servicekit.Config) { c.First.Header = http.Header{"X-Token": {"secret\r\nX: y"}} }, "no header can carry"},
		"another origin":         {func(c *servicekit.Config) { c.ProfileURL = "https://support.example/agentic.json" }, "ProfileURL is not"},
		"profile with a host":    {func(c *servicekit.Config) { c.ProfileURL += "0@127.0.0.1/#x" }, "ProfileURL is not"},
		"negative timeout":       {func(c *servicekit.Config) { c.Timeout = -1 }, "negative"},
		"negative limit":         {func(c *servicekit.Config) { c.MaxRequests = -1 }, "negative"},
		"no such check":          {func(c *servicekit.Config) { c.Match = []string{"status/*", "repeats"} }, `"repeats"`},
		"bad pattern":            {func(c *servicekit.Config) { c.Match = []string{"["} }, "syntax error"},
	} {
		cfg := good
		cfg.First, cfg.Second = bearer("ann"), bearer("bob")
		c.spoil(&cfg)
		rep, err := servicekit.Run(t.Context(), cfg)
		if rep != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if errors.Is(err, servicekit.ErrNotOwned) != (name == "not owned") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := f.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestInvalidDocumentsAreTyped(t *testing.T) {
	c := startFake(t, "")
	c.OpenAPI = []byte("{}")
	_, err := servicekit.Run(t.Context(), c)
	if _, ok := errors.AsType[*agentic.InvalidError](err); !ok {
		t.Error(err)
	}
}

// A run stays within its requests, counts every one, and says what it did not try.
func TestRequestsAreBounded(t *testing.T) {
	f := newFake("")
	c := f.start(t, httptest.NewServer)
	rep := check(t, c)
	if n := f.requests.Load(); !rep.OK() || n > servicekit.DefaultMaxRequests*9/10 {
		t.Errorf("a whole run takes %d requests of %d", n, servicekit.DefaultMaxRequests)
	}
	for _, most := range []int{1, 9, 60} {
		f := newFake("")
		c := f.start(t, httptest.NewServer)
		c.MaxRequests = most
		rep := check(t, c)
		if n := int(f.requests.Load()); n != most {
			t.Errorf("%d requests of %d", n, most)
		}
		if !rep.OK() || rep.Summary.NotExercised == 0 || rep.Summary.Errors != 0 {
			show(t, rep)
		}
		last := rep.Checks[len(rep.Checks)-5]
		if last.Status != conformance.NotExercised || !strings.Contains(last.Missing, "The limit of ") {
			t.Errorf("%s: %s %s", last.ID, last.Status, last.Missing)
		}
	}
}

func TestMatch(t *testing.T) {
	c := startFake(t, "")
	c.Match = []string{"status", "Keys", "lost/in-*"}
	var seen []string
	c.Progress = func(done, total int, last conformance.Result) {
		if total != 13 || done != len(seen)+1 {
			t.Errorf("%d of %d", done, total)
		}
		seen = append(seen, last.ID)
	}
	rep := check(t, c)
	var ids []string
	for _, c := range rep.Checks {
		ids = append(ids, c.ID)
	}
	const want = "status/answer status/resource status/unknown-key status/unknown-key-form key/missing key/empty key/twice key/malformed key/case key/escaped " +
		"lost/in-answer lost/in-body lost/in-body-reset"
	if got := strings.Join(ids, " "); got != want || strings.Join(seen, " ") != want || !rep.OK() {
		t.Errorf("%s\n%v", got, seen)
	}
}

func TestChecksAreListed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range servicekit.Checks() {
		if seen[c.ID] || c.ID == "" || c.Group == "" || c.Title == "" || c.Asks == "" || len(c.Sections) == 0 {
			t.Errorf("incomplete, or there twice: %+v", c)
		}
		seen[c.ID] = true
		cites := false
		for _, s := range c.Sections {
			cites = cites || s[0] >= '1' && s[0] <= '9'
		}
		if !cites {
			t.Errorf("%s cites no section of the draft", c.ID)
		}
	}
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	f := newFake("")
	var ts *httptest.Server
	c := f.start(t, func(h http.Handler) *httptest.Server {
		ts = httptest.NewUnstartedServer(h)
		ts.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
		ts.StartTLS()
		return ts
	})
	c.RootCAs = x509.NewCertPool()
	c.RootCAs.AddCert(ts.Certificate())
	if rep := check(t, c); !rep.OK() {
		show(t, rep)
		t.Error("it does not pass over TLS")
	}
	before := f.requests.Load()
	for name, spoil := range map[string]func(*servicekit.Config){
		"no trust":    func(c *servicekit.Config) { c.RootCAs = nil },
		"no loopback": func(c *servicekit.Config) { c.AllowLoopback = false },
	} {
		c := c
		spoil(&c)
		rep := check(t, c)
		if rep.OK() || rep.Summary.Passed != 0 || rep.Summary.Failed != 0 {
			t.Errorf("%s: %+v", name, rep.Summary)
		}
	}
	if f.requests.Load() != before {
		t.Error("a request was sent without trust")
	}
}

// Nothing is known of a service that cannot be reached, so nothing failed.
func TestUnreachable(t *testing.T) {
	c := startFake(t, "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	origin := "http://" + l.Addr().String()
	c.Profile, c.ProfileURL = ticket.Profile(origin), ""
	l.Close()
	c.Match = []string{"submission", "status", "restart"}
	rep := check(t, c)
	if rep.OK() || rep.Summary.Errors != len(rep.Checks) {
		t.Errorf("%+v", rep.Summary)
	}
}

func TestCanceled(t *testing.T) {
	c := startFake(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(done, _ int, _ conformance.Result) {
		if done == 7 {
			cancel()
		}
	}
	if rep, err := servicekit.Run(ctx, c); rep != nil || !errors.Is(err, context.Canceled) {
		t.Error(rep, err)
	}
}

// The faults that the ticket service has for clients are faults of a service, and the
// first thing that each shows.
func TestTicketFaults(t *testing.T) {
	want := map[string]string{
		"response-lost":      "answer to the submission: no answer: the connection broke",
		"status-unavailable": "status: http status: 503",
		"stale-read":         "resource: http status: 404",
		"wrong-evidence":     "resource: request id /request_id",
		"pending":            "status: pending",
		"failed":             "answer to the submission: 422",
		"wrong-state":        "resource: state /status",
		"wrong-input":        "resource: input /subject",
		"wrong-resource":     "resource: resource id /id",
		"other-request":      "resource: request id /request_id",
		"malformed-status":   "status: json",
		"duplicate-members":  "status: json",
		"html-status":        "status: media type",
		"redirect":           "status: http status: 307",
		"oversized":          "status: size",
		"compressed":         "status: json: 200, the answer is encoded, which was not asked for",
		"slow":               "",
		"dot-resource-id":    `resource: resource url: ".."`,
		"expired":            "status: unknown",
		"normal":             "",
		"late":               "",
	}
	for _, f := range ticket.Faults() {
		if _, known := want[f.Name]; !known {
			t.Errorf("nothing is known of %s", f.Name)
		}
	}
	atOnce(t, want, func(t *testing.T, fault, reason string) {
		c := startDesk(t, "", ticket.Fault(fault)).config()
		c.Match = []string{"submission/first"}
		if fault != "slow" && fault != "late" {
			c.Settle = 1
		}
		got := reasons(t, check(t, c))["submission/first"]
		if !strings.HasPrefix(got, reason) || (got == "") != (reason == "") {
			t.Errorf("%q, want %q", got, reason)
		}
	})
}

// A service that sends rubbish is a failed service, and never an error of the kit.
func TestRubbish(t *testing.T) {
	atOnce(t, map[string][]byte{
		"no HTTP":        []byte("SSH-2.0-x\r\n"),
		"nothing":        nil,
		"endless header": append([]byte("HTTP/1.1 200 OK\r\nX: "), bytes.Repeat([]byte("x"), 4<<20)...),
		"endless 1xx":    bytes.Repeat([]byte("HTTP/1.1 100 Continue\r\n\r\n"), 1000),
		"status 99":      []byte("HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n"),
		"endless body":   append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"), bytes.Repeat([]byte(" "), 4<<20)...),
		"ends early":     []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}"),
	}, func(t *testing.T, _ string, answer []byte) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write(answer)
					_ = conn.Close()
				}()
			}
		}()
		origin := "http://" + l.Addr().String()
		c := desk{origin: origin}.config()
		c.Match = []string{"submission/first", "status/answer", "documents/openapi"}
		c.Settle, c.CountURL, c.CountPointer = 1, "", ""
		rep := check(t, c)
		if rep.Summary.Failed != len(rep.Checks) {
			t.Errorf("%+v", rep.Summary)
			show(t, rep)
		}
	})
}
