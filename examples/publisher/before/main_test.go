package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// The shop works, and has the fault that the example mends: who asks twice because
// an answer was lost has two orders.
func TestRepeatIsSecondOrder(t *testing.T) {
	for name, c := range map[string]func(t *testing.T) config{
		"sqlite":   func(t *testing.T) config { return config{file: filepath.Join(t.TempDir(), "shop.db")} },
		"postgres": func(t *testing.T) config { return config{postgres: pgtest.Shared(t).NewDatabase(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			c := c(t)
			c.customers = "ann=secret"
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- run(ctx, c, ln) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			call := func(method, path, body string) (int, order) {
				t.Helper()
				req, err := http.NewRequest(method, "http://"+ln.Addr().String()+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer secret")
				req.Header.Set("Idempotency-Key", "the-same-request")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				var o order
				if err := json.NewDecoder(res.Body).Decode(&o); err != nil && res.StatusCode < 400 {
					t.Fatal(err)
				}
				return res.StatusCode, o
			}
			first, one := call("POST", "/orders", `{"sku":"lamp","quantity":2}`)
			again, two := call("POST", "/orders", `{"sku":"lamp","quantity":2}`)
			if first != 201 || again != 201 || one.ID == "" || one.ID == two.ID || one.PriceCents != 4900 {
				t.Errorf("%d %+v, then %d %+v", first, one, again, two)
			}
			for path, want := range map[string]int{"/orders/" + one.ID: 200, "/orders/" + two.ID: 200, "/orders/none": 404, "/openapi.json": 200} {
				if got, o := call("GET", path, ""); got != want || o.ID != "" && o.SKU != "lamp" {
					t.Errorf("GET %s: %d %+v, want %d", path, got, o, want)
				}
			}
			for _, body := range []string{`{"sku":"chair","quantity":4}`, `{"sku":"none","quantity":1}`, `{"sku":"lamp","quantity":0}`, `[]`} {
				if got, _ := call("POST", "/orders", body); got != 422 {
					t.Errorf("POST %s: %d, want 422", body, got)
				}
			}
		})
	}
}
