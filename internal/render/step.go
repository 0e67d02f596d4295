package render

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

// Step is one thing that happened, for people. Text can hold what a service or a
// publisher said; Line escapes it.
type Step struct {
	Who  string `json:"who,omitempty"` // the process it happened in, where there are several
	Name string `json:"step"`
	Text string `json:"text"`
}

// Line is the step in one line.
func (s Step) Line() string {
	line := fmt.Sprintf("%-10s %s", escape.Terminal(s.Name), escape.Terminal(s.Text))
	if s.Who == "" {
		return line
	}
	return fmt.Sprintf("%-9s %s", escape.Terminal(s.Who), line)
}

// Event says what an event of the client means.
func Event(e client.Event) Step {
	switch e := e.(type) {
	case client.Saved:
		if e.State == client.Prepared {
			return Step{Name: "saved", Text: fmt.Sprintf("request %s is in the ledger, prepared and not sent", e.RequestID)}
		}
		if e.MaySubmit {
			return Step{Name: "saved", Text: fmt.Sprintf("request %s is in the ledger, marked as attempted", e.RequestID)}
		}
		return Step{Name: "saved", Text: fmt.Sprintf("request %s was attempted before; it is not sent again", e.RequestID)}
	case client.Submitting:
		return Step{Name: "sending", Text: "POST to " + e.Origin + ", for the only time"}
	case client.Submitted:
		return Step{Name: "answered", Text: exchange(e.Observation) + "; this proves nothing yet"}
	case client.Interrupted:
		text := "whether the POST arrived is unknown"
		if e.Observation.Reach == client.NotSent {
			text = "the POST did not leave this machine"
		}
		return Step{Name: NoAnswer, Text: text + ": " + exchange(e.Observation)}
	case client.Checking:
		return Step{Name: "checking", Text: fmt.Sprintf("status, %d of at most %d", e.N, e.M)}
	case client.Checked:
		return Step{Name: "status", Text: exchange(e.Observation) + "; " + e.Reason}
	case client.Verifying:
		return Step{Name: "verifying", Text: "resource " + e.ResourceID}
	case client.Verified:
		return Step{Name: "evidence", Text: exchange(e.Observation) + "; " + e.Reason}
	case client.Resulted:
		text := string(e.Receipt.Outcome) + ": " + e.Receipt.Reason
		if e.FromSaved {
			text += " (from the saved receipt of " + e.Receipt.ObservedAt + ")"
		}
		return Step{Name: "result", Text: text}
	}
	return Step{Name: "event", Text: fmt.Sprintf("%T", e)}
}

// NoAnswer is the name of the step in which no answer to the POST came back.
const NoAnswer = "no answer"

// exchange is what one exchange came to, in one clause that is not escaped.
func exchange(o client.Observation) string {
	took := " in " + o.Duration.Round(10*time.Microsecond).String()
	if o.Class == "" {
		return fmt.Sprintf("HTTP %d%s", o.Status, took)
	}
	text := string(o.Class)
	if o.Status != 0 {
		text = fmt.Sprintf("HTTP %d, %s", o.Status, o.Class)
	}
	if o.Detail != "" {
		text += " (" + o.Detail + ")"
	}
	return text + took
}
