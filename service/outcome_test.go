package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/storetest"
)

// script is a handler that inserts a row and then does what is said.
func script(do func(r service.Request) (service.Result, error)) handler {
	return func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
		if err := tx.Insert(ctx, "row"); err != nil {
			return service.Result{}, err
		}
		return do(r)
	}
}

// TestRefused: the handler's row is gone, the refusal stays (D21).
func TestRefused(t *testing.T) {
	runs := 0
	b := open(t, script(func(service.Request) (service.Result, error) {
		runs++
		return service.RefusedWith(422, service.Problem{Type: "https://support.example/out-of-stock", Title: "Out of stock", Status: 422}.Body()), nil
	}), nil)
	first := b.post(ticket)
	b.want(first, 422, "https://support.example/out-of-stock", "Refused")
	again := b.post(ticket)
	b.want(again, 422, "https://support.example/out-of-stock", "Replay")
	if d := cmp.Diff(first.Body.String(), again.Body.String()); d != "" || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", again.Header(), d)
	}
	b.want(b.post(`{"subject":"other"}`), 409, service.ProblemConflict, "Conflict")
	if got := b.status("key-1"); got != "failed" || runs != 1 || len(b.store.Rows()) != 0 {
		t.Errorf("status %s, %d runs, rows %q", got, runs, b.store.Rows())
	}
}

// TestBodiesOfOurOwn: without a body of the publisher, answer and repeat say what
// stands.
func TestBodiesOfOurOwn(t *testing.T) {
	for word, c := range map[string]struct {
		result        service.Result
		first, repeat int
		want          string
	}{
		"succeeded T-1": {service.DoneWith("T-1", nil), 201, 200, `{"request_id":"key-1","status":"succeeded","resource_id":"T-1"}` + "\n"},
		"pending":       {service.PendingWith(nil), 202, 202, `{"request_id":"key-1","status":"pending","resource_id":null}` + "\n"},
		"failed": {service.RefusedWith(403, nil), 403, 403, `{"type":"` + service.ProblemRefused +
			`","title":"Refused","status":403,"detail":"The service refused the action. This is recorded."}` + "\n"},
	} {
		b := open(t, script(func(service.Request) (service.Result, error) { return c.result, nil }), nil)
		for _, code := range []int{c.first, c.repeat, c.repeat} {
			if w := b.post(ticket); w.Code != code || w.Body.String() != c.want {
				t.Errorf("%s: %d %s", word, w.Code, w.Body)
			}
		}
		if got := b.status("key-1"); got != word {
			t.Errorf("status %s, want %s", got, word)
		}
	}
}

