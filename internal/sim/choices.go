package sim

import "slices"

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

// rng is splitmix64: small, and the same everywhere and for ever.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// always is the rate at which every choice is other than 0.
const always = 1 << 16

// streams is how many lists of choices a run has: one for the world, and one for each
// host and whatever follows from what it does. So a choice that is left out moves only
// those of the same host.
const streams = 1 + maxHosts

// choices are what a run follows from.
type choices [streams][]byte

// chooser gives the choices of one run: drawn from a seed, or given. Either way made are
// those that give the same run again.
type chooser struct {
	drawn bool
	rng   rng
	rates [kinds]uint32 // of always
	steps [16]uint8     // what a step that is not harmless is, equally often

	given choices
	made  choices
}

func (c *chooser) seeded(seed uint64) {
	*c = chooser{drawn: true, rng: rng(seed), made: c.made.emptied()}
	c.rng.next()
	// Faults come rarely or often, and some not at all; a quarter of the runs has only a
	// few kinds of them.
	few := c.rng.next()%4 == 0
	for k := range kinds {
		c.rates[k] = [...]uint32{0, 0, always / 64, always / 32, always / 16, always / 8, always / 4, always / 2}[c.rng.next()%8]
		if few && c.rng.next()%4 != 0 {
			c.rates[k] = 0
		}
	}
	c.rates[kWorld], c.rates[kHow] = always*2/3, always*3/4
	c.rates[kDetail] = [...]uint32{always / 4, always / 2}[c.rng.next()%2]
	c.rates[kOp] = [...]uint32{always / 4, always / 2, always * 3 / 4, always * 7 / 8}[c.rng.next()%4]
	c.rates[kStep] = min(c.rates[kStep]/2, always/12)
	c.rates[kWait] = min(c.rates[kWait], always/6)
	c.rates[kLedger] = min(c.rates[kLedger], always/8)
	for i := range c.steps {
		c.steps[i] = 1 + uint8(c.rng.next()%(uint64(stepKinds)-1))
	}
}

func (c *chooser) listed(given choices) { *c = chooser{given: given, made: c.made.emptied()} }

func (c choices) emptied() choices {
	for i := range c {
		c[i] = c[i][:0]
	}
	return c
}

// choose gives a number below n. 0 is the harmless one, which is also what a given
// list says past its end and where it says what cannot be.
func (c *chooser) choose(stream int, k kind, n int) int {
	if n < 2 {
		return 0
	}
	v := 0
	if c.drawn {
		u := c.rng.next()
		switch {
		case uint32(u)&(always-1) >= c.rates[k]:
		case k == kStep:
			v = int(c.steps[u>>32&15])
		default:
			v = 1 + int((u>>32)%uint64(n-1))
		}
	} else if i := len(c.made[stream]); i < len(c.given[stream]) && int(c.given[stream][i]) < n {
		v = int(c.given[stream][i])
	}
	c.made[stream] = append(c.made[stream], byte(v))
	return v
}

// trimmed is a copy without what is harmless anyway at the ends.
func (c choices) trimmed() choices {
	for i, list := range c {
		n := len(list)
		for n > 0 && list[n-1] == 0 {
			n--
		}
		c[i] = slices.Clone(list[:n])
	}
	return c
}

// with is a copy with another list for one stream.
func (c choices) with(stream int, list []byte) choices {
	c[stream] = list
	return c
}
