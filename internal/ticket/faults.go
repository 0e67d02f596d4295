package ticket

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
)

// Fault is the name of one promise that a Service breaks. Everything else it does
// stays right, so each fault shows one thing.
type Fault string

// Normal breaks nothing.
const Normal Fault = "normal"

// FaultInfo is what people and tests need to know of a fault.
type FaultInfo struct {
	Name    string
	Summary string // one clause: what the service does
	// Outcome is what a correct client must end one execution in, with the served
	// profile. It sends one POST in every case.
	Outcome agentic.Outcome
}

// faultSpec is a fault: its description, and what it puts around the service.
type faultSpec struct {
	FaultInfo
	twist   func() twist  // for one Service
	timeout time.Duration // advertised in the profile; 0 is that of the example
}

// twist wraps the parts of a Service that a fault breaks; the rest is nil.
type twist struct {
	decide func(service.Key, decision) decision // the business
	record func(*service.Record)                // what the store gives
	serve  func(*core) http.Handler             // what goes over the wire
}

// onWire is a fault of the wire alone.
func onWire(serve func(*core) http.Handler) func() twist {
	return func() twist { return twist{serve: serve} }
}

// edited is a store whose records are changed before anybody sees them.
type edited[Tx any] struct {
	service.Store[Tx]
	edit func(*service.Record)
}

func (s edited[Tx]) edited(r *service.Record, err error) (*service.Record, error) {
	if r != nil {
		s.edit(r)
	}
	return r, err
}

func (s edited[Tx]) Claim(ctx context.Context, tx Tx, k service.Key, fingerprint string, window time.Duration) (*service.Record, error) {
	return s.edited(s.Store.Claim(ctx, tx, k, fingerprint, window))
}

func (s edited[Tx]) Find(ctx context.Context, k service.Key) (*service.Record, error) {
	return s.edited(s.Store.Find(ctx, k))
}

func (s edited[Tx]) FindIn(ctx context.Context, tx Tx, k service.Key) (*service.Record, error) {
	return s.edited(s.Store.FindIn(ctx, tx, k))
}

// slowTimeout is advertised by the slow service, which takes ten times as long.
const slowTimeout = 200 * time.Millisecond

var faults = []faultSpec{
	{FaultInfo{"normal", "keeps every promise", agentic.Succeeded}, func() twist { return twist{} }, 0},
	{FaultInfo{"response-lost", "commits the ticket, then the TCP connection dies without an answer", agentic.Succeeded}, onWire(responseLost), 0},
	{FaultInfo{"status-unavailable", "answers every status check with 503", agentic.Unknown}, onWire(statusUnavailable), 0},
	{FaultInfo{"stale-read", "answers the first read of a ticket with 404 and the second with an older state", agentic.Succeeded}, onWire(staleRead), 0},
	{FaultInfo{"wrong-evidence", "shows a ticket with another request, subject and state", agentic.Unknown},
		onTicket(map[string]string{"request_id": "another-request", "subject": "another subject", "status": "deleted"}), 0},
	{FaultInfo{"pending", "never decides: no ticket, and the status stays pending", agentic.Pending}, instead(decision{state: service.Pending}), 0},
	{FaultInfo{"late", "is pending for two status checks, then makes the ticket", agentic.Succeeded}, late, 0},
	{FaultInfo{"failed", "definitely refuses: no ticket, and the status is failed", agentic.Failed},
		instead(decision{state: service.Refused, reason: "No ticket was made: the support desk takes none."}), 0},
	{FaultInfo{"wrong-state", "shows a ticket in a state that is no success", agentic.Unknown},
		onTicket(map[string]string{"status": "deleted"}), 0},
	{FaultInfo{"wrong-input", "shows a ticket with another subject", agentic.Unknown},
		onTicket(map[string]string{"subject": "another subject"}), 0},
	{FaultInfo{"wrong-resource", "shows a ticket with another ID", agentic.Unknown},
		onTicket(map[string]string{"id": "T-0"}), 0},
	{FaultInfo{"other-request", "shows a ticket that another request made", agentic.Unknown},
		onTicket(map[string]string{"request_id": "another-request"}), 0},
	{FaultInfo{"malformed-status", "answers status checks with JSON that ends too early", agentic.Unknown}, onStatus(truncate), 0},
	{FaultInfo{"duplicate-members", "answers status checks with a member given twice", agentic.Unknown}, onStatus(duplicate), 0},
	{FaultInfo{"html-status", "answers status checks with 200 and a page", agentic.Unknown}, onStatus(page), 0},
	{FaultInfo{"redirect", "redirects status checks to a path that would succeed", agentic.Unknown}, onWire(redirect), 0},
	{FaultInfo{"oversized", "answers status checks with more than 64 KiB", agentic.Unknown}, onStatus(oversize), 0},
	{FaultInfo{"compressed", "compresses status answers though nobody asked for it", agentic.Unknown}, onStatus(compress), 0},
	{FaultInfo{"slow", "answers status checks long after the profile's timeout", agentic.Unknown}, onWire(slow), slowTimeout},
	{FaultInfo{"dot-resource-id", "reports success with the resource ID \"..\"", agentic.Unknown}, onStatus(dotResource), 0},
	{FaultInfo{"expired", "ends the tracking window at once: the ticket exists, the status is unknown", agentic.Unknown}, expired, 0},
}

