package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// network is client.Transport of one host: messages between it and the service, each of
// which can be lost, late or doubled, and so can its answer.
type network struct{ h *host }

const (
	statusPrefix = origin + "/requests/"
	ticketPrefix = origin + "/tickets/"

	latency = time.Millisecond
)

// Errors of exchanges; each is about the class that it is given with.
var (
	errConnect  = errors.New("connection refused")
	errBroken   = errors.New("the connection ended before the answer")
	errTimeout  = errors.New("time limit of the exchange")
	errCanceled = errors.New("canceled")
	errMiddle   = errors.New("the answer is unusable")
	errSecret   = errors.New("no credential")
)

func failed(reach client.Reach, class client.ErrorClass, err error) client.Exchange {
	return client.Exchange{Reach: reach, Class: class, Err: err}
}

// arrival is what one exchange waits for.
type arrival struct {
	exchange client.Exchange
	came     bool
}

// Approve implements client.Transport.
func (n network) Approve(o, action string) error {
	if o != origin || action != actionID {
		return &client.OriginError{Origin: o, Reason: "not approved"}
	}
	return nil
}

// Submit implements client.Transport.
func (n network) Submit(ctx context.Context, s client.Submission) client.Exchange {
	p := n.h.process
	w := p.w
	if w.planted == SendOtherInput && p.number > 1 {
		s.Body = []byte(inputs[3].body)
	}
	w.oracle.posting(p, &s)
	ex := n.post(ctx, s)
	if status := ex.Answer.Status; status == 409 || status == 422 {
		p.exec.refused = true
	}
	switch {
	case w.planted == ResendOnBreak && ex.Class == client.ClassBroken:
		w.oracle.posting(p, &s)
		ex = n.post(ctx, s)
	case w.planted == TrustPost && ex.Answer.Status >= 200 && ex.Answer.Status < 300:
		p.trusted = true
	}
	return ex
}

func (n network) post(ctx context.Context, s client.Submission) client.Exchange {
	p := n.h.process
	w := p.w
	if p.step("POST"); ctx.Err() != nil {
		return failed(client.NotSent, client.ClassCanceled, errCanceled)
	}
	body := string(s.Body)
	deliver := func(a *arrival) func() {
		return func() {
			answer, answered := w.service.post(s.RequestID, body)
			w.answered(p, a, answer, answered)
		}
	}
	return n.exchange(ctx, s.Timeout, "POST "+s.RequestID, deliver, w.choose(kRequest, 7))
}

// Get implements client.Transport.
func (n network) Get(ctx context.Context, r client.Read) client.Exchange {
	p := n.h.process
	w := p.w
	id, isStatus := strings.CutPrefix(r.URL, statusPrefix)
	if !isStatus {
		id = strings.TrimPrefix(r.URL, ticketPrefix)
	}
	w.oracle.getting(p, id, isStatus)
	if ex, ok := p.forged(id, isStatus); ok {
		return ex
	}
	if p.step("GET"); ctx.Err() != nil {
		return failed(client.NotSent, client.ClassCanceled, errCanceled)
	}
	deliver := func(a *arrival) func() {
		return func() {
			answer, answered := w.service.get(id, isStatus)
			w.answered(p, a, answer, answered)
		}
	}
	what := "GET of the resource " + id
	if isStatus {
		what = "GET of the status"
	}
	ex := n.exchange(ctx, r.Timeout, what, deliver, w.choose(kRequest, 6))
	w.oracle.shown(p.exec, id, isStatus, ex)
	return p.forgedAnswer(id, isStatus, ex)
}

