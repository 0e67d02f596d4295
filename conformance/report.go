package conformance

import "time"

// Format names the version of the JSON form of a Report. A reader that does not know
// it should refuse the report; members may be added without a new version.
const Format = "agentic-conformance-report/1"

// Statement stands in every report.
const Statement = "These are observations of one subject, in these versions and scenarios. They certify nothing."

// Kind is what a report is about.
type Kind string

// The kinds of subjects.
const (
	Client  Kind = "client"
	Service Kind = "service"
)

// Report is what one run of a kit observed.
type Report struct {
	Format    string    `json:"format"`    // Format
	Statement string    `json:"statement"` // Statement
	Kind      Kind      `json:"kind"`
	Subject   Subject   `json:"subject"`
	Tool      Tool      `json:"tool"`
	Draft     string    `json:"draft"` // agentic.Version
	Seed      uint64    `json:"seed"`  // what random choices of the kit follow from
	Repeat    int       `json:"repeat"`
	Judged    Level     `json:"judged,omitempty"` // failures up to this level are the run's: must, should or reading; "" is all
	Started   time.Time `json:"started"`          // UTC
	Finished  time.Time `json:"finished"`
	Summary   Summary   `json:"summary"`
	Checks    []Result  `json:"checks"` // in the order of the kit
}

// Subject is what was tried, in its own words: untrusted text (D6).
type Subject struct {
	Name       string `json:"name"`
	Authorship string `json:"authorship,omitempty"` // a client's: "project" or "external-self-declared"
	Version    string `json:"version,omitempty"`
	Origin     string `json:"origin,omitempty"` // a service's
	Action     string `json:"action,omitempty"` // a service's
}

// Tool is what tried it.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"` // GOOS/GOARCH
}

// Summary counts the checks by status.
type Summary struct {
	Passed         int `json:"passed"`
	Failed         int `json:"failed"`
	Flaky          int `json:"flaky"`
	Expected       int `json:"expected_failures"`
	Unexpected     int `json:"unexpected_passes"`
	NotExercised   int `json:"not_exercised"`
	Errors         int `json:"errors"`
	ObservedChecks int `json:"observed"` // all but not exercised and errors
}

// Status is what became of a check.
type Status string

// The statuses. Only Passed, Expected and NotExercised leave a run without a failure.
const (
	Passed       Status = "passed"
	Failed       Status = "failed"
	Flaky        Status = "flaky"            // it passed and failed over the repeats: a failure
	Expected     Status = "expected-failure" // it failed, and the baseline says so with a reason
	Unexpected   Status = "unexpected-pass"  // the baseline says that it fails, and it passed: a failure
	NotExercised Status = "not-exercised"    // it could not be tried; Result.Missing says what would show it
	Broken       Status = "error"            // the kit could not try it, which says nothing of the subject
)

// OK reports whether a check of this status leaves the run without a failure.
func (s Status) OK() bool { return s == Passed || s == Expected || s == NotExercised }

// Level is how binding a check is.
type Level string

// The levels. A check of this project's reading cites the D-number in
// docs/DECISIONS.md beside the section that is silent.
const (
	Must    Level = "must"    // a MUST or a binding sentence of the draft
	Should  Level = "should"  // a SHOULD of the draft
	Reading Level = "reading" // the draft is silent: the safe reading
)

// levels are all of them, the most binding first.
var levels = []Level{Must, Should, Reading}

// Info is one check as a kit lists it.
type Info struct {
	ID       string   `json:"id"`    // stable, such as "response-lost" or "status/foreign-key": [a-z0-9-/]
	Group    string   `json:"group"` // a short heading, such as "Status answers"
	Title    string   `json:"title"` // one clause: what happens and what has to come of it
	Level    Level    `json:"level"`
	Sections []string `json:"sections"` // of the draft, "6.4", and decisions, "D12"
	Asks     string   `json:"asks"`     // one sentence: what the draft asks here
}

// Result is one check of a report.
type Result struct {
	Info
	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`  // the baseline's, for expected-failure and unexpected-pass
	Missing string `json:"missing,omitempty"` // not-exercised: why, and what would show it
	Tries   []Try  `json:"tries"`             // one for each repeat, at least one unless not exercised
}

// Try is one run of a check.
type Try struct {
	Status       Status        `json:"status"`   // passed, failed, not-exercised or error
	Duration     time.Duration `json:"duration"` // nanoseconds
	Expectations []Expectation `json:"expectations,omitempty"`
	Exchanges    []Exchange    `json:"exchanges,omitempty"` // kept of a failure only, bounded, redacted
	Notes        []string      `json:"notes,omitempty"`     // such as what a client wrote to standard error, bounded
	Hint         string        `json:"hint,omitempty"`      // of a failure: where to look
	Error        string        `json:"error,omitempty"`     // of status error
}

// Expectation is one thing that had to hold. Expected and Found are short and for
// people; Found is untrusted (D6).
type Expectation struct {
	What     string `json:"what"` // such as "POSTs", "outcome", "evidence.request_id"
	OK       bool   `json:"ok"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// Exchange is what was sent and what came back, redacted by its maker.
type Exchange struct {
	Request  string `json:"request"`  // such as "POST /tickets", with headers and body below it in lines
	Response string `json:"response"` // such as "201", likewise; "" is none
	Note     string `json:"note,omitempty"`
}
