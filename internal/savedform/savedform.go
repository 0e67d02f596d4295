// Package savedform is the form in which the ledgers of this module save what a
// column cannot hold as it is, and what they check when they read it back: a row
// that was damaged must be told as that, and never believed.
//
// Its job is mapping values to bytes and back. It knows no database. It imports
// agentic and client.
package savedform

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Sum is what is saved beside an input or a document to recognize damage: its
// SHA-256, 32 bytes.
func Sum(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

// Encode gives a list of our own values as a JSON array, "[]" when it is empty.
func Encode[T client.Observation | client.Note](list []T) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	var b strings.Builder
	err := json.NewEncoder(&b).Encode(list)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Decode reads what Encode wrote: our own data, strict all the same.
func Decode[T client.Observation | client.Note](s string) ([]T, error) {
	if s == "[]" {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	var list []T
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the array")
	}
	return list, nil
}

// SameRequest checks that a receipt is about the request it is appended to.
func SameRequest(r *agentic.Receipt, b *client.Binding) error {
	if r.RequestID != b.RequestID || r.ActionID != b.ActionID || r.Origin != b.Origin {
		return fmt.Errorf("a receipt of another request: %.140s", r.RequestID)
	}
	return nil
}

// AppendEntry adds to a record what one write of a hold appended: encoded
// observations, and a receipt or "".
func AppendEntry(r *client.Record, observations, receipt string) error {
	obs, err := Decode[client.Observation](observations)
	if err != nil {
		return fmt.Errorf("observations: %w", err)
	}
	r.Observations = append(r.Observations, obs...)
	if receipt == "" {
		return nil
	}
	parsed, problems := agentic.ParseReceipt([]byte(receipt))
	if err := problems.Err(); err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	if err := SameRequest(parsed, &r.Binding); err != nil {
		return err
	}
	r.Receipts = append(r.Receipts, *parsed)
	return nil
}

// CheckRequest checks what can be checked of a request without its entries. sums
// are those of the profile, the OpenAPI document and the input; a tombstone has
// neither them nor what they are of.
func CheckRequest(r *client.Record, sums [3][]byte) error {
	if r.State != client.Prepared && r.State != client.Attempted {
		return fmt.Errorf("state %.140s", r.State)
	}
	if (r.State == client.Attempted) == r.AttemptedAt.IsZero() {
		return fmt.Errorf("a request that is %s, with the wrong time of its attempt", r.State)
	}
	for _, t := range []time.Time{r.CreatedAt, r.SeenAt, r.AttemptedAt} {
		if t.Year() < 1 || t.Year() > 9999 || t.After(r.SeenAt) {
			return fmt.Errorf("a time that cannot be: %s", t)
		}
	}
	if r.Window < 0 || r.Term < 0 {
		return fmt.Errorf("a window of %s with a term of %s", r.Window, r.Term)
	}
	for i, body := range [][]byte{r.Profile.Body, r.OpenAPI.Body, r.Input} {
		what := [...]string{"profile", "OpenAPI document", "input"}[i]
		switch {
		case !r.PurgedAt.IsZero() && body != nil:
			return fmt.Errorf("a purged request that has its %s", what)
		case r.PurgedAt.IsZero() && !bytes.Equal(Sum(body), sums[i]):
			return fmt.Errorf("the %s is not what was saved", what)
		}
	}
	return nil
}

// CheckOutcome checks the outcome that stands beside a request, "" for none,
// against its receipts. A tombstone keeps the outcome alone.
func CheckOutcome(r *client.Record, outcome string) error {
	var last string
	if l := r.Last(); l != nil {
		last = string(l.Outcome)
	}
	switch {
	case !r.PurgedAt.IsZero() && len(r.Receipts) == 0 && (outcome == "" || agentic.Outcome(outcome).Valid()):
		return nil
	case !r.PurgedAt.IsZero():
		return fmt.Errorf("a purged request with %d receipts and the outcome %.140s", len(r.Receipts), outcome)
	case last != outcome:
		return errors.New("the outcome is not the last receipt's")
	}
	return nil
}
