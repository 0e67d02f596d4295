package wiretest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Option changes how Submit and RoundTripper go.
type Option func(*options)

type options struct {
	parallel int
	only     []string
}

// Parallel is how many stages run at the same time. Without it that is 16 for each
// processor and at most 64, and a whole run takes about ten seconds. Use 1 for a
// submission that is not safe for concurrent use.
func Parallel(n int) Option { return func(o *options) { o.parallel = max(1, n) } }

// Only keeps the stages whose name begins with one of prefixes, such as "http1/"
// for a client that may not speak TLS. A test fails when a prefix keeps none.
func Only(prefixes ...string) Option {
	return func(o *options) { o.only = append(o.only, prefixes...) }
}

// Submit fails the test when submit sends a POST twice in any of Stages. submit is
// called concurrently, and twice for a stage on a reused connection: to reach such
// a connection it has to keep its client from one call to the next. One client may
// serve all targets. A call that goes on after its context has ended fails too.
//
// So does a run in which submit sent nothing at all.
func Submit(t testing.TB, submit SubmitFunc, opts ...Option) {
	t.Helper()
	if submit == nil {
		t.Errorf("wiretest: there is no function that submits")
		return
	}
	run(t, func() (SubmitFunc, func()) { return submit, func() {} }, opts)
}

// RoundTripper fails the test when an http.RoundTripper sends a POST twice in any
// of Stages. newClient is called once for each stage, concurrently. The POST is that of
// Target.Request, and its answer is read to the end. A CloseIdleConnections method
// is called when the stage is over. What an http.Client adds, such as redirects,
// is for Submit.
func RoundTripper(t testing.TB, newClient func(Target) http.RoundTripper, opts ...Option) {
	t.Helper()
	if newClient == nil {
		t.Errorf("wiretest: there is no function that makes an http.RoundTripper")
		return
	}
	run(t, func() (SubmitFunc, func()) { return through(newClient) }, opts)
}

// errNoClient is for a function that made no http.RoundTripper.
var errNoClient = errors.New("wiretest: newClient returned a nil http.RoundTripper: nothing was tested")

// through makes a submission of a RoundTripper, and what ends it.
func through(newClient func(Target) http.RoundTripper) (SubmitFunc, func()) {
	var mu sync.Mutex
	var rt http.RoundTripper
	submit := func(ctx context.Context, target Target) error {
		mu.Lock()
		if rt == nil {
			rt = newClient(target)
		}
		rt := rt
		mu.Unlock()
		if rt == nil {
			return errNoClient
		}
		r, err := target.Request(ctx)
		if err != nil {
			return err
		}
		resp, err := rt.RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return submit, func() {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// told is how many failing stages are told in full.
const told = 20

// advice is for a second POST after a reused connection broke.
const advice = "net/http sends a request that carries Idempotency-Key again, POST or not, when a connection that it kept breaks and the body can be read again. " +
	"If the client is made of it: set GetBody of the request to nil, with a body that is not nil, as package transport of this module does."

func run(t testing.TB, client func() (SubmitFunc, func()), opts []Option) {
	t.Helper()
	o := options{parallel: min(64, 16*runtime.GOMAXPROCS(0))}
	for _, f := range opts {
		f(&o)
	}
	stages := o.keep(Stages())
	for _, p := range o.only {
		if !slices.ContainsFunc(stages, func(s Stage) bool { return strings.HasPrefix(s.Name, p) }) {
			t.Errorf("wiretest: Only: no stage has a name that begins with %q, as %s does", p, Stages()[0].Name)
			return
		}
	}
	results, errs := make([]Result, len(stages)), make([]error, len(stages))
	free := make(chan struct{}, o.parallel)
	var wg sync.WaitGroup
	for i, s := range stages {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			submit, end := client()
			defer end()
			results[i], errs[i] = Try(t.Context(), s, submit)
		})
	}
	wg.Wait()

	sent, struck, reused := 0, 0, 0
	tried := map[string]int{}
	var rest []string // stages that failed beyond those told in full
	failed, kept := 0, false
	for i, r := range results {
		err := errs[i]
		if err == nil {
			err = r.Check()
		}
		if errors.Is(r.Returned, errNoClient) {
			t.Errorf("%v", errNoClient)
			return
		}
		if err != nil {
			failed++
			kept = kept || r.Stage.Reused && errors.Is(err, ErrSentTwice)
		}
		if err != nil && failed > told {
			rest = append(rest, stages[i].Name)
		} else if err != nil {
			t.Errorf("%v", err)
			if errors.Is(err, ErrSentTwice) {
				t.Logf("%s: what the server did and saw:\n  %s", r.Stage.Name, strings.Join(r.Log, "\n  "))
			}
		}
		sent += len(r.Posts)
		if r.Struck {
			struck++
			tried[r.Stage.Protocol]++
		}
		if len(r.Posts) > 0 && r.Posts[0].Reused {
			reused++
		}
	}
	if len(rest) > 0 {
		t.Errorf("wiretest: %d more stages failed:\n  %s", len(rest), strings.Join(rest, "\n  "))
	}
	if kept {
		t.Logf("wiretest: %s", advice)
	}
	if sent == 0 {
		t.Errorf("wiretest: no POST arrived in any of %d stages: nothing was tested", len(stages))
		return
	}
	t.Logf("wiretest: %d of %d stages struck (%d of %s, %d of %s); the POST came over a reused connection in %d",
		struck, len(stages), tried[HTTP1], HTTP1, tried[HTTP2], HTTP2, reused)
}

func (o options) keep(all []Stage) []Stage {
	if o.only == nil {
		return all
	}
	var kept []Stage
	for _, s := range all {
		for _, p := range o.only {
			if strings.HasPrefix(s.Name, p) {
				kept = append(kept, s)
				break
			}
		}
	}
	return kept
}
