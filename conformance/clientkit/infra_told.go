package clientkit

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// story is a check of one call against a service that keeps every promise but for what
// its line says.
type story struct {
	conformance.Info
	terms  terms
	input  string // "" is exampleInput
	id     string // of the resource; "" is "T-1"
	abroad bool   // a stranger is there, whom nobody may talk to
	hint   string // of a failure; "" is Asks

	// The n-th arrival of an operation gets the n-th reaction, later ones the last;
	// with none all get the honest one.
	submit, status, resource []reaction

	want agentic.Outcome // "": nothing is sent, because the input lacks evidence
	// check takes down what else has to hold.
	check func(t *told, rep reply)
}

// reaction answers one arrival.
type reaction func(t *told, w http.ResponseWriter, r *http.Request)

// told is the trial of a story.
type told struct {
	*trial
	story    story
	stranger *judge // nil unless abroad
	taken    atomic.Int64

	mu     sync.Mutex
	stayed []string // requests that the client did not give up
}

const (
	whatGaveUp = "gives up an answer that does not end in time"
	whatTaken  = "reads no more than it may"
	whatAbroad = "requests to another origin"
)

// toSpare is what a client may take beyond timeoutMs before the judge ends an answer: it
// may be slow, and the machine busy.
const toSpare = 4 * time.Second

// mostTaken is more than 64 KiB and what the systems of both sides may buffer.
const mostTaken = 32 << 20

func (s story) scenario() scenario { return scenario{Info: s.Info, hint: s.hint, run: s.run} }

// stories makes scenarios of stories.
func stories(all []story) []scenario {
	list := make([]scenario, len(all))
	for i, s := range all {
		list[i] = s.scenario()
	}
	return list
}

func (s story) run(ctx context.Context, tr *trial) error {
	s.id = cmp.Or(s.id, "T-1")
	t := &told{trial: tr, story: s}
	if err := tr.custom(s.terms.profile(), s.terms.openapi(), cmp.Or(s.input, exampleInput)); err != nil {
		return err
	}
	if s.abroad {
		var err error
		if t.stranger, err = tr.stranger(); err != nil {
			return err
		}
	}
	tr.script(script{submit: t.by(s.submit, honestSubmit), status: t.by(s.status, honestStatus), resource: t.by(s.resource, honestResource)})
	rep, err := tr.call(ctx, tr.ask())
	if err != nil {
		return err
	}
	if s.want == "" {
		conformance.Equal(tr.Recorder, "requests", 0, len(tr.judge.record()))
		tr.Expect(whatOutcome, rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown, "no receipt, or one of unknown", string(rep.stdout))
		return nil
	}
	tr.finished(rep, s.want)
	t.limits()
	if s.abroad {
		var seen []string
		for _, a := range t.stranger.record() {
			seen = append(seen, a.method+" "+a.path)
		}
		t.Expect(whatAbroad, len(seen) == 0, "none", listed(seen))
	}
	if s.check != nil {
		s.check(t, rep)
	}
	return nil
}

// limits takes down that the client kept its own (section 6.8).
func (t *told) limits() {
	t.mu.Lock()
	stayed := listed(t.stayed)
	t.mu.Unlock()
	t.Expect(whatGaveUp, stayed == "none", fmt.Sprintf("within %v of timeoutMs and %v to spare", t.timeout(), toSpare), "still waiting: "+stayed)
	if n := t.taken.Load(); n > 0 {
		t.Expect(whatTaken, n <= mostTaken, "64 KiB, and what the systems buffer", fmt.Sprintf("%d bytes", n))
	}
}

func (t *told) timeout() time.Duration { return t.plan.Action.Recovery.Timeout }

func (t *told) by(list []reaction, honest reaction) respond {
	return func(n int, w http.ResponseWriter, r *http.Request) bool {
		do := honest
		if len(list) > 0 {
			do = list[min(n, len(list))-1]
		}
		do(t, w, r)
		return true
	}
}

// The honest answers. In all texts of a story "{key}" is the request ID, "{KEY}" the same
// in upper case and "{id}" the resource's ID, each as a JSON text, and "{members}" the
// input after its opening brace.
var (
	honestSubmit   = say(http.StatusCreated, resourceText)
	honestStatus   = say(http.StatusOK, statusText)
	honestResource = say(http.StatusOK, resourceText)
)

const (
	statusText   = `{"request_id":{key},"status":"succeeded","resource_id":{id}}`
	resourceText = `{"id":{id},"request_id":{key},"status":"open",{members}`
	pendingText  = `{"request_id":{key},"status":"pending","resource_id":null}`
	failedText   = `{"request_id":{key},"status":"failed","resource_id":null}`
	unknownText  = `{"request_id":{key},"status":"unknown","resource_id":null}`
	asJSON       = "application/json"
)

func (t *told) fill(text string) string {
	quote := func(s string) string { return string(strictjson.Quote(s)) }
	return strings.NewReplacer("{key}", quote(t.requestID), "{KEY}", quote(strings.ToUpper(t.requestID)), "{id}", quote(t.story.id),
		"{members}", strings.TrimPrefix(string(t.input), "{")).Replace(text)
}

// always is one reaction to every arrival.
func always(r reaction) []reaction { return []reaction{r} }

