package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

// backends are what the shop runs on.
var backends = map[string]func(t *testing.T) config{
	"sqlite": func(t *testing.T) config {
		return config{customers: customers, file: filepath.Join(t.TempDir(), "shop.db")}
	},
	"postgres": func(t *testing.T) config {
		return config{customers: customers, postgres: pgtest.Shared(t).NewDatabase(t)}
	},
}

const customers = "ann=secret,bob=hidden"

func onEach(t *testing.T, f func(t *testing.T, c config)) {
	for name, c := range backends {
		t.Run(name, func(t *testing.T) { f(t, c(t)) })
	}
}

func listen(t *testing.T) (ln net.Listener, origin string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln, "http://" + ln.Addr().String()
}

// start runs the shop and gives the address that it listens on; its profile has
// that origin unless c has another. It must end well.
func start(t *testing.T, c config) (address string, stop func()) {
	t.Helper()
	ln, address := listen(t)
	if c.origin == "" {
		c.origin = address
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, c, ln) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the shop: %v", err)
		}
	}
	t.Cleanup(stop)
	return address, stop
}

type answer struct {
	code   int
	header http.Header
	body   map[string]any
}

// call is one exchange of a customer, who is named by the token.
func call(t *testing.T, token, method, url, key, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	a := answer{code: res.StatusCode, header: res.Header}
	if err := json.NewDecoder(res.Body).Decode(&a.body); err != nil {
		t.Fatal(err)
	}
	return a
}

// count asks the shop's own tables.
func count(t *testing.T, c config, query string) (n int) {
	t.Helper()
	if err := openDB(t, c).QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func openDB(t *testing.T, c config) *sql.DB {
	t.Helper()
	db, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// The client engine takes an order through a proxy that loses the answer to the
// POST, and the profile is read from the shop itself.
func TestClientSettlesLostAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, c config) {
		front, origin := listen(t)
		c.origin = origin
		address, _ := start(t, c)
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		var posts atomic.Int64
		proxy := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: func(r *http.Response) error {
				if r.Request.Method == http.MethodPost {
					posts.Add(1)
					panic(http.ErrAbortHandler)
				}
				return nil
			},
		}
		srv := &http.Server{Handler: proxy}
		go func() { _ = srv.Serve(front) }()
		defer srv.Close()

		plan, tr := load(t, origin)
		ledger, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer ledger.Close()
		host, err := client.New(client.Config{Ledger: ledger, Transport: tr, Scope: client.Scope{Principal: "ann", Environment: "test"}})
		if err != nil {
			t.Fatal(err)
		}
		for input, want := range map[string]agentic.Outcome{
			`{"sku":"lamp","quantity":2}`:  agentic.Succeeded,
			`{"sku":"chair","quantity":4}`: agentic.Failed, // there are three
		} {
			result, err := host.Execute(t.Context(), client.Request{Plan: plan, Input: []byte(input)})
			if err != nil || result.Receipt.Outcome != want {
				t.Errorf("%s: %+v, %v; want %s", input, result.Receipt, err, want)
			}
		}
		if n := count(t, c, `SELECT count(*) FROM orders`); posts.Load() != 2 || n != 1 {
			t.Errorf("%d POSTs and %d orders, want 2 and 1", posts.Load(), n)
		}
		if n := count(t, c, `SELECT stock FROM item WHERE sku = 'chair'`); n != 3 {
			t.Errorf("%d chairs are left after a refused order, want 3", n)
		}
	})
}

