package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// exchangeTimeout is that of the plan which the other side runs.
const exchangeTimeout = 10 * time.Second

// maxAnswer bounds an answer as the draft does (section 6.8).
const maxAnswer = 64 << 10

// caller makes the three calls by hand, over kept-alive connections, with the
// settings that package transport gives its reads. It is the network part of the
// sides that are not this project's client.
type caller struct {
	origin string
	http   *http.Client
}

func newCaller(origin string) *caller {
	return &caller{origin: origin, http: &http.Client{
		Transport: &http.Transport{
			DisableCompression:     true,
			ReadBufferSize:         2 << 10,
			WriteBufferSize:        2 << 10,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// evidence is what a verified action has to show, as the receipt of the draft has it.
type evidence struct {
	URL        string `json:"url"`
	ResourceID string `json:"resource_id"`
	RequestID  string `json:"request_id"`
	State      string `json:"state"`
}

func (c *caller) submit(ctx context.Context, id, subject string) (int, error) {
	body, err := json.Marshal(map[string]string{"subject": subject})
	if err != nil {
		return 0, err
	}
	status, _, err := c.do(ctx, http.MethodPost, c.origin+"/tickets", id, body)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("POST: HTTP status %d", status)
	}
	return status, err
}

// status gives the resource ID of a request that succeeded.
func (c *caller) status(ctx context.Context, id string) (string, error) {
	var s struct {
		RequestID  string `json:"request_id"`
		Status     string `json:"status"`
		ResourceID string `json:"resource_id"`
	}
	if err := c.read(ctx, c.origin+"/requests/"+id, &s); err != nil {
		return "", err
	}
	if s.RequestID != id || s.Status != "succeeded" || s.ResourceID == "" {
		return "", fmt.Errorf("request %s: the status is %+v", id, s)
	}
	return s.ResourceID, nil
}

// verify checks the resource as the plan's evidence does.
func (c *caller) verify(ctx context.Context, id, resource, subject string) (evidence, error) {
	var t struct {
		ID        string `json:"id"`
		RequestID string `json:"request_id"`
		Subject   string `json:"subject"`
		Status    string `json:"status"`
	}
	address := c.origin + "/tickets/" + resource
	if err := c.read(ctx, address, &t); err != nil {
		return evidence{}, err
	}
	if t.ID != resource || t.RequestID != id || t.Subject != subject || t.Status != "open" && t.Status != "closed" {
		return evidence{}, fmt.Errorf("request %s: the resource is %+v", id, t)
	}
	return evidence{URL: address, ResourceID: t.ID, RequestID: t.RequestID, State: t.Status}, nil
}

func (c *caller) read(ctx context.Context, address string, into any) error {
	status, body, err := c.do(ctx, http.MethodGet, address, "", nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("GET: HTTP status %d", status)
	}
	return json.Unmarshal(body, into)
}

func (c *caller) do(ctx context.Context, method, address, key string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Accept", "application/json")
	if key != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}
