package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func info(id string) Info {
	return Info{ID: id, Group: "Group", Title: "it holds", Level: Must, Sections: []string{"5"}, Asks: "It holds."}
}

func one(t *testing.T, o Options, run func(ctx context.Context, r *Recorder) error) (*Report, Result) {
	t.Helper()
	rep, err := Run(t.Context(), Client, Subject{Name: "subject"}, Tool{}, []Case{{info("one"), run}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep, rep.Checks[0]
}

func pass(_ context.Context, r *Recorder) error { r.Expect("it", true, "a", "a"); return nil }
func fail(_ context.Context, r *Recorder) error { r.Expect("it", false, "a", "b"); return nil }
func kit(context.Context, *Recorder) error      { return errors.New("no port") }
func absent(_ context.Context, r *Recorder) error {
	r.NotExercised("no second principal; one would show it")
	return nil
}

// The status of a check over its tries.
func TestStatus(t *testing.T) {
	type run = func(context.Context, *Recorder) error
	for name, tt := range map[string]struct {
		tries []run
		want  Status
	}{
		"passed":                      {[]run{pass, pass}, Passed},
		"failed":                      {[]run{fail, fail}, Failed},
		"flaky":                       {[]run{pass, fail, pass}, Flaky},
		"flaky with an error":         {[]run{pass, fail, kit}, Flaky},
		"failed with an error":        {[]run{kit, fail}, Failed},
		"an error once":               {[]run{pass, kit}, Broken},
		"not exercised":               {[]run{absent, absent}, NotExercised},
		"a failure is not hidden":     {[]run{fail, absent}, Failed},
		"not exercised after passing": {[]run{pass, absent}, NotExercised},
		"nothing expected":            {[]run{func(context.Context, *Recorder) error { return nil }}, Broken},
		"it failed before": {[]run{func(ctx context.Context, r *Recorder) error {
			return errors.Join(fail(ctx, r), absent(ctx, r))
		}}, Failed},
		"a panic":                {[]run{func(context.Context, *Recorder) error { panic("the kit") }}, Broken},
		"a failure with a panic": {[]run{func(_ context.Context, r *Recorder) error { r.Expect("it", false, "", ""); panic("the kit") }}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			rep, res := one(t, Options{Repeat: len(tt.tries)}, func(ctx context.Context, r *Recorder) error { n++; return tt.tries[n-1](ctx, r) })
			if res.Status != tt.want || rep.OK() != tt.want.OK() {
				t.Errorf("status %s, OK %v; want %s", res.Status, rep.OK(), tt.want)
			}
			if n != len(tt.tries) || (res.Status == NotExercised) != (len(res.Tries) == 0) || (res.Status == NotExercised) != (res.Missing != "") {
				t.Errorf("%d runs, tries %+v, missing %q", n, res.Tries, res.Missing)
			}
		})
	}
}

func TestPanicIsTheKitsError(t *testing.T) {
	_, res := one(t, Options{}, func(context.Context, *Recorder) error { panic("the kit") })
	if e := res.Tries[0].Error; !strings.Contains(e, "panicked: the kit") || !strings.Contains(e, "run_test.go") {
		t.Errorf("error %q", e)
	}
}

func TestTimeoutIsTheKitsError(t *testing.T) {
	begin := time.Now()
	_, res := one(t, Options{Timeout: 5 * time.Millisecond}, func(ctx context.Context, _ *Recorder) error { <-ctx.Done(); return ctx.Err() })
	if res.Status != Broken || !strings.Contains(res.Tries[0].Error, "deadline") || time.Since(begin) > 10*time.Second {
		t.Errorf("%+v", res)
	}
}

// Checks keep their order however they are run, and Progress is called one at a time.
func TestParallel(t *testing.T) {
	var cases []Case
	var running, most atomic.Int32
	var once sync.Once
	all := make(chan struct{})
	for i := range 20 {
		cases = append(cases, Case{info(fmt.Sprintf("case-%d", i)), func(ctx context.Context, r *Recorder) error {
			n := running.Add(1)
			defer running.Add(-1)
			if n == 4 {
				most.Store(n)
				once.Do(func() { close(all) })
			}
			select {
			case <-all:
			case <-ctx.Done():
			}
			return pass(ctx, r)
		}})
	}
	seen := 0
	rep, err := Run(t.Context(), Service, Subject{}, Tool{}, cases, Options{Parallel: 4, Timeout: 10 * time.Second, Progress: func(done, total int, last Result) {
		seen++
		if done != seen || total != 20 || last.Status != Passed {
			t.Errorf("progress %d of %d: %s", done, total, last.Status)
		}
	}})
	if err != nil || seen != 20 || most.Load() != 4 {
		t.Fatalf("%d seen, %d at once, %v", seen, most.Load(), err)
	}
	for i, c := range rep.Checks {
		if c.ID != fmt.Sprintf("case-%d", i) {
			t.Errorf("check %d is %s", i, c.ID)
		}
	}
	if rep.Summary != (Summary{Passed: 20, ObservedChecks: 20}) || rep.Tool.Go == "" || rep.Finished.Before(rep.Started) {
		t.Errorf("%+v", rep)
	}
}

// The numbers of a try follow from seed, ID and repeat, not from the other cases.
func TestSeed(t *testing.T) {
	numbers := func(seed uint64, ids ...string) map[string][]uint64 {
		var mu sync.Mutex
		got := map[string][]uint64{}
		var cases []Case
		for _, id := range ids {
			cases = append(cases, Case{info(id), func(ctx context.Context, r *Recorder) error {
				mu.Lock()
				defer mu.Unlock()
				got[id] = append(got[id], r.Rand.Uint64())
				return pass(ctx, r)
			}})
		}
		if _, err := Run(t.Context(), Client, Subject{}, Tool{}, cases, Options{Seed: seed, Repeat: 2, Parallel: 2}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	a, b := numbers(1, "a", "b", "c"), numbers(1, "c", "a")
	for _, id := range []string{"a", "c"} {
		if !cmp.Equal(a[id], b[id]) || a[id][0] == a[id][1] {
			t.Errorf("%s: %v and %v", id, a[id], b[id])
		}
	}
	if cmp.Equal(a["a"], a["b"]) || cmp.Equal(numbers(2, "a")["a"], a["a"]) {
		t.Error("another ID or seed has the same numbers")
	}
}

// A run that is given up has no report, and begins nothing more.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	stop := Case{info("a"), func(ctx context.Context, _ *Recorder) error { ran++; cancel(); <-ctx.Done(); return ctx.Err() }}
	next := Case{info("b"), func(context.Context, *Recorder) error { ran++; return nil }}
	rep, err := Run(ctx, Client, Subject{}, Tool{}, []Case{stop, next, next}, Options{Repeat: 3})
	if rep != nil || !errors.Is(err, context.Canceled) || ran > 2 {
		t.Errorf("%v, %v, %d ran", rep, err, ran)
	}
}

// What is kept of a try is bounded, and of one that passed it is the expectations.
func TestBounds(t *testing.T) {
	long := strings.Repeat("ä", maxText)
	fill := func(ok bool) func(context.Context, *Recorder) error {
		return func(_ context.Context, r *Recorder) error {
			for range 100 {
				r.Exchange(Exchange{long, long, long})
				r.Note("%s", long)
			}
			r.Hint("first")
			r.Hint("second")
			Equal(r, "it", 1, 1)
			r.Expect("\xff", ok, long, long)
			return nil
		}
	}
	_, res := one(t, Options{}, fill(false))
	try := res.Tries[0]
	if len(try.Exchanges) != maxExchanges || len(try.Notes) != maxNotes || try.Hint != "first" || try.Expectations[0].Found != "1" {
		t.Errorf("%d exchanges, %d notes, hint %q", len(try.Exchanges), len(try.Notes), try.Hint)
	}
	for _, s := range []string{try.Exchanges[0].Request, try.Notes[0], try.Expectations[1].Found} {
		if len(s) > maxText+3 || strings.ToValidUTF8(s, "") != s {
			t.Errorf("%d bytes end in %q", len(s), s[len(s)-8:])
		}
	}
	_, res = one(t, Options{}, fill(true))
	if try := res.Tries[0]; try.Exchanges != nil || try.Notes != nil || try.Hint != "" || len(try.Expectations) != 2 {
		t.Errorf("of one that passed: %+v", try)
	}
}

func TestSelect(t *testing.T) {
	checks := []Info{{ID: "normal", Group: "Seven"}, {ID: "status/a", Group: "Status answers"}, {ID: "status/b", Group: "Status answers"}}
	for _, tt := range []struct {
		patterns, want string
	}{
		{"", "normal status/a status/b"}, {"normal", "normal"}, {"status", "status/a status/b"}, {"status/*", "status/a status/b"},
		{"*/b,normal", "normal status/b"}, {"Status*", "status/a status/b"}, {"*", "normal status/a status/b"},
		{"absent", `no check is named by "absent"`}, {"normal,absent", `no check is named by "absent"`}, {"[", `the pattern "["`},
	} {
		var patterns []string
		if tt.patterns != "" {
			patterns = strings.Split(tt.patterns, ",")
		}
		chosen, err := Select(checks, patterns)
		var ids []string
		for _, c := range chosen {
			ids = append(ids, c.ID)
		}
		if got := strings.Join(ids, " "); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Select(%q) = %q, %v", tt.patterns, got, err)
		}
	}
}
