package render

import (
	"fmt"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/escape"
)

// Line is one request of a listing.
type Line struct {
	RequestID   string          `json:"request_id"`
	Principal   string          `json:"principal"`
	Environment string          `json:"environment"`
	ActionID    string          `json:"action_id"`
	Origin      string          `json:"origin"`
	State       client.State    `json:"state"`
	Outcome     agentic.Outcome `json:"outcome"` // "" without a receipt
	Settled     client.Verb     `json:"settled"` // with which a person settled it, or ""
	Supersedes  string          `json:"supersedes"`
	Open        bool            `json:"open"`
	NeedsPerson bool            `json:"needs_person"`
	CreatedAt   string          `json:"created_at"`
	AttemptedAt *string         `json:"attempted_at"`
	SeenAt      string          `json:"seen_at"`
	WindowEnds  string          `json:"window_ends"`
	LeftSeconds int64           `json:"left_seconds"` // 0 once the window has ended
	NextCheck   *string         `json:"next_check"`
	PurgedAt    *string         `json:"purged_at"`
}

// Lines are the requests of a listing.
func Lines(list []client.Summary, now time.Time) []Line {
	lines := make([]Line, len(list))
	for i, s := range list {
		lines[i] = Line{
			RequestID: s.RequestID, Principal: s.Scope.Principal, Environment: s.Scope.Environment, ActionID: s.ActionID, Origin: s.Origin,
			State: s.State, Outcome: s.Outcome, Settled: s.Settled, Supersedes: s.Supersedes, Open: s.Open(), NeedsPerson: s.NeedsPerson(now),
			CreatedAt: agentic.FormatTime(s.CreatedAt), AttemptedAt: when(s.AttemptedAt), SeenAt: agentic.FormatTime(s.SeenAt),
			WindowEnds: agentic.FormatTime(s.WindowEnds), LeftSeconds: int64(max(0, s.WindowEnds.Sub(now)) / time.Second),
			NextCheck: when(s.NextCheck), PurgedAt: when(s.PurgedAt),
		}
	}
	return lines
}

// Listing is a listing for people, with a head. It names the principal and the
// environment where one is not that of scope, which is what a reader takes them for.
func Listing(list []client.Summary, scope client.Scope, now time.Time) []byte {
	head := []string{"REQUEST", "OUTCOME", "LEFT", "NEEDS", "AGE", "ACTION", "ORIGIN"}
	principals, environments := false, false
	for _, s := range list {
		principals = principals || s.Scope.Principal != scope.Principal
		environments = environments || s.Scope.Environment != scope.Environment
	}
	if principals {
		head = append(head, "PRINCIPAL")
	}
	if environments {
		head = append(head, "ENVIRONMENT")
	}
	rows := [][]string{head}
	for _, s := range list {
		row := []string{escape.Terminal(s.RequestID), escape.Terminal(outcomeOf(&s)), left(&s, now), needs(&s, now), Age(now.Sub(s.CreatedAt)),
			escape.Terminal(s.ActionID), escape.Terminal(s.Origin)}
		if principals {
			row = append(row, escape.Terminal(s.Scope.Principal))
		}
		if environments {
			row = append(row, escape.Terminal(s.Scope.Environment))
		}
		rows = append(rows, row)
	}
	return Table(rows)
}

// outcomeOf is what became of a request, in one word: what a receipt proves comes
// before what a person said.
func outcomeOf(s *client.Summary) string {
	switch {
	case !s.PurgedAt.IsZero():
		return "purged"
	case s.Outcome.Final():
		return string(s.Outcome)
	case s.Settled == client.AttestSucceeded:
		return "attested-succeeded"
	case s.Settled == client.AttestFailed:
		return "attested-failed"
	case s.Settled == client.Abandon:
		return "abandoned"
	case s.Settled == client.Supersede:
		return "superseded"
	case s.Outcome == "":
		return "none"
	}
	return string(s.Outcome)
}

// left is the time left in a window that somebody waits for.
func left(s *client.Summary, now time.Time) string {
	switch {
	case !s.Open():
		return "-"
	case !now.Before(s.WindowEnds):
		return "ended"
	}
	return Age(s.WindowEnds.Sub(now))
}

// needs is whom a request waits for.
func needs(s *client.Summary, now time.Time) string {
	switch {
	case !s.Open():
		return "-"
	case s.NeedsPerson(now):
		return "person"
	case s.State == client.Prepared && !now.Before(s.WindowEnds):
		return "preparing anew"
	case s.State == client.Prepared:
		return "sending"
	}
	return "reading"
}

// Age is a duration in its two largest units, such as 45s, 13m, 2h05m and 6d23h.
func Age(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	const day = 24 * time.Hour
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}