// TestNothingRecorded: whatever else a handler does leaves no trace, and the key can
// be used again.
func TestNothingRecorded(t *testing.T) {
	const secret = "secret-of-the-input"
	for name, c := range map[string]struct {
		do      func(service.Request) (service.Result, error)
		code    int
		problem string
	}{
		"error": {func(service.Request) (service.Result, error) { return service.DoneWith("T-1", nil), errors.New(secret) }, 500, service.ProblemInternal},
		"unavailable": {func(service.Request) (service.Result, error) {
			return service.Result{}, fmt.Errorf("%w: %s", service.ErrUnavailable, secret)
		}, 503, service.ProblemUnavailable},
		"panic":       {func(service.Request) (service.Result, error) { panic(secret) }, 500, service.ProblemInternal},
		"panic nil":   {func(service.Request) (service.Result, error) { panic(error(nil)) }, 500, service.ProblemInternal},
		"zero result": {func(service.Request) (service.Result, error) { return service.Result{}, nil }, 500, service.ProblemInternal},
		"no resource": {func(service.Request) (service.Result, error) { return service.DoneWith("", nil), nil }, 500, service.ProblemInternal},
		"dots":        {func(service.Request) (service.Result, error) { return service.DoneWith("..", nil), nil }, 500, service.ProblemInternal},
		"long resource": {func(service.Request) (service.Result, error) {
			return service.DoneWith(strings.Repeat("r", 1025), nil), nil
		}, 500, service.ProblemInternal},
		"no JSON":         {func(service.Request) (service.Result, error) { return service.DoneWith("T-1", []byte("ok")), nil }, 500, service.ProblemInternal},
		"refused 500":     {func(service.Request) (service.Result, error) { return service.RefusedWith(500, nil), nil }, 500, service.ProblemInternal},
		"refused 200":     {func(service.Request) (service.Result, error) { return service.RefusedWith(200, nil), nil }, 500, service.ProblemInternal},
		"refused 429":     {func(service.Request) (service.Result, error) { return service.RefusedWith(429, nil), nil }, 500, service.ProblemInternal},
		"refused string":  {func(service.Request) (service.Result, error) { return service.RefusedWith(422, []byte(`"no"`)), nil }, 500, service.ProblemInternal},
		"large refusal":   {func(service.Request) (service.Result, error) { return service.RefusedWith(422, large()), nil }, 500, service.ProblemInternal},
		"large pending":   {func(service.Request) (service.Result, error) { return service.PendingWith(large()), nil }, 500, service.ProblemInternal},
		"large, no Read":  {func(service.Request) (service.Result, error) { return service.DoneWith("T-1", large()), nil }, 500, service.ProblemInternal},
		"deadline of own": {func(service.Request) (service.Result, error) { return service.Result{}, context.DeadlineExceeded }, 500, service.ProblemInternal},
	} {
		t.Run(name, func(t *testing.T) {
			ok := false
			b := open(t, script(func(r service.Request) (service.Result, error) {
				if ok {
					return service.DoneWith("T-1", nil), nil
				}
				return c.do(r)
			}), nil)
			w := b.post(ticket)
			b.want(w, c.code, c.problem, "Error")
			if w.Code == 503 && w.Header().Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			if got := b.status("key-1"); got != "unknown" || len(b.store.Rows()) != 0 {
				t.Errorf("status %s, rows %q", got, b.store.Rows())
			}
			for what, text := range map[string]string{"answer": w.Body.String(), "log": b.log.String()} {
				if strings.Contains(text, secret) || strings.Contains(text, "key-1") && what == "log" {
					t.Errorf("the %s tells too much: %s", what, text)
				}
			}
			ok = true
			b.want(b.post(ticket), 201, "", "First")
		})
	}
}

