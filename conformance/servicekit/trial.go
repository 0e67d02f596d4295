package servicekit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// check is one check of the kit.
type check struct {
	conformance.Info
	hint string
	run  func(*trial) error
}

// run is what all checks of one run share.
type run struct {
	config     Config
	prober     *prober
	first      party
	other      *agentic.Input // of the first party's action; nil without OtherInput
	another    *party         // the other action; nil without OtherAction
	settleTime time.Duration

	refused, admitted atomic.Int32 // answers to the first party, documents aside, by whether they were about credentials

	mu   sync.Mutex
	base *base
}

// denied reports whether the service has refused the credentials of the first party in
// every answer.
func (r *run) denied() bool { return r.refused.Load() > 0 && r.admitted.Load() == 0 }

// party is who does what: an action, whose it is, and an input.
type party struct {
	plan *agentic.Plan
	who  *Principal
	in   agentic.Input
}

// with is the party with another input.
func (p party) with(in agentic.Input) party { p.in = in; return p }

// made is a request that came to succeeded, with its verified resource.
type made struct {
	party
	key, resource string
}

// base is the one request that checks which only look share.
type base struct {
	made
	posted answer
	tells  bool  // the answer to a submission has the resource's ID at the evidence pointer
	err    error // why it did not come to succeeded; missing or the kit's own
}

// trial is one try of a check.
type trial struct {
	*run
	*conformance.Recorder
	ctx    context.Context
	failed bool
	shares bool // the shared request was used
	late   atomic.Int32
	by     *trial // for which the shared request is made
}

// errStop ends a check whose failure is taken down already.
var errStop = errors.New("the check failed before its end")

// missing says that a check cannot be tried: why, and what would show it.
type missing string

func (m missing) Error() string { return string(m) }

// try runs a check and sorts what ended it.
func (r *run) try(ctx context.Context, c check, rec *conformance.Recorder) error {
	t := &trial{run: r, Recorder: rec, ctx: ctx}
	err := c.run(t)
	t.leave()
	first, failed := rec.Failed()
	if err != nil && !failed {
		rec.Hint(unable(err))
	}
	rec.Hint(hint(first, r.denied(), c.hint))
	var m missing
	switch {
	case errors.Is(err, errStop):
		return nil
	case errors.Is(err, errSpent):
		rec.NotExercised(fmt.Sprintf(spent+"%d requests is used up: a larger one would show it.", r.prober.max))
		return nil
	case errors.As(err, &m):
		rec.NotExercised(string(m))
		return nil
	}
	return err
}

// expect is Recorder.Expect that remembers failures.
func (t *trial) expect(what string, ok bool, expected, found string) bool {
	t.failed = t.failed || !ok
	return t.Expect(what, ok, expected, found)
}

// otherwise is expect for a failure in words of its own: what holds is found as expected.
func (t *trial) otherwise(what string, ok bool, expected, found string) {
	if ok {
		found = expected
	}
	t.expect(what, ok, expected, found)
}

// must is expect, and errStop when it does not hold.
func (t *trial) must(what string, ok bool, expected, found string) error {
	if t.expect(what, ok, expected, found) {
		return nil
	}
	return errStop
}

