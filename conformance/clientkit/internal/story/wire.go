package story

import (
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// taken is a connection that was taken over from the server, with its request read.
type taken struct {
	net.Conn
	gone  chan struct{} // closed when the client has left
	what  string
	wrote bool
}

// wire has do write an answer byte by byte. The connection is closed afterwards.
func wire(do func(t *Told, c *taken)) Reaction {
	return func(t *Told, w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		c := &taken{Conn: conn, gone: make(chan struct{}), what: r.Method + " " + r.RequestURI}
		go func() { // a client that has sent its request sends no more and can only go
			defer close(c.gone)
			_, _ = conn.Read(make([]byte, 1))
		}()
		do(t, c)
		if !c.wrote {
			t.Unanswered(w)
		}
		_ = conn.Close()
		<-c.gone
	}
}

// raw sends a text as it is and closes.
func raw(text string) Reaction {
	return wire(func(t *Told, c *taken) { c.write(t, text) })
}

// write sends a filled text.
func (c *taken) write(t *Told, text string) {
	c.wrote = c.wrote || text != ""
	_, _ = c.Write([]byte(t.fill(text)))
}

// reset has the connection end with RST, once what was written has arrived.
func (c *taken) reset() {
	c.pause(50 * time.Millisecond)
	under := c.Conn
	if over, ok := under.(interface{ NetConn() net.Conn }); ok {
		under = over.NetConn()
	}
	if tcp, ok := under.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

func (c *taken) pause(d time.Duration) {
	select {
	case <-c.gone:
	case <-time.After(d):
	}
}

// repeat writes text again and again, with a pause between, until the client leaves, has
// taken more than it may, or its time is over by far.
func (c *taken) repeat(t *Told, text string, pause time.Duration) {
	end := time.Now().Add(t.Timeout + ToSpare)
	_ = c.SetWriteDeadline(end)
	for n := int64(0); time.Now().Before(end); c.pause(pause) {
		select {
		case <-c.gone:
			return
		case <-t.Closed:
			return
		default:
		}
		k, err := c.Write([]byte(text))
		c.wrote = true
		n += int64(k)
		t.takes(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break // it neither reads nor leaves
		}
		if err != nil || n > 2*MostTaken {
			return
		}
	}
	t.stays(c.what)
}

// takes keeps the highest number.
func (t *Told) takes(n int64) {
	for m := t.taken.Load(); n > m && !t.taken.CompareAndSwap(m, n); m = t.taken.Load() {
	}
}

// wait does nothing until the client leaves or its time is over by far.
func (c *taken) wait(t *Told) {
	select {
	case <-c.gone:
	case <-t.Closed:
	case <-time.After(t.Timeout + ToSpare):
		t.stays(c.what)
	}
}
