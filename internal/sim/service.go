package sim

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
)

const jsonMedia = "application/json"

// service is a publisher's service after section 5 of the draft, for one principal. What
// it has committed outlives its crashes; with breaks it lies in one way, which a client
// can notice.
type service struct {
	w       *world
	entries map[string]*entry
	tickets []*ticket
	down    time.Duration // it answers nobody before
	breaks  breach
	changes int // counts every commit
	flips   int // counts the status answers
}

// entry is what the service has recorded of a request ID.
type entry struct {
	input   *input
	state   agentic.Outcome // succeeded, failed or pending
	was     agentic.Outcome // before, for stale reads
	ticket  *ticket
	status  int // of the answer to the submission
	since   time.Duration
	foreign bool // not of a client of this run
}

// ticket is a resource. States are all that it ever had, in order; the last one is
// now.
type ticket struct {
	id, request string
	input       *input
	subject     string // as it is shown
	states      []string
}

// breach is how a service breaks its promises.
type breach int

const (
	keepsAll      breach = iota
	namesOther           // the status names the ticket of another request
	otherSubject         // makes a ticket with another subject
	wrongState           // makes a ticket in a state that is no success
	madeNothing          // says succeeded, and made no ticket
	otherID              // shows tickets under another ID
	otherRequest         // the status is about another request ID
	noResource           // succeeded without a resource
	doubleMember         // a member twice
	otherMedia           // not application/json
	otherStatus          // 202 instead of 200
	dots                 // an ID that no URL can carry
	noRequest            // tickets without their request ID
	alwaysUnknown        // never knows of any request
	contradicts          // every other time calls a refused request succeeded
	breaches
)

func (w *world) startService() {
	s := &w.service
	*s = service{w: w, entries: make(map[string]*entry, 2)}
	if w.choose(kWorld, 8) >= 6 {
		s.breaks = breach(w.choose(kHow, int(breaches)))
	}
	if s.breaks != keepsAll {
		w.say("service", "breaks its promises: %d", s.breaks)
		w.count.add(cBreach)
	}
	if w.choose(kWorld, 8) == 7 {
		in := &inputs[w.choose(kHow, len(inputs))]
		w.say("service", "knows %s already, from somebody else: %s", requestID(0), in.body)
		w.count.add(cForeign)
		e := &entry{input: in, state: agentic.Succeeded, was: agentic.Succeeded, status: 201, foreign: true}
		s.entries[requestID(0)] = e
		s.make(requestID(0), e)
	}
}

// make makes the ticket of an entry.
func (s *service) make(id string, e *entry) {
	s.changes++
	if s.breaks == madeNothing {
		return
	}
	t := &ticket{id: fmt.Sprintf("T-%d", len(s.tickets)+1), request: id, input: e.input, subject: e.input.subject, states: []string{"open"}}
	switch s.breaks {
	case otherSubject:
		t.subject = "something else"
	case wrongState:
		t.states[0] = "deleted"
	}
	s.tickets = append(s.tickets, t)
	e.ticket = t
	s.w.say("service", "makes %s for %s", t.id, id)
}

func (s *service) forgotten(e *entry) bool { return s.w.now-e.since >= s.w.limits.window }

// post is a submission that arrives; without an answer the connection ends.
func (s *service) post(id, body string) (a agentic.Answer, answered bool) {
	w := s.w
	in := inputOf(body)
	fault := w.choose(kServe, 6)
	switch {
	case w.now < s.down:
		w.say("service", "is down when the POST of %s comes", id)
		return a, false
	case in == nil:
		return agentic.Answer{Status: 400}, true
	case fault == 1:
		s.crash()
		return a, false
	case fault == 2:
		w.say("service", "has an error of its own: 500")
		w.count.add(cServiceError)
		return agentic.Answer{Status: 500}, true
	}
	e := s.entries[id]
	switch {
	case e == nil:
		e = s.decide(id, in)
	case s.forgotten(e):
		w.say("service", "has forgotten %s, and refuses it: 409", id)
		w.count.add(cRefused)
		return agentic.Answer{Status: 409}, true
	case e.input != in:
		w.say("service", "knows %s with another input: 409", id)
		w.count.add(cRefused)
		return agentic.Answer{Status: 409}, true
	default:
		w.say("service", "knows %s, and repeats what it said", id)
		w.count.add(cRepeat)
	}
	if fault == 3 {
		s.crash()
		return a, false
	}
	return agentic.Answer{Status: e.status, ContentType: jsonMedia, Body: []byte(`{}`)}, true
}

func (s *service) crash() {
	s.down = s.w.now + s.w.duration()
	s.w.say("service", "crashes, and is back after %s", s.down-s.w.now)
	s.w.count.add(cServiceCrash)
}

