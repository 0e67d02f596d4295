package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic/client"
)

// TestSleep: the pauses between checks are Config.Sleep's, with the profile's delay, and
// its error ends the execution as an ended context does (D17).
func TestSleep(t *testing.T) {
	h, s := newHost(t), good()
	s.status = []client.Exchange{status("pending", "")}
	var slept []time.Duration
	h.execute(s, func(c *client.Config) {
		c.Sleep = func(_ context.Context, d time.Duration) error {
			slept = append(slept, d)
			return nil
		}
	})
	if d := cmp.Diff([]time.Duration{100 * time.Millisecond, 100 * time.Millisecond}, slept); d != "" {
		t.Errorf("pauses of three checks (-want +got):\n%s", d)
	}

	h = newHost(t)
	c := h.client(s, func(c *client.Config) {
		c.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	})
	_, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
	var interrupted *client.InterruptedError
	if !errors.As(err, &interrupted) || !interrupted.Saved {
		t.Errorf("an execution whose pause was ended: %v", err)
	}
	if rec := h.record(); len(rec.Receipts) != 0 || len(rec.Observations) != 2 {
		t.Errorf("record has %d receipts and %d observations, want none and two", len(rec.Receipts), len(rec.Observations))
	}
}
