package clientkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
)

// operation is which of the profile's operations a request is for.
type operation string

const (
	submit   operation = "submit"
	status   operation = "status"
	resource operation = "resource"
	other    operation = "other" // every other path or method
)

// stage is how far an arrival got when something happens to it.
type stage string

const (
	accepted stage = "accepted" // the connection stands, nothing of it was read
	headers  stage = "headers"  // the headers were read, the body not
	handled  stage = "handled"  // the service has done it, its answer was not sent
)

// maxBody is what is kept of the body of a request and of an answer.
const maxBody = 1 << 20

// maxWire is what is kept of the bytes on a connection that was taken over.
const maxWire = 1 << 10

// arrival is one request as it arrived, and what was answered.
type arrival struct {
	op     operation
	id     string // of the request or resource: the decoded segment of its path
	conn   int    // number of its connection, from 1
	nth    int    // so many of its operation before it and it
	method string
	path   string // as it was sent, with its query
	header http.Header
	host   string
	body   []byte
	whole  bool // the body was read to its end
	at     time.Time
	answer answer
}

// answer is what the service sent, as far as the judge saw it.
type answer struct {
	code     int // 0: none
	header   http.Header
	body     []byte
	hijacked bool   // nobody may conclude from what went over the wire then
	wire     []byte // the beginning of that, maxWire bytes at most
	written  int64  // all of it
	silent   bool   // the connection ended without a byte of an answer
}

// judge is the service side of one trial. It takes down each request in the order of
// arrival, before anything answers it: what it says is what happened, whatever the
// client says.
type judge struct {
	origin string
	server *http.Server
	closed chan struct{}
	serve  sync.WaitGroup

	mu       sync.Mutex
	paths    paths
	service  http.Handler
	arrivals []*arrival
	conns    int
	counts   map[operation]int
	gates    []*gate
}

// paths are those of the three operations, as templates of the document.
type paths struct{ submit, status, resource string }

// newJudge listens on a fresh port of an address of loopback.
func newJudge(host string) (*judge, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	j := &judge{
		origin: "http://" + l.Addr().String(), closed: make(chan struct{}), counts: map[operation]int{},
		paths: paths{"/tickets", "/requests/{requestId}", "/tickets/{ticketId}"}, service: http.NotFoundHandler(),
	}
	j.server = &http.Server{
		Handler: j, ReadHeaderTimeout: time.Minute, ErrorLog: quiet(),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if s, ok := c.(*seen); ok {
				ctx = context.WithValue(ctx, connKey{}, s.number)
			}
			return ctx
		},
	}
	j.serve.Go(func() { _ = j.server.Serve(door{l, j}) })
	return j, nil
}

type connKey struct{}

// close ends the server and every request that is held.
func (j *judge) close() {
	close(j.closed)
	_ = j.server.Close()
	j.serve.Wait()
}

// use has h answer from now on.
func (j *judge) use(h http.Handler) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.service = h
}

// record is what arrived so far, in order. The copies are the caller's.
func (j *judge) record() []arrival {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]arrival, len(j.arrivals))
	for i, a := range j.arrivals {
		all[i] = *a
		all[i].answer.header = a.answer.header.Clone()
		all[i].answer.body = bytes.Clone(a.answer.body)
		all[i].answer.wire = bytes.Clone(a.answer.wire)
	}
	return all
}

// arrive takes a request down as soon as its headers are read.
func (j *judge) arrive(r *http.Request) *arrival {
	a := &arrival{method: r.Method, path: r.RequestURI, header: r.Header.Clone(), host: r.Host, at: time.Now()}
	a.conn, _ = r.Context().Value(connKey{}).(int)
	j.mu.Lock()
	defer j.mu.Unlock()
	a.op, a.id = j.paths.find(r.Method, a.path)
	j.counts[a.op]++
	a.nth = j.counts[a.op]
	j.arrivals = append(j.arrivals, a)
	return a
}

// find says which operation a request is for.
func (p paths) find(method, path string) (operation, string) {
	switch method {
	case http.MethodPost:
		if path == p.submit {
			return submit, ""
		}
	case http.MethodGet:
		if id, ok := fill(p.status, path); ok {
			return status, id
		}
		if id, ok := fill(p.resource, path); ok {
			return resource, id
		}
	}
	return other, ""
}

// fill is what stands at the place of the template's placeholder.
func fill(template, path string) (id string, ok bool) {
	before, rest, _ := strings.Cut(template, "{")
	_, after, _ := strings.Cut(rest, "}")
	segment, ok := strings.CutPrefix(path, before)
	if ok {
		segment, ok = strings.CutSuffix(segment, after)
	}
	if !ok || segment == "" || strings.ContainsAny(segment, "/?") {
		return "", false
	}
	id, err := url.PathUnescape(segment)
	return id, err == nil
}

