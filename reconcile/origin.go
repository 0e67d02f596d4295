package reconcile

import (
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/agentic-go/agentic/client"
)

// Limits keep a worker from flooding a service. They are per origin and count
// executions: each makes at most the profile's maxChecks status reads and as many
// resource reads, one after the other.
type Limits struct {
	Concurrency int     // executions at once; 0 is 4
	Rate        float64 // executions begun per second; 0 is 10
	Burst       int     // begun at once after a quiet time; 0 is Concurrency
}

func (l Limits) withDefaults() Limits {
	if l.Concurrency <= 0 {
		l.Concurrency = 4
	}
	if l.Rate <= 0 {
		l.Rate = 10
	}
	if l.Burst <= 0 {
		l.Burst = l.Concurrency
	}
	return l
}

// The back-off of an origin that does not answer, before jitter of a fifth.
const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

const (
	// maxOrigins bounds the memory of the limits.
	maxOrigins = 1024
	// maxLater bounds how far ahead a refused request is told to come back.
	maxLater = 5 * time.Minute
)

// origins admits executions. It is safe for concurrent use.
type origins struct {
	limits Limits

	mu     sync.Mutex
	states map[string]*origin
}

type origin struct {
	limiter  *rate.Limiter
	running  int
	used     time.Time // when it was last asked about
	failures int       // probes in a row that it did not answer, or with 429 or 5xx
	retry    time.Time // when the next probe may begin, with failures
	era      int       // raised with failures, so that executions of one time count as one failure
	slot     time.Time // the last time given to a request that was refused
	told     bool      // it was logged that it is not approved
}

// admission is the right to one execution; it is given back with origins.ended.
type admission struct {
	origin string
	era    int
}

// refusal says why there is no admission, and when one may be had.
type refusal struct {
	down bool
	at   time.Time
}

// fullPause is when to look again for a place at an origin that has none, should
// nobody tell earlier.
const fullPause = time.Second

// admit never waits. With a refusal nothing was taken.
func (s *origins) admit(name string, now time.Time) (admission, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.get(name, now)
	if o == nil {
		return admission{}, &refusal{at: now.Add(fullPause)}
	}
	o.used = now
	switch {
	case o.failures > 0 && now.Before(o.retry):
		return admission{}, &refusal{down: true, at: o.retry}
	case o.failures > 0 && o.running > 0: // the probe, or what began before
		return admission{}, &refusal{down: true, at: now.Add(fullPause)}
	case o.running >= s.limits.Concurrency:
		return admission{}, &refusal{at: now.Add(fullPause)}
	}
	r := o.limiter.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return admission{}, &refusal{at: now.Add(d)}
	}
	o.running++
	return admission{name, o.era}, nil
}

// get finds or makes an origin; nil means that too many are busy. The caller has
// s.mu.
func (s *origins) get(name string, now time.Time) *origin {
	if o := s.states[name]; o != nil {
		return o
	}
	if len(s.states) >= maxOrigins {
		oldest := ""
		for n, o := range s.states {
			if o.running == 0 && (oldest == "" || o.used.Before(s.states[oldest].used)) {
				oldest = n
			}
		}
		if oldest == "" {
			return nil
		}
		delete(s.states, oldest)
	}
	o := &origin{limiter: rate.NewLimiter(rate.Limit(s.limits.Rate), s.limits.Burst), used: now}
	s.states[name] = o
	return o
}

// later tells a refused request when to come back. Those of one origin get times
// apart, at the origin's rate, so that they do not all come at once.
func (s *origins) later(name string, r *refusal, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.at
	if o := s.states[name]; o != nil {
		if next := o.slot.Add(time.Duration(float64(time.Second) / s.limits.Rate)); next.After(at) {
			at = next
		}
		if at.Sub(now) > maxLater {
			return jitter(maxLater)
		}
		o.slot = at
	}
	return max(at.Sub(now), time.Millisecond)
}

// change says that an origin went down or came back.
type change struct {
	down bool
	wait time.Duration
}

// ended gives an admission back, with what the execution learned of its origin. A
// change is not nil when the origin went down or came back by it.
func (s *origins) ended(a admission, h health, now time.Time) *change {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.states[a.origin] // there as long as it has executions
	o.running--
	o.used = now
	switch {
	case h == answers && o.failures > 0:
		o.failures, o.retry, o.slot = 0, time.Time{}, now
		o.era++
		return &change{}
	case h == silent && a.era == o.era:
		wait := lastBackoff
		if o.failures < 16 {
			wait = min(firstBackoff<<o.failures, lastBackoff)
		}
		wait = jitter(wait)
		o.failures++
		o.era++
		o.retry = now.Add(wait)
		if o.failures == 1 {
			return &change{down: true, wait: wait}
		}
	}
	return nil
}

// notApproved reports whether it is the first time that an origin is found not to
// be approved.
func (s *origins) notApproved(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.states[name]
	if o == nil || o.told {
		return false
	}
	o.told = true
	return true
}

// jitter moves a pause by up to a fifth either way.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.4*float64(d))
}

// health is what an execution learned of its origin.
type health int

// One usable answer is enough for answers; not asked says nothing.
const (
	notAsked health = iota
	silent
	answers
)

const tooMany = 429 // HTTP's Too Many Requests

// see counts one exchange. An exchange that ended for a reason of this host (its
// context, its credential) says nothing of the origin.
func (h *health) see(o client.Observation) {
	switch {
	case o.Class == client.ClassCanceled, o.Class == client.ClassCredential:
	case o.Reach == client.Answered && o.Status < 500 && o.Status != tooMany:
		*h = answers
	case *h == notAsked:
		*h = silent
	}
}
