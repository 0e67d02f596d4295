package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/google/go-cmp/cmp"
)

const testTimeout = 5 * time.Second

// newTransport makes a Transport for loopback that approves origin.
func newTransport(t testing.TB, origin string, change ...func(*Config)) *Transport {
	t.Helper()
	c := Config{Origins: []string{origin}, AllowLoopback: true}
	for _, f := range change {
		f(&c)
	}
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func submission(origin string) client.Submission {
	return client.Submission{Origin: origin, ActionID: "create-ticket", URL: origin + "/tickets",
		Header: "Idempotency-Key", RequestID: "request-0001", Body: []byte(`{"subject":"hello"}`), Timeout: testTimeout}
}

func read(origin, path string) client.Read {
	return client.Read{Origin: origin, ActionID: "create-ticket", URL: origin + path, Timeout: testTimeout}
}

// result is what a test expects of an Exchange.
type result struct {
	Status int
	Reach  client.Reach
	Class  client.ErrorClass
}

func expect(t *testing.T, e client.Exchange, want result) {
	t.Helper()
	if diff := cmp.Diff(want, result{e.Answer.Status, e.Reach, e.Class}); diff != "" {
		t.Errorf("exchange (-want +got):\n%s%v", diff, e.Err)
	}
	if (e.Err == nil) != (e.Class == "") {
		t.Errorf("Err is %v with class %q", e.Err, e.Class)
	}
	if e.Class != "" && e.Answer.Body != nil {
		t.Error("a body came with a class")
	}
	if e.Err != nil {
		for _, s := range []string{"request-0001", "hello", "/tickets", "s3cret"} {
			if strings.Contains(e.Err.Error(), s) {
				t.Errorf("the error tells %q: %v", s, e.Err)
			}
		}
	}
}

func TestSubmitAndGet(t *testing.T) {
	type request struct {
		Line   string
		Header http.Header
		Body   string
		Length int64
	}
	var got request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = request{r.Method + " " + r.RequestURI + " " + r.Proto, r.Header, string(body), r.ContentLength}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":"1"}`)
	}))
	defer srv.Close()
	tr := newTransport(t, srv.URL, func(c *Config) { c.UserAgent = "host/1" })

	want := client.Exchange{Reach: client.Answered,
		Answer: agentic.Answer{Status: 201, ContentType: "application/json", Body: []byte(`{"id":"1"}`)}}
	if diff := cmp.Diff(want, tr.Submit(context.Background(), submission(srv.URL))); diff != "" {
		t.Errorf("submit (-want +got):\n%s", diff)
	}
	sent := request{"POST /tickets HTTP/1.1", http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"},
		"Connection": {"close"}, "Content-Length": {"19"}, "Content-Type": {"application/json"},
		"Idempotency-Key": {"request-0001"}, "User-Agent": {"host/1"}}, `{"subject":"hello"}`, 19}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("request of submit (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff(want, tr.Get(context.Background(), read(srv.URL, "/requests/a%2Fb%25?x=1"))); diff != "" {
		t.Errorf("get (-want +got):\n%s", diff)
	}
	sent = request{"GET /requests/a%2Fb%25?x=1 HTTP/1.1", http.Header{"Accept": {"application/json"},
		"Accept-Encoding": {"identity"}, "User-Agent": {"host/1"}}, "", 0}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("request of get (-want +got):\n%s", diff)
	}
}

func TestOrigins(t *testing.T) {
	for _, tc := range []struct {
		origin   string
		loopback bool
		ok       bool
	}{
		{"https://service.example", false, true},
		{"https://service.example:8443", false, true},
		{"https://xn--bcher-kva.example", false, true},
		{"https://[2001:db8::1]", false, true},
		{"http://localhost:4318", true, true},
		{"http://127.0.0.1:4318", true, true},
		{"http://[::1]:4318", true, true},
		{"http://127.0.0.1:4318", false, false},
		{"http://127.0.0.2:4318", true, false},
		{"http://service.example", true, false},
		{"https://service.example/", false, false},
		{"https://Service.example", false, false},
		{"HTTPS://service.example", false, false},
		{"https://service.example:443", false, false},
		{"http://localhost:80", true, false},
		{"https://service.example:", false, false},
		{"https://service.example.", false, false},
		{"https://user@service.example", false, false},
		{"https://service.example/path", false, false},
		{"https://service.example?q", false, false},
		{"https://service.example#f", false, false},
		{"ftp://service.example", false, false},
		{"//service.example", false, false},
		{"https://", false, false},
		{"https://bücher.example", false, false},
		{"https://0x7f.1", false, false},
		{"https://2130706433", false, false},
		{"https://[2001:db8:0::1]", false, false},
		{"https://service.example\\@evil.example", false, false},
		{"null", false, false},
		{"", false, false},
	} {
		t.Run(tc.origin, func(t *testing.T) {
			tr, err := New(Config{Origins: []string{tc.origin}, AllowLoopback: tc.loopback})
			if ok := err == nil; ok != tc.ok {
				t.Fatalf("New gave %v", err)
			}
			var originError *client.OriginError
			if err != nil && !asError(err, &originError) {
				t.Errorf("the error is a %T", err)
			}
			if err == nil && tr.Approve(tc.origin, "a") != nil {
				t.Error("an origin of the Config is not approved")
			}
		})
	}
}

// TestUnapproved submits to URLs that are not plainly below an approved origin.
func TestUnapproved(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	tr := newTransport(t, srv.URL)
	for _, tc := range []struct{ origin, url string }{
		{"http://localhost:1", "http://localhost:1/tickets"},
		{"https://" + host, "https://" + host + "/tickets"},
		{srv.URL, "http://evil.example/tickets"},
		{srv.URL, srv.URL + "0/tickets"},
		{srv.URL, srv.URL + ".evil.example/tickets"},
		{srv.URL, srv.URL + "@evil.example/tickets"},
		{srv.URL, "http://user@" + host + "/tickets"},
		{srv.URL, srv.URL},
		{srv.URL, "/tickets"},
		{srv.URL, ""},
		{"", srv.URL + "/tickets"},
		{srv.URL, srv.URL + "/tickets#fragment"},
		{srv.URL, srv.URL + "/tickets#"},
		{srv.URL, srv.URL + `/\evil.example/tickets`},
		{srv.URL, srv.URL + "/tick ets"},
		{srv.URL, srv.URL + "/tick\tets"},
		{srv.URL, srv.URL + "/tick\r\nX: y"},
		{srv.URL, srv.URL + "/tickets?a b"},
		{srv.URL, srv.URL + "/büro"},
		{srv.URL, srv.URL + "/%zz"},
	} {
		t.Run(fmt.Sprintf("%q", tc.url), func(t *testing.T) {
			s := submission(tc.origin)
			s.URL = tc.url
			expect(t, tr.Submit(context.Background(), s), result{0, client.NotSent, client.ClassAddress})
			r := client.Read{Origin: tc.origin, URL: tc.url}
			expect(t, tr.Get(context.Background(), r), result{0, client.NotSent, client.ClassAddress})
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}
