package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
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
	Settled      client.Verb          `json:"settled"` // with which a person settled it, or ""
	Supersedes   string               `json:"supersedes"`
	CreatedAt    string               `json:"created_at"`
	AttemptedAt  *string              `json:"attempted_at"`
	SeenAt       string               `json:"seen_at"`
	WindowEnds   string               `json:"window_ends"`
	LeftSeconds  *int64               `json:"left_seconds,omitempty"` // of the window; only with a Case
	NextCheck    *string              `json:"next_check,omitempty"`   // only with a Case
	PurgedAt     *string              `json:"purged_at"`
	Profile      string               `json:"profile_digest"`
	OpenAPI      string               `json:"openapi_digest"`
	InputDigest  string               `json:"input_digest"`
	InputBytes   int                  `json:"input_bytes"`
	Input        json.RawMessage      `json:"input"`                     // null when it is redacted or purged
	Redacted     bool                 `json:"redacted"`                  // input, and what checks expected and found
	Unchecked    string               `json:"input_unchecked,omitempty"` // why it was not held against the request schema, escaped
	Case         *desk.Case           `json:"case,omitempty"`
	Notes        []client.Note        `json:"notes"`
	Observations []client.Observation `json:"observations"`
	Receipts     []agentic.Receipt    `json:"receipts"`
}

// NewRecord is everything of a request that a reader may ask for: nothing is
// redacted, and there is no Case.
func NewRecord(rec *client.Record) Record {
	sum := rec.Summary()
	return Record{
		RequestID: rec.RequestID, Principal: rec.Scope.Principal, Environment: rec.Scope.Environment,
		Origin: rec.Origin, ActionID: rec.ActionID, State: rec.State, Outcome: sum.Outcome, Settled: sum.Settled, Supersedes: rec.Supersedes,
		CreatedAt: agentic.FormatTime(rec.CreatedAt), AttemptedAt: when(rec.AttemptedAt), SeenAt: agentic.FormatTime(rec.SeenAt),
		WindowEnds: agentic.FormatTime(sum.WindowEnds), PurgedAt: when(rec.PurgedAt),
		Profile: rec.Profile.Digest, OpenAPI: rec.OpenAPI.Digest, InputDigest: rec.InputDigest, InputBytes: len(rec.Input), Input: rec.Input,
		Notes:        append([]client.Note{}, rec.Notes...),
		Observations: append([]client.Observation{}, rec.Observations...),
		Receipts:     append([]agentic.Receipt{}, rec.Receipts...),
	}
}

// when is a time that may be none.
func when(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := agentic.FormatTime(t)
	return &s
}

// Judged is the record with what a person needs to judge it, and when a worker
// looks at it next (zero is never).
func (r Record) Judged(c desk.Case, nextCheck time.Time) Record {
	left := int64(c.Left / time.Second)
	r.Case, r.LeftSeconds, r.NextCheck = &c, &left, when(nextCheck)
	return r
}

// Checks whose values hold nothing of an input or a resource: numbers, a kind of JSON
// value, and where the check is true, what had to be found. A media type is the
// service's own words, so only those that say what went wrong are shown.
var (
	plainChecks = map[string]bool{"http status": true, "size": true, "object": true}
	plainIfTrue = map[string]bool{"json": true, "request_id": true, "status": true}
	plainMedia  = map[string]bool{`""`: true, `"application/json"`: true, `"application/json; charset=utf-8"`: true, `"application/problem+json"`: true,
		`"text/html"`: true, `"text/html; charset=utf-8"`: true, `"text/plain"`: true, `"text/plain; charset=utf-8"`: true}
)

// Redact is the record without its input, and without what checks expected and
// found where that could be sensitive: names, sizes and the digest of the input stay.
func (r Record) Redact() Record {
	r.Redacted, r.Input = true, nil
	r.Observations = slices.Clone(r.Observations)
	for i := range r.Observations {
		checks := slices.Clone(r.Observations[i].Checks)
		for j := range checks {
			switch c := &checks[j]; {
			case plainChecks[c.Name], c.OK && plainIfTrue[c.Name]:
			case plainIfTrue[c.Name]: // what it had to be is known anyway
				c.Found = redacted(c.Found)
			case c.Name != "media type":
				c.Expected, c.Found = redacted(c.Expected), redacted(c.Found)
			case !plainMedia[c.Found]:
				c.Found = redacted(c.Found)
			}
		}
		r.Observations[i].Checks = checks
	}
	return r
}