// key makes a request ID that no run had before: a UUIDv7.
func (t *trial) key() string {
	var b [16]byte
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	for i := 6; i < 16; i++ {
		b[i] = byte(t.Rand.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// send is one exchange, taken down for the case that the check fails.
func (t *trial) send(plan *agentic.Plan, q request) (answer, error) {
	if err := t.goesOn(); err != nil {
		return answer{}, err
	}
	return t.exchange(plan, q)
}

// goesOn ends a check whose requests only take its time.
func (t *trial) goesOn() error {
	n := t.late.Load()
	if n < mostLate {
		return nil
	}
	return t.must(whatLate, false, "fewer than "+strconv.Itoa(mostLate), strconv.Itoa(int(n)))
}

// ask is one exchange. It takes down whether the service took too long.
func (t *trial) ask(q request) (answer, error) {
	a, err := t.prober.do(t.ctx, q)
	switch {
	case err != nil || !a.whole() || q.who != t.first.who || q.target == t.profileAt() || q.target == t.first.plan.Action.OpenAPI:
	case refuses(a):
		t.refused.Add(1)
	default:
		t.admitted.Add(1)
	}
	if late := a.late || timedOut(err); (err == nil || late) && t.ctx.Err() == nil {
		for each := t; each != nil; each = each.by {
			each.Asked(late)
			if late {
				each.late.Add(1)
			}
		}
	}
	return a, err
}

// exchange is send in a race, where nothing else may be expected.
func (t *trial) exchange(plan *agentic.Plan, q request) (answer, error) {
	a, err := t.ask(q)
	if err == nil {
		t.Exchange(redact(plan, q, a))
	}
	return a, err
}

// submission is the POST of a party with that key.
func submission(p party, key string) request {
	target, _, _ := p.plan.Paths()
	return request{method: http.MethodPost, target: target, who: p.who, body: p.in.Body(),
		header: [][2]string{{"Content-Type", "application/json"}, {p.plan.Action.Header, key}}}
}

func (t *trial) post(p party, key string) (answer, error) {
	return t.send(p.plan, submission(p, key))
}

// get reads an absolute URL of the plan.
func (t *trial) get(p party, address string, header ...[2]string) (answer, error) {
	return t.send(p.plan, request{method: http.MethodGet, target: strings.TrimPrefix(address, p.plan.Origin), who: p.who, header: header})
}

// status reads the status of a key once.
func (t *trial) status(p party, key string) (answer, agentic.StatusDecision, error) {
	address, err := p.plan.StatusURL(key)
	if err != nil {
		return answer{}, agentic.StatusDecision{}, err
	}
	a, err := t.get(p, address)
	return a, agentic.DecideStatus(key, a.Answer), err
}

// settle reads the status of a key until it is final, and no longer than that.
func (t *trial) settle(p party, key string, within time.Duration) (answer, agentic.StatusDecision, error) {
	end := time.Now().Add(within)
	pause := min(max(p.plan.Action.Recovery.CheckDelay, 50*time.Millisecond), time.Second)
	for {
		a, d, err := t.status(p, key)
		if err != nil || d.Usable && d.Outcome.Final() || time.Now().Add(pause).After(end) {
			return a, d, err
		}
		if err := wait(t.ctx, pause); err != nil {
			return a, d, err
		}
		pause = min(2*pause, 3*time.Second)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resource reads a resource once and checks its evidence.
func (t *trial) resource(p party, key, id string) (answer, agentic.ResourceDecision, error) {
	address, err := p.plan.ResourceURL(id)
	if err != nil {
		return answer{}, p.plan.DecideResource(key, id, p.in, agentic.Answer{}), nil
	}
	a, err := t.get(p, address)
	return a, p.plan.DecideResource(key, id, p.in, a.Answer), err
}

// take takes down the checks of a decision, without values of the input.
func (t *trial) take(of string, checks []agentic.Check, a answer) bool {
	all := true
	for _, c := range checks {
		expected, found := c.Expected, c.Found
		switch {
		case strings.HasPrefix(c.Name, "input "):
			expected, found = "the value of the input", "another value, or none"
			if c.OK {
				found = expected
			}
		case c.Name == "http status" && a.Status == 0, c.Name == "json" && a.lost != "":
			found = a.code()
		case c.Name == "json" && !c.OK: // the error quotes the document
			found = fmt.Sprintf("%d bytes that are not", len(a.Body))
		}
		all = t.expect(of+": "+c.Name, c.OK, expected, found) && all
	}
	return all
}

// word is a status decision for people.
func word(a answer, d agentic.StatusDecision) string {
	if !d.Usable {
		return "no usable status (" + a.code() + ")"
	}
	if d.Outcome == agentic.Succeeded {
		return string(d.Outcome) + " " + strconv.Quote(shorten(d.ResourceID))
	}
	return string(d.Outcome)
}

// make submits once with a new key and expects success with evidence.
func (t *trial) make(p party, key string) (made, error) {
	a, err := t.post(p, key)
	if err != nil {
		return made{}, err
	}
	if err := t.must(whatPosted, a.is2xx(), "2xx", a.code()); err != nil {
		return made{}, err
	}
	return t.succeeds(p, key)
}

// succeeds expects that the status of a key becomes succeeded, and that the resource
// it names is that of the request.
func (t *trial) succeeds(p party, key string) (made, error) {
	a, d, err := t.settle(p, key, t.settleTime)
	if err != nil {
		return made{}, err
	}
	if !t.take("status", d.Checks, a) {
		return made{}, errStop
	}
	if err := t.must("status", d.Outcome == agentic.Succeeded, "succeeded", word(a, d)); err != nil {
		return made{}, err
	}
	return made{p, key, d.ResourceID}, t.verified(p, key, d.ResourceID)
}

// verified expects the evidence of a request in the resource that it is said to have
// made.
func (t *trial) verified(p party, key, id string) error {
	a, d, err := t.resource(p, key, id)
	if err != nil {
		return err
	}
	if !t.take("resource", d.Checks, a) {
		return errStop
	}
	return nil
}

// stands expects that a request is as it was: one look at its status and its resource.
func (t *trial) stands(m made) error {
	a, d, err := t.status(m.party, m.key)
	if err != nil {
		return err
	}
	ok := d.Usable && d.Outcome == agentic.Succeeded && d.ResourceID == m.resource
	if err := t.must("status afterwards", ok, "succeeded "+strconv.Quote(shorten(m.resource)), word(a, d)); err != nil {
		return err
	}
	return t.verified(m.party, m.key, m.resource)
}

// nothing expects that a key is not tracked: its status tells of no outcome.
func (t *trial) nothing(p party, key string) error {
	a, d, err := t.status(p, key)
	if err != nil {
		return err
	}
	ok := a.whole() && (!d.Usable || d.Outcome == agentic.Unknown)
	t.expect("status of the key", ok, "unknown, or no status", word(a, d))
	return nil
}

// made gives the shared request. Checks that only look, repeat or refuse use it: they
// are not exercised when a plain submission does not work at all.
func (t *trial) made() (made, error) {
	b, err := t.shared()
	if err != nil {
		return made{}, err
	}
	return b.made, b.err
}

// shared makes the shared request once. Its own expectations are those of
// submission/first and are taken down there.
func (t *trial) shared() (*base, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shares = true
	if t.base != nil {
		return t.base, nil
	}
	own := &trial{run: t.run, Recorder: &conformance.Recorder{Rand: t.Rand}, ctx: t.ctx, by: t}
	b := &base{made: made{party: t.first, key: own.key()}}
	var err error
	if b.posted, err = own.post(b.party, b.key); err != nil {
		return nil, err
	}
	m, err := own.succeeds(b.party, b.key)
	switch {
	case errors.Is(err, errStop):
		b.err = missing("A plain submission does not come to a verified success here; submission/first says why. Once it passes, this can be tried.")
	case err != nil:
		return nil, err
	default:
		b.made, b.tells = m, resourceIn(m.party, b.posted) == m.resource
	}
	t.base = b
	return b, nil
}

// leave drops the shared request after a check that failed with it: it may have been
// changed, and the next check has to fail for its own reasons only.
func (t *trial) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shares && t.failed && t.base != nil && t.base.err == nil {
		t.base = nil
	}
}

// count is the number of resources; ok is false without Config.CountURL.
func (t *trial) count() (n int64, ok bool, err error) {
	if t.config.CountURL == "" {
		return 0, false, nil
	}
	a, err := t.ask(request{method: http.MethodGet, target: t.config.CountURL, who: t.first.who})
	if err != nil {
		return 0, false, err
	}
	v, err := strictjson.Parse(a.Body)
	if a.Status != http.StatusOK || err != nil {
		return 0, false, fmt.Errorf("the URL that counts gives no count: %s", a.code())
	}
	at, _ := v.Lookup(t.config.CountPointer)
	d, _ := at.Decimal()
	if n, ok = d.Int64(); !ok || at.Kind() != strictjson.Number {
		return 0, false, errors.New("the URL that counts gives no count: there is no whole number at its pointer")
	}
	return n, true, nil
}

// counted runs f and expects that it made so many resources.
func (t *trial) counted(want int64, f func() error) error {
	before, exact, err := t.count()
	if err != nil {
		return err
	}
	result := f()
	if result != nil && !errors.Is(result, errStop) || !exact {
		return result
	}
	after, _, err := t.count()
	if err != nil {
		return err
	}
	t.expect(whatMade, after-before == want, strconv.FormatInt(want, 10), strconv.FormatInt(after-before, 10))
	return result
}

// resourceIn is the resource ID in the answer to a submission, "" when it has none.
func resourceIn(p party, a answer) string {
	v, err := strictjson.Parse(a.Body)
	if err != nil {
		return ""
	}
	id, _ := v.Lookup(p.plan.Action.Evidence.ResourceIDPointer)
	text, _ := id.Text()
	return text
}