// decide is the business, and the commit of what it comes to.
func (s *service) decide(id string, in *input) *entry {
	w := s.w
	e := &entry{input: in, state: agentic.Succeeded, was: agentic.Unknown, status: 201, since: w.now}
	s.entries[id] = e
	s.changes++
	what := w.choose(kDecide, 9)
	switch what {
	case 1, 2, 3:
		e.state, e.status = agentic.Pending, 202
		w.say("service", "has not decided on %s yet: 202", id)
		w.count.add(cPending)
		if what == 1 {
			return e // for ever
		}
		w.after(w.duration(), func() {
			e.was, e.state = agentic.Pending, agentic.Failed
			if what == 2 {
				e.state = agentic.Succeeded
				s.make(id, e)
			}
			s.changes++
			w.say("service", "decides on %s: %s", id, e.state)
		})
		return e
	case 4, 5:
		e.state, e.status = agentic.Failed, 422
		if what == 5 {
			e.status = 403
		}
		w.say("service", "refuses %s: %d", id, e.status)
		w.count.add(cFailed)
		return e
	}
	s.make(id, e)
	if t := e.ticket; t != nil && what >= 6 {
		state := [...]string{"closed", "deleted", "gone"}[what-6]
		w.after(w.duration(), func() {
			t.states = append(t.states, state)
			s.changes++
			w.say("service", "%s is %s", t.id, state)
			w.count.add(cTicketChanged)
		})
	}
	return e
}

// get is a read that arrives.
func (s *service) get(id string, isStatus bool) (agentic.Answer, bool) {
	w := s.w
	fault := w.choose(kServe, 6)
	switch {
	case w.now < s.down:
		w.say("service", "is down when a GET comes")
		return agentic.Answer{}, false
	case fault == 1:
		s.crash()
		return agentic.Answer{}, false
	case fault == 2:
		w.say("service", "has an error of its own: 503")
		w.count.add(cServiceError)
		return agentic.Answer{Status: 503}, true
	}
	stale := fault == 3
	a := agentic.Answer{Status: 200, ContentType: jsonMedia}
	if isStatus {
		a.Body = s.status(id, stale)
		switch s.breaks {
		case otherMedia:
			a.ContentType = "text/html"
		case otherStatus:
			a.Status = 202
		}
	} else if a.Body = s.ticket(id, stale); a.Body == nil {
		a = agentic.Answer{Status: 404}
	}
	if stale {
		w.count.add(cStale)
	}
	if w.telling {
		w.say("service", "answers %d %s", a.Status, a.Body)
	}
	return a, true
}

// status is the answer of the status operation, with stale as it was before.
func (s *service) status(id string, stale bool) []byte {
	outcome, resource := agentic.Unknown, ""
	if e := s.entries[id]; e != nil && !s.forgotten(e) && s.breaks != alwaysUnknown {
		outcome = e.state
		if stale {
			outcome = e.was
		}
		if s.flips++; s.breaks == contradicts && outcome == agentic.Failed && s.flips%2 == 1 {
			outcome = agentic.Succeeded
		}
		if outcome == agentic.Succeeded {
			resource = "T-99"
			if e.ticket != nil {
				resource = e.ticket.id
			}
		}
	}
	if outcome != agentic.Succeeded {
		return append(append(append(append([]byte(`{"request_id":"`), id...), `","status":"`...), outcome...), `","resource_id":null}`...)
	}
	twice := ""
	switch s.breaks {
	case namesOther:
		for _, t := range s.tickets {
			if t.request != id {
				resource = t.id
			}
		}
	case otherRequest:
		id += "x"
	case noResource:
		return fmt.Appendf(nil, `{"request_id":"%s","status":"succeeded","resource_id":null}`, id)
	case dots:
		resource = ".."
	case doubleMember:
		twice = `"status":"unknown",`
	}
	return fmt.Appendf(nil, `{"request_id":"%s",%s"status":"succeeded","resource_id":"%s"}`, id, twice, resource)
}

// What tickets look like.
const (
	requestForm = `,"request_id":"%s"`
	ticketForm  = `{"id":"%s"%s,"subject":"%s","urgent":%t,"status":"%s"}`
)

// ticket is the answer of the resource operation, or nil for a 404.
func (s *service) ticket(id string, stale bool) []byte {
	for _, t := range s.tickets {
		if t.id != id {
			continue
		}
		state := t.states[len(t.states)-1]
		if stale {
			if len(t.states) == 1 {
				return nil
			}
			state = t.states[len(t.states)-2]
		}
		if state == "gone" {
			return nil
		}
		request := fmt.Sprintf(requestForm, t.request)
		switch s.breaks {
		case otherID:
			id += "x"
		case noRequest:
			request = ""
		}
		return fmt.Appendf(nil, ticketForm, id, request, t.subject, t.input.urgent, state)
	}
	return nil
}