// redacted hides a value. That there is none is no value: text is quoted, so no service
// can say the word.
func redacted(s string) string {
	if s == "nothing" {
		return s
	}
	return "redacted (" + Plural(len(s), "byte") + ")"
}

// Text is the record for people.
func (r Record) Text() []byte {
	var b bytes.Buffer
	Field(&b, "request", r.RequestID)
	field(&b, "action", escape.Terminal(r.ActionID)+" of "+escape.Terminal(r.Origin))
	field(&b, "principal", escape.Terminal(r.Principal)+" in environment "+escape.Terminal(r.Environment))
	Field(&b, "outcome", r.outcome())
	if r.Settled != "" {
		Field(&b, "settled", r.settled())
	}
	if r.Supersedes != "" {
		Field(&b, "supersedes", r.Supersedes)
	}
	Field(&b, "created", r.CreatedAt)
	if r.AttemptedAt != nil {
		Field(&b, "attempted", *r.AttemptedAt)
	}
	Field(&b, "last seen", r.SeenAt)
	if r.PurgedAt != nil {
		Field(&b, "purged", *r.PurgedAt)
		return b.Bytes()
	}
	r.times(&b)
	Field(&b, "profile", "sha256 "+r.Profile)
	Field(&b, "openapi", "sha256 "+r.OpenAPI)
	if r.Redacted {
		Field(&b, "input", fmt.Sprintf("redacted: %s, sha256 %s", Plural(r.InputBytes, "byte"), r.InputDigest))
	} else {
		Block(&b, "input", r.Input)
	}
	fmt.Fprintf(&b, "\n%s\n", Plural(len(r.Observations), "exchange"))
	for i, o := range r.Observations {
		observation(&b, i+1, o)
	}
	fmt.Fprintf(&b, "\n%s\n", Plural(len(r.Receipts), "receipt"))
	for _, receipt := range r.Receipts {
		b.Write(Receipt(receipt))
		b.WriteByte('\n')
	}
	if len(r.Notes) > 0 {
		fmt.Fprintf(&b, "\n%s\n", Plural(len(r.Notes), "note"))
		for i, n := range r.Notes {
			note(&b, i+1, n)
		}
	}
	if r.Case != nil {
		judgement(&b, *r.Case)
	}
	return b.Bytes()
}

func (r Record) outcome() string {
	switch {
	case r.Outcome != "":
		return string(r.Outcome)
	case r.State == client.Prepared:
		return "none: prepared and never sent"
	case r.Settled != "" || r.PurgedAt != nil:
		return "none: attempted, and no receipt"
	}
	return "none: attempted, and no receipt yet; resume it"
}

// settled is how, by whom and as what a person settled it.
func (r Record) settled() string {
	for _, n := range slices.Backward(r.Notes) {
		switch {
		case n.Verb != r.Settled:
			continue
		case n.NewID != "":
			return string(n.Verb) + " by " + n.By + ", as request " + n.NewID
		case n.ResourceID != "":
			return string(n.Verb) + " by " + n.By + ", as resource " + n.ResourceID
		}
		return string(n.Verb) + " by " + n.By
	}
	return "by a person: " + string(r.Settled)
}

// times shows the tracking window, once somebody has looked at a clock.
func (r Record) times(b *bytes.Buffer) {
	switch {
	case r.LeftSeconds == nil:
		Field(b, "window", "ends "+r.WindowEnds)
	case *r.LeftSeconds == 0:
		Field(b, "window", "ended "+r.WindowEnds)
	default:
		Field(b, "window", "ends "+r.WindowEnds+", "+Age(time.Duration(*r.LeftSeconds)*time.Second)+" left")
	}
	if r.NextCheck != nil {
		Field(b, "next check", *r.NextCheck+", by a worker if there is one")
	}
}

