package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/storetest"
)

func TestDocuments(t *testing.T) {
	b := open(t, insert, nil)
	profile, openapi := documents("ticket", "invoice")
	for path, want := range map[string][]byte{"/agentic.json": profile, "/openapi.json": openapi} {
		w := b.call(t.Context(), "GET", path, "", "Authorization", "")
		h := w.Header()
		etag := h.Get("ETag")
		if w.Code != 200 || w.Body.String() != string(want) || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-cache" ||
			len(etag) != 66 || !strings.HasPrefix(etag, `"`) {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		head := b.call(t.Context(), "HEAD", path, "", "Authorization", "")
		if d := cmp.Diff(h, head.Header()); d != "" || head.Code != 200 || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: %d %s", path, head.Code, d)
		}
		same := b.call(t.Context(), "GET", path, "", "If-None-Match", etag)
		if same.Code != 304 || same.Body.Len() != 0 || same.Header().Get("ETag") != etag || same.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s again: %d %v", path, same.Code, same.Header())
		}
		if other := b.call(t.Context(), "GET", path, "", "If-None-Match", `"other"`); other.Code != 200 {
			t.Errorf("%s with another tag: %d", path, other.Code)
		}
		if post := b.call(t.Context(), "POST", path, ""); post.Code != 405 || !strings.Contains(post.Header().Get("Allow"), "GET") {
			t.Errorf("POST %s: %d %v", path, post.Code, post.Header())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	handle := func(ids ...string) (as []act) {
		for _, id := range ids {
			as = append(as, act{ID: id, Handle: insert})
		}
		return as
	}
	both := handle("ticket", "invoice")
	replace := func(doc *[]byte, old, new string) { *doc = []byte(strings.Replace(string(*doc), old, new, 1)) }
	for name, c := range map[string]struct {
		adjust  func(*config)
		actions []act
		want    string
	}{
		"no store":        {func(c *config) { c.Store = nil }, both, "Config.Store is missing"},
		"no principal":    {func(c *config) { c.Principal = nil }, both, "Config.Principal is missing"},
		"negative limit":  {func(c *config) { c.MaxWait = -1 }, both, "negative"},
		"no profile":      {func(c *config) { c.Profile = nil }, both, "Config.Profile: invalid document"},
		"no OpenAPI":      {func(c *config) { c.OpenAPI = nil }, both, "action ticket: invalid document"},
		"loopback":        {func(c *config) { replace(&c.Profile, "https://support.example", "http://127.0.0.1:1") }, both, "invalid document"},
		"missing action":  {nil, handle("ticket"), "the profile has the action invoice, which is not given to New"},
		"action too many": {nil, handle("ticket", "invoice", "refund"), `the profile has no action "refund"`},
		"action twice":    {nil, handle("ticket", "invoice", "ticket"), "the action ticket is given twice"},
		"no handler":      {nil, append(handle("ticket"), act{ID: "invoice"}), "the action invoice has no Handle"},
		"shared submit":   {func(c *config) { replace(&c.Profile, "submit-invoice", "submit-ticket") }, both, "POST /ticket is of ticket and of invoice"},
		"shared status":   {func(c *config) { replace(&c.Profile, "status-invoice", "status-ticket") }, both, "a key belongs to one action"},
		"two documents":   {func(c *config) { replace(&c.Profile, `"/openapi.json"`, `"/other.json"`) }, both, "a tracker serves one"},
		"document twice": {func(c *config) {
			c.Profile = []byte(strings.ReplaceAll(string(c.Profile), "/openapi.json", "/agentic.json"))
		}, both, "GET /agentic.json is of the documents"},
		"read is a status": {func(c *config) {
			replace(&c.Profile, "verify-ticket", "status-invoice")
			replace(&c.Profile, `"ticketId"`, `"requestId"`)
		}, both,
			"the read of ticket, /invoice-requests/{requestId}, has the path of another operation, of invoice"},
		"equal templates":  {func(c *config) { replace(&c.OpenAPI, "/ticket/{ticketId}", "/ticket-requests/{ticketId}") }, both, "no router can tell them apart"},
		"short tombstones": {func(c *config) { c.Tombstones = window - 1 }, both, "below the window"},
		"no schema": {func(c *config) {
			c.CheckInput, c.OpenAPI = true, []byte(strings.Replace(string(c.OpenAPI), `{"schema":{"type":"object"`, `{"x":{"type":"object"`, 1))
		}, both, "no inline schema"},
		"bad schema": {func(c *config) { c.CheckInput = true; replace(&c.OpenAPI, `"maxLength":20`, `"pattern":"(?=a)"`) }, both, "cannot be checked"},
	} {
		profile, openapi := documents("ticket", "invoice")
		cfg := config{Store: storetest.NewMemoryStore(nil), Principal: bearer, Profile: profile, OpenAPI: openapi}
		if c.adjust != nil {
			c.adjust(&cfg)
		}
		if _, err := service.New(cfg, c.actions...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if _, err := service.New(cfg, c.actions...); strings.Contains(c.want, "invalid document") {
			if _, ok := errors.AsType[*agentic.InvalidError](err); !ok {
				t.Errorf("%s: %v is no *InvalidError", name, err)
			}
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	found := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		patterns []string
		want     string // "" is no error
	}{
		"fits":              {[]string{"GET /ticket/{id}"}, ""},
		"fits with a list":  {[]string{"GET /ticket/{id}", "GET /ticket", "/", "GET /ticket/{id}/notes"}, ""},
		"subtree":           {[]string{"/ticket/"}, ""},
		"no read":           {nil, "nobody serves GET /ticket/{ticketId}, the read of ticket"},
		"catch-all only":    {[]string{"/"}, "nobody serves GET /ticket/{ticketId}"},
		"read redirects":    {[]string{"GET /ticket/{id}/"}, "nobody serves GET /ticket/{ticketId}"},
		"read by POST":      {[]string{"POST /ticket/{id}"}, "nobody serves GET /ticket/{ticketId}"},
		"taken":             {[]string{"GET /ticket/{id}", "POST /ticket"}, "cannot serve POST /ticket on this mux"},
		"status taken":      {[]string{"GET /ticket/{id}", "GET /ticket-requests/{key}"}, "cannot serve GET /ticket-requests/{id}"},
		"profile taken":     {[]string{"GET /ticket/{id}", "GET /agentic.json"}, "cannot serve GET /agentic.json"},
		"hidden by a host":  {[]string{"GET /ticket/{id}", "support.example/ticket-requests/"}, "the status of ticket, is served by another handler"},
		"submission hidden": {[]string{"GET /ticket/{id}", "POST support.example/ticket"}, "the submission of ticket, is served by another handler"},
		"document hidden":   {[]string{"GET /ticket/{id}", "support.example/openapi.json"}, "the OpenAPI document, is served by another handler"},
	} {
		tracker := one(t, nil)
		mux := http.NewServeMux()
		for _, p := range c.patterns {
			mux.Handle(p, found)
		}
		err := tracker.Register(mux)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// one is a tracker of the action ticket alone.
func one(t *testing.T, adjust func(*config)) *service.Tracker[tx] {
	t.Helper()
	profile, openapi := documents("ticket")
	cfg := config{Store: storetest.NewMemoryStore(nil), Principal: bearer, Profile: profile, OpenAPI: openapi}
	if adjust != nil {
		adjust(&cfg)
	}
	tracker, err := service.New(cfg, act{ID: "ticket", Handle: insert})
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

func TestUnknownActionPanics(t *testing.T) {
	tracker := one(t, nil)
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "there are: ticket") {
			t.Errorf("recovered %v", v)
		}
	}()
	tracker.Submit("none")
}

// TestOtherRouter: a publisher without a ServeMux asks Check.
func TestOtherRouter(t *testing.T) {
	tracker := one(t, nil)
	verify := http.NotFoundHandler()
	routes := map[string]http.Handler{
		"GET /agentic.json": tracker.Profile(), "GET /openapi.json": tracker.OpenAPI(),
		"POST /ticket": tracker.Submit("ticket"), "GET /ticket-requests/": tracker.Status("ticket"), "GET /ticket/": verify,
	}
	route := func(method, path string) http.Handler {
		if h, ok := routes[method+" "+path]; ok {
			return h
		}
		return routes[method+" "+path[:strings.LastIndexByte(path, '/')+1]]
	}
	if err := tracker.Check(route); err != nil {
		t.Error(err)
	}
	for at := range routes {
		had := routes[at]
		for _, other := range []http.Handler{nil, http.NewServeMux(), tracker.Submit("ticket")} {
			routes[at] = other
			fits := other == had || at == "GET /ticket/" && other != nil && other != tracker.Submit("ticket")
			if err := tracker.Check(route); (err == nil) != fits {
				t.Errorf("%s with %T: %v", at, other, err)
			}
		}
		routes[at] = had
	}
}

// TestPlaceholderInsideASegment: the draft allows it, and a ServeMux does not.
func TestPlaceholderInsideASegment(t *testing.T) {
	tracker := one(t, func(c *config) {
		c.OpenAPI = []byte(strings.NewReplacer("/ticket-requests/{requestId}", "/r/key-{requestId}.json", "/ticket/{ticketId}", "/ticket/{ticketId}.json").Replace(string(c.OpenAPI)))
	})
	mux := http.NewServeMux()
	mux.Handle("GET /ticket/{id}", http.NotFoundHandler())
	if err := tracker.Register(mux); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/r/key-a.json": `{"request_id":"a","status":"unknown","resource_id":null}` + "\n",
		"/r/key-%2F.json.json": `{"request_id":"/.json","status":"unknown","resource_id":null}` + "\n", "/r/key-.json": "", "/r/a": "", "/r/key-a": ""} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if got := w.Body.String(); (w.Code == 200) != (want != "") || w.Code == 200 && got != want {
			t.Errorf("%s: %d %s", path, w.Code, got)
		}
	}
}

// TestStatusOnAnotherRouter: whatever path it is given, it takes no ID from one
// that is not its own.
func TestStatusOnAnotherRouter(t *testing.T) {
	tracker := one(t, nil)
	for path, code := range map[string]int{"/ticket-requests/a": 200, "/other/a": 404, "/ticket-requests/a/b": 404, "/ticket-requests/": 404, "/ticket-requests": 404, "/x/ticket-requests/a": 404} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		tracker.Status("ticket").ServeHTTP(w, r)
		if w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// countingStore counts and bounds the sweeps of a store.
type countingStore struct {
	*storetest.MemoryStore
	limits []int
	keep   time.Duration
}

func (s *countingStore) Sweep(ctx context.Context, keep time.Duration, limit int) (service.Swept, error) {
	s.limits, s.keep = append(s.limits, limit), keep
	return s.MemoryStore.Sweep(ctx, keep, limit)
}

func TestSweepInBatches(t *testing.T) {
	b := open(t, insert, nil)
	s := &countingStore{MemoryStore: b.store}
	b.set(time.Now())
	swept := open(t, insert, func(c *config, _ *[]act) { c.Store, c.Tombstones = s, 2*window })
	for i := range 450 {
		b.post(ticket, "Idempotency-Key", fmt.Sprint("key-", i))
	}
	for _, c := range []struct {
		after time.Duration
		want  service.Swept
		calls int
	}{{0, service.Swept{}, 1}, {window, service.Swept{Expired: 450}, 3}, {0, service.Swept{}, 1}, {2*window + 1000, service.Swept{Deleted: 450}, 3}} {
		s.limits = nil
		b.set(b.now().Add(c.after))
		if n, err := swept.tracker.Sweep(t.Context()); n != c.want || err != nil || len(s.limits) != c.calls || s.keep != 2*window {
			t.Errorf("after %s: %+v in batches %v, keep %s, %v", c.after, n, s.limits, s.keep, err)
		}
	}
	if got := swept.took(); got != "Swept Swept" {
		t.Errorf("events %q", got)
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, insert, nil)
		b.post(ticket)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.tracker.Run(ctx, time.Hour) }()
		b.store.SetFault(func(op string) error {
			if op == "sweep" {
				return errors.New("no connection")
			}
			return nil
		})
		time.Sleep(window + time.Minute)
		b.store.SetFault(nil)
		synctest.Wait()
		if got := b.took(); got != "First" {
			t.Errorf("events %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := b.took(); got != "Swept" {
			t.Errorf("events %q", got)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if !strings.Contains(b.log.String(), "the sweep failed") {
			t.Error("a sweep that failed is not in the log")
		}
	})
}
