package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/service"
)

// TestRefusals has every answer to a request that is not tracked. None of them may
// change anything.
func TestRefusals(t *testing.T) {
	b := open(t, insert, func(c *config, _ *[]act) { c.CheckInput = true; c.MaxInputBytes = 100 })
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		code               int
		problem            string
		events             string
	}{
		"no credentials":    {body: ticket, header: []string{"Authorization", ""}, code: 401, problem: service.ProblemUnauthenticated},
		"before all else":   {body: "[", header: []string{"Authorization", "", "Idempotency-Key", "", "Content-Type", ""}, code: 401, problem: service.ProblemUnauthenticated},
		"empty name":        {body: ticket, header: []string{"Authorization", "Bearer "}, code: 401, problem: service.ProblemUnauthenticated},
		"no such name":      {body: ticket, header: []string{"Authorization", "Bearer a\x00b"}, code: 401, problem: service.ProblemUnauthenticated},
		"unknown principal": {body: ticket, header: []string{"Authorization", "Down"}, code: 503, problem: service.ProblemUnavailable, events: "Error"},
		"principal panics":  {body: ticket, header: []string{"Authorization", "Panic"}, code: 500, problem: service.ProblemInternal, events: "Error"},
		"query":             {path: "/ticket?subject=other", method: "POST", body: ticket, code: 400, problem: service.ProblemQuery},
		"query, unnamed":    {path: "/ticket?a", method: "POST", body: ticket, header: []string{"Authorization", ""}, code: 401, problem: service.ProblemUnauthenticated},
		"no key":            {body: ticket, header: []string{"Idempotency-Key", ""}, code: 400, problem: service.ProblemMissingKey},
		"key before body":   {body: "[", header: []string{"Idempotency-Key", ""}, code: 400, problem: service.ProblemMissingKey},
		"long key":          {body: ticket, header: []string{"Idempotency-Key", strings.Repeat("k", 129)}, code: 400, problem: service.ProblemBadKey},
		"dots":              {body: ticket, header: []string{"Idempotency-Key", ".."}, code: 400, problem: service.ProblemBadKey},
		"dot":               {body: ticket, header: []string{"Idempotency-Key", "."}, code: 400, problem: service.ProblemBadKey},
		"blank in key":      {body: ticket, header: []string{"Idempotency-Key", "a b"}, code: 400, problem: service.ProblemBadKey},
		"key beyond ASCII":  {body: ticket, header: []string{"Idempotency-Key", "kéy"}, code: 400, problem: service.ProblemBadKey},
		"no media type":     {body: ticket, header: []string{"Content-Type", ""}, code: 415, problem: service.ProblemMediaType},
		"form":              {body: ticket, header: []string{"Content-Type", "application/x-www-form-urlencoded"}, code: 415, problem: service.ProblemMediaType},
		"charset":           {body: ticket, header: []string{"Content-Type", "application/json; charset=latin1"}, code: 415, problem: service.ProblemMediaType},
		"coding":            {body: ticket, header: []string{"Content-Encoding", "gzip"}, code: 415, problem: service.ProblemMediaType},
		"too large":         {body: ticket + strings.Repeat(" ", 100), code: 413, problem: service.ProblemTooLarge},
		"empty":             {body: "", code: 400, problem: service.ProblemBadJSON},
		"syntax":            {body: `{"subject":}`, code: 400, problem: service.ProblemBadJSON},
		"duplicate member":  {body: `{"subject":"a","subject":"b"}`, code: 400, problem: service.ProblemBadJSON},
		"array":             {body: `["subject"]`, code: 400, problem: service.ProblemNotObject},
		"null":              {body: `null`, code: 400, problem: service.ProblemNotObject},
		"schema":            {body: `{"subject":7}`, code: 400, problem: service.ProblemSchema},
		"number":            {body: `{"subject":"a","n":1e400}`, code: 400, problem: service.ProblemSchema},
		"long subject":      {body: `{"subject":"` + strings.Repeat("a", 21) + `"}`, code: 400, problem: service.ProblemSchema},
		"no request":        {method: "GET", path: "/ticket-requests/%2E%2E", code: 404, problem: service.ProblemPath},
		"control character": {method: "GET", path: "/ticket-requests/a%00", code: 404, problem: service.ProblemPath},
		"not UTF-8":         {method: "GET", path: "/ticket-requests/a%ff", code: 404, problem: service.ProblemPath},
		"status unnamed":    {method: "GET", path: "/ticket-requests/key-1", header: []string{"Authorization", ""}, code: 401, problem: service.ProblemUnauthenticated},
		"nothing to unname": {method: "GET", path: "/ticket-requests/%2E", header: []string{"Authorization", ""}, code: 401, problem: service.ProblemUnauthenticated},
	} {
		method, path := c.method, c.path
		if method == "" {
			method, path = http.MethodPost, "/ticket"
		}
		w := b.call(t.Context(), method, path, c.body, c.header...)
		if p := b.problem(w); w.Code != c.code || p.Type != c.problem {
			t.Errorf("%s: got %d %s, want %d %s", name, w.Code, w.Body, c.code, c.problem)
		}
		if events := b.took(); events != c.events {
			t.Errorf("%s: got the events %q, want %q", name, events, c.events)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: the answer tells too much: %s", name, w.Body)
		}
	}
	if rows := b.store.Rows(); len(rows) != 0 {
		t.Errorf("the handler ran: %q", rows)
	}
	if got := b.status("key-1"); got != "unknown" {
		t.Errorf("a refused request was tracked: %s", got)
	}
	if strings.Contains(b.log.String(), "secret") {
		t.Errorf("the log tells too much: %s", b.log)
	}
}

