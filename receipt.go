package agentic

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// Receipt is the record of one observation of a request (section 7). It is not a
// signature and no proof that the service is honest.
type Receipt struct {
	Agentic    string           `json:"agentic"`
	RequestID  string           `json:"request_id"`
	ActionID   string           `json:"action_id"`
	Origin     string           `json:"origin"`
	Outcome    Outcome          `json:"outcome"`
	ObservedAt string           `json:"observed_at"` // RFC 3339 in UTC, ends in Z
	ResourceID *string          `json:"resource_id"`
	Reason     string           `json:"reason"`
	Evidence   *ReceiptEvidence `json:"evidence,omitempty"`
}

// ReceiptEvidence is what a succeeded receipt rests on (section 7).
type ReceiptEvidence struct {
	URL        string `json:"url"`
	ResourceID string `json:"resource_id"`
	RequestID  string `json:"request_id"`
	State      string `json:"state"`
	Matched    []Pair `json:"matched"`
}

// FormatTime is the form of observed_at: RFC 3339 in UTC with microseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// ParseReceipt checks a receipt document against the receipt schema
// (schemas/receipt-0.1.schema.json), and only that: whether the receipt is true
// is for its reader to judge. It reports every problem; the receipt is nil on an
// error.
func ParseReceipt(data []byte) (*Receipt, Diagnostics) {
	root, found := parseDocument("receipt", data)
	if found != nil {
		return nil, found
	}
	c := checker{document: "receipt", source: data}
	r := c.receipt(root)
	if c.found.HasErrors() {
		return nil, c.found
	}
	return r, c.found
}

// receipt checks the receipt table of limits.md, in its order.
func (c *checker) receipt(root node) *Receipt {
	if !c.object(root, []string{"agentic", "request_id", "action_id", "origin", "outcome", "observed_at", "resource_id", "reason"},
		[]string{"evidence"}) {
		return nil
	}
	r := &Receipt{}
	r.Agentic, _ = c.oneOf(root.member("agentic"), Version)
	r.RequestID, _ = c.text(root.member("request_id"), 1, 0)
	r.ActionID, _ = c.name(root.member("action_id"))
	r.Origin, _ = c.text(root.member("origin"), 1, 0)
	outcome, _ := c.oneOf(root.member("outcome"), string(Succeeded), string(Failed), string(Pending), string(Unknown))
	r.Outcome = Outcome(outcome)
	r.ObservedAt, _ = c.match(root.member("observed_at"), 0, 0, isObservedAt, "a time in UTC such as 2026-09-07T10:00:00Z")
	r.Reason, _ = c.text(root.member("reason"), 1, 0)

	id, least := root.member("resource_id"), 0
	if r.Outcome == Succeeded {
		least = 1
	}
	if r.Outcome == Succeeded || id.value.Kind() != strictjson.Null {
		if s, ok := c.text(id, least, 0); ok {
			r.ResourceID = &s
		}
	}
	evidence := root.member("evidence")
	if evidence.missing() && r.Outcome == Succeeded {
		c.fail(root, "missing-member", `A receipt of a succeeded request lacks the member "evidence".`,
			"Do not call a request succeeded without evidence.")
	}
	r.Evidence = c.evidence(evidence)
	return r
}

func (c *checker) evidence(n node) *ReceiptEvidence {
	if n.missing() || !c.object(n, []string{"url", "resource_id", "request_id", "state", "matched"}, nil) {
		return nil
	}
	e := &ReceiptEvidence{}
	e.URL, _ = c.text(n.member("url"), 1, 0)
	e.ResourceID, _ = c.text(n.member("resource_id"), 1, 0)
	e.RequestID, _ = c.text(n.member("request_id"), 1, 0)
	e.State, _ = c.text(n.member("state"), 1, 0)
	elems, _ := c.array(n.member("matched"), 1, 0)
	for _, elem := range elems {
		if pair, ok := c.pair(elem); ok {
			e.Matched = append(e.Matched, pair)
		}
	}
	return e
}

// pair checks one {inputPointer, resourcePointer}.
func (c *checker) pair(n node) (p Pair, ok bool) {
	if !c.object(n, []string{"inputPointer", "resourcePointer"}, nil) {
		return p, false
	}
	var in, out bool
	p.InputPointer, in = c.pointer(n.member("inputPointer"))
	p.ResourcePointer, out = c.pointer(n.member("resourcePointer"))
	return p, in && out
}

// isObservedAt is the pattern ^\d{4}-\d{2}-\d{2}T.*Z$ with the meaning of
// ECMA-262: ASCII digits, and no line terminator under the dot.
func isObservedAt(s string) bool {
	const form = "0000-00-00T"
	if len(s) <= len(form) || s[len(s)-1] != 'Z' {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' && (s[i] < '0' || s[i] > '9') || form[i] != '0' && s[i] != form[i] {
			return false
		}
	}
	return !strings.ContainsAny(s[len(form):], "\n\r\u2028\u2029")
}

