package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	tracking "github.com/agentic-go/agentic/service"
)

// operation is one call of a client and what came of it.
type operation struct {
	orderKey
	kind     string // "submit", "status" or "settle"
	input    string // of submit: equal only when the input is the same
	do       string // of submit
	resource string // of settle; "" fails the work
	answer

	called, returned int64 // nanoseconds of one clock
}

// answer is what a client learned. One that is not definite may come true at any
// time after the call, or never.
type answer struct {
	// word is "" when nothing definite was answered. A submission is "done",
	// "pending" or "refused" the first time, with " again" when it is a repeat, or
	// "conflict"; a status is its word; a settlement is "settled" or "not pending".
	word string
	id   string // of the resource
	code int    // 0 without a whole answer
	body string
}

// never is the end of a call that was not answered definitely.
const never = math.MaxInt64

// history is what all clients saw.
type history struct {
	begin time.Time
	mu    sync.Mutex
	calls []operation
	// later counts answers of 503, and gone calls without an answer.
	later, gone int
	faults      []string // answers that may never be given
}

func (h *history) add(o operation, fault error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, o)
	switch o.code {
	case 0:
		h.gone++
	case http.StatusServiceUnavailable:
		h.later++
	}
	if fault != nil && len(h.faults) < 20 {
		h.faults = append(h.faults, fmt.Sprintf("%+v: %v", o, fault))
	}
}

// counts gives how many calls there are, and how many of each indefinite kind.
func (h *history) counts() (calls, later, gone int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls), h.later, h.gone
}

// caller calls a shop and writes down what it sees.
type caller struct {
	http   *http.Client
	origin string
	*history
}

// submit posts a wish. turn changes what does not change the input: the order of
// its members, and blanks.
func (c *caller) submit(ctx context.Context, k orderKey, w wish, turn int) operation {
	text := fmt.Sprintf(`{"subject":%q,"do":%q,"delay_ms":%d}`, w.Subject, w.Do, w.DelayMS)
	if turn%2 == 1 {
		text = fmt.Sprintf("{ \"delay_ms\" : %d,\n\"do\":%q, \"subject\":%q}", w.DelayMS, w.Do, w.Subject)
	}
	o := operation{orderKey: k, kind: "submit", input: w.Subject + "/" + w.Do, do: w.Do}
	return c.call(ctx, &o, http.MethodPost, "/"+k.action, text, o.submitted)
}

func (o *operation) submitted(resp *http.Response, body []byte) error {
	var p tracking.Problem
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(body, &p); err != nil || p.Status != resp.StatusCode {
			return fmt.Errorf("not a problem document: %s", body)
		}
	}
	o.id = resp.Header.Get("Location")
	if i := strings.LastIndexByte(o.id, '/'); i >= 0 {
		o.id = o.id[i+1:]
	}
	again := ""
	if resp.Header.Get("Idempotency-Replayed") == "true" {
		again = " again"
	}
	switch {
	case resp.StatusCode == http.StatusCreated && again == "", resp.StatusCode == http.StatusOK && again != "":
		o.word = "done" + again
	case resp.StatusCode == http.StatusAccepted:
		o.word, o.id = "pending"+again, ""
	case resp.StatusCode == http.StatusUnprocessableEntity && p.Type == tracking.ProblemRefused:
		o.word = "refused" + again
	case p.Type == tracking.ProblemConflict && again == "":
		o.word = "conflict"
	default:
		return later(resp, p.Type)
	}
	return nil
}

// later is nil for a 503 that says so clearly.
func later(resp *http.Response, problem string) error {
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" &&
		resp.Header.Get("Content-Type") == "application/problem+json" &&
		(problem == tracking.ProblemUnavailable || problem == tracking.ProblemBusy) {
		return nil
	}
	return fmt.Errorf("answered with %d, %s and %v", resp.StatusCode, problem, resp.Header)
}

func (c *caller) status(ctx context.Context, k orderKey) operation {
	o := operation{orderKey: k, kind: "status"}
	return c.call(ctx, &o, http.MethodGet, "/"+k.action+"-requests/"+k.key, "", func(resp *http.Response, body []byte) error {
		if resp.StatusCode != http.StatusOK {
			var p tracking.Problem
			return errors.Join(json.Unmarshal(body, &p), later(resp, p.Type))
		}
		var s struct {
			RequestID  string `json:"request_id"`
			Status     string `json:"status"`
			ResourceID string `json:"resource_id"`
		}
		if err := json.Unmarshal(body, &s); err != nil {
			return err
		}
		if o.word, o.id = s.Status, s.ResourceID; s.RequestID != k.key {
			return fmt.Errorf("the status of %s", s.RequestID)
		}
		return nil
	})
}

// settle completes pending work with a resource, or fails it without one.
func (c *caller) settle(ctx context.Context, k orderKey, resource string) operation {
	text, _ := json.Marshal(settling{k.principal, k.action, k.key, resource}) // strings always marshal
	o := operation{orderKey: k, kind: "settle", resource: resource}
	return c.call(ctx, &o, http.MethodPost, "/settle", string(text), func(resp *http.Response, body []byte) error {
		switch resp.StatusCode {
		case http.StatusNoContent:
			o.word = "settled"
		case http.StatusConflict:
			o.word = "not pending"
		case http.StatusServiceUnavailable:
		default:
			return fmt.Errorf("%d: %s", resp.StatusCode, body)
		}
		return nil
	})
}

// onceBody is a body that net/http cannot send a second time: it sends a request with
// an Idempotency-Key again by itself when it can.
type onceBody struct{ io.Reader }

func (onceBody) Close() error { return nil }

// call makes one request. read fills o from a whole answer.
func (c *caller) call(ctx context.Context, o *operation, method, path, body string, read func(*http.Response, []byte) error) operation {
	r, err := http.NewRequestWithContext(ctx, method, c.origin+path, nil)
	if err != nil {
		panic(err) // the test's own paths
	}
	r.Header.Set("Authorization", "Bearer "+o.principal)
	if method == http.MethodPost {
		r.Body, r.ContentLength = onceBody{strings.NewReader(body)}, int64(len(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", o.key)
	}
	o.called, o.returned = int64(time.Since(c.begin)), never
	var fault error
	if resp, err := c.http.Do(r); err == nil {
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if err == nil {
			o.code, o.body = resp.StatusCode, b.String()
			if fault = read(resp, b.Bytes()); fault == nil && o.word != "" {
				o.returned = int64(time.Since(c.begin))
			}
		}
	}
	c.add(*o, fault)
	return *o
}
