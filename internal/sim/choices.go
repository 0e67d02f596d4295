package sim

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

// chooser gives the choices of one run: drawn from a seed, or given as a list. Either
// way made is the list that gives the same run again.
type chooser struct {
	drawn bool
	rng   rng
	rates [kinds]uint32 // of always
	steps [16]uint8     // what a step that is not harmless is, equally often

	given []byte
	made  []byte
}

func (c *chooser) seeded(seed uint64) {
	*c = chooser{drawn: true, rng: rng(seed), made: c.made[:0]}
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

func (c *chooser) listed(choices []byte) { *c = chooser{given: choices, made: c.made[:0]} }

// choose gives a number below n. 0 is the harmless one, which is also what a given
// list says past its end and where it says what cannot be.
func (c *chooser) choose(k kind, n int) int {
	v := 0
	if n < 2 {
		return 0
	}
	switch i := len(c.made); {
	case c.drawn:
		u := c.rng.next()
		switch {
		case uint32(u)&(always-1) >= c.rates[k]:
		case k == kStep:
			v = int(c.steps[u>>32&15])
		default:
			v = 1 + int((u>>32)%uint64(n-1))
		}
	case i < len(c.given) && int(c.given[i]) < n:
		v = int(c.given[i])
	}
	c.made = append(c.made, byte(v))
	return v
}
