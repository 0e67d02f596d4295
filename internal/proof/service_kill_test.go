package proof

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// 64 concurrent submissions of one key over two processes: one row, 64 equal
// answers (D22).
func TestServiceOneKey(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *shop) {
		s.open()
		s.open()
		for _, w := range []wish{{"one", "done", 0}, {"one", "done", 30}, {"one", "refuse", 0}, {"one", "refuse", 30}, {"one", "pending", 30}} {
			k := orderKey{"ann", "thing", "key-" + w.Do + "-" + strconv.Itoa(w.DelayMS)}
			const callers = 64
			c := &caller{newCaller(t, callers), s.spec.Origin, &history{begin: time.Now()}}
			got := make([]operation, callers)
			var ready, wg sync.WaitGroup
			ready.Add(callers)
			for i := range got {
				wg.Go(func() {
					ready.Done()
					ready.Wait()
					got[i] = c.submit(context.Background(), k, w, i)
				})
			}
			wg.Wait()
			first := 0
			for _, o := range got {
				if o.word == "done" || o.word == "pending" || o.word == "refused" {
					first++
				}
				if o.word == "" || o.id != got[0].id || o.body != got[0].body || o.code/100 != got[0].code/100 {
					t.Errorf("%+v: %d %q %q %s, and another one %d %q %q %s", w, o.code, o.word, o.id, o.body, got[0].code, got[0].word, got[0].id, got[0].body)
				}
			}
			if first != 1 {
				t.Errorf("%+v: %d first answers", w, first)
			}
			rows, want := s.rows()[k], 0
			if w.Do == "done" {
				want = 1
			}
			if len(rows) != want || want == 1 && rows[0] != got[0].id {
				t.Errorf("%+v: rows %v, answered %q", w, rows, got[0].id)
			}
			for _, f := range append(slices.Clone(c.faults), c.linear()...) {
				t.Error(f)
			}
		}
	})
}

// killRounds is how often processes are killed, over both stores together;
// AGENTIC_PROOF_KILLS asks for more.
func killRounds(t *testing.T) int {
	t.Helper()
	const least = 60
	text := os.Getenv("AGENTIC_PROOF_KILLS")
	if text == "" {
		return least
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		t.Fatalf("AGENTIC_PROOF_KILLS is a number of at least %d", least)
	}
	return n
}

// A publisher's process is killed at random under load and started again: every
// answered submission exists once, none twice, and the status is never wrong
// (section 5, D21).
func TestServiceKilledUnderLoad(t *testing.T) {
	rounds := killRounds(t) / len(shopKinds)
	onEachStore(t, func(t *testing.T, s *shop) {
		tr := newTraffic(t, s, 24)
		s.open()
		stop := tr.run()
		for range rounds {
			time.Sleep(time.Duration(1+rand.IntN(150)) * time.Millisecond)
			s.kill()
			s.open()
		}
		stop()
		tr.prove(t, s)
		if _, _, gone := tr.counts(); gone < rounds {
			t.Errorf("%d calls were cut off in %d rounds: that was no load", gone, rounds)
		}
	})
}

// Calls of few requests at once, over two processes, are linearizable while
// processes are killed one after the other, sessions of the database are ended,
// connections break and clients go away (D22).
func TestServiceLinearizable(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *shop) {
		tr := newTraffic(t, s, 12)
		tr.window, tr.fresh, tr.hasty = 4, 0.06, 0.2
		s.open()
		s.open()
		stop := tr.run()
		for range 12 {
			time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
			s.endSessions()
			time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
			s.killOne()
			s.open()
		}
		stop()
		tr.prove(t, s)
		tr.mustBeRefusedWhenChanged(t)
	})
}

// mustBeRefusedWhenChanged shows that the check of this very history can fail:
// one answer is changed at a time.
func (tr *traffic) mustBeRefusedWhenChanged(t *testing.T) {
	t.Helper()
	for word, wrong := range map[string]answer{
		"done":       {word: "done", id: "T-of-nobody"},
		"done again": {word: "conflict"},
		"succeeded":  {word: "failed"},
		"pending":    {word: "refused"},
		"conflict":   {word: "done again", id: "T-of-nobody"},
	} {
		i := slices.IndexFunc(tr.calls, func(o operation) bool { return o.word == word })
		if i < 0 {
			t.Errorf("nothing was answered with %q", word)
			continue
		}
		h := &history{calls: slices.Clone(tr.calls)}
		h.calls[i].answer = wrong
		h.calls = slices.DeleteFunc(h.calls, func(o operation) bool { return o.orderKey != tr.calls[i].orderKey })
		if len(h.linear()) == 0 {
			t.Errorf("%q in place of %q is not noticed in %d calls", wrong.word, word, len(h.calls))
		}
	}
}
