package choice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentic-go/agentic/internal/sim/choice"
)

// chooses makes a run of many choices.
func chooses(s *choice.Source) (got []int) {
	for i := range 200 {
		got = append(got, s.Choose(i%choice.Streams, choice.Always/4, 2+i%7, nil))
	}
	return got
}

func TestListsGiveTheRunAgain(t *testing.T) {
	var s choice.Source
	for seed := range choice.Rand(50) {
		s.Seed(seed)
		want := chooses(&s)
		whole := s.Made.Trimmed()
		s.Give(whole)
		if d := cmp.Diff(want, chooses(&s)); d != "" {
			t.Fatalf("seed %d given again (-drawn +given):\n%s", seed, d)
		}
		if d := cmp.Diff(whole, s.Made.Trimmed()); d != "" {
			t.Fatalf("seed %d made other lists (-drawn +given):\n%s", seed, d)
		}
	}
}

func TestHarmlessChoices(t *testing.T) {
	var s choice.Source
	s.Give(choice.Lists{{5, 1}})
	got := []int{s.Choose(0, 0, 5, nil), s.Choose(0, 0, 2, nil), s.Choose(0, 0, 9, nil), s.Choose(1, 0, 9, nil), s.Choose(0, 0, 1, nil)}
	if d := cmp.Diff([]int{0, 1, 0, 0, 0}, got); d != "" {
		t.Errorf("what cannot be, what is given, past the end, another list, no choice (-want +got):\n%s", d)
	}
	s.Seed(1)
	for range 1000 {
		if s.Choose(0, 0, 9, nil) != 0 {
			t.Fatal("a choice that never happens happened")
		}
		if v := s.Choose(0, choice.Always, 9, nil); v == 0 || v > 8 {
			t.Fatalf("a choice that always happens is %d", v)
		}
		if v := s.Choose(0, choice.Always, 9, []byte{7}); v != 7 {
			t.Fatalf("a choice of a table is %d", v)
		}
	}
}

// TestShrink: what a run shows is two numbers that belong together, in two lists.
func TestShrink(t *testing.T) {
	var s choice.Source
	run := func(l choice.Lists) (choice.Lists, int, bool) {
		s.Give(l)
		steps := 0
		for stream := range choice.Streams {
			for s.Choose(stream, 0, 3, nil) != 0 {
				steps++
			}
		}
		a, b := 0, 0
		for range 30 {
			a = max(a, s.Choose(1, 0, 100, nil))
			b = max(b, s.Choose(2, 0, 100, nil))
		}
		return s.Made, steps, a >= 40 && b > a
	}
	l := choice.Lists{{1, 2, 1}, {2, 1, 0, 9, 80, 3, 77}, {1, 0, 5, 6, 99, 98}, {1, 1, 1}}
	if _, _, shows := run(l); !shows {
		t.Fatal("the run that is to be shrunk shows nothing")
	}
	shrinker := choice.Shrinker{Run: run}
	if !shrinker.Shrink(l, 8, 5000) {
		t.Fatal("nothing was shrunk")
	}
	if d := cmp.Diff(choice.Lists{nil, {0, 40}, {0, 41}, nil}, shrinker.Best, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("shrunk (-want +got):\n%s", d)
	}
}
