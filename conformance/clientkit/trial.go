package clientkit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit/internal/excerpt"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/internal/ticket"
)

// scenario is one check before it runs.
type scenario struct {
	conformance.Info
	feature string // of the adapter, without which it is not exercised
	hint    string // of a failure, where to look; "" is Asks
	run     func(context.Context, *trial) error
}

// trial is one run of a scenario: its own judge, documents, input, identity and ledger
// place.
type trial struct {
	*conformance.Recorder
	judge  *judge
	client client
	limit  time.Duration // of one call

	plan      *agentic.Plan // what the documents of the trial say
	profile   []byte
	openapi   []byte
	input     []byte
	requestID string
	ledger    string // a file that is not there yet, in a folder of its own

	service   *ticket.Service // nil without trial.ticket
	strangers []*judge
	replies   []reply
	cleanup   []func()
}

// newTrial makes the world of one run; close ends it.
func newTrial(r *conformance.Recorder, client client, limit time.Duration) (*trial, error) {
	dir, err := os.MkdirTemp("", "agentic-conformance-")
	if err != nil {
		return nil, err
	}
	t := &trial{Recorder: r, client: client, limit: limit, ledger: filepath.Join(dir, "ledger.db")}
	t.cleanup = append(t.cleanup, func() { _ = os.RemoveAll(dir) })
	if t.judge, err = newJudge("127.0.0.1"); err != nil {
		t.close()
		return nil, err
	}
	t.requestID = t.freshID()
	return t, nil
}

// close ends what the trial started, and takes down what was seen.
func (t *trial) close() {
	if t.judge != nil {
		t.judge.close()
		used := map[int]bool{}
		for _, a := range t.judge.record() {
			t.Exchange(a.exchange(used[a.conn]))
			used[a.conn] = true
		}
	}
	for i, r := range t.replies {
		t.Asked(r.late)
		t.Note("call %d: exit %s%s; standard output: %s; standard error: %s", i+1, r.code(), r.how(), excerpt.Begin(r.stdout), excerpt.End([]byte(r.stderr)))
	}
	for _, f := range slices.Backward(t.cleanup) {
		f()
	}
}

// freshID is a request ID that clients of any make take: a UUID.
func (t *trial) freshID() string {
	a, b := t.Rand.Uint64(), t.Rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

// exampleInput is an input of the ticket service.
const exampleInput = `{"subject":"Printer on the second floor is on fire"}`

// ticket has the reference service answer, with one fault, and takes its documents.
func (t *trial) ticket(ctx context.Context, fault string) error {
	s, err := t.open(ctx, t.judge, fault)
	if err != nil {
		return err
	}
	t.service = s
	profile, err := fetch(ctx, s.Handler(), t.judge.origin+"/agentic.json")
	if err != nil {
		return err
	}
	openapi, err := fetch(ctx, s.Handler(), t.judge.origin+"/openapi.json")
	if err != nil {
		return err
	}
	return t.documents(profile, openapi, exampleInput)
}

// open has a reference service of its own answer at a judge.
func (t *trial) open(ctx context.Context, j *judge, fault string) (*ticket.Service, error) {
	s, err := ticket.Open(ctx, ticket.Config{Origin: j.origin, Fault: ticket.Fault(fault)})
	if err != nil {
		return nil, err
	}
	t.cleanup = append(t.cleanup, func() { _ = s.Close() })
	j.use(s.Handler())
	return s, nil
}

// fetch reads a document from a handler, without a socket.
func fetch(ctx context.Context, h http.Handler, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	b := newBuffer()
	h.ServeHTTP(b, r)
	if b.code != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", url, b.code)
	}
	return b.body, nil
}

// custom gives the trial documents of its own; "{origin}" in the profile is the judge's.
// Every request gets 404 until trial.script answers it.
func (t *trial) custom(profile, openapi, input string) error {
	return t.documents([]byte(withOrigin(profile, t.judge.origin)), []byte(openapi), input)
}

// documents takes what the client gets. They have to be right: what is wrong with the
// documents of one call belongs into its ask.
func (t *trial) documents(profile, openapi []byte, input string) error {
	plan, err := agentic.Load(profile, openapi, "", agentic.Options{AllowLoopback: true})
	if err != nil {
		return err
	}
	t.plan, t.profile, t.openapi, t.input = plan, profile, openapi, []byte(input)
	var p paths
	p.submit, p.status, p.resource = plan.Paths()
	t.judge.mu.Lock()
	defer t.judge.mu.Unlock()
	t.judge.paths = p
	return nil
}

// respond answers one arrival of an operation, the n-th from 1, or reports false.
type respond func(n int, w http.ResponseWriter, r *http.Request) bool

// script answers operations instead of what answered so far; nil leaves them to it.
type script struct{ submit, status, resource, other respond }

