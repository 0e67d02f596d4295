package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/client"
)

// TestKeepAlive: reads share connections, submissions never do.
func TestKeepAlive(t *testing.T) {
	var mu sync.Mutex
	conns := map[string]int{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "{}") }))
	srv.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		conns[s.String()]++
	}
	srv.Start()
	defer srv.Close()
	tr := newTransport(t, srv.URL)
	opened := func() int { mu.Lock(); defer mu.Unlock(); return conns["new"] }
	const n = 20
	for range n {
		expect(t, tr.Get(context.Background(), read(srv.URL, "/requests/1")), result{200, client.Answered, ""})
	}
	if got := opened(); got != 1 {
		t.Errorf("%d connections for %d reads", got, n)
	}
	for range n {
		expect(t, tr.Submit(context.Background(), submission(srv.URL)), result{200, client.Answered, ""})
	}
	if got := opened(); got != 1+n {
		t.Errorf("%d connections for %d submissions", got-1, n)
	}
	tr.CloseIdleConnections()
	expect(t, tr.Get(context.Background(), read(srv.URL, "/requests/1")), result{200, client.Answered, ""})
	if got := opened(); got != 2+n {
		t.Errorf("%d connections after the idle ones were closed", got-1-n)
	}

	// 64 readers at once find 64 connections again.
	burst := func() {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { tr.Get(context.Background(), read(srv.URL, "/requests/1")) })
		}
		wg.Wait()
	}
	burst()
	before := opened()
	for range 5 {
		burst()
	}
	if got := opened() - before; got > 64 {
		t.Errorf("%d connections more for reads that had 64", got)
	}
}

func TestFetch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/agentic.json", "/large":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		case "/openapi":
			w.Header().Set("Content-Type", "application/vnd.oai.openapi+json")
		case "/html":
			w.Header().Set("Content-Type", "text/html")
		case "/none":
			w.Header()["Content-Type"] = nil
		case "/moved":
			http.Redirect(w, r, "/agentic.json", http.StatusFound)
			return
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, "{}")
		if r.URL.Path == "/large" {
			io.WriteString(w, strings.Repeat(" ", 99))
		}
	}))
	defer srv.Close()
	tr := newTransport(t, srv.URL)
	for url, wrong := range map[string]string{
		srv.URL + "/agentic.json":        "",
		srv.URL + "/agentic.json?v=1":    "",
		srv.URL + "/openapi":             "",
		srv.URL + "/large":               "over 100 bytes",
		srv.URL + "/html":                "media type",
		srv.URL + "/none":                "media type",
		srv.URL + "/moved":               "redirects",
		srv.URL + "/missing":             "404",
		srv.URL:                          "below its origin",
		"https://service.example/x.json": "not approved",
		"file:///etc/passwd":             "not an absolute http",
		"agentic.json":                   "not an absolute http",
		"http://user:s3cret@" + srv.Listener.Addr().String() + "/agentic.json": "below its origin",
	} {
		t.Run(fmt.Sprintf("%q", url), func(t *testing.T) {
			body, err := tr.Fetch(context.Background(), url, 100, testTimeout)
			switch {
			case wrong == "":
				if err != nil || string(body) != "{}" {
					t.Errorf("got %q, %v", body, err)
				}
			case err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "s3cret"):
				t.Errorf("got %q, %v, want an error with %q", body, err, wrong)
			}
		})
	}
}