// say answers with application/json.
func say(code int, text string) reaction { return sayAs(code, asJSON, text) }

// sayAs answers with a media type of its own, none with "".
func sayAs(code int, media, text string) reaction {
	return func(t *told, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if media != "" {
			w.Header().Set("Content-Type", media)
		}
		body := t.fill(text)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// tell answers 200 with a status text.
func tell(text string) reaction { return say(http.StatusOK, text) }

// right is the text of an operation's honest answer.
func right(op operation) string {
	if op == status {
		return statusText
	}
	return resourceText
}

// wire takes the connection over, with the request read. It is closed afterwards.
func wire(do func(t *told, c *taken)) reaction {
	return func(t *told, w http.ResponseWriter, r *http.Request) {
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
		if rec, ok := w.(*recorded); ok && !c.wrote {
			t.judge.mu.Lock()
			rec.arrival.answer.silent = true
			t.judge.mu.Unlock()
		}
		_ = conn.Close()
		<-c.gone
	}
}

// taken is a connection that was taken over.
type taken struct {
	net.Conn
	gone  chan struct{} // closed when the client has left
	what  string
	wrote bool
}

// write sends a filled text.
func (c *taken) write(t *told, text string) {
	c.wrote = c.wrote || text != ""
	_, _ = c.Write([]byte(t.fill(text)))
}

// raw sends a text as it is and closes.
func raw(text string) reaction {
	return wire(func(t *told, c *taken) { c.write(t, text) })
}

// reset ends the connection with RST after what was written has arrived.
func (c *taken) reset() {
	c.pause(50 * time.Millisecond)
	if s, ok := c.Conn.(*seen); ok {
		if tcp, ok := s.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
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
func (c *taken) repeat(t *told, text string, pause time.Duration) {
	end := time.Now().Add(t.timeout() + toSpare)
	for n := int64(0); time.Now().Before(end); c.pause(pause) {
		select {
		case <-c.gone:
			return
		case <-t.judge.closed:
			return
		default:
		}
		_ = c.SetWriteDeadline(end)
		k, err := c.Write([]byte(text))
		n += int64(k)
		if m := t.taken.Load(); n > m {
			t.taken.Store(n)
		}
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			break // it neither reads nor leaves
		}
		if err != nil || n > 2*mostTaken {
			return
		}
	}
	t.stays(c.what)
}

// wait does nothing until the client leaves or its time is over by far.
func (c *taken) wait(t *told) {
	select {
	case <-c.gone:
	case <-t.judge.closed:
	case <-time.After(t.timeout() + toSpare):
		t.stays(c.what)
	}
}

func (t *told) stays(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stayed = append(t.stayed, what)
}

// terms are what a story's documents say; each zero value has a meaning.
type terms struct {
	checks, delay, timeout int      // 0: 2 checks, no delay, 3000 ms
	id, request, state     string   // pointers; "": /id, /request_id, /status
	pairs                  []string // input and resource pointers in turn; none: /subject, /subject
	path                   string   // of the resource; "" is /tickets/{ticketId}
}

func (s terms) profile() string {
	quote := func(p, or string) string { return string(strictjson.Quote(cmp.Or(p, or))) }
	pairs := s.pairs
	if len(pairs) == 0 {
		pairs = []string{"/subject", "/subject"}
	}
	var bindings []string
	for i := 0; i+1 < len(pairs); i += 2 {
		bindings = append(bindings, `{"inputPointer":`+quote(pairs[i], "")+`,"resourcePointer":`+quote(pairs[i+1], "")+`}`)
	}
	return fmt.Sprintf(`{"agentic":"0.1.0-draft","origin":"{origin}","actions":[{"id":"create-ticket","description":"Create a ticket.",`+
		`"openapi":"/openapi.json","submit":"createTicket","status":"getRequestStatus","verify":"getTicket",`+
		`"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":3600},`+
		`"bindings":{"statusRequestId":"requestId","verifyResourceId":"ticketId"},`+
		`"evidence":{"resourceIdPointer":%s,"requestIdPointer":%s,"statePointer":%s,"successValues":["open","closed"],"inputBindings":[%s]},`+
		`"recovery":{"maxChecks":%d,"checkDelayMs":%d,"timeoutMs":%d,"retry":"never-automatically"}}]}`,
		quote(s.id, "/id"), quote(s.request, "/request_id"), quote(s.state, "/status"), strings.Join(bindings, ","),
		cmp.Or(s.checks, 2), s.delay, cmp.Or(s.timeout, 3000))
}

func (s terms) openapi() string {
	return strings.ReplaceAll(openapiText, "{resource}", cmp.Or(s.path, "/tickets/{ticketId}"))
}

const openapiText = `{"openapi":"3.1.0","info":{"title":"Tickets","version":"1"},"paths":{` +
	`"/tickets":{"post":{"operationId":"createTicket",` +
	`"parameters":[{"name":"Idempotency-Key","in":"header","required":true,"schema":{"type":"string"}}],` +
	`"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{"201":{"description":"Created."}}}},` +
	`"/requests/{requestId}":{"get":{"operationId":"getRequestStatus",` +
	`"parameters":[{"name":"requestId","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"Status."}}}},` +
	`"{resource}":{"get":{"operationId":"getTicket",` +
	`"parameters":[{"name":"ticketId","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"Ticket."}}}}}}`
