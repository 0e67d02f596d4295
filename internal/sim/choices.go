package sim

import "github.com/agentic-go/agentic/internal/sim/choice"

// kind names what a choice is about. How often a run makes a choice other than the
// harmless one is drawn for each kind of its own, so that runs differ in their mix.
type kind uint8

const (
	kWorld   kind = iota // how many hosts and requests, which documents, which ledger
	kOp                  // what a host does next
	kDetail              // how it does that
	kStep                // what happens between two effects
	kWait                // what happens while a host waits
	kHow                 // how long, how far
	kLedger              // what becomes of a call of the ledger
	kRequest             // what becomes of a request on its way
	kAnswer              // what becomes of its answer
	kDecide              // what the service decides
	kServe               // how the service fails
	kinds
)

// chooser gives the choices of one run: those of the world, and those of each host and
// of whatever follows from what it does.
type chooser struct {
	choice.Source
	rates [kinds]uint32 // of choice.Always
	steps [16]byte      // what a step that is not harmless is, equally often
}

func (c *chooser) seeded(seed uint64) {
	r := choice.Rand(seed)
	r.Next()
	// Faults come rarely or often, and some not at all; a quarter of the runs has only a
	// few kinds of them.
	few := r.Next()%4 == 0
	for k := range kinds {
		c.rates[k] = [...]uint32{0, 0, choice.Always / 64, choice.Always / 32, choice.Always / 16, choice.Always / 8, choice.Always / 4, choice.Always / 2}[r.Next()%8]
		if few && r.Next()%4 != 0 {
			c.rates[k] = 0
		}
	}
	c.rates[kWorld], c.rates[kHow] = choice.Always*2/3, choice.Always*3/4
	c.rates[kDetail] = [...]uint32{choice.Always / 4, choice.Always / 2}[r.Next()%2]
	c.rates[kOp] = [...]uint32{choice.Always / 4, choice.Always / 2, choice.Always * 3 / 4, choice.Always * 7 / 8}[r.Next()%4]
	c.rates[kStep] = min(c.rates[kStep]/2, choice.Always/12)
	c.rates[kWait] = min(c.rates[kWait], choice.Always/6)
	c.rates[kLedger] = min(c.rates[kLedger], choice.Always/8)
	for i := range c.steps {
		c.steps[i] = 1 + byte(r.Next()%(uint64(stepKinds)-1))
	}
	c.Seed(r)
}

func (c *chooser) choose(stream int, k kind, n int) int {
	var table []byte
	if k == kStep {
		table = c.steps[:]
	}
	return c.Choose(stream, c.rates[k], n, table)
}

// maxShrinks bounds the runs that shrinking one violation takes.
const maxShrinks = 20_000

// shrunk is the trace of the smallest run found that violates the same as the last one.
func (l *lab) shrunk(seed uint64, bad *world) *Trace {
	s := choice.Shrinker{Run: func(c choice.Lists) (choice.Lists, int, bool) {
		l.choices.Give(c)
		w := l.simulate(bad.planted, new(counts), false)
		return l.choices.Made, w.steps, w.bad != nil && w.bad.Invariant == bad.bad.Invariant
	}}
	shrunk := s.Shrink(l.choices.Made, bad.steps, maxShrinks)
	l.choices.Give(s.Best)
	return l.trace(&Trace{Seed: seed, Planted: bad.planted, Shrunk: shrunk})
}
