package clientkit

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// recorded takes down what a service answers before it goes over the wire.
type recorded struct {
	judge   *judge
	arrival *arrival
	under   http.ResponseWriter
}

func (w *recorded) Header() http.Header { return w.under.Header() }

func (w *recorded) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.begin(code)
	}
	w.under.WriteHeader(code)
}

func (w *recorded) begin(code int) {
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	if a := &w.arrival.answer; a.code == 0 {
		a.code, a.header = code, w.under.Header().Clone()
	}
}

func (w *recorded) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	w.judge.mu.Lock()
	a := &w.arrival.answer
	a.body = append(a.body, p[:min(len(p), maxBody-len(a.body))]...)
	w.judge.mu.Unlock()
	return w.under.Write(p)
}

func (w *recorded) Flush() { _ = http.NewResponseController(w.under).Flush() }

// Hijack gives the connection away. The beginning of what is written to it is taken down for
// the report; it is no answer that a client may conclude from.
func (w *recorded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.under).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.judge.mu.Lock()
	w.arrival.answer.hijacked = true
	w.judge.mu.Unlock()
	over := &overheard{conn, w}
	buffered.Writer.Reset(over)
	return over, buffered, nil
}

// overheard is a connection that was taken over.
type overheard struct {
	net.Conn
	by *recorded
}

// NetConn is the connection of the system.
func (c *overheard) NetConn() net.Conn {
	if s, ok := c.Conn.(*seen); ok {
		return s.Conn
	}
	return c.Conn
}

// Write takes down before it writes, so that whoever has the bytes finds them in the record.
func (c *overheard) Write(p []byte) (int, error) {
	j, a := c.by.judge, &c.by.arrival.answer
	j.mu.Lock()
	a.wire = append(a.wire, p[:min(len(p), maxWire-len(a.wire))]...)
	a.written += int64(len(p))
	j.mu.Unlock()
	n, err := c.Conn.Write(p)
	j.mu.Lock()
	a.written -= int64(len(p) - n)
	j.mu.Unlock()
	return n, err
}

func (w *recorded) Unwrap() http.ResponseWriter { return w.under }

// buffer keeps an answer back.
type buffer struct {
	header http.Header
	code   int
	body   []byte
}

func newBuffer() *buffer { return &buffer{header: http.Header{}} }

func (b *buffer) Header() http.Header { return b.header }

func (b *buffer) WriteHeader(code int) {
	if b.code == 0 {
		b.code = code
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	b.body = append(b.body, p...)
	return len(p), nil
}

func (b *buffer) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errNoHijack }

func (b *buffer) copyTo(w http.ResponseWriter) {
	for name, values := range b.header {
		w.Header()[name] = values
	}
	w.WriteHeader(max(b.code, http.StatusOK))
	_, _ = w.Write(b.body)
}

// quiet is the log of a server whose clients are killed.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// writeJSON answers with a JSON document.
func writeJSON(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// writeStatus answers a status check; resource "" is null.
func writeStatus(w http.ResponseWriter, requestID, word, resource string) {
	id := "null"
	if resource != "" {
		id = string(strictjson.Quote(resource))
	}
	writeJSON(w, http.StatusOK, `{"request_id":`+string(strictjson.Quote(requestID))+`,"status":"`+word+`","resource_id":`+id+`}`)
}
