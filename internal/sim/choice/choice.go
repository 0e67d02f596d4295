// Package choice gives the choices that a simulated run follows from: drawn from a seed, or
// given as lists, and it shrinks the lists of a run to those of a smaller one, as libraries
// for property-based tests do.
//
// Its job is numbers. What a choice means is its caller's; 0 has to be the harmless one. It
// imports nothing of this module.
package choice

import "slices"

// Streams is how many lists a run has. A choice that is left out moves only what follows
// in its own list.
const Streams = 4

// Lists are what a run follows from.
type Lists [Streams][]byte

// Rand is splitmix64: small, and the same everywhere and for ever.
type Rand uint64

// Next is the next number.
func (r *Rand) Next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Always is the rate at which every choice is other than 0.
const Always = 1 << 16

// Source gives the choices of one run after the other. Made are those of the last one,
// which give it again. The zero value gives harmless choices only.
type Source struct {
	Made Lists

	drawn bool
	rand  Rand
	given Lists
}

// Seed has the next run's choices drawn; r gives also whatever else the seed decides.
func (s *Source) Seed(r Rand) { *s = Source{Made: s.Made.emptied(), drawn: true, rand: r} }

// Give has the next run follow lists. Past their end, and where they say what cannot be,
// choices are harmless.
func (s *Source) Give(l Lists) { *s = Source{Made: s.Made.emptied(), given: l} }

// Choose gives a number below n, at most 256. When it is drawn it is other than 0 at the
// rate, in parts of Always, and then one of table, or without one any.
func (s *Source) Choose(stream int, rate uint32, n int, table []byte) int {
	if n < 2 {
		return 0
	}
	v := 0
	if s.drawn {
		u := s.rand.Next()
		switch {
		case uint32(u)&(Always-1) >= rate:
		case table != nil:
			v = int(table[int(u>>32)%len(table)])
		default:
			v = 1 + int((u>>32)%uint64(n-1))
		}
	} else if i := len(s.Made[stream]); i < len(s.given[stream]) && int(s.given[stream][i]) < n {
		v = int(s.given[stream][i])
	}
	s.Made[stream] = append(s.Made[stream], byte(v))
	return v
}

func (l Lists) emptied() Lists {
	for i := range l {
		l[i] = l[i][:0]
	}
	return l
}

// Trimmed is a copy without what is harmless anyway at the ends.
func (l Lists) Trimmed() Lists {
	for i, list := range l {
		n := len(list)
		for n > 0 && list[n-1] == 0 {
			n--
		}
		l[i] = slices.Clone(list[:n])
	}
	return l
}

// with is a copy with another list for one stream.
func (l Lists) with(stream int, list []byte) Lists {
	l[stream] = list
	return l
}
