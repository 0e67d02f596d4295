package main

// The parts of docs/publishers.md that the shop itself has no use for, each run here.

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// conform is all that is added to a mux of a publisher on SQLite.
func (s *shop) conform(ctx context.Context, mux *http.ServeMux, profile, openapi []byte) error {
	err := sqlite.Migrate(ctx, s.db) // the tracking table, beside yours
	if err != nil {
		return err
	}
	store, err := sqlite.OpenStore(ctx, sqlite.StoreConfig{DB: s.db}) // or postgres.NewStore
	if err != nil {
		return err
	}
	tracker, err := service.New(service.Config[*sql.Tx]{
		Store: store, Principal: s.customer, Profile: profile, OpenAPI: openapi,
	}, service.Action[*sql.Tx]{ID: "place-order", Handle: s.place})
	if err != nil {
		return err
	}
	go tracker.Run(ctx, service.DefaultSweepInterval) // the sweeper

	return tracker.Register(mux) // submission, status, documents
}

// accept takes an order that a person has to release first.
func (s *shop) accept(ctx context.Context, tx *sql.Tx, r service.Request) (service.Result, error) {
	o, err := insert(ctx, tx, order{Customer: r.Key.Principal, RequestID: r.Key.RequestID}, r.Input)
	if no, ok := errors.AsType[*problem](err); ok {
		return service.RefusedWith(no.Status, encode(no)), nil
	}
	if err != nil {
		return service.Result{}, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE orders SET status = 'waiting' WHERE id = $1`, o.ID)
	return service.PendingWith(nil), err
}

// release settles an order that waits. What it writes commits with the outcome.
func (s *shop) release(ctx context.Context, tracker *service.Tracker[*sql.Tx], o order) error {
	k := service.Key{Principal: o.Customer, Action: "place-order", RequestID: o.RequestID}
	_, err := transact(ctx, s.db, func(ctx context.Context, tx *sql.Tx) (order, error) {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET status = 'placed' WHERE id = $1`, o.ID)
		if err != nil {
			return o, err
		}
		o.Status = "placed"
		return o, tracker.Complete(ctx, tx, k, o.ID, encode(o))
	})
	return err
}

// deny settles an order that waits as failed: nothing of it may remain.
func (s *shop) deny(ctx context.Context, tracker *service.Tracker[*sql.Tx], o order) error {
	k := service.Key{Principal: o.Customer, Action: "place-order", RequestID: o.RequestID}
	_, err := transact(ctx, s.db, func(ctx context.Context, tx *sql.Tx) (n int, err error) {
		err = tx.QueryRowContext(ctx, `DELETE FROM orders WHERE id = $1 AND status = 'waiting' RETURNING quantity`, o.ID).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return n, nil // settled before: the stock has it back already
		}
		if err != nil {
			return n, err
		}
		if _, err = tx.ExecContext(ctx, `UPDATE item SET stock = stock + $1 WHERE sku = $2`, n, o.SKU); err != nil {
			return n, err
		}
		return n, tracker.Fail(ctx, tx, k, http.StatusUnprocessableEntity, encode(&problem{"Not released", http.StatusUnprocessableEntity}))
	})
	return err
}