// note shows what a person did.
func note(b *bytes.Buffer, n int, v client.Note) {
	fmt.Fprintf(b, "%3d. %s %s by %s: %s\n", n, escape.Terminal(string(v.Verb)), agentic.FormatTime(v.At), escape.Terminal(v.By), escape.Terminal(v.Reason))
	if v.ResourceID != "" {
		fmt.Fprintf(b, "       resource %s\n", escape.Terminal(v.ResourceID))
	}
	if v.NewID != "" {
		fmt.Fprintf(b, "       new request %s\n", escape.Terminal(v.NewID))
	}
}

// judgement shows why a request is where it is, and what can be done.
func judgement(b *bytes.Buffer, c desk.Case) {
	b.WriteString("\nwhere it stands\n")
	Field(b, "why", c.Why)
	if c.Post != "" {
		Field(b, "the POST", c.Post)
	}
	for i, name := range c.Wrong {
		Field(b, first(i, "wrong"), name)
	}
	for i, text := range c.Look {
		Field(b, first(i, "look for"), text)
	}
	if c.NeedsPerson {
		Field(b, "needs", "a person")
	}
	if len(c.Choices) > 0 {
		b.WriteString("\nwhat can be done\n")
	}
	for _, choice := range c.Choices {
		fmt.Fprintf(b, "  %-17s %s\n", escape.Terminal(choice.Name), escape.Terminal(choice.Does))
		fmt.Fprintf(b, "  %-17s Risk: %s\n", "", escape.Terminal(choice.Risk))
	}
}

// first is the name of the first of several fields.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// observation shows one exchange. What was expected and found is quoted already.
func observation(b *bytes.Buffer, n int, o client.Observation) {
	fmt.Fprintf(b, "%3d. %-6s %s  %s", n, escape.Terminal(string(o.Kind)), agentic.FormatTime(o.At), escape.Terminal(exchange(o)))
	if o.Class != "" {
		fmt.Fprintf(b, ", %s", escape.Terminal(string(o.Reach)))
	}
	// An answer that does not count says nothing.
	if o.Outcome != "" && !slices.ContainsFunc(o.Checks, func(c agentic.Check) bool { return !c.OK }) {
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

// Noted is a note that was just made to a request, in one line.
func Noted(rawID string, n client.Note) []byte {
	return fmt.Appendf(nil, "request %s: %s at %s by %s: %s\n", escape.Terminal(rawID), escape.Terminal(string(n.Verb)), agentic.FormatTime(n.At),
		escape.Terminal(n.By), escape.Terminal(n.Reason))
}

// Until says until when a prepared request can be sent.
func Until(rec *client.Record, now time.Time) string {
	if rec.Expired(now) {
		return "It is not sent any more: its tracking window ended at " + agentic.FormatTime(rec.CreatedAt.Add(rec.Window)) + ". Prepare a new one, or supersede it."
	}
	return "It can be sent until its tracking window ends, at " + agentic.FormatTime(rec.CreatedAt.Add(rec.Window)) + "."
}

// Refused says in a sentence that a person cannot do something, and why. It is raw.
func Refused(e *client.NoteError) string {
	done := map[client.Verb]string{
		client.Recheck: "rechecked", client.AttestSucceeded: "attested as succeeded", client.AttestFailed: "attested as failed",
		client.Abandon: "abandoned", client.Supersede: "superseded",
	}[e.Verb]
	if done == "" {
		return OneLine(e.Error())
	}
	return "request " + e.RequestID + " cannot be " + done + ": " + OneLine(e.Reason)
}

// RecordLine and DocumentLine are the two kinds of lines of an export.
type (
	RecordLine struct {
		Kind string `json:"kind"` // "request"
		Record
	}
	DocumentLine struct {
		Kind     string          `json:"kind"` // "document"
		Digest   string          `json:"digest"`
		Document json.RawMessage `json:"document"`
	}
)

// NewRecordLine is a whole request, with nothing redacted.
func NewRecordLine(rec *client.Record) RecordLine { return RecordLine{"request", NewRecord(rec)} }

// NewDocumentLine is one of the publisher's documents.
func NewDocumentLine(s client.Snapshot) DocumentLine {
	return DocumentLine{"document", s.Digest, s.Body}
}
