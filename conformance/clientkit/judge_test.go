package clientkit

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOperationOfRequest(t *testing.T) {
	p := paths{"/tickets", "/requests/{requestId}", "/t-{ticketId}.json"}
	for _, c := range []struct {
		method, path string
		op           operation
		id           string
	}{
		{"POST", "/tickets", submit, ""},
		{"POST", "/tickets/", other, ""},
		{"POST", "/tickets?a=b", other, ""},
		{"GET", "/tickets", other, ""},
		{"PUT", "/tickets", other, ""},
		{"GET", "/requests/r%2F1", status, "r/1"},
		{"GET", "/requests/r%252F1", status, "r%2F1"},
		{"GET", "/requests/r/1", other, ""},
		{"GET", "/requests/", other, ""},
		{"GET", "/requests/r?x", other, ""},
		{"HEAD", "/requests/r", other, ""},
		{"GET", "/requests/%zz", other, ""},
		{"GET", "/t-T-1.json", resource, "T-1"},
		{"GET", "/t-.json", other, ""},
		{"GET", "http://127.0.0.1/requests/r", other, ""},
	} {
		if op, id := p.find(c.method, c.path); op != c.op || op != other && id != c.id {
			t.Errorf("%s %s is %s of %q, want %s of %q", c.method, c.path, op, id, c.op, c.id)
		}
	}
}

// TestUnread: a POST that was sent over a connection which nobody read until its sender
// was gone counts as sent, and does not reach the service.
func TestUnread(t *testing.T) {
	j, err := newJudge("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	served := make(chan string, 1)
	j.use(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served <- r.Method }))
	g := j.hold(accepted, "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(j.origin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	<-g.reached
	if _, err := io.WriteString(conn, "POST /tickets HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	j.open(g, true)
	record := j.record()
	if len(record) != 1 || record[0].op != submit || record[0].whole || record[0].answer.code != 0 {
		t.Errorf("the record is %+v", record)
	}
	select {
	case method := <-served:
		t.Errorf("the service got %s", method)
	case <-time.After(50 * time.Millisecond):
	}
}

// TestGateLetsGo: what is held and not dropped is answered, and only the first of its
// operation is held.
func TestGateLetsGo(t *testing.T) {
	j, err := newJudge("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	j.use(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, "r", "unknown", "") }))
	g := j.hold(handled, status)
	get := func() (string, error) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
		res, err := client.Get(j.origin + "/requests/r")
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	const want = `{"request_id":"r","status":"unknown","resource_id":null}`
	first := make(chan string)
	go func() {
		body, _ := get()
		first <- body
	}()
	<-g.reached
	if body, err := get(); body != want || err != nil {
		t.Errorf("the second is answered with %s, %v", body, err)
	}
	if code := j.record()[0].answer.code; code != 0 {
		t.Errorf("what is held counts as answered with %d", code)
	}
	j.open(g, false)
	if body := <-first; body != want {
		t.Errorf("the first is answered with %s", body)
	}
}

// TestOverheard: of what a check writes on a connection that it took over, a report shows
// the beginning, and how much it was.
func TestOverheard(t *testing.T) {
	j, err := newJudge("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	const begin = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
	j.use(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, begin)
		_, _ = io.WriteString(buffered, strings.Repeat("x", 5000))
		_ = buffered.Flush()
		_ = conn.Close()
	}))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	res, err := client.Get(j.origin + "/requests/r")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || len(body) != 5000 {
		t.Fatal(len(body), err)
	}
	a := j.record()[0]
	e := a.exchange(false)
	if len(e.Response) != maxWire || !strings.HasPrefix(e.Response, begin+"xxx") || e.Note != "the check took the connection over and wrote 5041 bytes; the first 1024 are shown" {
		t.Errorf("the report has %q, %q", e.Response, e.Note)
	}
	if got := a.answer.asAnswer(); got.Status != 0 {
		t.Errorf("a client may conclude from %+v", got)
	}
}
