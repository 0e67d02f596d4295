package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/google/go-cmp/cmp"
)

// TestCredentials: each exchange is authenticated for its own origin and action,
// also over connections that are kept, and a document is read without.
func TestCredentials(t *testing.T) {
	var mu sync.Mutex
	var got []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.Host+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Cookie"))
		w.Header().Set("Content-Type", "application/json")
	})
	one, two := httptest.NewServer(handler), httptest.NewServer(handler)
	defer one.Close()
	defer two.Close()
	var asked []Credential
	tr := newTransport(t, one.URL, func(c *Config) {
		c.Origins = append(c.Origins, two.URL)
		c.Credentials = func(_ context.Context, cr Credential) (http.Header, error) {
			asked = append(asked, cr)
			if cr.Origin == two.URL {
				return nil, nil
			}
			return http.Header{"authorization": {"Bearer " + cr.ActionID}, "Cookie": {"a=b"}}, nil
		}
	})
	ctx := context.Background()
	var want []string
	var wantAsked []Credential
	for _, origin := range []string{one.URL, two.URL} {
		for _, action := range []string{"first", "second"} {
			s, r := submission(origin), read(origin, "/requests/1")
			s.ActionID, r.ActionID = action, action
			expect(t, tr.Submit(ctx, s), result{200, client.Answered, ""})
			expect(t, tr.Get(ctx, r), result{200, client.Answered, ""})
			credentials := " Bearer " + action + " a=b"
			if origin == two.URL {
				credentials = "  "
			}
			want = append(want, "POST "+origin[7:]+credentials, "GET "+origin[7:]+credentials)
			wantAsked = append(wantAsked, Credential{origin, action}, Credential{origin, action})
		}
	}
	if _, err := tr.Fetch(ctx, one.URL+"/agentic.json", 10, testTimeout); err != nil {
		t.Error(err)
	}
	want = append(want, "GET "+one.URL[7:]+"  ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAsked, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestBadCredentials: nothing is sent, and nothing of the credentials is told.
func TestBadCredentials(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(io.Discard)
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer srv.Close()
	failure := errors.New("no such token: s3cret")
	for name, give := range map[string]func() (http.Header, error){
		"error":            func() (http.Header, error) { return http.Header{"Authorization": {"s3cret"}}, failure },
		"idempotency key":  func() (http.Header, error) { return http.Header{"idempotency-key": {"s3cret"}}, nil },
		"host":             func() (http.Header, error) { return http.Header{"Host": {"s3cret"}}, nil },
		"content length":   func() (http.Header, error) { return http.Header{"content-Length": {"1"}}, nil },
		"content type":     func() (http.Header, error) { return http.Header{"Content-Type": {"s3cret"}}, nil },
		"content encoding": func() (http.Header, error) { return http.Header{"Content-Encoding": {"gzip"}}, nil },
		"accept":           func() (http.Header, error) { return http.Header{"Accept": {"text/html"}}, nil },
		"accept encoding":  func() (http.Header, error) { return http.Header{"ACCEPT-ENCODING": {"gzip"}}, nil },
		"transfer coding":  func() (http.Header, error) { return http.Header{"Transfer-Encoding": {"chunked"}}, nil },
		"connection":       func() (http.Header, error) { return http.Header{"Connection": {"keep-alive"}}, nil },
		"upgrade":          func() (http.Header, error) { return http.Header{"Upgrade": {"s3cret"}}, nil },
		"expect":           func() (http.Header, error) { return http.Header{"Expect": {"100-continue"}}, nil },
		"method":           func() (http.Header, error) { return http.Header{"X-HTTP-Method-Override": {"DELETE"}}, nil },
		"proxy":            func() (http.Header, error) { return http.Header{"Proxy-Authorization": {"s3cret"}}, nil },
		"condition":        func() (http.Header, error) { return http.Header{"If-None-Match": {"*"}}, nil },
		"empty name":       func() (http.Header, error) { return http.Header{"": {"s3cret"}}, nil },
		"pseudo header":    func() (http.Header, error) { return http.Header{":path": {"s3cret"}}, nil },
		"name with break":  func() (http.Header, error) { return http.Header{"s3cret\r\nX": {"y"}}, nil },
		"value with break": func() (http.Header, error) { return http.Header{"Authorization": {"s3cret\r\nX: y"}}, nil },
		"value with NUL":   func() (http.Header, error) { return http.Header{"Authorization": {"s3cret\x00"}}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTransport(t, srv.URL, func(c *Config) {
				c.Credentials = func(context.Context, Credential) (http.Header, error) { return give() }
			})
			want := result{0, client.NotSent, client.ClassCredential}
			e := tr.Submit(context.Background(), submission(srv.URL))
			expect(t, e, want)
			expect(t, tr.Get(context.Background(), read(srv.URL, "/requests/1")), want)
			if name == "error" && !errors.Is(e.Err, failure) {
				t.Error("a host cannot match its own error")
			}
		})
	}
	if hits != 0 || logged.Len() != 0 {
		t.Errorf("%d requests arrived, logged %q", hits, logged.String())
	}
}

// TestCredentialsCanceled: the host's function runs under the caller's context.
func TestCredentialsCanceled(t *testing.T) {
	tr := newTransport(t, "https://service.example", func(c *Config) {
		c.Credentials = func(ctx context.Context, _ Credential) (http.Header, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	expect(t, tr.Submit(ctx, submission("https://service.example")), result{0, client.NotSent, client.ClassCanceled})
}

func TestBadRequestID(t *testing.T) {
	tr := newTransport(t, "https://service.example")
	for _, tc := range [][2]string{{"Idempotency-Key", ""}, {"Idempotency-Key", "a\r\nb"}, {"", "a"}, {"Idempotency Key", "a"}} {
		s := submission("https://service.example")
		s.Header, s.RequestID = tc[0], tc[1]
		expect(t, tr.Submit(context.Background(), s), result{0, client.NotSent, client.ClassProtocol})
	}
}
