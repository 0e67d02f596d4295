package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

// Record is a client.Record for readers; the snapshots are named by their digests.
type Record struct {
	RequestID    string               `json:"request_id"`
	Principal    string               `json:"principal"`
	Environment  string               `json:"environment"`
	Origin       string               `json:"origin"`
	ActionID     string               `json:"action_id"`
	State        client.State         `json:"state"`
	Outcome      agentic.Outcome      `json:"outcome"` // "" without a receipt
	CreatedAt    string               `json:"created_at"`
	AttemptedAt  *string              `json:"attempted_at"`
	SeenAt       string               `json:"seen_at"`
	Profile      string               `json:"profile_digest"`
	OpenAPI      string               `json:"openapi_digest"`
	InputDigest  string               `json:"input_digest"`
	Input        json.RawMessage      `json:"input"`
	Unchecked    string               `json:"input_unchecked,omitempty"` // why it was not held against the request schema, escaped
	Observations []client.Observation `json:"observations"`
	Receipts     []agentic.Receipt    `json:"receipts"`
}

// NewRecord is everything of a request that a reader may ask for.
func NewRecord(rec *client.Record) Record {
	r := Record{
		RequestID: rec.RequestID, Principal: rec.Scope.Principal, Environment: rec.Scope.Environment,
		Origin: rec.Origin, ActionID: rec.ActionID, State: rec.State,
		CreatedAt: agentic.FormatTime(rec.CreatedAt), SeenAt: agentic.FormatTime(rec.SeenAt),
		Profile: rec.Profile.Digest, OpenAPI: rec.OpenAPI.Digest, InputDigest: rec.InputDigest, Input: rec.Input,
		Observations: append([]client.Observation{}, rec.Observations...),
		Receipts:     append([]agentic.Receipt{}, rec.Receipts...),
	}
	if !rec.AttemptedAt.IsZero() {
		at := agentic.FormatTime(rec.AttemptedAt)
		r.AttemptedAt = &at
	}
	if last := rec.Last(); last != nil {
		r.Outcome = last.Outcome
	}
	return r
}

// Text is the record for people.
func (r Record) Text() []byte {
	var b bytes.Buffer
	Field(&b, "request", r.RequestID)
	field(&b, "action", escape.Terminal(r.ActionID)+" of "+escape.Terminal(r.Origin))
	field(&b, "principal", escape.Terminal(r.Principal)+" in environment "+escape.Terminal(r.Environment))
	switch {
	case r.Outcome != "":
		Field(&b, "outcome", string(r.Outcome))
	case r.State == client.Prepared:
		Field(&b, "outcome", "none: prepared and never sent")
	default:
		Field(&b, "outcome", "none: attempted, and no receipt yet; resume it")
	}
	Field(&b, "created", r.CreatedAt)
	if r.AttemptedAt != nil {
		Field(&b, "attempted", *r.AttemptedAt)
	}
	Field(&b, "last seen", r.SeenAt)
	Field(&b, "profile", "sha256 "+r.Profile)
	Field(&b, "openapi", "sha256 "+r.OpenAPI)
	Block(&b, "input", r.Input)
	fmt.Fprintf(&b, "\n%s\n", Plural(len(r.Observations), "exchange"))
	for i, o := range r.Observations {
		observation(&b, i+1, o)
	}
	fmt.Fprintf(&b, "\n%s\n", Plural(len(r.Receipts), "receipt"))
	for _, receipt := range r.Receipts {
		b.Write(Receipt(receipt))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// observation shows one exchange. What was expected and found is quoted already.
func observation(b *bytes.Buffer, n int, o client.Observation) {
	fmt.Fprintf(b, "%3d. %-6s %s  %s", n, escape.Terminal(string(o.Kind)), agentic.FormatTime(o.At), escape.Terminal(exchange(o)))
	if o.Class != "" {
		fmt.Fprintf(b, ", %s", escape.Terminal(string(o.Reach)))
	}
	if o.Outcome != "" {
		fmt.Fprintf(b, ", says %s", escape.Terminal(string(o.Outcome)))
	}
	b.WriteByte('\n')
	for _, c := range o.Checks {
		if c.OK {
			fmt.Fprintf(b, "       ok     %s: %s\n", escape.Terminal(c.Name), escape.Quoted(c.Found))
			continue
		}
		fmt.Fprintf(b, "       wrong  %s: expected %s, found %s\n", escape.Terminal(c.Name), escape.Quoted(c.Expected), escape.Quoted(c.Found))
	}
}

// Line is one request of a listing.
type Line struct {
	RequestID string          `json:"request_id"`
	ActionID  string          `json:"action_id"`
	Origin    string          `json:"origin"`
	State     client.State    `json:"state"`
	Outcome   agentic.Outcome `json:"outcome"` // "" without a receipt
	CreatedAt string          `json:"created_at"`
	SeenAt    string          `json:"seen_at"`
}

// Lines are the requests of a listing.
func Lines(list []client.Summary) []Line {
	lines := make([]Line, len(list))
	for i, s := range list {
		lines[i] = Line{s.RequestID, s.ActionID, s.Origin, s.State, s.Outcome, agentic.FormatTime(s.CreatedAt), agentic.FormatTime(s.SeenAt)}
	}
	return lines
}

// Listing is a listing for people, with a head.
func Listing(list []client.Summary) []byte {
	rows := [][]string{{"REQUEST", "OUTCOME", "STATE", "CREATED", "ACTION", "ORIGIN"}}
	for _, s := range list {
		outcome := string(s.Outcome)
		if outcome == "" {
			outcome = "-"
		}
		rows = append(rows, []string{escape.Terminal(s.RequestID), escape.Terminal(outcome), escape.Terminal(string(s.State)),
			s.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"), escape.Terminal(s.ActionID), escape.Terminal(s.Origin)})
	}
	return Table(rows)
}
