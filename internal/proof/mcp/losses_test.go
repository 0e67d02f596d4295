//go:build unix

package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
)

// number is a number of the environment.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s is not a number", name)
	}
	return n
}

func seedOf(t testing.TB) uint64 {
	seed := uint64(number(t, "AGENTIC_PROOF_SEED", rand.IntN(1<<31)+1))
	t.Logf("AGENTIC_PROOF_SEED=%d", seed)
	return seed
}

// trial is a service with a fault, a way to speak, and models.
type trial struct {
	fault  ticket.Fault
	models []string // over HTTP, by name and version; none is one over a pipe
}

var (
	ada = []string{"ada 2025-06-18", "bob 2026-07-28"}
	bob = []string{"ada 2026-07-28", "bob 2025-11-25"}
)

// some are the trials of every test run, and all are those of the proof.
var (
	some = []trial{{"normal", nil}, {"response-lost", nil}, {"late", ada}, {"status-unavailable", bob}}
	all  = []trial{
		{"normal", nil}, {"response-lost", nil}, {"late", nil}, {"pending", nil}, {"status-unavailable", nil}, {"slow", nil}, {"stale-read", nil}, {"failed", nil}, {"expired", nil},
		{"normal", ada}, {"response-lost", bob}, {"late", ada}, {"pending", bob}, {"status-unavailable", ada}, {"slow", bob}, {"wrong-evidence", ada}, {"failed", bob}, {"normal", bob},
	}
)

// honest says that the service tells the truth in time: then everything that arrived
// is verified.
func (tr trial) honest() bool {
	return tr.fault == "normal" || tr.fault == "response-lost" || tr.fault == "late" || tr.fault == "stale-read"
}

// TestLosses: whatever is killed and cut off, and however an agent that goes by the
// words of the tools asks again, there are never two tickets for what it meant once,
// nothing is posted twice, and what became of every call is found afterwards.
func TestLosses(t *testing.T) {
	seed, calls, trials := seedOf(t), number(t, "AGENTIC_PROOF_CALLS", 60), some
	if calls > 200 {
		trials = all
	}
	var mu sync.Mutex
	total, counts := 0, map[string]int{}
	t.Run("trials", func(t *testing.T) {
		for i, tr := range trials {
			t.Run(fmt.Sprintf("%d_%s_%d", i, tr.fault, len(tr.models)), func(t *testing.T) {
				t.Parallel()
				s := serve(t, tr.fault)
				models, _ := tr.run(t, s, losses, rand.New(rand.NewPCG(seed, uint64(i))), (calls+len(trials)-1)/len(trials))
				mu.Lock()
				defer mu.Unlock()
				for _, m := range models {
					total += m.calls
					for what, n := range m.counts {
						counts[what] += n
					}
				}
			})
		}
	})
	t.Logf("%d calls: %v", total, counts)
	if total < calls || counts["lost answers"] == 0 {
		t.Errorf("only %d calls, %d lost answers", total, counts["lost answers"])
	}
}

// TestStopped: what is only stopped or left by its client, and not killed, leaves
// nothing unknown.
func TestStopped(t *testing.T) {
	seed := seedOf(t)
	for i, tr := range []trial{{"late", nil}, {"normal", ada}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if _, unsent := tr.run(t, serve(t, tr.fault), []loss{cancel, hangup, term}, rand.New(rand.NewPCG(seed, uint64(i))), 30); unsent > 0 {
				t.Errorf("%d intents stay unknown", unsent)
			}
		})
	}
}

