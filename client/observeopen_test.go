package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// lister is a ledger that can only list.
type lister struct {
	client.Ledger
	list  func(ctx context.Context, f client.Filter) ([]client.Summary, error)
	calls []client.Filter
}

func (l *lister) List(ctx context.Context, f client.Filter) ([]client.Summary, error) {
	l.calls = append(l.calls, f)
	return l.list(ctx, f)
}

func observe(t *testing.T, r *recorder, l client.Ledger, scopes ...client.Scope) func() error {
	t.Helper()
	unregister, err := client.ObserveOpen(r.meter, l, scopes)
	if err != nil {
		t.Fatal(err)
	}
	return unregister
}

// some leaves out the counts that are zero.
func some(lines []string) []string {
	var s []string
	for _, l := range lines {
		if !strings.HasSuffix(l, ": 0") {
			s = append(s, l)
		}
	}
	return s
}

func TestObserveOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		old := func(d time.Duration, state client.State, outcome agentic.Outcome) client.Summary {
			return client.Summary{State: state, Outcome: outcome, CreatedAt: time.Now().Add(-d)}
		}
		open := []client.Summary{
			old(0, client.Prepared, ""), old(-time.Second, client.Attempted, ""), old(time.Minute, client.Attempted, agentic.Pending),
			old(59*time.Minute, client.Attempted, agentic.Pending), old(time.Hour, client.Attempted, agentic.Unknown),
			old(100*time.Hour, client.Attempted, agentic.Unknown),
		}
		l := &lister{list: func(_ context.Context, f client.Filter) ([]client.Summary, error) {
			switch {
			case f.Limit == 0:
				t.Error("a list without a limit")
			case f.NeedsPerson && *f.Principal == "ann":
				return open[5:], nil
			case f.Open && *f.Principal == "bob":
				return open, nil
			}
			return nil, nil
		}}
		unregister := observe(t, r, l, client.Scope{Principal: "ann"}, client.Scope{Principal: "bob"})
		want := []string{
			"requests.needs_person: 1",
			"requests.open age=<1d state=unknown: 1",
			"requests.open age=<1h state=pending: 2",
			"requests.open age=<1m state=attempted: 1",
			"requests.open age=<1m state=prepared: 1",
			"requests.open age=>=1d state=unknown: 1",
		}
		all := r.counts()
		if d := cmp.Diff(want, some(all)); d != "" || len(all) != 17 {
			t.Errorf("%d lines (-want +got):\n%s", len(all), d)
		}
		time.Sleep(14 * time.Second)
		if open = nil; len(some(r.counts())) != len(want) || len(l.calls) != 4 {
			t.Errorf("%d calls for two scrapes in 15 s, and %q", len(l.calls), some(r.counts()))
		}
		time.Sleep(time.Second)
		open = make([]client.Summary, 6)
		if r.counts(); len(l.calls) != 8 {
			t.Errorf("%d calls", len(l.calls))
		}
		if err := unregister(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if r.counts(); len(l.calls) != 8 {
			t.Error("the ledger is asked after the end")
		}
	})
}

// A ledger that is down or hangs is asked once in 15 s, for 5 s, and what it says
// stays where it is.
func TestObserveOpenOfALedgerThatFails(t *testing.T) {
	for name, list := range map[string]func(context.Context, client.Filter) ([]client.Summary, error){
		"down": func(context.Context, client.Filter) ([]client.Summary, error) {
			return nil, &client.LedgerError{Op: "list", Err: errors.New("postgres://ann:secret@db")}
		},
		"hanging": func(ctx context.Context, _ client.Filter) ([]client.Summary, error) {
			<-ctx.Done()
			return nil, &client.LedgerError{Op: "secret", Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := newRecorder(t), &lister{list: list}
				observe(t, r, l)
				begun := time.Now()
				for range 3 {
					var rm metricdata.ResourceMetrics
					err := r.metrics.Collect(t.Context(), &rm)
					if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "not counted: ledger") {
						t.Errorf("error %v", err)
					}
					if len(rm.ScopeMetrics) != 0 {
						t.Errorf("metrics %v", rm.ScopeMetrics)
					}
				}
				if d := time.Since(begun); len(l.calls) != 1 || d > 5*time.Second {
					t.Errorf("%d calls, %v", len(l.calls), d)
				}
				if f := l.calls[0]; f.Principal != nil || f.Environment != nil {
					t.Errorf("without scopes all are counted, not %v", f)
				}
			})
		})
	}
}

func TestObserveOpenOfARealLedger(t *testing.T) {
	h, r, s := newHost(t), newRecorder(t), good()
	s.status = []client.Exchange{status("pending", "")}
	h.execute(s)
	observe(t, r, h.ledger, client.Scope{Principal: "ann", Environment: "test"})
	lines := some(r.counts())
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "requests.open ") || !strings.HasSuffix(lines[0], "state=pending: 1") {
		t.Errorf("metrics %q", lines)
	}
}

func TestLeasesLost(t *testing.T) {
	r := newRecorder(t)
	lost, err := client.LeasesLost(r.meter)
	if err != nil {
		t.Fatal(err)
	}
	lost(2)
	lost(0)
	lost(-1)
	lost(1)
	if d := cmp.Diff([]string{"leases.lost where=ledger: 3"}, r.counts()); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
}
