package sim

import "slices"

// maxShrinks bounds the runs that shrinking one violation takes.
const maxShrinks = 20_000

// shrinker makes the choices of a violation fewer and smaller as long as the same
// invariant is violated, as libraries for property-based tests do.
type shrinker struct {
	lab     *lab
	planted Plant
	want    Invariant
	best    choices
	size    size // of the best
	left    int
}

// shrunk is the trace of the smallest run found that violates the same as v.
func (l *lab) shrunk(seed uint64, planted Plant, bad *world) *Trace {
	s := &shrinker{lab: l, planted: planted, want: bad.bad.Invariant, best: l.choices.made.trimmed(), left: maxShrinks}
	s.size = bad.size(s.best)
	whole := s.size
	for again := true; again && s.left > 0; {
		again = s.otherHosts()
		for i := range s.best {
			again = s.shorter(i) || again
			again = s.without(i) || again
			again = s.zeros(i) || again
			again = s.smaller(i) || again
		}
	}
	l.choices.listed(s.best)
	return l.trace(&Trace{Seed: seed, Planted: planted, Shrunk: s.size.less(whole)})
}

// try takes another list for one stream.
func (s *shrinker) try(stream int, list []byte) bool { return s.take(s.best.with(stream, list)) }

// take takes other choices, if their run still does it and is smaller.
func (s *shrinker) take(c choices) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.lab.choices.listed(c)
	w := s.lab.simulate(s.planted, new(counts), false)
	if w.bad == nil || w.bad.Invariant != s.want {
		return false
	}
	made := s.lab.choices.made.trimmed()
	size := w.size(made)
	if !size.less(s.size) {
		return false
	}
	s.best, s.size = made, size
	return true
}

// size says how simple a run is: its steps, its choices that are not 0, how many choices
// there are, and their sum.
type size [4]int

func (a size) less(b size) bool { return slices.Compare(a[:], b[:]) < 0 }

func (w *world) size(c choices) size {
	n := size{w.steps}
	for _, list := range c {
		for _, v := range list {
			if v != 0 {
				n[1]++
			}
			n[3] += int(v)
		}
		n[2] += len(list)
	}
	return n
}

// otherHosts lets hosts do what others did, which may make some superfluous.
func (s *shrinker) otherHosts() (done bool) {
	for a := 1; a < streams; a++ {
		for b := a + 1; b < streams; b++ {
			c := s.best
			c[a], c[b] = c[b], c[a]
			done = s.take(c) || done
			done = s.take(s.best.with(a, s.best[b])) || done
			done = s.take(s.best.with(b, nil)) || done
		}
	}
	return done
}

// shorter cuts the end off.
func (s *shrinker) shorter(stream int) (done bool) {
	for cut := len(s.best[stream]); cut > 0; cut /= 2 {
		for list := s.best[stream]; len(list) >= cut && s.try(stream, list[:len(list)-cut]); list = s.best[stream] {
			done = true
		}
	}
	return done
}

// without takes pieces out, so that what follows moves up.
func (s *shrinker) without(stream int) (done bool) {
	for _, n := range []int{64, 32, 16, 12, 8, 6, 5, 4, 3, 2, 1} {
		for at := 0; at+n <= len(s.best[stream]); {
			list := s.best[stream]
			if s.try(stream, slices.Concat(list[:at], list[at+n:])) {
				done = true
			} else {
				at++
			}
		}
	}
	return done
}

// zeros makes choices harmless, several at once first.
func (s *shrinker) zeros(stream int) (done bool) {
	for _, n := range []int{16, 4, 1} {
		for at := 0; at < len(s.best[stream]); at += n {
			list := slices.Clone(s.best[stream])
			piece := list[at:min(at+n, len(list))]
			if slices.Max(piece) == 0 {
				continue
			}
			clear(piece)
			done = s.try(stream, list) || done
		}
	}
	return done
}

// smaller takes each number down.
func (s *shrinker) smaller(stream int) (done bool) {
	for at := 0; at < len(s.best[stream]); at++ {
		for v := byte(1); at < len(s.best[stream]) && v < s.best[stream][at]; v++ {
			list := slices.Clone(s.best[stream])
			list[at] = v
			if s.try(stream, list) {
				done = true
				break
			}
		}
	}
	return done
}
