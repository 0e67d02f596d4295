//go:build unix

package mcp

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// TestTwoServers: two servers on one ledger, as a host leaves behind that begins anew,
// are asked for the same thing in other words at the same moment, and one does it.
func TestTwoServers(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		s := serve(t, "normal")
		twoServers(t, s, newCommand(t, s))
	})
	t.Run("database", func(t *testing.T) {
		s := serve(t, "normal")
		c := newCommand(t, s)
		c.ledger = pgtest.Shared(t).NewDatabase(t)
		if out, err := exec.Command(program, "ledger", "migrate", "--ledger", c.ledger).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		twoServers(t, s, c)
	})
}

func twoServers(t *testing.T, s *service, c *command) {
	pipes := []*pipe{{t: t, c: c}, {t: t, c: c}}
	for _, w := range pipes {
		w.connect()
	}
	const rounds = 20
	apart := []string{}
	for n := range rounds {
		got := make([]*result, len(pipes))
		var wg sync.WaitGroup
		for k, w := range pipes {
			wg.Go(func() {
				got[k] = w.call("create-ticket", object{"subject": fmt.Sprintf("intent %d, in words %d", n, k), "agentic_call": object{"distinct_from": apart}}, none, 0)
			})
		}
		wg.Wait()
		states := map[string]int{}
		for _, r := range got {
			if r == nil || r.IsError {
				t.Fatalf("got %+v", r)
			}
			if states[r.StructuredContent.State]++; r.StructuredContent.RequestID != "" {
				apart = append(apart, r.StructuredContent.RequestID)
			}
		}
		if states["succeeded"] != 1 || states["held_back"] != 1 {
			t.Errorf("intent %d: %v", n, states)
		}
	}
	for _, w := range pipes {
		w.end()
	}
	if n := len(s.tickets(t)); n != rounds {
		t.Errorf("%d tickets for %d intents", n, rounds)
	}
}

// TestWithoutGuards: the same losses leave two tickets when the guards are off, so it
// would be seen.
func TestWithoutGuards(t *testing.T) {
	s := serve(t, "normal")
	c := newCommand(t, s, "--open-guard=false", "--same-input-guard=false")
	w := &pipe{t: t, c: c}
	m := &model{t: t, name: "default", wire: w, lose: []loss{cancel}, rng: rand.New(rand.NewPCG(1, 2)), counts: map[string]int{}}
	for n := range 20 {
		m.pursue(n)
	}
	w.end()
	doubles := 0
	for _, i := range m.intent {
		has := 0
		for _, subject := range s.tickets(t) {
			if i.about(subject) {
				has++
			}
		}
		if has > 1 {
			doubles++
		}
	}
	if doubles == 0 {
		t.Errorf("no intent has two tickets: %v", m.counts)
	}
}

// TestPrincipals: two principals mean the same in the same words at once, in one
// process over HTTP. Each has requests of its own, and nothing that one can read or
// do reaches those of the other, in sessions and without.
func TestPrincipals(t *testing.T) {
	for _, version := range []string{"2025-06-18", stateless} {
		t.Run(version, func(t *testing.T) {
			s := serve(t, "pending")
			st := &site{t: t, c: newCommand(t, s).overHTTP(t, "ada", "bob")}
			all := map[string]*web{}
			for _, name := range []string{"ada", "bob"} {
				all[name] = &web{t: t, site: st, principal: name, version: version, rng: rand.New(rand.NewPCG(1, 1))}
			}
			ids := map[string]string{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for name, w := range all {
				wg.Go(func() {
					r := w.call("create-ticket", object{"subject": "intent 0, in words 0"}, none, 0)
					mu.Lock()
					defer mu.Unlock()
					if ids[name] = r.StructuredContent.RequestID; r.StructuredContent.Repeated {
						t.Errorf("%s is told of a request of the other", name)
					}
				})
			}
			wg.Wait()
			if ids["ada"] == "" || ids["ada"] == ids["bob"] || len(s.posted()) != 2 {
				t.Fatalf("requests %v, posted %v", ids, s.posted())
			}
			for name, other := range map[string]string{"ada": ids["bob"], "bob": ids["ada"]} {
				w := all[name]
				for _, tool := range []string{"show_request", "resume_request", "submit_request"} {
					if r := w.call(tool, object{"request_id": other}, none, 0); !r.IsError || !strings.Contains(r.Content[0].Text, "This principal has no request") {
						t.Errorf("%s: %s gives %+v", name, tool, r)
					}
				}
				for _, args := range []object{{}, {"open_only": false, "limit": 100}} {
					if r := w.call("list_requests", args, none, 0); len(r.StructuredContent.Requests) != 1 || r.StructuredContent.Requests[0].RequestID != ids[name] {
						t.Errorf("%s lists %+v", name, r)
					}
				}
				// The guards know each principal's own.
				if r := w.call("create-ticket", object{"subject": "intent 0, in words 1"}, none, 0); r.StructuredContent.State != "held_back" ||
					len(r.StructuredContent.OpenRequests) != 1 || r.StructuredContent.OpenRequests[0].RequestID != ids[name] {
					t.Errorf("%s: %+v", name, r)
				}
				if r := w.call("create-ticket", object{"subject": "intent 0, in words 0"}, none, 0); r.StructuredContent.RequestID != ids[name] || !r.StructuredContent.Repeated {
					t.Errorf("%s: %+v", name, r)
				}
				// An ID of the other is taken, for this principal, by nobody: it names a new request.
				if r := w.call("prepare_request", object{"tool": "create-ticket", "input": object{"subject": "intent 9, in words 0"}}, none, 0); r.StructuredContent.RequestID == other {
					t.Errorf("%s: %+v", name, r)
				}
				for uri, want := range map[string]bool{"agentic://requests/" + other: false, "agentic://requests/" + ids[name]: true, "agentic://requests": true} {
					text, ok := w.resource(uri)
					if ok != want || strings.Contains(text, other) {
						t.Errorf("%s reads %s: %t %s", name, uri, ok, text)
					}
				}
			}
			// The session of one is worth nothing with the token of the other.
			if version < stateless {
				thief := *all["bob"]
				thief.session = all["ada"].session
				if r := thief.call("list_requests", object{}, none, 0); r != nil {
					t.Errorf("a session that was taken over gives %+v", r)
				}
			}
			if len(s.posted()) != 2 {
				t.Errorf("posted %v", s.posted())
			}
			st.end()
		})
	}
}
