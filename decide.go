package agentic

// Answer is what came back over HTTP from one exchange, already within the
// limits of D15. The zero Answer is no answer at all.
type Answer struct {
	Status      int    // HTTP status code, 0 without an answer
	ContentType string // the header as it was sent
	Body        []byte
}

// Check is one thing that an answer had to be, with what was found. Expected and
// Found are for people: short, bounded, untrusted (D6).
type Check struct {
	Name     string `json:"name"` // such as "status", "request_id", "input /subject"
	OK       bool   `json:"ok"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// StatusDecision is what a status answer says of a request (section 4, D12).
type StatusDecision struct {
	Usable     bool    // every check passed: the answer establishes Outcome
	Outcome    Outcome // Unknown unless Usable
	ResourceID string  // set only with Succeeded
	Checks     []Check
	Reason     string // one sentence, for a receipt
}

// DecideStatus reads the answer of the status operation. Only HTTP 200 with
// application/json, strict JSON, the exact request_id, a known status and the
// resource_id that fits it counts; everything else is Unknown (D12).
func DecideStatus(requestID string, a Answer) StatusDecision { panic("unwritten") }

// ResourceDecision is what a resource answer proves of a request (section 6.6,
// D13).
type ResourceDecision struct {
	Verified bool // every check passed
	Checks   []Check
	Evidence *ReceiptEvidence // set only when Verified
	Reason   string           // one sentence, for a receipt
}

// DecideResource checks the evidence in the answer of the verify operation: HTTP
// 200, a JSON media type, strict JSON, then resource ID, request ID, success
// state and every input pair. A missing value never matches.
func (p *Plan) DecideResource(requestID, resourceID string, in Input, a Answer) ResourceDecision {
	panic("unwritten")
}