func TestRefusalsSayWhere(t *testing.T) {
	b := open(t, insert, func(c *config, _ *[]act) { c.CheckInput = true })
	p := b.problem(b.post("{\n \"subject\": {\"a\": 1, \"a\": 2}}"))
	if p.Pointer == nil || *p.Pointer != "/subject/a" || p.Line != 2 || p.Column != 22 {
		t.Errorf("bad JSON at %+v", p)
	}
	p = b.problem(b.post("{\"n\":1,\n\"subject\":7}"))
	want := []service.InputError{{Pointer: "/subject", Line: 2, Column: 11}}
	for i := range p.Errors {
		p.Errors[i].Detail = ""
	}
	if d := cmp.Diff(want, p.Errors); d != "" {
		t.Error(d)
	}
	for _, c := range []struct{ authorization, challenge string }{{"", "Bearer"}, {"Basic", `Bearer realm="tickets"`}} {
		w := b.post(ticket, "Authorization", c.authorization)
		if got := w.Header().Get("WWW-Authenticate"); got != c.challenge {
			t.Errorf("challenge %q, want %q", got, c.challenge)
		}
	}
	if w := b.post(ticket, "Authorization", "Down"); w.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

// TestUnauthenticated: a read of the publisher's own gets the answers of a tracker.
func TestUnauthenticated(t *testing.T) {
	b := open(t, insert, nil)
	for _, authorization := range []string{"", "Basic", "Down"} {
		want := b.post(ticket, "Authorization", authorization)
		_, err := bearer(&http.Request{Header: http.Header{"Authorization": {authorization}}})
		got := httptest.NewRecorder()
		service.Unauthenticated(got, err)
		if d := cmp.Diff(want.Header(), got.Header()); d != "" || got.Code != want.Code || got.Body.String() != want.Body.String() {
			t.Errorf("%q: %d %s %s", authorization, got.Code, got.Body, d)
		}
	}
}

// TestHeadersThatComeTwice must not be taken as either.
func TestHeadersThatComeTwice(t *testing.T) {
	b := open(t, insert, nil)
	for name, c := range map[string]struct {
		code    int
		problem string
	}{"Idempotency-Key": {400, service.ProblemBadKey}, "Content-Type": {415, service.ProblemMediaType}} {
		r := httptest.NewRequest(http.MethodPost, "/ticket", strings.NewReader(ticket))
		r.Header = http.Header{"Authorization": {"Bearer ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a"}}
		r.Header.Add(name, r.Header.Get(name))
		w := httptest.NewRecorder()
		b.mux.ServeHTTP(w, r)
		b.want(w, c.code, c.problem, "")
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	b := open(t, insert, nil)
	r := httptest.NewRequest(http.MethodPost, "/ticket", iotest.ErrReader(errors.New("connection reset")))
	r.Header = http.Header{"Authorization": {"Bearer ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a"}}
	w := httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	b.want(w, 400, service.ProblemIncomplete, "")
	r.ContentLength = 1 << 20 // is refused before it is read
	w = httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	b.want(w, 413, service.ProblemTooLarge, "")
}

func TestWrongMethod(t *testing.T) {
	b := open(t, insert, nil)
	for _, c := range []struct {
		h             http.Handler
		method, allow string
	}{
		{b.tracker.Submit("ticket"), "GET", "POST"},
		{b.tracker.Status("ticket"), "POST", "GET, HEAD"},
		{b.tracker.Profile(), "DELETE", "GET, HEAD"},
		{b.tracker.OpenAPI(), "POST", "GET, HEAD"},
	} {
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, httptest.NewRequest(c.method, "/ticket-requests/a", nil))
		if got := w.Header().Get("Allow"); w.Code != 405 || got != c.allow || b.problem(w).Type != service.ProblemMethod {
			t.Errorf("%s: %d, Allow %q, want %q", c.method, w.Code, got, c.allow)
		}
	}
}

// TestRepeat: first 201, then 200 with the same body and resource, whatever the
// spelling of the input (D20).
func TestRepeat(t *testing.T) {
	b := open(t, insert, nil)
	first := b.post(`{"subject":"printer","n":[1,{"a":null}]}`)
	b.want(first, http.StatusCreated, "", "First")
	if got, want := first.Header(), (http.Header{"Cache-Control": {"no-store"}, "Content-Length": {"12"}, "Content-Type": {"application/json"},
		"Location": {"/ticket/T-ann"}, "X-Content-Type-Options": {"nosniff"}}); cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
	for _, body := range []string{`{"subject":"printer","n":[1,{"a":null}]}`, "{ \"n\": [1.0, {\"a\": null}],\n\"subject\": \"p\\u0072inter\" }"} {
		again := b.post(body)
		b.want(again, http.StatusOK, "", "Replay")
		h := first.Header().Clone()
		h.Set("Idempotency-Replayed", "true")
		if d := cmp.Diff(h, again.Header()); d != "" {
			t.Error(d)
		}
		if !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
			t.Errorf("got %s, want %s", again.Body, first.Body)
		}
	}
	if got := b.status("key-1"); got != "succeeded T-ann" {
		t.Error(got)
	}
	if rows := b.store.Rows(); len(rows) != 1 {
		t.Errorf("rows: %q", rows)
	}
}

