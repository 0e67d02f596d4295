package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// traffic is clients that call a shop at random, until they are stopped: new
// requests, repeats, other input under the same key, looks at the status, and
// settlements. Request IDs are the same for several principals and actions.
type traffic struct {
	*caller
	clients int
	window  int     // how many of the newest requests are called again
	fresh   float64 // share of calls that make a new request
	hasty   float64 // share of calls whose client goes away after a few ms

	mu     sync.Mutex
	wishes map[orderKey]wish
	keys   []orderKey
}

func newTraffic(t testing.TB, s *shop, clients int) *traffic {
	return &traffic{clients: clients, window: 24, fresh: 0.3, wishes: map[orderKey]wish{},
		caller: &caller{newCaller(t, clients), s.spec.Origin, &history{begin: time.Now()}}}
}

// run starts the clients. stop returns when all have ended.
func (tr *traffic) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range tr.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				tr.turn()
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// turn is one call.
func (tr *traffic) turn() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rand.Float64() < tr.hasty {
		t := time.AfterFunc(time.Duration(rand.IntN(6000))*time.Microsecond, cancel)
		defer t.Stop()
	}
	k, w, fresh := tr.pick()
	switch n := rand.IntN(100); {
	case fresh, n < 35:
		tr.submit(ctx, k, w, n)
	case n < 50:
		tr.submit(ctx, k, wish{Subject: "other than " + w.Subject, Do: "done"}, n)
	case n < 80:
		tr.status(ctx, k)
	default:
		id := strings.Join([]string{"C", k.principal, k.action, k.key}, "-")
		tr.settle(ctx, k, []string{"", id + "-1", id + "-2"}[n%3])
	}
}

// pick takes one of the newest requests, or makes one.
func (tr *traffic) pick() (k orderKey, w wish, fresh bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := len(tr.keys)
	if n > 0 && rand.Float64() >= tr.fresh {
		k = tr.keys[n-1-rand.IntN(min(n, tr.window))]
		return k, tr.wishes[k], false
	}
	k = orderKey{[]string{"ann", "bob"}[n%2], actionIDs[n/2%2], fmt.Sprintf("request-%d", n/4)}
	w = wish{Subject: "one", Do: []string{"done", "done", "done", "refuse", "pending"}[rand.IntN(5)]}
	tr.keys, tr.wishes[k] = append(tr.keys, k), w
	return k, w, true
}

// finish asks for everything once more, when nothing ends any process: a repeat
// of what was never answered definitely comes to an end, and the status of each
// request is read. It gives those.
func (tr *traffic) finish(t testing.TB) map[orderKey]operation {
	t.Helper()
	definite := map[orderKey]bool{}
	for _, o := range tr.calls {
		if _, ok := tr.wishes[o.orderKey]; !ok {
			tr.keys, tr.wishes[o.orderKey] = append(tr.keys, o.orderKey), wish{Subject: "one", Do: "done"} // not by turn
		}
		definite[o.orderKey] = definite[o.orderKey] || o.kind == "submit" && o.word != "" && o.word != "conflict"
	}
	final := map[orderKey]operation{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for part := range slices.Chunk(tr.keys, max(1, (len(tr.keys)+tr.clients-1)/tr.clients)) {
		wg.Go(func() {
			for i, k := range part {
				// Half of the unanswered ones are left as they are.
				if !definite[k] && i%2 == 0 {
					if o := atLast(func() operation { return tr.submit(context.Background(), k, tr.wishes[k], i) }); o.word == "" {
						t.Errorf("a repeat of %v gets no definite answer: %d %s", k, o.code, o.body)
					}
				}
				o := atLast(func() operation { return tr.status(context.Background(), k) })
				mu.Lock()
				final[k] = o
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return final
}

// atLast calls until there is a definite answer, a second long: a publisher's pool
// may still have connections that the database ended.
func atLast(call func() operation) (o operation) {
	for range 20 {
		if o = call(); o.word != "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return o
}

// check gives what of a history, the final statuses and the rows does not fit
// together.
func (h *history) check(final map[orderKey]operation, rows map[orderKey][]string) (faults []string) {
	fault := func(k orderKey, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%v: %s", k, fmt.Sprintf(format, args...)))
	}
	byKey := map[orderKey][]operation{}
	for _, o := range h.calls {
		byKey[o.orderKey] = append(byKey[o.orderKey], o)
	}
	for k, ids := range rows {
		if len(ids) != 1 {
			fault(k, "exists %d times: %v", len(ids), ids)
		}
		if _, ok := byKey[k]; !ok {
			fault(k, "exists, and nobody asked for it")
		}
	}
	for k, calls := range byKey {
		end, exists := final[k], len(rows[k]) > 0
		id := ""
		if exists {
			id = rows[k][0]
		}
		if (end.word == "succeeded") != exists || end.id != id {
			fault(k, "the status says %s %q, the rows are %v", end.word, end.id, rows[k])
		}
		mayFail, settled := false, false
		for _, o := range calls {
			mayFail = mayFail || o.do == "refuse" || o.kind == "settle" && o.resource == ""
			settled = settled || o.kind == "settle" && o.word != "not pending"
		}
		for _, o := range calls {
			switch o.word {
			case "done", "done again", "succeeded":
				if !exists || o.id != id || end.word != "succeeded" {
					fault(k, "%s was answered to %s, with %q, and is not there: %v", o.word, o.kind, o.id, rows[k])
				}
			case "refused", "refused again", "failed":
				if exists || end.word != "failed" || !mayFail {
					fault(k, "%s was answered to %s, and the status is %s, the rows are %v", o.word, o.kind, end.word, rows[k])
				}
			case "pending", "pending again":
				if !settled && end.word != "pending" || end.word == "unknown" {
					fault(k, "%s was answered to %s, nobody settled it, and the status is %s", o.word, o.kind, end.word)
				}
			case "settled":
				if want := map[bool]string{true: "failed", false: "succeeded"}[o.resource == ""]; end.word != want || id != o.resource {
					fault(k, "it was settled as %s %q, and the status is %s, the rows are %v", want, o.resource, end.word, rows[k])
				}
			case "conflict":
				if end.word == "unknown" {
					fault(k, "a conflict was answered, and the status is unknown")
				}
			}
		}
	}
	return faults
}

// prove fails the test when a history is wrong in itself or against the rows.
func (tr *traffic) prove(t testing.TB, s *shop) {
	t.Helper()
	final := tr.finish(t)
	faults := append(slices.Clone(tr.faults), tr.check(final, s.rows())...)
	faults = append(faults, tr.linear()...)
	for i, f := range faults {
		if i == 20 {
			t.Errorf("and %d more", len(faults)-i)
			break
		}
		t.Error(f)
	}
	submissions, unanswered, came := 0, 0, 0
	for _, o := range tr.calls {
		if o.kind == "submit" {
			submissions++
			if o.word == "" {
				unanswered++
				if final[o.orderKey].word == "succeeded" {
					came++
				}
			}
		}
	}
	t.Logf("%d requests, %d calls, %d of them submissions, %d of those without a definite answer (%d of them for what is there in the end); %d answers of 503",
		len(tr.keys), len(tr.calls), submissions, unanswered, came, tr.later)
}
