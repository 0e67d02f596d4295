package wiretest

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxHead bounds a header section.
const maxHead = 64 << 10

// arrival is what has arrived of one request. It is fed by the goroutine that
// reads its connection.
type arrival struct {
	c       *conn
	post    *Post  // nil while it is, or was, no POST
	stream  uint32 // of HTTP/2
	head    []byte // of HTTP/1.1, without a blank line before it
	header  int    // bytes of the header section
	key     string // "" until headed
	headed  bool   // the whole header section
	length  int    // of the body; -1 while unknown or chunked
	body    int
	tail    []byte // of a chunked body
	chunked bool
	expects bool // 100-continue
	whole   bool
	settled bool // needs no answer any more
}

// begin counts the request as a POST.
func (a *arrival) begin() {
	s := a.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	a.post = &Post{Connection: a.c.n, Stream: a.stream, Reused: a.c.answered, Reach: Begun, At: time.Since(s.began)}
	s.posts = append(s.posts, a.post)
	s.noteLocked("connection %d: a POST begins", a.c.n)
}

// update brings the Post up to date.
func (a *arrival) update() {
	if a.post == nil {
		return
	}
	s := a.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	a.post.Header, a.post.Body, a.post.Key = a.header, a.body, a.key
	before := a.post.Reach
	switch {
	case a.whole:
		a.post.Reach = Whole
	case a.body > 0:
		a.post.Reach = Bodied
	case a.headed:
		a.post.Reach = Headed
	}
	if a.post.Reach != before {
		s.noteLocked("connection %d: reach of the POST: %s", a.c.n, a.post.Reach)
	}
}

// wants is how many bytes may be read without passing a place where a fault could
// strike.
func (a *arrival) wants() int {
	if !a.headed || a.chunked {
		return 1
	}
	return max(1, min((a.length+1)/2, a.length-a.body))
}

// feed takes the next bytes of a request of HTTP/1.1, at most wants. It is false
// when they are none.
func (a *arrival) feed(b []byte) bool {
	if a.headed {
		a.feedBody(b)
		return true
	}
	if len(a.head) == 0 && (b[0] == '\r' || b[0] == '\n') {
		return true // a blank line between requests
	}
	a.head = append(a.head, b...)
	a.header = len(a.head)
	if a.header > maxHead {
		return false
	}
	const post = "POST "
	if n := len(a.head); n <= len(post) && string(a.head) == post[:n] {
		if n == 1 {
			a.begin()
		}
	} else if n <= len(post) && a.post != nil {
		a.retract()
	}
	if !bytes.HasSuffix(a.head, []byte("\r\n\r\n")) {
		a.update()
		return true
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(a.head)))
	if err != nil {
		return false
	}
	a.headed = true
	a.length, a.chunked = int(r.ContentLength), r.ContentLength < 0
	a.expects = strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	a.whole = !a.chunked && a.length == 0
	a.key = strings.Trim(r.Header.Get(Header), `"`)
	a.update()
	return true
}

// retract is for a method that only begins like POST.
func (a *arrival) retract() {
	s := a.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.posts, a.post)
	s.posts = slices.Delete(s.posts, i, i+1)
	if i < s.warmUps {
		s.warmUps--
	}
	a.post = nil
}

// feedBody counts a body. The end of a chunked one is its last chunk, which no
// JSON of this package contains.
func (a *arrival) feedBody(b []byte) {
	a.body += len(b)
	if a.chunked {
		const end = "\r\n0\r\n\r\n"
		a.tail = append(a.tail, b...)
		a.tail = a.tail[max(0, len(a.tail)-len(end)):]
		a.whole = string(a.tail) == end
	} else {
		a.whole = a.body >= a.length
	}
	a.update()
}

// Places where a fault strikes.

func begun(a *arrival) bool       { return len(a.head) > 0 || a.headed }
func requestLine(a *arrival) bool { return a.headed || bytes.HasSuffix(a.head, []byte("\r\n")) }
func headed(a *arrival) bool      { return a.headed }
func whole(a *arrival) bool       { return a.whole }

// keyLine is after the line of the key, or after the header section when it has
// none.
func keyLine(a *arrival) bool {
	if a.headed || !bytes.HasSuffix(a.head, []byte("\r\n")) {
		return a.headed
	}
	lines := strings.Split(strings.TrimSuffix(string(a.head), "\r\n"), "\r\n")
	name, _, _ := strings.Cut(lines[len(lines)-1], ":")
	return strings.EqualFold(name, Header)
}

// headLess1 lacks the last byte of the header section.
func headLess1(a *arrival) bool { return a.headed || bytes.HasSuffix(a.head, []byte("\r\n\r")) }

// inBody is in the middle of the body, of a chunked one after its first byte.
func inBody(a *arrival) bool {
	return a.whole || a.body > 0 && (a.chunked || a.length <= 0 || a.body >= a.length/2)
}