func TestConflict(t *testing.T) {
	b := open(t, insert, nil)
	b.want(b.post(`{"subject":"a","n":9007199254740993}`), http.StatusCreated, "", "First")
	for _, other := range []string{`{"subject":"a","n":9007199254740992}`, `{"subject":"a"}`, `{"subject":"a","n":"9007199254740993"}`, `{}`} {
		b.want(b.post(other), http.StatusConflict, service.ProblemConflict, "Conflict")
	}
	b.want(b.post(`{"n":9007199254740993.0,"subject":"a"}`), http.StatusOK, "", "Replay")
	if rows := b.store.Rows(); len(rows) != 1 {
		t.Errorf("rows: %q", rows)
	}
}

// TestScope: another principal, another action and another case of a letter are
// other requests (D19), and neither sees the other.
func TestScope(t *testing.T) {
	b := open(t, insert, nil)
	b.want(b.post(ticket), http.StatusCreated, "", "First")
	for _, header := range [][]string{{"Authorization", "Bearer bob"}, {"Authorization", "Bearer Ann"}, {"Idempotency-Key", "Key-1"}} {
		b.want(b.post(`{"subject":"other"}`, header...), http.StatusCreated, "", "First")
	}
	b.want(b.call(t.Context(), "POST", "/invoice", `{"subject":"third"}`), http.StatusCreated, "", "First")
	if got := b.status("key-1", "Authorization", "Bearer bob"); got != "succeeded T-bob" {
		t.Error(got)
	}
	if rows := b.store.Rows(); len(rows) != 5 {
		t.Errorf("rows: %q", rows)
	}
}