// load reads and checks what the shop publishes.
func load(t *testing.T, origin string) (*agentic.Plan, *transport.Transport) {
	t.Helper()
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true,
		Credentials: func(context.Context, transport.Credential) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer secret"}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string][]byte{"/agentic.json": nil, "/openapi.json": nil}
	for path := range docs {
		if docs[path], err = tr.Fetch(t.Context(), origin+path, agentic.MaxOpenAPIBytes, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := agentic.Load(docs["/agentic.json"], docs["/openapi.json"], "place-order", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return plan, tr
}

// What a customer sees of repeats, other input, other customers and refusals.
func TestAnswers(t *testing.T) {
	onEach(t, func(t *testing.T, c config) {
		at, _ := start(t, c)
		const lamp, chairs = `{"sku":"lamp","quantity":2}`, `{"sku":"chair","quantity":4}`
		first := call(t, "secret", "POST", at+"/orders", "key-1", lamp)
		location := first.header.Get("Location")
		if first.code != 201 || location == "" || first.body["request_id"] != "key-1" {
			t.Fatalf("%+v", first)
		}
		refused := call(t, "secret", "POST", at+"/orders", "key-2", chairs)
		if refused.body["title"] != "Out of stock" {
			t.Errorf("%+v", refused)
		}
		for _, tt := range []struct {
			name, token, method, path, key, body string
			code                                 int
			want                                 map[string]any
		}{
			{"a repeat", "secret", "POST", "/orders", "key-1", `{ "quantity": 2.0, "sku": "lamp" }`, 200, first.body},
			{"an integer as 1.0", "secret", "POST", "/orders", "key-4", `{"sku":"lamp","quantity":1.0}`, 201, nil},
			{"a part of a lamp", "secret", "POST", "/orders", "key-5", `{"sku":"lamp","quantity":1.5}`, 400, nil},
			{"a repeated refusal", "secret", "POST", "/orders", "key-2", chairs, 422, refused.body},
			{"other input", "secret", "POST", "/orders", "key-1", chairs, 409, nil},
			{"no key", "secret", "POST", "/orders", "", lamp, 400, nil},
			{"against the schema", "secret", "POST", "/orders", "key-3", `{"sku":"lamp","quantity":2,"Quantity":9}`, 400, nil},
			{"a stranger", "guess", "POST", "/orders", "key-1", lamp, 401, nil},
			{"the status", "secret", "GET", "/order-requests/key-1", "", "", 200,
				map[string]any{"request_id": "key-1", "status": "succeeded", "resource_id": first.body["id"]}},
			{"the status of a refusal", "secret", "GET", "/order-requests/key-2", "", "", 200,
				map[string]any{"request_id": "key-2", "status": "failed", "resource_id": nil}},
			{"the status for another customer", "hidden", "GET", "/order-requests/key-1", "", "", 200,
				map[string]any{"request_id": "key-1", "status": "unknown", "resource_id": nil}},
			{"the order", "secret", "GET", location, "", "", 200, first.body},
			{"the order for another customer", "hidden", "GET", location, "", "", 404, nil},
			{"the same key of another customer", "hidden", "POST", "/orders", "key-1", lamp, 201, nil},
		} {
			got := call(t, tt.token, tt.method, at+tt.path, tt.key, tt.body)
			if got.code != tt.code || tt.want != nil && !maps.Equal(got.body, tt.want) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %+v, want %d %v", tt.name, got, tt.code, tt.want)
			}
			if replayed := got.header.Get("Idempotency-Replayed") != ""; replayed != strings.HasPrefix(tt.name, "a repeat") {
				t.Errorf("%s: replayed: %t", tt.name, replayed)
			}
		}
		if n := count(t, c, `SELECT count(*) FROM orders`); n != 3 {
			t.Errorf("%d orders, want 3", n)
		}
	})
}

// An order that was placed before the shop conformed is still there.
func TestUpgrade(t *testing.T) {
	onEach(t, func(t *testing.T, c config) {
		db := openDB(t, c)
		newest := changes
		changes = changes[:len(changes)-1]
		err := migrate(t.Context(), db)
		changes = newest
		if err == nil {
			_, err = db.Exec(`INSERT INTO orders VALUES ('old', 'ann', 'lamp', 1, 4900, 'sent')`)
		}
		if err != nil {
			t.Fatal(err)
		}
		at, _ := start(t, c)
		if got := call(t, "secret", "GET", at+"/orders/old", "", ""); got.code != 200 || got.body["sku"] != "lamp" || got.body["request_id"] != nil {
			t.Errorf("%+v", got)
		}
	})
}

// The sweeper runs: a record past its window becomes a tombstone, which still
// refuses its key.
func TestSweeper(t *testing.T) {
	age := map[string]string{
		"sqlite":   `DROP TRIGGER agentic_request_stays; UPDATE agentic_request SET expires_at = created_at + 1`,
		"postgres": `UPDATE agentic.tracked_request SET expires_at = created_at`,
	}
	swept := map[string]string{
		"sqlite":   `SELECT count(*) FROM agentic_request WHERE state = 'expired' AND body IS NULL`,
		"postgres": `SELECT count(*) FROM agentic.tracked_request WHERE state = 'expired' AND body IS NULL`,
	}
	onEach(t, func(t *testing.T, c config) {
		name := "sqlite"
		if c.postgres != "" {
			name = "postgres"
		}
		at, stop := start(t, c)
		const lamp = `{"sku":"lamp","quantity":1}`
		if got := call(t, "secret", "POST", at+"/orders", "key-1", lamp); got.code != 201 {
			t.Fatalf("%+v", got)
		}
		stop()
		if _, err := openDB(t, c).Exec(age[name]); err != nil {
			t.Fatal(err)
		}
		at, _ = start(t, c)
		for deadline := time.Now().Add(10 * time.Second); count(t, c, swept[name]) != 1; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the record is no tombstone")
			}
		}
		if got := call(t, "secret", "GET", at+"/order-requests/key-1", "", ""); got.body["status"] != "unknown" {
			t.Errorf("%+v", got)
		}
		if got := call(t, "secret", "POST", at+"/orders", "key-1", lamp); got.code != 409 || !strings.HasSuffix(fmt.Sprint(got.body["type"]), "ProblemExpired") {
			t.Errorf("%+v", got)
		}
	})
}

// The documents as they are embedded are what a publisher validates, and the shop
// refuses to start with an origin that may not be published.
func TestOrigin(t *testing.T) {
	if _, err := agentic.Load([]byte(profile), openapi, "place-order", agentic.Options{}); err != nil {
		t.Error(err)
	}
	c := backends["sqlite"](t)
	c.origin = "http://shop.example"
	ln, _ := listen(t)
	if err := run(t.Context(), c, ln); err == nil || !strings.Contains(err.Error(), "Config.Profile") {
		t.Errorf("an http origin off loopback: %v", err)
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, res.Body); err != nil || res.StatusCode != 200 {
		t.Fatalf("GET %s: %d, %v", url, res.StatusCode, err)
	}
	return b.Bytes()
}
