package sim

import "slices"

// maxShrinks bounds the runs that shrinking one violation takes.
const maxShrinks = 5000

// shrinker makes the choices of a violation fewer and smaller as long as the same
// invariant is violated.
type shrinker struct {
	lab     *lab
	planted Plant
	want    Invariant
	best    []byte
	left    int
}

// shrunk is the trace of the smallest run found that violates the same as v.
func (l *lab) shrunk(seed uint64, planted Plant, v *Violation) *Trace {
	s := &shrinker{lab: l, planted: planted, want: v.Invariant, best: trimmed(l.choices.made), left: maxShrinks}
	whole := len(s.best)
	for again := true; again; {
		again = s.shorter() || s.without() || s.zeros() || s.smaller()
	}
	l.choices.listed(s.best)
	return l.trace(&Trace{Seed: seed, Planted: planted, Shrunk: len(s.best) < whole || s.left < maxShrinks})
}

// try takes choices that are smaller than the best, if they still do it.
func (s *shrinker) try(choices []byte) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.lab.choices.listed(choices)
	w := s.lab.simulate(s.planted, new(counts), false)
	if w.bad == nil || w.bad.Invariant != s.want {
		return false
	}
	made := trimmed(s.lab.choices.made)
	if compare(made, s.best) >= 0 {
		return false
	}
	s.best = made
	return true
}

// compare says which list is simpler: the one with fewer that are not 0, then the
// shorter one, then the one with smaller numbers.
func compare(a, b []byte) int {
	x, y := weight(a), weight(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] - y[i]
		}
	}
	return 0
}

func weight(choices []byte) (w [3]int) {
	for _, v := range choices {
		if v != 0 {
			w[0]++
		}
		w[2] += int(v)
	}
	w[1] = len(choices)
	return w
}

// shorter cuts the end off.
func (s *shrinker) shorter() (done bool) {
	for cut := len(s.best) / 2; cut > 0; cut /= 2 {
		for len(s.best) > cut && s.try(slices.Clone(s.best[:len(s.best)-cut])) {
			done = true
		}
	}
	return done
}

// without takes pieces out, so that what follows moves up.
func (s *shrinker) without() (done bool) {
	for _, n := range []int{32, 8, 3, 2, 1} {
		for at := 0; at+n <= len(s.best); {
			if s.try(slices.Concat(s.best[:at], s.best[at+n:])) {
				done = true
			} else {
				at += max(1, n/2)
			}
		}
	}
	return done
}

// zeros makes choices harmless, several at once first.
func (s *shrinker) zeros() (done bool) {
	for _, n := range []int{16, 4, 1} {
		for at := 0; at < len(s.best); at += n {
			c := slices.Clone(s.best)
			piece := c[at:min(at+n, len(c))]
			if slices.Max(piece) == 0 {
				continue
			}
			clear(piece)
			done = s.try(c) || done
		}
	}
	return done
}

// smaller takes each number down.
func (s *shrinker) smaller() (done bool) {
	for at := 0; at < len(s.best); at++ {
		for v := byte(1); at < len(s.best) && v < s.best[at]; v++ {
			c := slices.Clone(s.best)
			c[at] = v
			if s.try(c) {
				done = true
				break
			}
		}
	}
	return done
}