// body is the answer of an order again, for one that was too large to store.
func (s *shop) body(ctx context.Context, k service.Key, id string) ([]byte, error) {
	var o order
	err := s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM orders WHERE id = $1 AND customer = $2`, id, k.Principal).Scan(o.fields()...)
	return encode(o), err
}

// counters are what an operator looks at.
type counters struct{ first, repeats, conflicts, expired, errors atomic.Int64 }

func (c *counters) observe(e service.Event) {
	switch e.(type) {
	case service.FirstEvent:
		c.first.Add(1)
	case service.ReplayEvent:
		c.repeats.Add(1)
	case service.ConflictEvent: // a client that makes its keys badly
		c.conflicts.Add(1)
	case service.ExpiredEvent: // a client that comes back after the window
		c.expired.Add(1)
	case service.ErrorEvent: // 500 and 503
		c.errors.Add(1)
	}
}

// placePgx is place for a publisher on pgx.
func placePgx(ctx context.Context, tx pgx.Tx, r service.Request) (service.Result, error) {
	var in struct {
		SKU      string
		Quantity float64 // an integer by the schema, which takes 2.0 too
	}
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return service.Result{}, err
	}
	o := order{rand.Text(), r.Key.Principal, in.SKU, int(in.Quantity), 0, "placed", r.Key.RequestID}
	err := tx.QueryRow(ctx, `UPDATE item SET stock = stock - $1 WHERE sku = $2 AND stock >= $1 RETURNING price_cents`, o.Quantity, o.SKU).Scan(&o.PriceCents)
	if errors.Is(err, pgx.ErrNoRows) {
		return service.RefusedWith(http.StatusUnprocessableEntity, encode(&problem{"Out of stock", http.StatusUnprocessableEntity})), nil
	}
	if err != nil {
		return service.Result{}, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO orders (`+columns+`) VALUES (`+places+`)`, o.fields()...)
	return service.DoneWith(o.ID, encode(o)), err
}

// pgxTracker is a tracker over pgx that uses the publisher's own transactions.
func pgxTracker(ctx context.Context, pool *pgxpool.Pool, principal func(*http.Request) (string, error), profile, openapi []byte) (*service.Tracker[pgx.Tx], error) {
	if err := postgres.Migrate(ctx, pool, "shop_agentic"); err != nil {
		return nil, err
	}
	store, err := postgres.NewStore(ctx, postgres.StoreConfig{Pool: pool, Schema: "shop_agentic"})
	if err != nil {
		return nil, err
	}
	return service.New(service.Config[pgx.Tx]{
		Store: store, Transact: serializable(pool), Principal: principal, Profile: profile, OpenAPI: openapi, CheckInput: true,
	}, service.Action[pgx.Tx]{ID: "place-order", Handle: placePgx})
}

// serializable is a publisher's own way to run transactions.
func serializable(pool *pgxpool.Pool) func(context.Context, func(context.Context, pgx.Tx) error) error {
	return func(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
		for range 50 {
			err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error { return f(ctx, tx) })
			if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == "40001" || e.Code == "40P01") {
				continue // f runs again, in a new transaction
			}
			if later(err) {
				return fmt.Errorf("%w: %w", service.ErrUnavailable, err) // 503, not 500
			}
			return err
		}
		return fmt.Errorf("%w: too many conflicts", service.ErrUnavailable)
	}
}

// later reports whether PostgreSQL is away or says that it cannot serve now.
func later(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		class := said.Code[:min(2, len(said.Code))]
		return class == "08" || class == "53" || class == "57" // connection, resources, operator
	}
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connect || network || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// An opened shop on SQLite, with a mux that has the read already.
func newShop(t *testing.T) (*shop, *http.ServeMux) {
	t.Helper()
	db := openDB(t, backends["sqlite"](t))
	if err := migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s := &shop{db: db, customers: parseCustomers(customers)}
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", s.endpoint(http.StatusOK, s.read))
	return s, mux
}