// Faults are all faults, Normal first, in the order in which help texts list them.
func Faults() []FaultInfo {
	infos := make([]FaultInfo, len(faults))
	for i, f := range faults {
		infos[i] = f.FaultInfo
	}
	return infos
}

// ParseFault is the fault of that exact name; the error lists all names.
func ParseFault(name string) (Fault, error) {
	f := Fault(name)
	if _, err := f.spec(); err != nil {
		return "", err
	}
	return f, nil
}

func (f Fault) spec() (faultSpec, error) {
	names := make([]string, len(faults))
	for i, s := range faults {
		if s.Name == string(f) {
			return s, nil
		}
		names[i] = s.Name
	}
	return faultSpec{}, fmt.Errorf("there is no fault %q; there are: %s", string(f), strings.Join(names, ", "))
}

// responseLost kills the connection of the submission that made the ticket.
// Repeats are answered, so that a person can see what was kept.
func responseLost(c *core) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := ask(c, r)
		if a.code != http.StatusCreated {
			a.send(w)
			return
		}
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
		}
		conn, _, err := hijacker.Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		inner := conn
		if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
			inner = t.NetConn() // TLS would say goodbye
		}
		if tcp, ok := inner.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		_ = inner.Close()
	})
}

func statusUnavailable(c *core) http.Handler {
	return onlyStatus(c, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, "The status is not available.")
	})
}

// staleRead lags two reads behind, for each ticket.
func staleRead(c *core) http.Handler {
	var reads counter
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := ask(c, r)
		if isResource(r) && a.code == http.StatusOK {
			switch reads.next(r.URL.EscapedPath()) {
			case 1:
				refuse(w, http.StatusNotFound, "There is no such ticket.")
				return
			case 2:
				a.edit(map[string]string{"status": "new"})
			}
		}
		a.send(w)
	})
}

// instead decides otherwise where there would be a ticket.
func instead(other decision) func() twist {
	return func() twist {
		return twist{decide: func(_ service.Key, d decision) decision {
			if d.state == service.Done {
				return other
			}
			return d
		}}
	}
}

// late keeps the subjects of pending requests in memory: what is pending when the
// service ends stays pending.
func late() twist {
	var subjects sync.Map // service.Key to subject
	var checks counter
	decide := func(k service.Key, d decision) decision {
		if d.state == service.Done {
			subjects.LoadOrStore(k, d.subject)
			return decision{state: service.Pending}
		}
		return d
	}
	serve := func(c *core) http.Handler {
		return onlyStatus(c, func(w http.ResponseWriter, r *http.Request) {
			// Who may not ask, or asks for nothing, is told so by the service.
			principal, _ := c.principal(r)
			id, _ := segment(r, pathStatus)
			k := service.Key{Principal: principal, Action: actionID, RequestID: id}
			if subject, waits := subjects.Load(k); waits && checks.next(k) > 2 {
				if err := c.complete(r.Context(), k, subject.(string)); err != nil {
					c.broken(w, r, "complete", err)
					return
				}
				subjects.Delete(k)
			}
			c.ServeHTTP(w, r)
		})
	}
	return twist{decide: decide, serve: serve}
}

// expired forgets at once what it promised to track.
func expired() twist {
	return twist{record: func(r *service.Record) { r.State, r.Settlement = service.Expired, service.Settlement{} }}
}

