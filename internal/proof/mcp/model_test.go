//go:build unix

package mcp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// model is an agent that means one thing after the other, and goes by the words of
// the tools. It knows of its requests only what an answer has told it.
type model struct {
	t    testing.TB
	name string
	wire wire
	rng  *rand.Rand
	lose []loss // what may happen to its calls

	calls  int
	counts map[string]int // losses and states, for people
	intent []*intent
}

// intent is one thing that the agent means to be done.
type intent struct {
	n     int
	words int             // how often it was put in other words
	named map[string]bool // requests of it that an answer has named
	state string          // that the agent was told in the end
	id    string
}

// subject is the intent in words, which a reader can tell from every other intent.
func (i *intent) subject() string { return fmt.Sprintf("intent %d, in words %d", i.n, i.words) }

// about reports whether a text is about the intent.
func (i *intent) about(text string) bool {
	return strings.Contains(text, fmt.Sprintf("intent %d,", i.n))
}

// call makes a call that may be lost.
func (m *model) call(i *intent, tool string, args any, mayLose bool) *result {
	m.calls++
	l, after := none, time.Duration(0)
	if mayLose && len(m.lose) > 0 {
		l = m.lose[m.rng.IntN(len(m.lose))]
		longest := []time.Duration{2 * time.Millisecond, 12 * time.Millisecond, 12 * time.Millisecond, 300 * time.Millisecond}
		after = time.Duration(m.rng.Int64N(int64(longest[m.rng.IntN(len(longest))])))
		m.counts[string(l)]++
	}
	r := m.wire.call(tool, args, l, after)
	if r == nil {
		m.counts["lost answers"]++
		return nil
	}
	if r.IsError { // it was certainly not sent
		m.counts["error"]++
		text := r.Content[0].Text
		if !strings.Contains(text, "Nothing was sent by this call.") || !strings.Contains(text, "shutting down") && !strings.Contains(text, "ended before anything") && !strings.Contains(text, "ledger of this server") {
			m.t.Errorf("%s: %s", tool, text)
		}
		return nil
	}
	if s := r.StructuredContent; s.State != "" {
		m.counts[s.State]++
		if s.RequestID != "" {
			i.named[s.RequestID] = true
			i.id, i.state = s.RequestID, s.State
		}
	}
	return r
}

// pursue goes after one intent until the agent is told what there is to know.
func (m *model) pursue(n int) {
	i := &intent{n: n, named: map[string]bool{}}
	m.intent = append(m.intent, i)
	apart := map[string]bool{}
	left := m.rng.IntN(4) // calls that may be lost
	prepares := m.rng.IntN(6) == 0
	for try := 0; ; try++ {
		if try == 200 {
			m.t.Errorf("%s: intent %d comes to no end", m.name, n)
			return
		}
		if m.rng.IntN(2) == 0 {
			i.words++
		}
		left--
		tool, args := "create-ticket", object{"subject": i.subject()}
		if prepares {
			r := m.call(i, "prepare_request", object{"tool": tool, "input": args}, left > 0)
			if r == nil {
				continue
			}
			left--
			tool, args = "submit_request", object{"request_id": r.StructuredContent.RequestID, "distinct_from": slices.AppendSeq([]string{}, maps.Keys(apart))}
		} else if len(apart) > 0 {
			args["agentic_call"] = object{"distinct_from": slices.AppendSeq([]string{}, maps.Keys(apart))}
		}
		r := m.call(i, tool, args, left > 0)
		if r == nil {
			continue
		}
		if r.StructuredContent.State == "held_back" {
			mine := ""
			for _, o := range r.StructuredContent.OpenRequests {
				if i.about(o.InputText) {
					mine = o.RequestID
				} else {
					apart[o.RequestID] = true
				}
			}
			if mine == "" {
				continue
			}
			if r = m.resume(i, mine); r == nil {
				continue
			}
		}
		m.follow(i, r)
		return
	}
}

// resume reads what became of a request, however often the answer is lost.
func (m *model) resume(i *intent, id string) *result {
	for try := range 20 {
		if r := m.call(i, "resume_request", object{"request_id": id}, try == 0 && m.rng.IntN(4) == 0); r != nil {
			return r
		}
	}
	m.t.Errorf("%s: request %s cannot be read", m.name, id)
	return nil
}

// follow reads on as long as it is told to, a few times, and sooner than it is told.
func (m *model) follow(i *intent, r *result) {
	for range 8 {
		s := r.StructuredContent
		if s.State != "running" && s.State != "pending" && s.State != "unknown" || s.Next == nil || s.Next.Tool != "resume_request" {
			return
		}
		if s.State == "running" {
			time.Sleep(50 * time.Millisecond)
		}
		if r = m.resume(i, s.RequestID); r == nil {
			return
		}
	}
}
