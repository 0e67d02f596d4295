package proof

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
)

// inputOf is the input of a request, its own: the same under two IDs looks like a
// duplicate.
func inputOf(id string) []byte { return fmt.Appendf(nil, `{"subject":"Printer on fire, %s"}`, id) }

// ledgerPoints are the boundaries inside the SQLite ledger.
var ledgerPoints = []string{"sqlite/locked", "sqlite/commit", "sqlite/committed", "sqlite/released"}

// A host process is killed at every boundary between two effects and another
// takes over: never a second POST, and the outcome is what the service holds
// (section 6.3, 6.4).
func TestKilledAtEveryPoint(t *testing.T) {
	points := slices.Clone(ledgerPoints)
	for _, p := range client.Points() {
		points = append(points, string(p))
	}
	for _, point := range points {
		for _, prepare := range []bool{false, true} {
			if prepare && point == string(client.BeforeSave) {
				continue // only Execute with a plan passes it
			}
			for _, fault := range []ticket.Fault{ticket.Normal, "response-lost"} {
				t.Run(fmt.Sprintf("%s/prepare=%t/%s", point, prepare, fault), func(t *testing.T) {
					t.Parallel()
					killAndTakeOver(t, point, prepare, fault)
				})
			}
		}
	}
}

func killAndTakeOver(t *testing.T, point string, prepare bool, fault ticket.Fault) {
	wrap := func(h http.Handler) http.Handler { return h }
	if point == string(client.AfterRefusal) {
		wrap = refuseSubmissions
	}
	s := serve(t, fault, wrap)
	o := order{Origin: s.origin, Ledger: filepath.Join(t.TempDir(), "ledger.db"), IDs: []string{"request-0001"}, Prepare: prepare, KillAt: point}
	reports, killed := start(t, o).wait(t)
	if !killed || len(reports) != 0 {
		t.Fatalf("the host was not killed at %s: %+v", point, reports)
	}
	o.KillAt = ""
	again, _ := start(t, o).wait(t)
	mustReceipts(t, again)
	o.Resume = true
	resumed, _ := start(t, o).wait(t)
	mustReceipts(t, resumed)
	want, posts := agentic.Succeeded, 1
	switch {
	case point == string(client.BeforeSubmit), point == "sqlite/committed" && !prepare:
		want, posts = agentic.Unknown, 0 // saved as attempted, and nobody can know that it was not sent
	case point == string(client.AfterRefusal):
		want, posts = agentic.Unknown, 0 // the wrapper refuses before the service counts
	}
	if st := s.state(t); st.Posts != posts || st.Tickets != posts {
		t.Errorf("%d POSTs and %d tickets, want %d", st.Posts, st.Tickets, posts)
	}
	if len(resumed) != 1 || resumed[0].Receipt.Outcome != want {
		t.Errorf("outcome %+v, want %s", resumed, want)
	}
	checkLedger(t, o.Ledger, append(again, resumed...))
}

// refuseSubmissions answers every POST with 422 and tells the status of somebody
// else's success.
func refuseSubmissions(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Error(w, "refused", http.StatusUnprocessableEntity)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Hosts are killed at random moments, with many requests under way, and started
// again until everything is settled.
func TestKilledAtRandom(t *testing.T) {
	s := serve(t, ticket.Normal, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			h.ServeHTTP(w, r)
		})
	})
	path := filepath.Join(t.TempDir(), "ledger.db")
	var all []report
	ids := make([]string, 12)
	const rounds = 25
	kills := 0
	for round := range rounds {
		for i := range ids {
			// Half of the requests of a round are those of the round before.
			ids[i] = fmt.Sprintf("request-%04d", round*len(ids)/2+i)
		}
		p := start(t, order{Origin: s.origin, Ledger: path, IDs: ids})
		timer := time.AfterFunc(time.Duration(10+rand.IntN(80))*time.Millisecond, func() { _ = p.cmd.Process.Kill() })
		reports, killed := p.wait(t)
		timer.Stop()
		if killed {
			kills++
		}
		all = append(all, reports...)
	}
	if kills == 0 {
		t.Fatal("no host was ever killed")
	}
	t.Logf("%d of %d hosts were killed", kills, rounds)

	last := (rounds-1)*len(ids)/2 + len(ids)
	ids = ids[:0]
	for i := range last {
		ids = append(ids, fmt.Sprintf("request-%04d", i))
	}
	settled, _ := start(t, order{Origin: s.origin, Ledger: path, IDs: ids}).wait(t)
	all = append(all, settled...)
	mustReceipts(t, all)
	checkLedger(t, path, all)
	st := s.state(t)
	if st.Tickets != st.Requests || st.Posts > len(ids) || st.Posts < st.Tickets {
		t.Errorf("%+v for %d requests", st, len(ids))
	}
	succeeded := 0
	for _, r := range settled {
		switch r.Receipt.Outcome {
		case agentic.Succeeded:
			succeeded++
		case agentic.Failed:
			t.Errorf("request %s is reported failed; the service never refuses one", r.ID)
		}
	}
	if succeeded != st.Tickets {
		t.Errorf("%d verified successes, %d tickets", succeeded, st.Tickets)
	}
}

// Two processes with many goroutines each run the same request at once: one
// POST, one outcome, one receipt; also when it was prepared first.
func TestSameRequestInTwoProcesses(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepare=%t", prepare), func(t *testing.T) {
			s := serve(t, ticket.Normal, nil)
			o := order{Origin: s.origin, Ledger: filepath.Join(t.TempDir(), "ledger.db"), IDs: []string{"request-0001"}, Callers: 32, Prepare: prepare}
			a, b := start(t, o), start(t, o)
			var all []report
			for _, p := range []*process{a, b} {
				reports, _ := p.wait(t)
				all = append(all, reports...)
			}
			mustReceipts(t, all)
			checkLedger(t, o.Ledger, all)
			sent, receipts := 0, map[string]int{}
			for _, r := range all {
				if r.Sent {
					sent++
				}
				receipts[string(r.Receipt.Encode())]++
			}
			if st := s.state(t); len(all) != 64 || sent != 1 || len(receipts) != 1 || st.Posts != 1 || st.Tickets != 1 {
				t.Errorf("%d results, %d senders, %d receipts, service %+v", len(all), sent, len(receipts), st)
			}
		})
	}
}

// Every fault ends as its name implies, with one POST, over real sockets and the
// real ledger.
func TestFaults(t *testing.T) {
	for _, f := range ticket.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, ticket.Fault(f.Name), nil)
			path := filepath.Join(t.TempDir(), "ledger.db")
			c, ledger, err := newHost(t.Context(), s.origin, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ledger.Close()
			p, err := served(t, s.origin)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Execute(t.Context(), client.Request{Plan: p, Input: inputOf("1")})
			if err != nil || res.Receipt.Outcome != f.Outcome {
				t.Errorf("outcome %s (%s), %v; want %s", res.Receipt.Outcome, res.Receipt.Reason, err, f.Outcome)
			}
			if _, err := c.Resume(t.Context(), res.RequestID); err != nil {
				t.Errorf("Resume: %v", err)
			}
			if st := s.state(t); st.Posts != 1 {
				t.Errorf("%d POSTs", st.Posts)
			}
		})
	}
}