func large() []byte { return []byte(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`) }

func TestAbortHandlerGoesOn(t *testing.T) {
	b := open(t, script(func(service.Request) (service.Result, error) { panic(http.ErrAbortHandler) }), nil)
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("recovered %v", v)
			}
		}()
		b.post(ticket)
	}()
	if got := b.status("key-1"); got != "unknown" || len(b.store.Rows()) != 0 {
		t.Errorf("status %s, rows %q", got, b.store.Rows())
	}
}

// TestDatabaseFaults fails each step of a submission. Nothing is recorded, and
// the key can be used afterwards.
func TestDatabaseFaults(t *testing.T) {
	for _, at := range []string{"begin", "claim", "insert", "settle", "commit"} {
		b := open(t, insert, nil)
		b.store.SetFault(func(op string) error {
			if op == at {
				return errors.New("no connection")
			}
			return nil
		})
		w := b.post(ticket)
		b.want(w, 503, service.ProblemUnavailable, "Error")
		if w.Header().Get("Retry-After") != "5" {
			t.Errorf("%s: %v", at, w.Header())
		}
		b.store.SetFault(nil)
		if got := b.status("key-1"); got != "unknown" || len(b.store.Rows()) != 0 {
			t.Errorf("%s: status %s, rows %q", at, got, b.store.Rows())
		}
		b.want(b.post(ticket), 201, "", "First")
	}
	b := open(t, insert, nil)
	b.store.Close()
	b.want(b.call(t.Context(), "GET", "/ticket-requests/a", ""), 503, service.ProblemUnavailable, "Error")
}

// TestRefusalThatCannotBeRecorded is not answered as one: the second transaction
// fails, so nothing is known.
func TestRefusalThatCannotBeRecorded(t *testing.T) {
	b := open(t, script(func(service.Request) (service.Result, error) { return service.RefusedWith(422, nil), nil }), nil)
	begun := 0
	b.store.SetFault(func(op string) error {
		if op == "begin" {
			if begun++; begun == 2 {
				return errors.New("no connection")
			}
		}
		return nil
	})
	b.want(b.post(ticket), 503, service.ProblemUnavailable, "Error")
	if got := b.status("key-1"); got != "unknown" {
		t.Error(got)
	}
	b.want(b.post(ticket), 422, service.ProblemRefused, "Refused")
}

func TestPending(t *testing.T) {
	b := open(t, script(func(service.Request) (service.Result, error) { return service.PendingWith([]byte(`{"job":1}`)), nil }), nil)
	first := b.post(ticket)
	b.want(first, 202, "", "Pending")
	want := http.Header{"Cache-Control": {"no-store"}, "Content-Length": {"9"}, "Content-Type": {"application/json"}, "Retry-After": {"2"},
		"Location": {"/ticket-requests/key-1"}, "X-Content-Type-Options": {"nosniff"}}
	if d := cmp.Diff(want, first.Header()); d != "" {
		t.Error(d)
	}
	b.want(b.post(ticket), 202, "", "Replay")
	if got := b.status("key-1"); got != "pending" {
		t.Error(got)
	}
	if rows := b.store.Rows(); len(rows) != 1 {
		t.Errorf("what pending work wrote was not committed: %q", rows)
	}
}

// TestSettle: pending work is settled once, and the same settlement again is nil.
func TestSettle(t *testing.T) {
	k := service.Key{Principal: "ann", Action: "ticket", RequestID: "key-1"}
	type settlement func(*house, tx) error
	complete := func(id, body string) settlement {
		return func(b *house, tx tx) error { return b.tracker.Complete(b.t.Context(), tx, k, id, []byte(body)) }
	}
	fail := func(status int, body string) settlement {
		return func(b *house, tx tx) error { return b.tracker.Fail(b.t.Context(), tx, k, status, []byte(body)) }
	}
	for name, c := range map[string]struct {
		first        settlement
		others       []settlement
		code         int
		status, body string
	}{
		"complete": {complete("T-9", `{"id":"T-9"}`), []settlement{complete("T-8", `{"id":"T-9"}`), complete("T-9", `{}`), complete("T-9", ""), fail(422, "")},
			200, "succeeded T-9", `{"id":"T-9"}`},
		"fail": {fail(422, `{"title":"no"}`), []settlement{fail(404, `{"title":"no"}`), fail(422, ""), complete("T-9", "")},
			422, "failed", `{"title":"no"}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, script(func(service.Request) (service.Result, error) { return service.PendingWith(nil), nil }), nil)
			in := func(f settlement, commit bool) error {
				tx, err := b.store.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				if err := f(b, tx); err != nil || !commit {
					return err
				}
				return tx.Commit(t.Context())
			}
			if err := in(c.first, true); !errors.Is(err, service.ErrNotPending) {
				t.Errorf("settled what was never seen: %v", err)
			}
			b.post(ticket)
			if err := in(c.first, false); err != nil || b.status("key-1") != "pending" {
				t.Errorf("a settlement that was rolled back: %v, status %s", err, b.status("key-1"))
			}
			b.took()
			for range 2 {
				if err := in(c.first, true); err != nil {
					t.Error(err)
				}
			}
			if got := b.took(); got != "Completed" {
				t.Errorf("events %q", got)
			}
			for i, other := range c.others {
				if err := in(other, true); !errors.Is(err, service.ErrNotPending) {
					t.Errorf("another settlement (%d): %v", i, err)
				}
			}
			w := b.post(ticket)
			if got := b.status("key-1"); w.Code != c.code || w.Body.String() != c.body || got != c.status || w.Header().Get("Idempotency-Replayed") != "true" {
				t.Errorf("%d %s, status %s", w.Code, w.Body, got)
			}
			b.set(time.Now().Add(window))
			if err := in(c.first, true); !errors.Is(err, service.ErrNotPending) {
				t.Errorf("settled after the window: %v", err)
			}
		})
	}
}