// TestUnknownLooksTheSame compares the whole answers (D24).
func TestUnknownLooksTheSame(t *testing.T) {
	b := open(t, insert, nil)
	b.post(ticket)
	const path = "/ticket-requests/key-1"
	absent := open(t, insert, nil).call(t.Context(), "GET", path, "")
	foreign := b.call(t.Context(), "GET", path, "", "Authorization", "Bearer bob")
	other := b.call(t.Context(), "GET", "/invoice-requests/key-1", "")
	b.set(time.Now().Add(window + time.Second))
	expired := b.call(t.Context(), "GET", path, "")
	if _, err := b.tracker.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	swept := b.call(t.Context(), "GET", path, "")
	want := `{"request_id":"key-1","status":"unknown","resource_id":null}` + "\n"
	for name, w := range map[string]*httptest.ResponseRecorder{"absent": absent, "foreign": foreign, "other action": other, "expired": expired, "swept": swept} {
		if w.Code != 200 || w.Body.String() != want || cmp.Diff(absent.Header(), w.Header()) != "" {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
}

func TestExpiredKeyIsNeverUsedAgain(t *testing.T) {
	b := open(t, insert, nil)
	b.set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b.post(ticket)
	b.set(b.now().Add(window - time.Microsecond))
	b.took()
	b.want(b.post(ticket), http.StatusOK, "", "Replay")
	b.set(b.now().Add(time.Microsecond))
	b.want(b.post(ticket), http.StatusConflict, service.ProblemExpired, "Expired")
	b.want(b.post(`{"subject":"other"}`), http.StatusConflict, service.ProblemExpired, "Expired")
	if n, err := b.tracker.Sweep(t.Context()); err != nil || n != (service.Swept{Expired: 1}) {
		t.Errorf("swept %+v, %v", n, err)
	}
	b.want(b.post(ticket), http.StatusConflict, service.ProblemExpired, "Swept Expired")
	if rows := b.store.Rows(); len(rows) != 1 {
		t.Errorf("rows: %q", rows)
	}
}

// TestEncodedKey: a key with characters that a path escapes is found, and decoded
// once.
func TestEncodedKey(t *testing.T) {
	b := open(t, insert, nil)
	for escaped, key := range map[string]string{"a%2Fb": "a/b", "%252F": "%2F", "%2F%2F": "//", "%2F..%2F": "/../", "a%3Fb%23c": "a?b#c", "...": "...",
		"a+b": "a+b", "%7Bid%7D": "{id}", "a%22b": `a"b`, "%5C": `\`, "~": "~", "=:@": "=:@"} {
		b.post(ticket, "Idempotency-Key", key)
		w := b.call(t.Context(), "GET", "/ticket-requests/"+escaped, "")
		id, _ := b.parse(w).Member("request_id")
		word, _ := b.parse(w).Member("status")
		if text, _ := id.Text(); w.Code != 200 || text != key || string(word.Compact()) != `"succeeded"` {
			t.Errorf("%s: %d %s", escaped, w.Code, w.Body)
		}
	}
	b.store.Close() // it is not asked for what it cannot have
	for _, never := range []string{strings.Repeat("k", 129), "%C3%A9", "a%20b"} {
		w := b.call(t.Context(), "GET", "/ticket-requests/"+never, "")
		word, _ := b.parse(w).Member("status")
		if w.Code != 200 || string(word.Compact()) != `"unknown"` {
			t.Errorf("%s: %d %s", never, w.Code, w.Body)
		}
	}
}

// TestLargeBody: what is too large to store is read again.
func TestLargeBody(t *testing.T) {
	large := []byte(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	done := func(ctx context.Context, tx tx, r service.Request) (service.Result, error) {
		return service.DoneWith("T-7", large), tx.Insert(ctx, "row")
	}
	var readErr error
	read := large
	b := open(t, done, func(c *config, as *[]act) {
		c.MaxStoredBytes = 50
		(*as)[0].Read = func(_ context.Context, k service.Key, id string) ([]byte, error) {
			if k.RequestID != "key-1" || k.Principal != "ann" || id != "T-7" {
				return nil, fmt.Errorf("asked for %q of %+v", id, k)
			}
			return read, readErr
		}
	})
	for _, code := range []int{201, 200, 200} {
		if w := b.post(ticket); w.Code != code || !bytes.Equal(w.Body.Bytes(), large) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	b.took()
	for _, read = range [][]byte{nil, {}, []byte("ok"), []byte(`{"a":1,"a":2}`), large[:9], []byte("{\"a\":\"\xff\"}")} {
		b.want(b.post(ticket), 500, service.ProblemInternal, "Error")
	}
	readErr = errors.New("gone")
	b.want(b.post(ticket), 500, service.ProblemInternal, "Error")
	readErr = service.ErrUnavailable
	b.want(b.post(ticket), 503, service.ProblemUnavailable, "Error")
	b.want(b.call(t.Context(), "POST", "/invoice", ticket), 500, service.ProblemInternal, "Error")
	if rows := b.store.Rows(); len(rows) != 1 {
		t.Errorf("a body that no repeat could get was committed: %q", rows)
	}
}

// TestStricterSchema: what an earlier schema took is answered from the record.
func TestStricterSchema(t *testing.T) {
	loose := open(t, insert, nil)
	long := `{"subject":"` + strings.Repeat("a", 21) + `"}`
	loose.post(long)
	b := open(t, insert, func(c *config, _ *[]act) { c.CheckInput, c.Store = true, loose.store })
	b.want(b.post(long), http.StatusOK, "", "Replay")
	b.want(b.post(`{"subject":7}`), http.StatusConflict, service.ProblemConflict, "Conflict")
	b.want(b.post(`{"subject":7}`, "Idempotency-Key", "key-2"), 400, service.ProblemSchema, "")
}

func TestFingerprintIsTheDigestOfTheInput(t *testing.T) {
	var got string
	b := open(t, func(_ context.Context, _ tx, r service.Request) (service.Result, error) {
		got = r.Fingerprint
		return service.DoneWith("T-1", nil), nil
	}, nil)
	b.post("{\"b\":1.0,\n\"a\":2}")
	v, err := strictjson.Parse([]byte(`{"a":2,"b":1}`))
	if err != nil || got != v.Digest() {
		t.Errorf("got %s, want %s, %v", got, v.Digest(), err)
	}
}