// run has the models make at least so many calls, and checks everything. unsent is how
// many intents stay unknown because a server ended between the mark and the POST.
func (tr trial) run(t *testing.T, s *service, lose []loss, rng *rand.Rand, calls int) (_ []*model, unsent int) {
	c := newCommand(t, s)
	var models []*model
	var end func()
	fresh := func(name string) wire { return &pipe{t: t, c: c} }
	if len(tr.models) == 0 {
		w := &pipe{t: t, c: c}
		models, end = []*model{{name: "default", wire: w}}, w.end
	} else {
		c.overHTTP(t, "ada", "bob")
		st := &site{t: t, c: c}
		end = st.end
		for _, spec := range tr.models {
			name, version, _ := strings.Cut(spec, " ")
			w := &web{t: t, site: st, principal: name, version: version, rng: rand.New(rand.NewPCG(rng.Uint64(), 0))}
			models = append(models, &model{name: name, wire: w})
			fresh = func(name string) wire { return &web{t: t, site: st, principal: name, version: stateless} }
		}
	}
	var wg sync.WaitGroup
	for _, m := range models {
		m.t, m.rng, m.lose, m.counts = t, rand.New(rand.NewPCG(rng.Uint64(), 1)), lose, map[string]int{}
		wg.Go(func() { // all mean the same at once
			for n := 0; m.calls < (calls+len(models)-1)/len(models); n++ {
				m.pursue(n)
			}
		})
	}
	wg.Wait()
	for _, m := range models {
		w := fresh(m.name)
		m.findAll(w)
		if p, ok := w.(*pipe); ok {
			p.end()
		}
	}
	end()
	doubles, unsent := tr.judge(t, s, c, models)
	if doubles > 0 {
		t.Errorf("%d intents have two tickets", doubles)
	}
	return models, unsent
}

// findAll finds the result of every call again, with a client that knows nothing.
func (m *model) findAll(w wire) {
	calls := func(tool string, args any) *result {
		r := w.call(tool, args, none, 0)
		if r == nil || r.IsError {
			m.t.Errorf("%s of %v gives %+v", tool, args, r)
			return &result{}
		}
		return r
	}
	listed := map[string]bool{}
	for _, r := range calls("list_requests", object{"open_only": false, "limit": 100}).StructuredContent.Requests {
		listed[r.RequestID] = true
	}
	for _, i := range m.intent {
		if i.id == "" {
			m.t.Errorf("%s: intent %d has no request", m.name, i.n)
		}
		for id := range i.named {
			if !listed[id] && len(listed) < 100 {
				m.t.Errorf("%s: request %s is not listed", m.name, id)
			}
			if text := calls("show_request", object{"request_id": id}).StructuredContent.InputText; !i.about(text) {
				m.t.Errorf("%s: request %s of intent %d shows %s", m.name, id, i.n, text)
			}
		}
		if i.state == "succeeded" || i.state == "failed" {
			if now := calls("resume_request", object{"request_id": i.id}).StructuredContent; now.State != i.state {
				m.t.Errorf("%s: request %s is %s, and was %s", m.name, i.id, now.State, i.state)
			}
		}
	}
}

// judge holds what the models were told against the service's own database and
// count, and against the ledger. It gives how many intents have two tickets, and how
// many are unknown and were never posted.
func (tr trial) judge(t *testing.T, s *service, c *command, models []*model) (doubles, unsent int) {
	t.Helper()
	ctx := context.Background()
	ledger, err := sqlite.Open(ctx, sqlite.Config{Path: c.ledger})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	posts, tickets := s.posted(), s.tickets(t)
	whose := map[string]*model{}
	for id, n := range posts {
		if n != 1 {
			t.Errorf("request %s was posted %d times", id, n)
		}
		for _, m := range models {
			rec, err := ledger.Load(ctx, client.Scope{Principal: m.name, Environment: "default"}, id)
			if _, missing := errors.AsType[*client.NotFoundError](err); missing {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if whose[id] = m; rec.State != client.Attempted {
				t.Errorf("request %s was posted, and is %s in the ledger", id, rec.State)
			}
		}
		if whose[id] == nil {
			t.Errorf("request %s was posted, and is not in the ledger", id)
		}
	}
	for _, m := range models {
		for _, i := range m.intent {
			var has []string
			for id, subject := range tickets {
				if whose[id] == m && i.about(subject) {
					has = append(has, id)
				}
			}
			if len(has) > 1 {
				doubles++
			}
			switch {
			case i.state == "succeeded" && (len(has) == 0 || !i.named[has[0]]),
				i.state == "failed" && len(has) > 0:
				t.Errorf("%s: intent %d is %s as %s, with the tickets of %v", m.name, i.n, i.state, i.id, has)
			case !tr.honest() || i.state == "succeeded":
			case i.state == "unknown" && posts[i.id] == 0 && len(has) == 0:
				unsent++ // a server ended between the mark and the POST, and nobody can know
			default:
				t.Errorf("%s: intent %d is %s as %s, posted %d times", m.name, i.n, i.state, i.id, posts[i.id])
			}
		}
	}
	t.Logf("%d POSTs, %d tickets; %d intents stay unknown because a server ended between the mark and the POST", len(posts), len(tickets), unsent)
	return doubles, unsent
}