func TestSettleRefusesWhatNoRepeatCouldGet(t *testing.T) {
	b := open(t, script(func(service.Request) (service.Result, error) { return service.PendingWith(nil), nil }), nil)
	b.post(ticket)
	k := service.Key{Principal: "ann", Action: "ticket", RequestID: "key-1"}
	tx, err := b.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for name, err := range map[string]error{
		"resource": b.tracker.Complete(t.Context(), tx, k, "..", nil),
		"body":     b.tracker.Complete(t.Context(), tx, k, "T-1", []byte("<html>")),
		"size":     b.tracker.Complete(t.Context(), tx, k, "T-1", large()),
		"status":   b.tracker.Fail(t.Context(), tx, k, 503, nil),
		"action":   b.tracker.Fail(t.Context(), tx, service.Key{Principal: "ann", Action: "none", RequestID: "key-1"}, 422, nil),
	} {
		if err == nil || errors.Is(err, service.ErrNotPending) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.status("key-1"); got != "pending" {
		t.Error(got)
	}
}

// TestTransactOfThePublisher: Config.Transact is used in place of the store's, may
// run a function again, and may not swallow its error.
func TestTransactOfThePublisher(t *testing.T) {
	runs, swallow := 0, false
	b := open(t, script(func(service.Request) (service.Result, error) {
		if swallow && runs%2 == 0 {
			return service.Result{}, errors.New("no")
		}
		return service.DoneWith("T-1", nil), nil
	}), func(c *config, _ *[]act) {
		store := c.Store
		c.Transact = func(ctx context.Context, f func(context.Context, tx) error) error {
			var err error
			for range 2 { // as after a serialization failure
				err = store.Transact(ctx, func(ctx context.Context, tx tx) error {
					runs++
					if err := f(ctx, tx); err != nil {
						return fmt.Errorf("in a transaction of our own: %w", err)
					}
					if runs%2 == 1 {
						return errors.New("serialization failure")
					}
					return nil
				})
			}
			if swallow {
				return nil
			}
			return err
		}
	})
	b.want(b.post(ticket), 201, "", "First")
	if rows := b.store.Rows(); runs != 2 || len(rows) != 1 {
		t.Errorf("%d runs, rows %q", runs, rows)
	}
	swallow = true // and the last run counts, which is the one that fails
	b.want(b.post(ticket, "Idempotency-Key", "key-2"), 500, service.ProblemInternal, "Error")
}

// TestSettleWithALargeBody: it is read again on repeats, and is not the same
// settlement as one without a body.
func TestSettleWithALargeBody(t *testing.T) {
	b := open(t, script(func(service.Request) (service.Result, error) { return service.PendingWith(nil), nil }), func(_ *config, as *[]act) {
		(*as)[0].Read = func(context.Context, service.Key, string) ([]byte, error) { return large(), nil }
	})
	b.post(ticket)
	k := service.Key{Principal: "ann", Action: "ticket", RequestID: "key-1"}
	tx, err := b.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.tracker.Complete(t.Context(), tx, k, "T-1", large()); err != nil {
		t.Error(err)
	}
	if err := b.tracker.Complete(t.Context(), tx, k, "T-1", nil); !errors.Is(err, service.ErrNotPending) {
		t.Errorf("settled with another body: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := b.post(ticket); w.Code != 200 || w.Body.String() != string(large()) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// foundStore finds and claims what a test says.
type foundStore struct {
	*storetest.MemoryStore
	find func(context.Context) (*service.Record, error)
}

func (s *foundStore) Find(ctx context.Context, _ service.Key) (*service.Record, error) {
	return s.find(ctx)
}

func (s *foundStore) Claim(ctx context.Context, _ tx, _ service.Key, _ string, _ time.Duration) (*service.Record, error) {
	return s.find(ctx)
}

// TestDamagedRecord: what cannot be is answered with 500, and not with a guess.
func TestDamagedRecord(t *testing.T) {
	var r service.Record
	b := open(t, insert, func(c *config, _ *[]act) {
		c.Store = &foundStore{storetest.NewMemoryStore(nil), func(context.Context) (*service.Record, error) { return &r, nil }}
	})
	v, err := strictjson.Parse([]byte(ticket))
	if err != nil {
		t.Fatal(err)
	}
	for _, r = range []service.Record{
		{}, {State: service.Claimed}, {State: "other"},
		{State: service.Refused}, {State: service.Refused, Settlement: service.Settlement{Status: 99}}, {State: service.Refused, Settlement: service.Settlement{Status: 200}},
		{State: service.Done}, {State: service.Done, Settlement: service.Settlement{ResourceID: ".."}},
		{State: service.Done, Settlement: service.Settlement{ResourceID: "T-1", BodyOmitted: true}},
	} {
		r.Fingerprint = v.Digest()
		b.want(b.post(ticket), 500, service.ProblemInternal, "Error")
	}
}

// TestObserverCannotChangeAnAnswer: the record is committed when it is called.
func TestObserverCannotChangeAnAnswer(t *testing.T) {
	b := open(t, insert, func(c *config, _ *[]act) { c.Observer = func(service.Event) { panic("observer") } })
	if w := b.post(ticket); w.Code != 201 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestNoStore(t *testing.T) {
	w := httptest.NewRecorder()
	service.NoStore(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := w.Header().Get("Cache-Control"); got != "no-store" || w.Code != 404 {
		t.Errorf("%d %q", w.Code, got)
	}
}

// TestForeignErrorsAreLoggedByType: what the publisher's other code says goes to the
// observer, and not into the log; what a store says is logged.
func TestForeignErrorsAreLoggedByType(t *testing.T) {
	secret := &url.Error{Op: "Get", URL: "https://id:secret@id.example/", Err: errors.New("refused")}
	large := func(service.Request) (service.Result, error) { return service.DoneWith("T-1", large()), nil }
	for name, c := range map[string]struct {
		do     func(service.Request) (service.Result, error)
		adjust func(*config, *[]act)
		log    string
	}{
		"principal": {large, func(c *config, _ *[]act) {
			c.Principal = func(*http.Request) (string, error) { return "", errors.Join(service.ErrUnavailable, secret) }
		}, "of Config.Principal, type *errors.joinError"},
		"transact": {large, func(c *config, _ *[]act) {
			c.Transact = func(context.Context, func(context.Context, tx) error) error { return secret }
		}, "of Config.Transact, type *url.Error"},
		"transact around f": {large, func(c *config, _ *[]act) {
			c.Transact = func(ctx context.Context, f func(context.Context, tx) error) error {
				return errors.Join(f(ctx, nil), secret)
			}
			c.Store = brokenClaim{c.Store}
		}, "of Config.Transact, type *errors.joinError"},
		"transact gives back": {large, func(c *config, _ *[]act) {
			c.Transact = func(ctx context.Context, f func(context.Context, tx) error) error { return f(ctx, nil) }
			c.Store = brokenClaim{c.Store}
		}, "the claim broke"},
		"read": {large, func(c *config, as *[]act) {
			c.MaxStoredBytes = 10
			(*as)[0].Read = func(context.Context, service.Key, string) ([]byte, error) { return nil, secret }
		}, "of Action.Read, type *url.Error"},
	} {
		var seen error
		b := open(t, script(c.do), func(cfg *config, as *[]act) {
			c.adjust(cfg, as)
			cfg.Observer = func(e service.Event) {
				if e, ok := e.(service.ErrorEvent); ok {
					seen = e.Err
				}
			}
		})
		b.post(ticket)
		b.post(ticket)
		if log := b.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, c.log) {
			t.Errorf("%s: the log has %s", name, log)
		}
		if !errors.Is(seen, secret) && !errors.Is(seen, errClaim) {
			t.Errorf("%s: the observer got %v", name, seen)
		}
	}
}

type brokenClaim struct{ service.Store[tx] }

var errClaim = errors.New("the claim broke")

func (brokenClaim) Claim(context.Context, tx, service.Key, string, time.Duration) (*service.Record, error) {
	return nil, errClaim
}
