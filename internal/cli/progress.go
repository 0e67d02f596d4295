package cli

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

// step is one thing that happened, for people. Text can hold what a service or a
// publisher said and has to be escaped before it is shown.
type step struct {
	Who  string `json:"who,omitempty"` // the process it happened in; only in demo
	Step string `json:"step"`
	Text string `json:"text"`
}

// showStep writes progress to stderr.
func (a *app) showStep(s step) { a.say("%s", stepLine(s)) }

func stepLine(s step) string {
	return fmt.Sprintf("%-10s %s", escape.Terminal(s.Step), escape.Terminal(s.Text))
}

// describe says what an event of the client means.
func describe(e client.Event) step {
	switch e := e.(type) {
	case client.Saved:
		if e.State == client.Prepared {
			return step{Step: "saved", Text: fmt.Sprintf("request %s is in the ledger, prepared and not sent", e.RequestID)}
		}
		if e.MaySubmit {
			return step{Step: "saved", Text: fmt.Sprintf("request %s is in the ledger, marked as attempted", e.RequestID)}
		}
		return step{Step: "saved", Text: fmt.Sprintf("request %s was attempted before; it is not sent again", e.RequestID)}
	case client.Submitting:
		return step{Step: "sending", Text: "POST to " + e.Origin + ", for the only time"}
	case client.Submitted:
		return step{Step: "answered", Text: exchangeText(e.Observation) + "; this proves nothing yet"}
	case client.Interrupted:
		text := "whether the POST arrived is unknown"
		if e.Observation.Reach == client.NotSent {
			text = "the POST did not leave this machine"
		}
		return step{Step: "no answer", Text: text + ": " + exchangeText(e.Observation)}
	case client.Checking:
		return step{Step: "checking", Text: fmt.Sprintf("status, %d of at most %d", e.N, e.M)}
	case client.Checked:
		return step{Step: "status", Text: exchangeText(e.Observation) + "; " + e.Reason}
	case client.Verifying:
		return step{Step: "verifying", Text: "resource " + e.ResourceID}
	case client.Verified:
		return step{Step: "evidence", Text: exchangeText(e.Observation) + "; " + e.Reason}
	case client.Resulted:
		text := string(e.Receipt.Outcome) + ": " + e.Receipt.Reason
		if e.FromSaved {
			text += " (from the saved receipt of " + e.Receipt.ObservedAt + ")"
		}
		return step{Step: "result", Text: text}
	}
	return step{Step: "event", Text: fmt.Sprintf("%T", e)}
}

// exchangeText is what one exchange came to, in one clause.
func exchangeText(o client.Observation) string {
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