// ServeHTTP takes the request down, holds it where it is to be held, and has the
// service answer it.
func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := j.arrive(r)
	j.pass(headers, a.op)
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	j.mu.Lock()
	a.body, a.whole = body[:min(len(body), maxBody)], err == nil && len(body) <= maxBody
	service := j.service
	j.mu.Unlock()
	if !a.whole {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	out := &recorded{judge: j, arrival: a, under: w}
	defer func() {
		if p := recover(); p != nil { // the connection ends
			j.mu.Lock()
			a.answer.silent = a.answer.code == 0 && !a.answer.hijacked
			j.mu.Unlock()
			panic(p)
		}
	}()
	if !j.armed(handled, a.op) {
		service.ServeHTTP(out, r)
		return
	}
	late := newBuffer()
	service.ServeHTTP(late, r)
	j.pass(handled, a.op)
	late.copyTo(out)
}

// asAnswer is what a client may conclude from, the zero Answer when it may not.
func (a answer) asAnswer() agentic.Answer {
	if a.hijacked || len(a.body) > agentic.MaxResponseBytes || a.header.Get("Content-Encoding") != "" {
		return agentic.Answer{}
	}
	return agentic.Answer{Status: a.code, ContentType: a.header.Get("Content-Type"), Body: a.body}
}

// gate holds the first arrival of an operation at a stage.
type gate struct {
	stage   stage
	op      operation
	reached chan struct{} // closed once something is held
	opened  chan struct{} // closed to let it go
	dropped chan struct{} // closed once what was on a dropped connection is taken down
	drop    bool          // to where: nowhere
	taken   bool
}

// hold makes a gate. The stage accepted is of connections and takes no operation.
func (j *judge) hold(s stage, op operation) *gate {
	g := &gate{stage: s, op: op, reached: make(chan struct{}), opened: make(chan struct{}), dropped: make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gates = append(j.gates, g)
	return g
}

// open lets go what is held, and what comes later: to the service, or, with drop, the
// connection ends without an answer. It is called once, and with drop only for a gate
// that was reached.
func (j *judge) open(g *gate, drop bool) {
	j.mu.Lock()
	g.drop, g.taken = drop, true
	j.mu.Unlock()
	close(g.opened)
	if drop && g.stage == accepted {
		<-g.dropped
	}
}

func (j *judge) armed(s stage, op operation) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.gates {
		if !g.taken && g.stage == s && g.op == op {
			return true
		}
	}
	return false
}

// wait takes the place at the gate of that stage, if there is one, until it is opened. It
// gives the gate when what was held is to be dropped.
func (j *judge) wait(s stage, op operation) (dropped *gate) {
	j.mu.Lock()
	var g *gate
	for _, each := range j.gates {
		if !each.taken && each.stage == s && each.op == op {
			g = each
			break
		}
	}
	if g != nil {
		g.taken = true
		close(g.reached)
	}
	j.mu.Unlock()
	if g == nil {
		return nil
	}
	select {
	case <-g.opened:
		if !g.drop {
			return nil
		}
	case <-j.closed:
	}
	return g
}

// pass is wait in a handler.
func (j *judge) pass(s stage, op operation) {
	if j.wait(s, op) != nil {
		panic(http.ErrAbortHandler)
	}
}

// door is the listener: it numbers the connections.
type door struct {
	net.Listener
	judge *judge
}

func (d door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.judge.mu.Lock()
	defer d.judge.mu.Unlock()
	d.judge.conns++
	return &seen{Conn: c, judge: d.judge, number: d.judge.conns}, nil
}

// seen is a connection whose first read may be held.
type seen struct {
	net.Conn
	judge  *judge
	number int
	first  sync.Once
	gone   bool
}

// NetConn is the connection of the system.
func (s *seen) NetConn() net.Conn { return s.Conn }

func (s *seen) Read(p []byte) (int, error) {
	s.first.Do(func() {
		if g := s.judge.wait(accepted, ""); g != nil {
			s.gone = true
			s.leftover()
			close(g.dropped)
		}
	})
	if s.gone {
		return 0, io.EOF
	}
	return s.Conn.Read(p)
}

// leftover takes down a request that was sent over a connection that nobody read until
// its sender was dead: it does not reach the service, and it was sent all the same.
func (s *seen) leftover() {
	_ = s.SetReadDeadline(time.Now().Add(time.Second))
	data, _ := io.ReadAll(io.LimitReader(s.Conn, maxBody))
	line, _, _ := bytes.Cut(data, []byte("\r\n"))
	method, rest, ok := strings.Cut(string(line), " ")
	if !ok {
		return
	}
	path, _, _ := strings.Cut(rest, " ")
	s.judge.mu.Lock()
	defer s.judge.mu.Unlock()
	a := &arrival{conn: s.number, method: method, path: path, at: time.Now(), body: data}
	a.op, a.id = s.judge.paths.find(method, path)
	s.judge.counts[a.op]++
	a.nth = s.judge.counts[a.op]
	s.judge.arrivals = append(s.judge.arrivals, a)
}

var errNoHijack = errors.New("this answer is kept back: its connection cannot be taken")