// Validate checks a receipt built in memory by the same rules as ParseReceipt,
// and that its text is UTF-8, which Encode could not keep otherwise. The
// diagnostics have no line and column.
func (r Receipt) Validate() Diagnostics {
	if r.valid() {
		return nil
	}
	c := checker{document: "receipt"}
	for _, f := range r.texts() {
		if !utf8.ValidString(f.text) {
			c.fail(node{pointer: f.pointer}, "not-utf8", f.pointer+" is not UTF-8.", "Write it as UTF-8.")
		}
	}
	root, found := parseDocument(c.document, r.Encode())
	if found != nil {
		return append(c.found, found...)
	}
	c.receipt(root)
	return c.found
}

// valid is the receipt table of limits.md over the fields, without the document
// that Encode makes. Whatever it says no to goes through ParseReceipt's own rules,
// which find the words for it; tests hold that the two agree.
func (r *Receipt) valid() bool {
	if r.Agentic != Version || !isName(r.ActionID) || len(r.ActionID) > maxName || !r.Outcome.Valid() ||
		!isObservedAt(r.ObservedAt) || !isFilled(r.RequestID, r.Origin, r.ObservedAt, r.Reason) ||
		r.ResourceID != nil && !utf8.ValidString(*r.ResourceID) {
		return false
	}
	e := r.Evidence
	if r.Outcome == Succeeded && (e == nil || r.ResourceID == nil || *r.ResourceID == "") {
		return false
	}
	if e == nil {
		return true
	}
	for _, p := range e.Matched {
		for _, s := range [...]string{p.InputPointer, p.ResourcePointer} {
			if !isPointer(s) || !isFilled(s) || utf8.RuneCountInString(s) > maxPointer {
				return false
			}
		}
	}
	return len(e.Matched) > 0 && isFilled(e.URL, e.ResourceID, e.RequestID, e.State)
}

// isFilled reports whether every text is UTF-8 and not empty.
func isFilled(texts ...string) bool {
	for _, s := range texts {
		if s == "" || !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

type placedText struct{ pointer, text string }

// texts are the strings of a receipt that have no closed form.
func (r Receipt) texts() []placedText {
	texts := []placedText{
		{"/agentic", r.Agentic}, {"/request_id", r.RequestID}, {"/action_id", r.ActionID}, {"/origin", r.Origin},
		{"/outcome", string(r.Outcome)}, {"/observed_at", r.ObservedAt}, {"/reason", r.Reason},
	}
	if r.ResourceID != nil {
		texts = append(texts, placedText{"/resource_id", *r.ResourceID})
	}
	if e := r.Evidence; e != nil {
		texts = append(texts, placedText{"/evidence/url", e.URL}, placedText{"/evidence/resource_id", e.ResourceID},
			placedText{"/evidence/request_id", e.RequestID}, placedText{"/evidence/state", e.State})
		for _, p := range e.Matched {
			texts = append(texts, placedText{"/evidence/matched", p.InputPointer}, placedText{"/evidence/matched", p.ResourcePointer})
		}
	}
	return texts
}

// Clone is a copy that shares nothing with the receipt.
func (r Receipt) Clone() Receipt {
	if r.ResourceID != nil {
		id := *r.ResourceID
		r.ResourceID = &id
	}
	if r.Evidence != nil {
		e := *r.Evidence
		e.Matched = slices.Clone(e.Matched)
		r.Evidence = &e
	}
	return r
}

// Encode is the receipt as one line of JSON, without HTML escapes, in the order
// of the draft. What Validate accepts, ParseReceipt gives back equal.
func (r Receipt) Encode() []byte {
	b := make([]byte, 0, 1024) // most receipts fit
	b = append(b, `{"agentic":`...)
	b = append(b, strictjson.Quote(r.Agentic)...)
	b = appendMember(b, "request_id", r.RequestID)
	b = appendMember(b, "action_id", r.ActionID)
	b = appendMember(b, "origin", r.Origin)
	b = appendMember(b, "outcome", string(r.Outcome))
	b = appendMember(b, "observed_at", r.ObservedAt)
	if r.ResourceID == nil {
		b = append(b, `,"resource_id":null`...)
	} else {
		b = appendMember(b, "resource_id", *r.ResourceID)
	}
	b = appendMember(b, "reason", r.Reason)
	if e := r.Evidence; e != nil {
		b = append(b, `,"evidence":{"url":`...)
		b = append(b, strictjson.Quote(e.URL)...)
		b = appendMember(b, "resource_id", e.ResourceID)
		b = appendMember(b, "request_id", e.RequestID)
		b = appendMember(b, "state", e.State)
		b = append(b, `,"matched":[`...)
		for i, p := range e.Matched {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"inputPointer":`...)
			b = append(b, strictjson.Quote(p.InputPointer)...)
			b = appendMember(b, "resourcePointer", p.ResourcePointer)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, '}')
}

// MarshalJSON is Encode, so that a receipt has one form wherever encoding/json
// meets it; a json.Encoder may still escape HTML in it. To read one, use
// ParseReceipt.
func (r Receipt) MarshalJSON() ([]byte, error) { return r.Encode(), nil }

func appendMember(b []byte, name, text string) []byte {
	b = append(b, ',')
	b = append(b, strictjson.Quote(name)...)
	b = append(b, ':')
	return append(b, strictjson.Quote(text)...)
}