// exchange sends a message, and waits for what comes back.
func (n network) exchange(ctx context.Context, timeout time.Duration, what string, deliver func(*arrival) func(), fate int) client.Exchange {
	p := n.h.process
	w := p.w
	a := &arrival{}
	p.answer = a
	switch fate {
	case 0:
		w.say(p.name, "%s", what)
		w.after(latency, deliver(a))
	case 1:
		w.say(p.name, "%s finds no connection", what)
		w.count.add(cNotSent)
		return failed(client.NotSent, client.ClassConnect, errConnect)
	case 2:
		w.say(p.name, "%s is lost on its way", what)
		w.count.add(cRequestLost)
	case 3:
		d := w.duration()
		w.say(p.name, "%s, which takes %s", what, d)
		w.count.add(cRequestLate)
		w.after(latency+d, deliver(a))
	case 4:
		d := w.duration()
		w.say(p.name, "%s, which is delivered a second time after %s", what, d)
		w.count.add(cRequestTwice)
		w.after(latency, deliver(a))
		w.after(latency+d, deliver(a))
	case 5:
		w.say(p.name, "%s has no credential", what)
		w.count.add(cNotSent)
		return failed(client.NotSent, client.ClassCredential, errSecret)
	case 6: // of a POST only
		w.say(p.name, "%s is answered by somebody between, and not passed on", what)
		w.count.add(cMiddle)
		w.after(latency, func() {
			p.arrives(a, client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: 200, ContentType: jsonMedia, Body: []byte(`{}`)}})
		})
	}
	err := p.wait(ctx, timeout)
	p.answer = nil
	switch {
	case a.came:
		return a.exchange
	case err != nil:
		return failed(client.MaybeSent, client.ClassCanceled, errCanceled)
	}
	w.say(p.name, "%s has no answer in time", what)
	w.count.add(cTimeout)
	return failed(client.MaybeSent, client.ClassTimeout, errTimeout)
}

// arrives gives the process what it waits for, unless it does not any more.
func (p *process) arrives(a *arrival, ex client.Exchange) {
	if p.dead || p.answer != a || a.came {
		return
	}
	a.exchange, a.came = ex, true
	if p.listening {
		p.wake = p.w.now
	}
}

// answered is an answer on its way back, or with answered false the end of a
// connection.
func (w *world) answered(p *process, a *arrival, answer agentic.Answer, answered bool) {
	if !answered {
		w.after(latency, func() { p.arrives(a, failed(client.MaybeSent, client.ClassBroken, errBroken)) })
		return
	}
	ex := client.Exchange{Reach: client.Answered, Answer: answer}
	d := latency
	switch w.choose(kAnswer, 7) {
	case 1:
		w.say("network", "the answer is lost with its connection")
		w.count.add(cAnswerLost)
		ex = failed(client.MaybeSent, client.ClassBroken, errBroken)
	case 2:
		w.say("network", "the answer is lost without a word")
		w.count.add(cAnswerLost)
		return
	case 3:
		d += w.duration()
		w.say("network", "the answer takes %s", d)
		w.count.add(cAnswerLate)
	case 4:
		class := [...]client.ErrorClass{client.ClassRedirect, client.ClassTooLarge, client.ClassEncoded, client.ClassProtocol}[w.choose(kDetail, 4)]
		w.say("network", "the answer is unusable: %s", class)
		w.count.add(cAnswerDamaged)
		ex = client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: answer.Status}, Class: class, Err: errMiddle}
	case 5:
		w.say("network", "the answer is replaced by somebody between: 503")
		w.count.add(cAnswerDamaged)
		ex.Answer = agentic.Answer{Status: 503, ContentType: "text/html", Body: []byte("<p>later</p>")}
	case 6:
		if n := len(w.answers); n > 0 {
			ex.Answer = w.answers[n-1-w.choose(kHow, n)]
			w.say("network", "an earlier answer comes in its place: %s", ex.Answer.Body)
			w.count.add(cAnswerSwapped)
		}
	}
	w.remember(answer)
	w.after(d, func() { p.arrives(a, ex) })
}

// remember keeps an answer, so that a copy of it can come late; each once.
func (w *world) remember(answer agentic.Answer) {
	const kept = 6
	for i := range w.answers {
		if string(w.answers[i].Body) == string(answer.Body) {
			return
		}
	}
	if len(w.answers) == kept {
		w.answers = slices.Delete(w.answers, 0, 1)
	}
	w.answers = append(w.answers, answer)
}
