package service_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/service"
)

// TestOverTheWire has what a recorder hides: bodies without a length, HEAD, an
// aborted connection.
func TestOverTheWire(t *testing.T) {
	var abort atomic.Bool
	b := open(t, script(func(service.Request) (service.Result, error) {
		if abort.Load() {
			panic(http.ErrAbortHandler)
		}
		return service.DoneWith("T-1", nil), nil
	}), nil)
	server := httptest.NewServer(b.mux)
	defer server.Close()
	client := server.Client()
	client.Timeout = 10 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errors.New("a redirect") }
	call := func(method, path string, body io.Reader) (int, http.Header, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a/b"}}
		resp, err := client.Do(r)
		if err != nil {
			return 0, nil, "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(text), err
	}
	chunked := func(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }

	if code, _, text, err := call("POST", "/ticket", chunked(ticket+strings.Repeat(" ", 16<<10))); code != 413 || err != nil || !strings.Contains(text, service.ProblemTooLarge) {
		t.Errorf("too large: %d %s, %v", code, text, err)
	}
	abort.Store(true)
	if code, _, text, err := call("POST", "/ticket", strings.NewReader(ticket)); err == nil {
		t.Errorf("aborted: %d %s", code, text)
	}
	abort.Store(false)
	if code, _, text, err := call("POST", "/ticket", chunked(ticket)); code != 201 || err != nil {
		t.Errorf("first: %d %s, %v", code, text, err)
	}
	code, h, text, err := call("GET", "/ticket-requests/a%2Fb", nil)
	if code != 200 || err != nil || text != `{"request_id":"a/b","status":"succeeded","resource_id":"T-1"}`+"\n" {
		t.Errorf("status: %d %s, %v", code, text, err)
	}
	code, head, text, err := call("HEAD", "/ticket-requests/a%2Fb", nil)
	if code != 200 || err != nil || text != "" || head.Get("Content-Length") != h.Get("Content-Length") || head.Get("Cache-Control") != "no-store" {
		t.Errorf("HEAD: %d %v %q, %v", code, head, text, err)
	}
	if code, _, text, err := call("GET", "/ticket-requests/%2E%2E", nil); code != 404 || err != nil {
		t.Errorf("dots: %d %s, %v", code, text, err)
	}
}
