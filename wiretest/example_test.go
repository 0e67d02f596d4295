package wiretest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/wiretest"
)

// A test of a client that keeps connections: one http.Client has all targets. As it
// is here it fails.
func ExampleSubmit() {
	_ = func(t *testing.T) { // func TestOnce(t *testing.T)
		var once sync.Once
		var c http.Client
		wiretest.Submit(t, func(ctx context.Context, target wiretest.Target) error {
			once.Do(func() {
				c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: target.RootCAs}, ForceAttemptHTTP2: true}
			})
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
		})
	}
}

// A test of an http.RoundTripper, over HTTP/1.1 only.
func ExampleRoundTripper() {
	_ = func(t *testing.T) {
		wiretest.RoundTripper(t, func(target wiretest.Target) http.RoundTripper {
			return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: target.RootCAs}}
		}, wiretest.Only("http1/", "http1-tls/"))
	}
}

// One stage without package testing.
func ExampleTry() {
	twice := func(ctx context.Context, target wiretest.Target) error {
		var last error
		for range 2 {
			r, err := target.Request(ctx)
			if err != nil {
				return err
			}
			tr := &http.Transport{DisableKeepAlives: true}
			var resp *http.Response
			if resp, last = tr.RoundTrip(r); last == nil {
				resp.Body.Close()
				return nil
			}
		}
		return last
	}
	for _, stage := range wiretest.Stages() {
		if stage.Name != "http1/fresh/whole-fin" {
			continue
		}
		result, err := wiretest.Try(context.Background(), stage, twice)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("The server", stage.Does+".")
		fmt.Println(len(result.Posts), "POSTs over", result.Connections, "connections; the first:", result.Posts[0].Reach)
		fmt.Println(errors.Is(result.Check(), wiretest.ErrSentTwice))
	}
	// Output:
	// The server closes after the whole POST.
	// 2 POSTs over 2 connections; the first: whole
	// true
}
