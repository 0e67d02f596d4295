package clientkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// inside is a client in this process: a test of what a check sees needs no other one, and a
// process under the race detector takes its time. TestOurClientPasses and the tests of
// processes have real ones.
type inside func(ctx context.Context, stdin io.Reader, stdout io.Writer) (exit int, err error)

// gone is how a client ends that was killed: whatever it was about to do, it does not.
type gone struct{}

func (f inside) run(ctx context.Context, stdin []byte, timeout time.Duration, kill <-chan struct{}) (e ended, err error) {
	running, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	done, watched := make(chan struct{}), make(chan bool)
	go func() {
		select {
		case <-kill:
			stop()
			watched <- true
		case <-done:
			watched <- false
		}
	}()
	var out bytes.Buffer
	exit, failed := f.life(running, stdin, &out)
	close(done)
	e.killed = <-watched
	e.late = !e.killed && errors.Is(running.Err(), context.DeadlineExceeded) && ctx.Err() == nil
	if e.exit, e.stdout = exit, out.Bytes(); failed != nil {
		e.stderr = failed.Error()
	}
	return e, ctx.Err()
}

func (f inside) life(ctx context.Context, stdin []byte, stdout io.Writer) (exit int, err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(gone); !ok {
				panic(p)
			}
			exit, err = -1, nil
		}
	}()
	return f(ctx, bytes.NewReader(stdin), stdout)
}

// pause waits as a process does, which can be killed meanwhile.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
		panic(gone{})
	}
}

// exchange sends one request and reads up to limit bytes of the answer, the zero Answer
// when there is none. Nothing is done once the client is killed.
func exchange(ctx context.Context, client *http.Client, method, url string, header map[string]string, body []byte, limit int) (agentic.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return agentic.Answer{}, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := client.Do(r)
	if ctx.Err() != nil {
		panic(gone{})
	}
	if err != nil {
		return agentic.Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, int64(limit)))
	if ctx.Err() != nil {
		panic(gone{})
	}
	if err != nil || res.Header.Get("Content-Encoding") != "" {
		return agentic.Answer{Status: res.StatusCode}, nil
	}
	return agentic.Answer{Status: res.StatusCode, ContentType: strings.Join(res.Header.Values("Content-Type"), ", "), Body: data}, nil
}

// try holds a client in this process against the kit.
func (f inside) try(t *testing.T, c Config) *conformance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // on a machine that is busy otherwise
	defer cancel()
	rep, err := c.try(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// fails is a check that a client fails, with the expectation that does not hold and a
// part of what was found.
type fails struct{ client, check, what, found string }

// hold expects that a check failed for that reason, and says where to look.
func (f fails) hold(t *testing.T, res conformance.Result) {
	t.Helper()
	if res.Status != conformance.Failed {
		t.Fatalf("%s is %s:\n  %s", res.ID, res.Status, failures(res))
	}
	if !slices.ContainsFunc(res.Tries[0].Expectations, func(e conformance.Expectation) bool {
		return !e.OK && e.What == f.what && strings.Contains(e.Found, f.found)
	}) {
		t.Errorf("%s did not fail by %q, found %q, but by:\n  %s", res.ID, f.what, f.found, failures(res))
	}
	for _, e := range res.Tries[0].Expectations {
		if e.OK && strings.Contains(e.Found, "still ") || e.OK && strings.Contains(e.Found, "never") || e.OK && strings.Contains(e.Found, "no evidence") {
			t.Errorf("%s holds, and is told as %q", e.What, e.Found)
		}
	}
	if strings.HasPrefix(f.check, "answers/") && strings.HasSuffix(f.check, "-body") && !slices.ContainsFunc(res.Tries[0].Exchanges, func(e conformance.Exchange) bool {
		return strings.HasPrefix(e.Response, "HTTP/1.1 200 OK")
	}) {
		t.Errorf("%s does not show what was written", res.ID)
	}
	if res.Tries[0].Hint == "" || len(res.Tries[0].Exchanges) == 0 && f.client != "hangs" && f.client != "made-up" {
		t.Errorf("%s has no hint or shows nothing of what was sent", res.ID)
	}
}

// atOnce runs a subtest of each case, several at once: most of their time is waiting.
func atOnce(t *testing.T, cases []fails, f func(*testing.T, fails)) {
	t.Helper()
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(c.client+" "+strings.ReplaceAll(c.check, "/", "-")+" "+c.what, func(t *testing.T) { f(t, c) })
		})
	}
	all.Wait()
}

// unfailed are the checks that no client of these tests fails, each with the reason.
var unfailed = map[string]string{}

// TestEveryCheckFails: there is no check that nothing fails. What the tables of lies, habits
// and heedlessness do not name is about what a client concludes: it is failed by its outcome
// alone, by a client that does all that it should and then reports succeeded, or else
// unknown.
func TestEveryCheckFails(t *testing.T) {
	failed := map[string]bool{}
	for _, c := range slices.Concat(liarFails, carelessFails) {
		failed[c.check] = true
	}
	for _, says := range []agentic.Outcome{agentic.Succeeded, agentic.Unknown} {
		var rest []string
		for _, c := range Checks() {
			if !failed[c.ID] && unfailed[c.ID] == "" && !ofHeedless(c.ID) {
				rest = append(rest, c.ID)
			}
		}
		for _, c := range (inside(lying{says: says}.main)).try(t, Config{Parallel: 16, Match: rest}).Checks {
			failed[c.ID] = c.Status == conformance.Failed && slices.ContainsFunc(c.Tries[0].Expectations, func(e conformance.Expectation) bool {
				return !e.OK && e.What == whatOutcome && strings.HasPrefix(e.Found, string(says))
			})
			if says == agentic.Unknown && !failed[c.ID] {
				t.Errorf("no client fails %s:\n  %s", c.ID, failures(c))
			}
		}
	}
	for id := range unfailed {
		if failed[id] {
			t.Errorf("%s is failed by a client and listed as failed by none", id)
		}
	}
}
