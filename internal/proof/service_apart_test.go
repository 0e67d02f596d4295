package proof

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	tracking "github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// desk is a publisher in the test's own process, whose use of the store is
// counted.
type desk struct {
	t     *testing.T
	shop  http.Handler
	calls *atomic.Int64 // of the store's methods, and of statements where they can be seen
	// past makes a record whose window is over, and swept one that is a tombstone.
	past, swept func(k tracking.Key)
	find        func(k tracking.Key) // one look-up
}

func onEachDesk(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		s := newSQLiteShop(t)
		calls := &atomic.Int64{}
		store, err := sqlite.OpenStore(t.Context(), sqlite.StoreConfig{DB: s.db})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		d, err := sqliteDatabase(t.Context(), s.db, &counted[*sql.Tx]{store, calls})
		if err != nil {
			t.Fatal(err)
		}
		f(t, newDesk(t, s, d, calls))
	})
	t.Run("postgres", func(t *testing.T) {
		s := newPostgresShop(t, pgtest.Shared(t))
		calls := &atomic.Int64{}
		config, err := pgxpool.ParseConfig(s.spec.Database)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.Tracer = statements{calls}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		store, err := postgres.NewStore(t.Context(), postgres.StoreConfig{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		f(t, newDesk(t, s, postgresDatabase(pool, &counted[pgx.Tx]{store, calls}), calls))
	})
}

func newDesk[Tx any](t *testing.T, s *shop, d database[Tx], calls *atomic.Int64) *desk {
	t.Helper()
	handler, err := publisher(s.spec, d)
	if err != nil {
		t.Fatal(err)
	}
	past := func(k tracking.Key) {
		t.Helper()
		err := d.store.Transact(t.Context(), func(ctx context.Context, tx Tx) error {
			if r, err := d.store.Claim(ctx, tx, k, "f", time.Microsecond); err != nil || r != nil {
				return fmt.Errorf("claim: %v, %w", r, err)
			}
			return d.store.Settle(ctx, tx, k, tracking.Done, tracking.Settlement{ResourceID: "T-1", Status: 201, Body: largest})
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	return &desk{t: t, shop: handler, calls: calls, past: past,
		swept: func(k tracking.Key) {
			t.Helper()
			past(k)
			if n, err := d.store.Sweep(t.Context(), 0, 100); err != nil || n.Expired == 0 {
				t.Fatalf("sweep: %+v, %v", n, err)
			}
		},
		find: func(k tracking.Key) {
			if _, err := d.store.Find(t.Context(), k); err != nil {
				t.Error(err)
			}
		},
	}
}

// largest is the longest answer that is stored.
var largest = []byte(`"` + strings.Repeat("x", tracking.DefaultMaxStoredBytes-2) + `"`)

// counted counts the calls of a store.
type counted[Tx any] struct {
	tracking.Store[Tx]
	calls *atomic.Int64
}

func (c *counted[Tx]) Transact(ctx context.Context, f func(context.Context, Tx) error) error {
	c.calls.Add(1)
	return c.Store.Transact(ctx, f)
}

func (c *counted[Tx]) Find(ctx context.Context, k tracking.Key) (*tracking.Record, error) {
	c.calls.Add(1)
	return c.Store.Find(ctx, k)
}

func (c *counted[Tx]) FindIn(ctx context.Context, tx Tx, k tracking.Key) (*tracking.Record, error) {
	c.calls.Add(1)
	return c.Store.FindIn(ctx, tx, k)
}

func (c *counted[Tx]) Claim(ctx context.Context, tx Tx, k tracking.Key, fingerprint string, window time.Duration) (*tracking.Record, error) {
	c.calls.Add(1)
	return c.Store.Claim(ctx, tx, k, fingerprint, window)
}

func (c *counted[Tx]) Settle(ctx context.Context, tx Tx, k tracking.Key, to tracking.State, s tracking.Settlement) error {
	c.calls.Add(1)
	return c.Store.Settle(ctx, tx, k, to, s)
}

// statements counts those that PostgreSQL gets.
type statements struct{ calls *atomic.Int64 }

func (s statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.calls.Add(1)
	return ctx
}

func (statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	s.calls.Add(1)
}

func (statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// ask makes one request; answers of one kind are the same bytes.
func (d *desk) ask(method, path, principal, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+principal)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	d.shop.ServeHTTP(w, r)
	return w
}

func whole(w *httptest.ResponseRecorder) string {
	return fmt.Sprint(w.Code, w.Header(), w.Body)
}

// Principals and actions have records of their own, and neither tells anything of
// another's: not by the status, a conflict or a repeat (D19, D24).
func TestServiceApart(t *testing.T) {
	onEachDesk(t, func(t *testing.T, d *desk) {
		const key = "the-key"
		status := func(action, principal string) string {
			return whole(d.ask("GET", "/"+action+"-requests/"+key, principal, key, ""))
		}
		post := func(action, principal, subject, do string) *httptest.ResponseRecorder {
			return d.ask("POST", "/"+action, principal, key, fmt.Sprintf(`{"subject":%q,"do":%q}`, subject, do))
		}
		absent := status("thing", "bob")
		if !strings.Contains(absent, `"unknown"`) {
			t.Fatal(absent)
		}
		fresh := post("thing", "zoe", "one", "refuse") // a first answer that has no ID in it
		made := map[string]string{}
		for _, of := range [][2]string{{"thing", "ann"}, {"order", "ann"}, {"thing", "bob"}} {
			for _, other := range [][2]string{{"thing", "bob"}, {"order", "ann"}} {
				if made[other[0]+other[1]] == "" {
					if got := status(other[0], other[1]); got != absent {
						t.Errorf("a status of somebody else's: %s", cmp.Diff(absent, got))
					}
				}
			}
			w := post(of[0], of[1], "one", "done")
			if w.Code != http.StatusCreated || w.Header().Get("Idempotency-Replayed") != "" {
				t.Errorf("%v: %s", of, whole(w))
			}
			made[of[0]+of[1]] = w.Header().Get("Location")
			again := post(of[0], of[1], "one", "done")
			if again.Code != http.StatusOK || again.Header().Get("Location") != made[of[0]+of[1]] || again.Body.String() != w.Body.String() {
				t.Errorf("%v: a repeat of %s is %s", of, whole(w), whole(again))
			}
		}
		ids := map[string]bool{}
		for _, id := range made {
			ids[id] = true
		}
		if len(ids) != 3 {
			t.Errorf("not three resources: %v", made)
		}
		// What others have makes no difference to a first answer or to a conflict.
		if got := post("order", "bob", "one", "refuse"); whole(got) != whole(fresh) {
			t.Errorf("a first answer: %s", cmp.Diff(whole(fresh), whole(got)))
		}
		conflict := whole(post("thing", "zoe", "two", "done"))
		for _, of := range [][2]string{{"thing", "ann"}, {"thing", "bob"}, {"order", "ann"}, {"order", "bob"}} {
			if got := whole(post(of[0], of[1], "two", "done")); got != conflict || !strings.Contains(got, "409") {
				t.Errorf("%v: a conflict: %s", of, cmp.Diff(conflict, got))
			}
		}
	})
}

// kinds of request IDs of which a status may say nothing.
var silentKinds = []string{"absent", "another principal's", "another action's", "past its window", "tombstone"}

// silent makes requests of each kind, of which ann asks for the thing's status.
func (d *desk) silent() map[string]string {
	d.t.Helper()
	keys := map[string]string{}
	for i, kind := range silentKinds {
		keys[kind] = fmt.Sprintf("key-number-%d", i)
	}
	input := `{"subject":"one","do":"done"}`
	d.ask("POST", "/thing", "bob", keys["another principal's"], input)
	d.ask("POST", "/order", "ann", keys["another action's"], input)
	d.swept(tracking.Key{Principal: "ann", Action: "thing", RequestID: keys["tombstone"]})
	d.past(tracking.Key{Principal: "ann", Action: "thing", RequestID: keys["past its window"]})
	return keys
}

// A look-up of what is absent, somebody else's or expired gives the same bytes, by
// the same work, in the same time (D24).
func TestServiceLookUpsAreAlike(t *testing.T) {
	onEachDesk(t, func(t *testing.T, d *desk) {
		keys := d.silent()
		ask := func(kind string) string {
			return whole(d.ask("GET", "/thing-requests/"+keys[kind], "ann", "", ""))
		}
		want := ask("absent")
		for _, kind := range silentKinds {
			before := d.calls.Load()
			if got := strings.ReplaceAll(ask(kind), keys[kind], keys["absent"]); got != want {
				t.Errorf("%s: %s", kind, cmp.Diff(want, got))
			}
			took := d.calls.Load() - before
			before = d.calls.Load()
			d.find(tracking.Key{Principal: "ann", Action: "thing", RequestID: keys["absent"]})
			if one := d.calls.Load() - before; took != one {
				t.Errorf("%s: %d calls, and one look-up is %d", kind, took, one)
			}
		}
		d.sameTime(ask, keys)
	})
}

// sameTime compares the medians of many look-ups that take turns at random. They
// may differ by three quarters of what one look-up more adds, in one of three tries:
// a row that is there has to be read, one that is not has not.
func (d *desk) sameTime(ask func(kind string) string, keys map[string]string) {
	d.t.Helper()
	const tries, rounds, more = 3, 500, "one look-up more"
	kinds := append([]string{more}, silentKinds...)
	for try := 1; ; try++ {
		took := map[string][]time.Duration{}
		for range rounds {
			rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
			for _, kind := range kinds {
				begin := time.Now()
				if kind == more {
					d.find(tracking.Key{Principal: "ann", Action: "thing", RequestID: keys["absent"]})
					ask("absent")
				} else {
					ask(kind)
				}
				took[kind] = append(took[kind], time.Since(begin))
			}
		}
		median := map[string]time.Duration{}
		for kind, list := range took {
			slices.Sort(list)
			median[kind] = list[len(list)/2]
		}
		least, most := time.Hour, time.Duration(0)
		for _, kind := range silentKinds {
			least, most = min(least, median[kind]), max(most, median[kind])
		}
		d.t.Logf("medians: %v", median)
		if most-least < (median[more]-median["absent"])*3/4 {
			return
		}
		if try == tries {
			d.t.Errorf("the medians differ by %v, and %s adds %v: %v", most-least, more, median[more]-median["absent"], median)
			return
		}
	}
}
