package wiretest

import (
	"fmt"
	"net/http"
	"strings"
)

// okBody is the body of every answer.
const okBody = `{"ok":true}`

// serve1 reads requests of HTTP/1.1, one after the other, until the connection
// ends. Once the fault has made it silent it only counts.
func (c *conn) serve1() {
	if c.s.due(c, nil) {
		c.s.strike(c, nil)
	}
	for {
		a := &arrival{c: c, length: -1}
		if !c.read1(a) {
			return
		}
		if !a.settled && !c.silent.Load() {
			c.respond(a, http.StatusOK)
		}
	}
}

// read1 reads a whole request.
func (c *conn) read1(a *arrival) bool {
	buf := make([]byte, 32<<10)
	for !a.whole {
		n, err := c.rw.Read(buf[:min(len(buf), a.wants())])
		if n > 0 && !a.feed(buf[:n]) {
			return false
		}
		if c.s.due(c, a) {
			c.s.strike(c, a)
		}
		if a.headed && a.expects && !a.whole && !a.settled && !c.silent.Load() {
			a.expects = false
			c.inform(a, http.StatusContinue)
		}
		if err != nil {
			return false
		}
	}
	return true
}

// head1 is the header section of an answer without its last blank line.
func head1(status int, lines ...string) string {
	text := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n", status, http.StatusText(status))
	for _, l := range lines {
		text += l + "\r\n"
	}
	return text
}

func length(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

// respond answers in full; lines are header lines "Name: value". Afterwards the
// connection is one that was used.
func (c *conn) respond(a *arrival, status int, lines ...string) {
	c.s.mu.Lock()
	c.answered = true
	c.s.mu.Unlock()
	if c.framer != nil {
		c.respond2(a, status, lines)
		return
	}
	c.write(head1(status, append(lines, length(len(okBody)))...) + "\r\n" + okBody)
}

// inform sends an informational answer.
func (c *conn) inform(a *arrival, status int) {
	if c.framer != nil {
		c.headers2(a.stream, status, nil, false)
		return
	}
	c.write(fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status)) + "\r\n")
}

// partly answers as far as text, which is the beginning of an answer.
func partly(text string) func(*conn, *arrival) {
	return func(c *conn, _ *arrival) { c.write(text); c.wait() }
}

// cutAnswers are the beginnings of answers of HTTP/1.1, by name.
func cutAnswers() []struct{ name, does, text string } {
	full := head1(http.StatusOK, length(len(okBody))) + "\r\n"
	chunked := head1(http.StatusOK, "Transfer-Encoding: chunked") + "\r\n"
	return []struct{ name, does, text string }{
		{"answer-status", "in the status line of its answer", full[:len("HTTP/1.1 2")]},
		{"answer-header", "in the header of its answer", full[:strings.Index(full, "application/")]},
		{"answer-headed", "after the header of its answer", full},
		{"answer-body", "in the body of its answer", full + okBody[:4]},
		{"answer-chunk", "in a chunk of its answer", chunked + "b\r\n" + okBody[:4]},
		{"answer-chunks", "before the last chunk of its answer", chunked + "b\r\n" + okBody + "\r\n"},
	}
}
