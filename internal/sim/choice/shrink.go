package choice

import "slices"

// Shrinker makes the choices of a run fewer and smaller.
type Shrinker struct {
	// Run follows lists, and gives what it really chose, how many steps that took, and
	// whether the run still shows what it is about.
	Run func(Lists) (made Lists, steps int, shows bool)

	Best Lists // the smallest until now
	size size
	left int
}

// Shrink shrinks the lists of a run of so many steps, with at most so many runs, and
// reports whether it found smaller ones.
func (s *Shrinker) Shrink(l Lists, steps, runs int) bool {
	s.Best, s.left = l.Trimmed(), runs
	s.size = sizeOf(s.Best, steps)
	whole := s.size
	for again := true; again && s.left > 0; {
		again = s.otherStreams()
		for i := range s.Best {
			again = s.shorter(i) || again
			again = s.without(i) || again
			again = s.zeros(i) || again
			again = s.smaller(i) || again
		}
	}
	return s.size.less(whole)
}

// size says how simple a run is: its steps, its choices that are not 0, how many choices
// there are, and their sum.
type size [4]int

func (a size) less(b size) bool { return slices.Compare(a[:], b[:]) < 0 }

func sizeOf(l Lists, steps int) size {
	n := size{steps}
	for _, list := range l {
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

// try takes another list for one stream.
func (s *Shrinker) try(stream int, list []byte) bool { return s.take(s.Best.with(stream, list)) }

// take takes other choices, if their run still shows it and is smaller.
func (s *Shrinker) take(l Lists) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	made, steps, shows := s.Run(l)
	if !shows {
		return false
	}
	made = made.Trimmed()
	n := sizeOf(made, steps)
	if !n.less(s.size) {
		return false
	}
	s.Best, s.size = made, n
	return true
}

// otherStreams gives a stream what another one has, or nothing. The first one is nobody's.
func (s *Shrinker) otherStreams() (done bool) {
	for a := 1; a < Streams; a++ {
		for b := a + 1; b < Streams; b++ {
			l := s.Best
			l[a], l[b] = l[b], l[a]
			done = s.take(l) || done
			done = s.take(s.Best.with(a, s.Best[b])) || done
			done = s.take(s.Best.with(b, nil)) || done
		}
	}
	return done
}

// shorter cuts the end off.
func (s *Shrinker) shorter(stream int) (done bool) {
	for cut := len(s.Best[stream]); cut > 0; cut /= 2 {
		for list := s.Best[stream]; len(list) >= cut && s.try(stream, list[:len(list)-cut]); list = s.Best[stream] {
			done = true
		}
	}
	return done
}

// without takes pieces out, so that what follows moves up.
func (s *Shrinker) without(stream int) (done bool) {
	for _, n := range []int{64, 32, 16, 12, 8, 6, 5, 4, 3, 2, 1} {
		for at := 0; at+n <= len(s.Best[stream]); {
			list := s.Best[stream]
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
func (s *Shrinker) zeros(stream int) (done bool) {
	for _, n := range []int{16, 4, 1} {
		for at := 0; at < len(s.Best[stream]); at += n {
			list := slices.Clone(s.Best[stream])
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
func (s *Shrinker) smaller(stream int) (done bool) {
	for at := 0; at < len(s.Best[stream]); at++ {
		for v := byte(1); at < len(s.Best[stream]) && v < s.Best[stream][at]; v++ {
			list := slices.Clone(s.Best[stream])
			list[at] = v
			if s.try(stream, list) {
				done = true
				break
			}
		}
	}
	return done
}
