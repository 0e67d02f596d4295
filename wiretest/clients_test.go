package wiretest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stock is what most programs have.
func stock(target Target) http.RoundTripper {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: target.RootCAs}, ForceAttemptHTTP2: true}
}

// tries runs all stages whose name begins with one of prefixes, and returns their
// results by name.
func tries(t *testing.T, client func() (SubmitFunc, func()), prefixes ...string) map[string]Result {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := map[string]Result{}
	free := make(chan struct{}, 32)
	for _, s := range (options{only: prefixes}).keep(Stages()) {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			submit, end := client()
			defer end()
			r, err := Try(context.Background(), s, submit)
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all[s.Name] = r
		})
	}
	wg.Wait()
	return all
}

// twice are the names of the stages with more than one POST, sorted.
func twice(results map[string]Result) []string {
	var names []string
	for name, r := range results {
		if errors.Is(r.Check(), ErrSentTwice) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// recorder is a testing.TB that fails nobody.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
	logs   []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

// failed are the stages that a recorder was told of.
func (r *recorder) failed() map[string]bool {
	names := map[string]bool{}
	for _, e := range r.errors {
		name, rest, _ := strings.Cut(e, ":")
		if name != "wiretest" {
			names[name] = true
			continue
		}
		_, list, _ := strings.Cut(rest, ":\n")
		for name := range strings.FieldsSeq(list) {
			names[name] = true
		}
	}
	return names
}

// TestStockFails is why this package is there: net/http sends a POST with an Idempotency-Key
// twice, on HTTP/1.1 when a reused connection breaks before the answer begins, on
// HTTP/2 when the stream is refused, and fails this test for it.
func TestStockFails(t *testing.T) {
	t.Parallel()
	var must []string
	for _, f := range []string{"line", "key", "unheaded", "headed", "body", "whole"} {
		for _, e := range []string{"fin", "reset"} {
			must = append(must, "http1/reused/"+f+"-"+e, "http1-tls/reused/"+f+"-"+e)
		}
		must = append(must, "http1-tls/reused/"+f+"-cut", "http1-tls/reused/"+f+"-alert")
	}
	for _, where := range []string{"fresh", "reused"} {
		for _, f := range []string{"headed-rst-refused-stream", "whole-rst-refused-stream", "headed-goaway-no-error-below", "whole-goaway-no-error-below-fin"} {
			must = append(must, "http2/"+where+"/"+f)
		}
	}
	for name, use := range map[string]func(testing.TB){
		"RoundTripper": func(t testing.TB) { RoundTripper(t, stock) },
		"Submit": func(t testing.TB) {
			var once sync.Once
			var c http.Client // one for all targets
			Submit(t, func(ctx context.Context, target Target) error {
				once.Do(func() { c.Transport = stock(target) })
				return do(ctx, &c, target)
			}, Only("http1/reused/", "http2/fresh/"))
			c.CloseIdleConnections()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := &recorder{TB: t}
			use(tb)
			failed := tb.failed()
			for _, m := range must {
				if name == "Submit" && !strings.HasPrefix(m, "http1/reused/") && !strings.HasPrefix(m, "http2/fresh/") {
					continue
				}
				if !failed[m] {
					t.Errorf("%s did not fail: net/http does not send again there any more", m)
				}
			}
			for f := range failed {
				if strings.HasPrefix(f, "http1") && strings.Contains(f, "/fresh/") {
					t.Errorf("%s failed, on a fresh connection", f)
				}
				if strings.Contains(f, "silence") || strings.HasSuffix(f, "/answered") {
					t.Errorf("%s failed, where nothing breaks", f)
				}
			}
		})
	}
}

// do is what a program does with an http.Client.
func do(ctx context.Context, c *http.Client, target Target) error {
	r, err := target.Request(ctx)
	if err != nil {
		return err
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// single is a client that never sends again by itself: a connection for each
// request, no redirects, nothing to rewind.
func single(ctx context.Context, target Target) error {
	tr := stock(target).(*http.Transport)
	defer tr.CloseIdleConnections()
	r, err := target.Request(ctx)
	if err != nil {
		return err
	}
	r.GetBody = nil
	address := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(target.URL, "https://"), "http://"), "/tickets")
	conn, err := tr.NewClientConn(ctx, r.URL.Scheme, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	resp, err := conn.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode > 299 {
		return errors.New(resp.Status)
	}
	return nil
}

// again is a client that sends again when single fails, at once or later.
func again(wait time.Duration, change func(*Target)) func() (SubmitFunc, func()) {
	return func() (SubmitFunc, func()) {
		var wg sync.WaitGroup
		return func(ctx context.Context, target Target) error {
			err := single(ctx, target)
			if err == nil || target.WarmUp {
				return err
			}
			change(&target)
			if wait == 0 {
				return single(ctx, target)
			}
			wg.Go(func() {
				time.Sleep(wait)
				single(context.WithoutCancel(ctx), target)
			})
			return err
		}, wg.Wait
	}
}

// TestLate has a POST that comes after its submission has returned. It runs alone,
// as a server does not wait for long.
func TestLate(t *testing.T) {
	want := []string{"http1-tls/fresh/whole-cut", "http2/reused/headed-reset"}
	if diff := cmp.Diff(want, twice(tries(t, again(Linger/5, func(*Target) {}), want...))); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// TestBadClients send twice, each for its own reason.
func TestBadClients(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		client func() (SubmitFunc, func())
		only   []string
		want   []string
	}{
		{"tries again after an error", again(0, func(*Target) {}),
			[]string{"http1/fresh/whole-", "http1/fresh/answer-5", "http1/fresh/answer-body-fin", "http2/fresh/whole-reset"},
			[]string{"http1/fresh/answer-500", "http1/fresh/answer-502", "http1/fresh/answer-503", "http1/fresh/answer-504", "http1/fresh/answer-body-fin",
				"http1/fresh/whole-408", "http1/fresh/whole-fin", "http1/fresh/whole-reset", "http2/fresh/whole-reset"}},
		{"tries again with a new key", again(0, func(t *Target) { t.Key = newKey() }), []string{"http1/reused/whole-fin", "http1/reused/answered"},
			[]string{"http1/reused/whole-fin"}},
		{"follows redirects", func() (SubmitFunc, func()) {
			return func(ctx context.Context, target Target) error {
				tr := stock(target).(*http.Transport)
				tr.DisableKeepAlives = true
				return do(ctx, &http.Client{Transport: tr}, target)
			}, func() {}
		}, []string{"http1/fresh/", "http1-tls/reused/answer-", "http2/reused/answer-3"},
			[]string{"http1-tls/reused/answer-307", "http1-tls/reused/answer-308", "http1/fresh/answer-307", "http1/fresh/answer-308",
				"http2/reused/answer-307", "http2/reused/answer-308"}},
		{"sends the warm-up twice", func() (SubmitFunc, func()) {
			return func(ctx context.Context, target Target) error {
				if target.WarmUp {
					single(ctx, target)
				}
				return single(ctx, target)
			}, func() {}
		}, []string{"http1/reused/answered", "http1/fresh/answered"}, []string{"http1/reused/answered"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, twice(tries(t, tc.client, tc.only...))); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGoodClient passes. Package transport has the same test of itself.
func TestGoodClient(t *testing.T) {
	t.Parallel()
	Submit(t, single)
}

// TestOtherForms are of clients that ask before they send a body, do not know its
// length, or do not speak HTTP/2.
func TestOtherForms(t *testing.T) {
	for _, tc := range []struct {
		stage  string
		struck bool
		change func(*http.Request, *http.Transport)
		want   Post
	}{
		{"http1/fresh/answered", true, func(r *http.Request, _ *http.Transport) { r.Header.Set("Expect", "100-continue") }, Post{Reach: Whole, Body: 22}},
		{"http1/fresh/headed-reset", true, func(r *http.Request, _ *http.Transport) { r.Header.Set("Expect", "100-continue") }, Post{Reach: Headed}},
		{"http2/fresh/answered", true, func(r *http.Request, _ *http.Transport) { r.Header.Set("Expect", "100-continue") }, Post{Reach: Whole, Body: 22}},
		{"http1/fresh/answered", true, func(r *http.Request, _ *http.Transport) { r.ContentLength = -1 }, Post{Reach: Whole, Body: len("16\r\n\r\n0\r\n\r\n") + 22}},
		{"http2/fresh/answered", true, func(r *http.Request, _ *http.Transport) {
			r.ContentLength, r.Trailer = -1, http.Header{"X-Sum": {"1"}}
		}, Post{Reach: Whole, Body: 22}},
		{"http2/fresh/whole-reset", false, func(_ *http.Request, tr *http.Transport) { tr.ForceAttemptHTTP2 = false }, Post{Reach: Whole, Body: 22}},
	} {
		t.Run(tc.stage, func(t *testing.T) {
			t.Parallel()
			r, err := Try(t.Context(), findStage(t, tc.stage), func(ctx context.Context, target Target) error {
				tr := stock(target).(*http.Transport)
				tr.ExpectContinueTimeout = MaxTime
				defer tr.CloseIdleConnections()
				r, err := target.Request(ctx)
				if err != nil {
					return err
				}
				tc.change(r, tr)
				resp, err := tr.RoundTrip(r)
				if err != nil {
					return err
				}
				return resp.Body.Close()
			})
			if err != nil || len(r.Posts) != 1 || r.Check() != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := (Post{Reach: r.Posts[0].Reach, Body: r.Posts[0].Body}); got != tc.want || r.Struck != tc.struck {
				t.Errorf("struck %v: %+v", r.Struck, r.Posts[0])
			}
		})
	}
}

// TestNoRoundTripper: a client that is none fails, once, and without a panic.
func TestNoRoundTripper(t *testing.T) {
	for want, newClient := range map[string]func(Target) http.RoundTripper{
		"newClient returned a nil http.RoundTripper":  func(Target) http.RoundTripper { return nil },
		"no function that makes an http.RoundTripper": nil,
	} {
		tb := &recorder{TB: t}
		RoundTripper(tb, newClient, Only("http1/fresh/answered", "http1/reused/answered"))
		if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], want) {
			t.Errorf("%q, want %s", tb.errors, want)
		}
	}
}

// TestManyFailures: what would be hundreds of stages is told in full for the first ones and
// as a list for the others, with what net/http does; and what is advised helps.
func TestManyFailures(t *testing.T) {
	t.Parallel()
	tb := &recorder{TB: t}
	RoundTripper(tb, stock, Only("http1/reused/", "http1-tls/reused/"))
	last := tb.errors[len(tb.errors)-1]
	if len(tb.errors) != told+1 || !strings.Contains(last, " more stages failed:\n  http1-tls/reused/") {
		t.Errorf("%d errors, the last %q", len(tb.errors), last)
	}
	if !strings.Contains(strings.Join(tb.logs, "\n"), advice) {
		t.Errorf("no advice in %q", tb.logs)
	}
	tb = &recorder{TB: t}
	RoundTripper(tb, func(target Target) http.RoundTripper { return unwound{stock(target)} }, Only("http1/reused/", "http1-tls/reused/", "http2/reused/"))
	if len(tb.errors) > 0 || strings.Contains(strings.Join(tb.logs, "\n"), advice) {
		t.Errorf("what is advised does not help: %q", tb.errors)
	}
}

// unwound takes away what lets net/http read a body again.
type unwound struct{ http.RoundTripper }

func (u unwound) RoundTrip(r *http.Request) (*http.Response, error) {
	r.GetBody = nil
	return u.RoundTripper.RoundTrip(r)
}

// TestNothingToJudge: what is no submission does not pass.
func TestNothingToJudge(t *testing.T) {
	for _, tc := range []struct {
		name   string
		submit SubmitFunc
		opts   []Option
		want   string
	}{
		{"sends nothing", func(context.Context, Target) error { return nil }, nil, "no POST arrived"},
		{"no stage is left", single, []Option{Only("http3/")}, `Only: no stage has a name that begins with "http3/"`},
		{"one prefix keeps none", single, []Option{Only("http1/fresh/answered", "reused")}, `Only: no stage has a name that begins with "reused"`},
		{"nothing submits", nil, nil, "no function that submits"},
		{"another key", func(ctx context.Context, target Target) error { target.Key = "other"; return single(ctx, target) }, nil,
			"did not carry the Idempotency-Key"},
		{"does not return", func(ctx context.Context, target Target) error {
			err := single(ctx, target)
			time.Sleep(Timeout + grace + time.Second)
			return err
		}, nil, ErrNotReturned.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tb := &recorder{TB: t}
			opts := append([]Option{Only("http1/fresh/answered"), Parallel(0)}, tc.opts...)
			if len(tc.opts) > 0 {
				opts = tc.opts
			}
			Submit(tb, tc.submit, opts...)
			if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], tc.want) {
				t.Errorf("%q", tb.errors)
			}
		})
	}
}
