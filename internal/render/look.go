package render

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/reconcile"
)

// Look is what one look of a worker at a request came to, as JSON.
type Look struct {
	Event     string          `json:"event,omitempty"` // in a stream of several kinds
	RequestID string          `json:"request_id"`
	ActionID  string          `json:"action_id"`
	Origin    string          `json:"origin"`
	Result    reconcile.Kind  `json:"result"`
	Before    agentic.Outcome `json:"before,omitempty"`
	After     agentic.Outcome `json:"after,omitempty"`
	Later     float64         `json:"later_seconds,omitempty"`
	Took      float64         `json:"took_seconds"`
	Error     string          `json:"error,omitempty"`
}

// NewLook is a Look of what a worker did.
func NewLook(d reconcile.Done) Look {
	l := Look{
		RequestID: d.RequestID, ActionID: d.ActionID, Origin: d.Origin, Result: d.Kind, Before: d.Before, After: d.After,
		Later: d.Later.Seconds(), Took: d.Took.Seconds(),
	}
	if d.Err != nil {
		l.Error = OneLine(d.Err.Error())
	}
	return l
}

// Done says in one step what a worker did.
func Done(d reconcile.Done) Step {
	before := "nothing known"
	if d.Before != "" {
		before = string(d.Before)
	}
	return Step{Name: string(d.Kind), Text: fmt.Sprintf("%s, %s of %s, %s before", d.RequestID, d.ActionID, d.Origin, before)}
}

// Kinds says how many looks came to what.
func Kinds(counts map[reconcile.Kind]int) string {
	var parts []string
	for _, k := range reconcile.Kinds() {
		if n := counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(parts) == 0 {
		return "nothing was to be done"
	}
	return strings.Join(parts, ", ")
}

// Pass is a pass of a worker as a table, with its errors below.
func Pass(r reconcile.Report) []byte {
	rows := [][]string{{"REQUEST", "RESULT", "BEFORE", "AFTER", "ACTION", "ORIGIN"}}
	name := func(o agentic.Outcome) string {
		if o == "" {
			return "-"
		}
		return string(o)
	}
	for _, d := range r.Done {
		rows = append(rows, []string{escape.Terminal(d.RequestID), string(d.Kind), name(d.Before), name(d.After), escape.Terminal(d.ActionID), escape.Terminal(d.Origin)})
	}
	var b bytes.Buffer
	b.Write(Table(rows))
	fmt.Fprintf(&b, "%s in %s\n", Kinds(r.Counts), r.Took.Round(time.Millisecond))
	for _, d := range r.Done {
		if d.Err != nil && d.Kind != reconcile.Nothing {
			fmt.Fprintf(&b, "%s: %s\n", escape.Terminal(d.RequestID), escape.Terminal(OneLine(d.Err.Error())))
			if d.Kind == reconcile.NotApproved {
				fmt.Fprintf(&b, "  If you trust this origin: --approve %s\n", escape.Quoted(escape.Shell(d.Origin)))
			}
		}
	}
	return b.Bytes()
}
