package agentic

import "time"

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

// ParseReceipt checks a receipt document against the receipt schema. The receipt
// is nil on an error.
func ParseReceipt(data []byte) (*Receipt, Diagnostics) { panic("unwritten") }

// Validate checks a receipt built in memory by the same rules as ParseReceipt.
func (r Receipt) Validate() Diagnostics { panic("unwritten") }

// Encode is the receipt as one line of JSON, without HTML escapes, in the order
// of the draft.
func (r Receipt) Encode() []byte { panic("unwritten") }