// redirect sends status checks to a path below their own that answers rightly.
func redirect(c *core) http.Handler {
	const suffix = "/moved"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isStatus(r) {
			c.ServeHTTP(w, r)
			return
		}
		path := r.URL.EscapedPath()
		target, err := url.ParseRequestURI(strings.TrimSuffix(path, suffix))
		moved := r.Clone(r.Context())
		moved.URL = target
		if err == nil && strings.HasSuffix(path, suffix) && isStatus(moved) {
			c.ServeHTTP(w, moved)
			return
		}
		w.Header().Set("Location", path+suffix)
		refuse(w, http.StatusTemporaryRedirect, "The status is elsewhere.")
	})
}

// slow answers rightly, but too late for the profile it serves.
func slow(c *core) http.Handler {
	return onlyStatus(c, func(w http.ResponseWriter, r *http.Request) {
		t := time.NewTimer(10 * slowTimeout)
		defer t.Stop()
		select {
		case <-r.Context().Done():
		case <-t.C:
			c.ServeHTTP(w, r)
		}
	})
}

func truncate(a *reply) { a.body = a.body[:len(a.body)/2] }

// duplicate says both that the request failed and what is true; a lenient parser
// would take one of them.
func duplicate(a *reply) {
	a.body = append([]byte(`{"status":"failed",`), a.body[1:]...)
}

func page(a *reply) {
	a.header.Set("Content-Type", "text/html; charset=utf-8")
	a.body = []byte("<!doctype html><title>Status</title><p>Your request succeeded.</p>\n")
}

// oversize pads with white space, which is JSON: only the size is wrong.
func oversize(a *reply) {
	a.body = append(a.body, bytes.Repeat([]byte{' '}, agentic.MaxResponseBytes)...)
}

func compress(a *reply) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	// Writing to a buffer does not fail.
	_, _ = z.Write(a.body)
	_ = z.Close()
	a.header.Set("Content-Encoding", "gzip")
	a.body = b.Bytes()
}

func dotResource(a *reply) { a.edit(map[string]string{"resource_id": ".."}) }

// onlyStatus replaces the status operation.
func onlyStatus(c *core, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isStatus(r) && r.Method == http.MethodGet {
			h(w, r)
			return
		}
		c.ServeHTTP(w, r)
	})
}

// onStatus spoils the answers of the status operation.
func onStatus(spoil func(*reply)) func() twist {
	return onWire(func(c *core) http.Handler {
		return onlyStatus(c, func(w http.ResponseWriter, r *http.Request) {
			a := ask(c, r)
			if a.code == http.StatusOK {
				spoil(a)
			}
			a.send(w)
		})
	})
}

// onTicket shows every ticket with these members changed.
func onTicket(changed map[string]string) func() twist {
	return onWire(func(c *core) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := ask(c, r)
			if isResource(r) && a.code == http.StatusOK {
				a.edit(changed)
			}
			a.send(w)
		})
	})
}

// counter counts per key, from 1.
type counter struct {
	mu sync.Mutex
	n  map[any]int
}

func (c *counter) next(key any) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[any]int)
	}
	c.n[key]++
	return c.n[key]
}

// reply is an answer of the service before it goes out.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// ask has the service answer r.
func ask(h http.Handler, r *http.Request) *reply {
	a := &reply{code: http.StatusOK, header: make(http.Header)}
	h.ServeHTTP(a, r)
	return a
}

// Header, WriteHeader and Write make a reply an http.ResponseWriter.
func (a *reply) Header() http.Header { return a.header }

func (a *reply) WriteHeader(code int) { a.code = code }

func (a *reply) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}

// edit gives string members of a JSON object other values.
func (a *reply) edit(changed map[string]string) {
	v, err := strictjson.Parse(a.body)
	if err != nil {
		return
	}
	b := []byte{'{'}
	for i, m := range v.Members() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, strictjson.Quote(m.Name)...), ':')
		if s, ok := changed[m.Name]; ok && m.Value.Kind() == strictjson.String {
			b = append(b, strictjson.Quote(s)...)
		} else {
			b = append(b, m.Value.Compact()...)
		}
	}
	a.body = append(b, '}', '\n')
}

func (a *reply) send(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	if h.Get("Content-Length") != "" && len(a.body) > 0 {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body)
}
