package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/agentic-go/agentic/client"
)

// TestReadArrivesOnce breaks a kept connection under a read: maxChecks bounds what
// arrives, so nothing repeats it. The control shows that net/http would.
func TestReadArrivesOnce(t *testing.T) {
	var reads atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if reads.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
	defer s.Close()
	tr := newTransport(t, s.URL)
	expect(t, tr.Get(t.Context(), read(s.URL, "/requests/1")), result{200, client.Answered, ""})
	expect(t, tr.Get(t.Context(), read(s.URL, "/requests/1")), result{0, client.MaybeSent, client.ClassBroken})
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads arrived, want 2", n)
	}
	expect(t, tr.Get(t.Context(), read(s.URL, "/requests/1")), result{200, client.Answered, ""})

	reads.Store(0)
	plain := &http.Client{Transport: &http.Transport{}}
	defer plain.CloseIdleConnections()
	for range 2 {
		resp, err := plain.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // or the connection is not kept
		resp.Body.Close()
	}
	if n := reads.Load(); n != 3 {
		t.Errorf("%d reads for two: net/http does not repeat any more", n)
	}
}
