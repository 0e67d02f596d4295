package servicekit

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const groupRepeat = "Repeats"

// burst is how many submissions race.
const burst = 32

var repeatChecks = []check{
	{info("repeat/same", groupRepeat, "the same key with the same input gives the original outcome", conformance.Must,
		"Repeated use of the same scoped ID and identical input returns the original outcome without creating another resource.", "5"),
		"Look the key up in the transaction that would write, and answer from the record.",
		func(t *trial) error { return t.onMade(0, func(m made) error { return t.repeat(m) }) }},
	{info("repeat/concurrent-old", groupRepeat, "32 repeats at once of a finished request give the original outcome", conformance.Must,
		"Repeated use of the same scoped ID and identical input returns the original outcome without creating another resource.", "5"),
		"A finished record answers every repeat; it needs no lock that a repeat could fail to get.",
		func(t *trial) error {
			return t.onMade(0, func(m made) error {
				answers, err := t.burst(burst, func(int) request { return submission(m.party, m.key) })
				for _, a := range answers {
					t.repeated(m, a)
				}
				return err
			})
		}},
	{info("repeat/concurrent-new", groupRepeat, "32 submissions at once with one new key make one resource", conformance.Must,
		"The request ID is associated atomically: of concurrent submissions with one key and input, one acts and no answer contradicts it.", "5"),
		"Claim the key with a unique constraint in the transaction of the write; look-then-insert runs twice.",
		concurrentNew},
	{info("repeat/concurrent-wait", groupRepeat, "concurrent repeats get the first one's result", conformance.Reading,
		"The draft does not say whether a repeat waits for a first one that still runs; here it does, and gets its outcome.", "5", "D22"),
		"Let a repeat wait for the claim of the first; 409 or 425 make clients ask people.",
		concurrentWait},
	{info("repeat/reformatted", groupRepeat, "the same input written in another way is the same input", conformance.Reading,
		"The draft compares inputs structurally: white space, member order, escapes and the form of numbers are no difference.", "5", "3", "D20", "D2"),
		"Fingerprint the parsed input, with members sorted and numbers normalized, not the bytes.",
		reformatted},
	{info("repeat/refused", groupRepeat, "what the business refuses is failed for good, and made nothing", conformance.Must,
		"failed means that the service authoritatively determined that the action did not complete; a repeat gets the original outcome.", "4", "5", "D21"),
		"Roll the write back, record the refusal, and answer repeats from the record.",
		refusedInput},
}

// onMade runs f on the shared request, and expects that so many resources are made and
// that the request stands afterwards.
func (t *trial) onMade(count int64, f func(made) error) error {
	m, err := t.made()
	if err != nil {
		return err
	}
	return t.counted(count, func() error {
		if err := f(m); err != nil {
			return err
		}
		return t.stands(m)
	})
}

// repeat sends a request again and expects the original outcome in the answer.
func (t *trial) repeat(m made) error {
	a, err := t.post(m.party, m.key)
	if err == nil {
		t.repeated(m, a)
	}
	return err
}

// repeated expects the original outcome in the answer to a repeat.
func (t *trial) repeated(m made, a answer) {
	t.expect("answer to the repeat", a.is2xx(), "2xx", a.code())
	if id := resourceIn(m.party, a); t.tells() && a.is2xx() && id != "" {
		t.expect("resource in the answer", id == m.resource, shorten(m.resource), shorten(id))
	}
}

// tells reports whether the answers to submissions name resources: the draft does not
// ask for it.
func (t *trial) tells() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.base != nil && t.base.tells
}

// burst sends n requests at once. The error is the first one.
func (t *trial) burst(n int, each func(i int) request) ([]answer, error) {
	if err := t.goesOn(); err != nil {
		return nil, err
	}
	answers, errs := make([]answer, n), make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			answers[i], errs[i] = t.exchange(t.first.plan, each(i))
		})
	}
	close(start)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// whileItRuns is what an answer may be in a race for one key.
const whileItRuns = "2xx, or 409, 423, 425, 429 or 503 while the first one runs"

// busy reports whether an answer only says that this is not the time.
func busy(a answer) bool {
	switch a.Status {
	case http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

func concurrentNew(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	return t.counted(1, func() error {
		answers, err := t.burst(burst, func(int) request { return submission(t.first, key) })
		if err != nil {
			return err
		}
		m, err := t.succeeds(t.first, key)
		if err != nil {
			return err
		}
		for i, a := range answers {
			what := fmt.Sprintf("answer %d of %d", i+1, burst)
			t.expect(what, a.is2xx() || busy(a), whileItRuns, a.code())
			if id := resourceIn(m.party, a); t.tells() && a.is2xx() && id != "" {
				t.expect("resource in "+what, id == m.resource, shorten(m.resource), shorten(id))
			}
		}
		if err := t.repeat(m); err != nil {
			return err
		}
		return t.stands(m)
	})
}

func concurrentWait(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	const few = 8
	key := t.key()
	answers, err := t.burst(few, func(int) request { return submission(t.first, key) })
	if err != nil {
		return err
	}
	for i, a := range answers {
		t.expect(fmt.Sprintf("answer %d of %d", i+1, few), a.is2xx(), "2xx", a.code())
	}
	_, err = t.succeeds(t.first, key)
	return err
}

func reformatted(t *trial) error {
	return t.onMade(0, func(m made) error {
		v, err := strictjson.Parse(m.in.Body())
		if err != nil {
			return err
		}
		for _, s := range spellings {
			body, ok := s.write(v)
			if !ok {
				continue
			}
			q := submission(m.party, m.key)
			q.body = body
			a, err := t.send(m.plan, q)
			if err != nil {
				return err
			}
			t.expect("answer with "+s.name, a.is2xx(), "2xx", a.code())
		}
		return nil
	})
}

func refusedInput(t *trial) error {
	if t.config.RefusedInput == nil {
		return missing("No input that the business refuses was given: one would show it.")
	}
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	q := submission(t.first, key)
	q.body = t.config.RefusedInput
	return t.counted(0, func() error {
		for n := range 2 {
			a, err := t.send(t.first.plan, q)
			if err != nil {
				return err
			}
			t.expect("answer", a.is4xx() || a.Status == http.StatusAccepted, "4xx, or 202", a.code())
			s, d, err := t.settle(t.first, key, t.settleTime)
			if err != nil {
				return err
			}
			if n == 0 && (d.Usable && d.Outcome == agentic.Unknown || absent(s)) && !t.failed {
				return missing("The input is refused before it is tracked: its status is " + word(s, d) + ". An input that the business refuses after that would show it.")
			}
			t.expect("status", d.Usable && d.Outcome == agentic.Failed, "failed", word(s, d))
		}
		return nil
	})
}