// script puts s over what answers now. Later scripts are asked first.
func (t *trial) script(s script) {
	t.judge.mu.Lock()
	below, p := t.judge.service, t.judge.paths
	t.judge.mu.Unlock()
	count := &counter{}
	t.judge.use(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op, _ := p.find(r.Method, r.RequestURI)
		f := map[operation]respond{submit: s.submit, status: s.status, resource: s.resource, other: s.other}[op]
		if f == nil || !f(count.next(op), w, r) {
			below.ServeHTTP(w, r)
		}
	}))
}

// undecided has the status of every request be pending, whatever it is, until decide
// is called.
func (t *trial) undecided() (decide func()) {
	var decided atomic.Bool
	t.script(script{status: func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if decided.Load() {
			return false
		}
		id, _ := fill(t.judge.paths.status, r.RequestURI)
		writeStatus(w, id, "pending", "")
		return true
	}})
	return func() { decided.Store(true) }
}

// stranger is another origin, which the trial's documents do not name. Its arrivals are
// its own.
func (t *trial) stranger() (*judge, error) { return t.strangerAt("127.0.0.1") }

func (t *trial) strangerAt(host string) (*judge, error) {
	j, err := newJudge(host)
	if err == nil {
		t.strangers = append(t.strangers, j)
		t.cleanup = append(t.cleanup, j.close)
	}
	return j, err
}

// ask is what one call of the client is given.
type ask struct {
	profile, openapi, input []byte
	requestID               string
	action                  string    // action_id; "": not given
	crash                   bool      // test_crash_after_submit
	now                     time.Time // test_now; zero: the client's own clock
	kill                    *gate     // the client is killed when something stands at it
}

// ask is what the trial's own documents, input and identity make.
func (t *trial) ask() ask {
	return ask{profile: t.profile, openapi: t.openapi, input: t.input, requestID: t.requestID}
}

// encode is the object of limits.md.
func (a ask) encode(ledger string) []byte {
	b := append([]byte(`{"profile":`), a.profile...)
	b = append(append(b, `,"openapi":`...), a.openapi...)
	b = append(append(b, `,"request_id":`...), strictjson.Quote(a.requestID)...)
	b = append(append(b, `,"input":`...), a.input...)
	b = append(append(b, `,"ledger_path":`...), strictjson.Quote(ledger)...)
	if a.action != "" {
		b = append(append(b, `,"action_id":`...), strictjson.Quote(a.action)...)
	}
	if a.crash {
		b = append(b, `,"test_crash_after_submit":true`...)
	}
	if !a.now.IsZero() {
		b = append(append(b, `,"test_now":`...), strconv.Quote(agentic.FormatTime(a.now))...)
	}
	return append(b, '}')
}

// reply is how one call of the client ended.
type reply struct {
	ended
	ask        ask
	receipt    *agentic.Receipt // nil without exactly one valid receipt on standard output
	wrong      string           // what keeps standard output from being one
	begin, end time.Time
	from, to   int // the arrivals of the call, in the judge's record
}

// bySignal begins what tells of a signal.
const bySignal = ", by "

// code is the exit code for people, with the signal that ended the client of itself.
func (e ended) code() string {
	if e.signal != "" {
		return strconv.Itoa(e.exit) + bySignal + e.signal
	}
	return strconv.Itoa(e.exit)
}

// how is a clause about an end that was not the client's own.
func (e ended) how() string {
	switch {
	case e.killed:
		return " (killed as planned)"
	case e.late:
		return " (killed, because its time was over)"
	}
	return ""
}

// call runs the client once. The error is the kit's own.
func (t *trial) call(ctx context.Context, a ask) (reply, error) {
	rep, err := t.try(ctx, a)
	t.replies = append(t.replies, rep)
	return rep, err
}

// together runs the client once for each ask, all at the same time.
func (t *trial) together(ctx context.Context, asks ...ask) ([]reply, error) {
	replies, errs := make([]reply, len(asks)), make([]error, len(asks))
	done := make(chan struct{})
	for i, a := range asks {
		go func() {
			defer func() { done <- struct{}{} }()
			replies[i], errs[i] = t.try(ctx, a)
		}()
	}
	for range asks {
		<-done
	}
	t.replies = append(t.replies, replies...)
	return replies, errors.Join(errs...)
}

func (t *trial) try(ctx context.Context, a ask) (reply, error) {
	rep := reply{ask: a, begin: time.Now(), from: len(t.judge.record())}
	var kill <-chan struct{}
	if a.kill != nil {
		kill = a.kill.reached
	}
	var err error
	rep.ended, err = t.client.run(ctx, a.encode(t.ledger), t.limit, kill)
	if a.kill != nil {
		t.judge.open(a.kill, rep.killed)
	}
	rep.end, rep.to = time.Now(), len(t.judge.record())
	if rep.overflow {
		rep.wrong = "there is more than 1 MiB"
		return rep, err
	}
	receipt, found := agentic.ParseReceipt(rep.stdout)
	if e := found.Err(); e != nil {
		rep.wrong = e.Error()
		return rep, err
	}
	rep.receipt = receipt
	return rep, err
}