// trackerFor is a tracker whose one action is given.
func trackerFor(t *testing.T, s *shop, mux *http.ServeMux, c service.Config[*sql.Tx], a service.Action[*sql.Tx]) *service.Tracker[*sql.Tx] {
	t.Helper()
	if err := sqlite.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.OpenStore(t.Context(), sqlite.StoreConfig{DB: s.db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	c.Store, c.Principal, c.Profile, c.OpenAPI, a.ID = store, s.customer, []byte(profile), openapi, "place-order"
	tracker, err := service.New(c, a)
	if err == nil {
		err = tracker.Register(mux)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

const twoLamps = `{"sku":"lamp","quantity":2}`

func ask(mux *http.ServeMux, method, path, key string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(twoLamps))
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestConform(t *testing.T) {
	s, mux := newShop(t)
	if err := s.conform(t.Context(), mux, []byte(profile), openapi); err != nil {
		t.Fatal(err)
	}
	if code, body := ask(mux, "POST", "/orders", "key-1"); code != 201 {
		t.Errorf("%d %s", code, body)
	}
}

func TestPendingOrders(t *testing.T) {
	s, mux := newShop(t)
	tracker := trackerFor(t, s, mux, service.Config[*sql.Tx]{}, service.Action[*sql.Tx]{Handle: s.accept})
	for key, settle := range map[string]func(context.Context, *service.Tracker[*sql.Tx], order) error{"yes": s.release, "no": s.deny} {
		if code, body := ask(mux, "POST", "/orders", key); code != 202 || !strings.Contains(body, `"pending"`) {
			t.Fatalf("%s: %d %s", key, code, body)
		}
		var o order
		if err := s.db.QueryRow(`SELECT ` + columns + ` FROM orders WHERE request_id = '` + key + `'`).Scan(o.fields()...); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a worker that is run twice changes nothing the second time
			if err := settle(t.Context(), tracker, o); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if err := s.release(t.Context(), tracker, order{ID: "x", Customer: "ann", RequestID: "no"}); !errors.Is(err, service.ErrNotPending) {
		t.Errorf("a denied order is released: %v", err)
	}
	for key, want := range map[string]struct {
		code   int
		status string
	}{"yes": {200, "succeeded"}, "no": {422, "failed"}} {
		if code, body := ask(mux, "POST", "/orders", key); code != want.code {
			t.Errorf("%s: %d %s", key, code, body)
		}
		if _, body := ask(mux, "GET", "/order-requests/"+key, key); !strings.Contains(body, want.status) {
			t.Errorf("%s: %s", key, body)
		}
	}
	var stock int
	if err := s.db.QueryRow(`SELECT stock FROM item WHERE sku = 'lamp'`).Scan(&stock); err != nil || stock != 98 {
		t.Errorf("%d lamps, %v, want 98", stock, err)
	}
}

func TestLargeBodyAndObserver(t *testing.T) {
	s, mux := newShop(t)
	var seen counters
	trackerFor(t, s, mux, service.Config[*sql.Tx]{MaxStoredBytes: 10, Observer: seen.observe}, service.Action[*sql.Tx]{Handle: s.place, Read: s.body})
	_, first := ask(mux, "POST", "/orders", "key-1")
	if code, again := ask(mux, "POST", "/orders", "key-1"); code != 200 || again != first {
		t.Errorf("%d %s, want 200 %s", code, again, first)
	}
	if seen.first.Load() != 1 || seen.repeats.Load() != 1 || seen.errors.Load() != 0 {
		t.Errorf("%+v", &seen)
	}
}

// Orders that touch one row in serializable transactions of the publisher's own.
func TestPgx(t *testing.T) {
	c := config{postgres: pgtest.Shared(t).NewDatabase(t)}
	db := openDB(t, c)
	if err := migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s := &shop{db: db, customers: parseCustomers(customers)}
	tracker, err := pgxTracker(t.Context(), pool, s.customer, []byte(profile), openapi)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", s.endpoint(http.StatusOK, s.read))
	if err := tracker.Register(mux); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			key := fmt.Sprintf("key-%d", i/2) // each twice
			if code, body := ask(mux, "POST", "/orders", key); code != 200 && code != 201 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	wg.Wait()
	got := map[string]int{"orders": count(t, c, `SELECT count(*) FROM orders`), "lamps": count(t, c, `SELECT stock FROM item WHERE sku = 'lamp'`)}
	if diff := cmp.Diff(map[string]int{"orders": 4, "lamps": 92}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lamps := func(quantity string) int {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"sku":"lamp","quantity":`+quantity+`}`))
		r.Header = http.Header{"Authorization": {"Bearer secret"}, "Idempotency-Key": {"n-" + quantity}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	if a, b := lamps("2.0"), lamps("2.5"); a != 201 || b != 400 {
		t.Errorf("2.0 lamps: %d, 2.5 lamps: %d", a, b)
	}
}

// What ends a connection under a transaction is 503; a fault of a statement is not.
func TestPgxThatBreaks(t *testing.T) {
	c := config{postgres: pgtest.Shared(t).NewDatabase(t)}
	pool, err := pgxpool.New(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	gone, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	exec := func(sql string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		}
	}
	for name, tt := range map[string]struct {
		pool  *pgxpool.Pool
		f     func(context.Context, pgx.Tx) error
		later bool
	}{
		"nobody listens": {gone, exec(`SELECT 1`), true},
		"ended session":  {pool, exec(`SELECT pg_terminate_backend(pg_backend_pid())`), true},
		"closed connection": {pool, func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(tx.Conn().Close(ctx), exec(`SELECT 1`)(ctx, tx))
		}, true},
		"broken connection": {pool, func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(tx.Conn().PgConn().Conn().Close(), exec(`SELECT 1`)(ctx, tx))
		}, true},
		"lost at the commit": {pool, func(_ context.Context, tx pgx.Tx) error { return tx.Conn().PgConn().Conn().Close() }, true},
		"syntax":             {pool, exec(`SELEKT`), false},
		"no code":            {pool, func(context.Context, pgx.Tx) error { return &pgconn.PgError{} }, false},
	} {
		err := serializable(tt.pool)(t.Context(), tt.f)
		if err == nil || errors.Is(err, service.ErrUnavailable) != tt.later {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every line of Go and JSON in the guide and in the publisher's part of README.md
// is a line of a file that compiles, or is published, in this order.
func TestGuideQuotesCode(t *testing.T) {
	sources := map[string][][]string{}
	for kind, names := range map[string][]string{
		"go":   {"main.go", "shop.go", "snippets_test.go", "before/main.go", "before/shop.go"},
		"json": {"agentic.json", "openapi.json"},
	} {
		for _, name := range names {
			sources[kind] = append(sources[kind], linesOf(t, name))
		}
	}
	quoted := 0
	for _, doc := range []string{"../../docs/publishers.md", "../../README.md"} {
		text := linesOf(t, doc)
		if strings.HasSuffix(doc, "README.md") {
			text = section(text, "## For publishers")
		}
		for kind, block := range fences(text) {
			if sources[kind] == nil {
				continue
			}
			quoted++
			if !isPartOfOne(block, sources[kind]) {
				t.Errorf("%s: not in any file:\n%s", doc, strings.Join(block, "\n"))
			}
		}
	}
	if quoted < 8 {
		t.Errorf("%d quotations seen", quoted)
	}
}

func linesOf(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func section(text []string, heading string) []string {
	for i, line := range text {
		if line != heading {
			continue
		}
		for j, next := range text[i+1:] {
			if strings.HasPrefix(next, "## ") {
				return text[i : i+1+j]
			}
		}
		return text[i:]
	}
	return nil
}

// fences gives the kind and the lines of each fenced block.
func fences(text []string) func(yield func(string, []string) bool) {
	return func(yield func(string, []string) bool) {
		start, kind := -1, ""
		for i, line := range text {
			switch {
			case start < 0 && strings.HasPrefix(line, "```"):
				start, kind = i+1, strings.TrimPrefix(line, "```")
			case start >= 0 && line == "```":
				if !yield(kind, text[start:i]) {
					return
				}
				start = -1
			}
		}
	}
}

// isPartOfOne reports whether one file has all lines of a block, in its order.
func isPartOfOne(block []string, files [][]string) bool {
	for _, file := range files {
		i := 0
		for _, line := range file {
			for i < len(block) && block[i] == "" {
				i++
			}
			if i < len(block) && block[i] == line {
				i++
			}
		}
		if i == len(block) {
			return true
		}
	}
	return false
}
