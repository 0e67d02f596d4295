package render

import (
	"bytes"
	"fmt"

	"github.com/agentic-go/agentic"
)

// Validation is the result of validate.
type Validation struct {
	Valid       bool                `json:"valid"`
	Checked     []string            `json:"checked"` // "profile", and "openapi" when it was given
	Origin      string              `json:"origin,omitempty"`
	Digest      string              `json:"digest,omitempty"` // of the profile
	Actions     []ValidAction       `json:"actions"`
	Diagnostics agentic.Diagnostics `json:"diagnostics"`
}

// ValidAction is an action of a profile that was checked.
type ValidAction struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Submit      string `json:"submit,omitempty"` // URL of the POST; only when bound
}

// Unique leaves out what several actions have in common.
func Unique(found agentic.Diagnostics) agentic.Diagnostics {
	seen := make(map[agentic.Diagnostic]bool)
	list := agentic.Diagnostics{}
	for _, d := range found {
		if !seen[d] {
			seen[d] = true
			list = append(list, d)
		}
	}
	return list
}

// Text is the result for people; the names are those of the files.
func (v Validation) Text(profile, openapi string) []byte {
	var b bytes.Buffer
	for _, d := range v.Diagnostics {
		file := profile
		if d.Document == "openapi" {
			file = openapi
		}
		Diagnostic(&b, file, d)
	}
	if v.Origin != "" {
		Field(&b, "origin", v.Origin)
	}
	for _, action := range v.Actions {
		Field(&b, "action", action.ID)
		Field(&b, "", action.Description)
		if action.Submit != "" {
			Field(&b, "", "POST "+action.Submit)
		}
	}
	what := "the profile and its OpenAPI binding"
	if len(v.Checked) == 1 {
		what = "the profile alone; give its OpenAPI document as well to check the binding"
	}
	verdict := "valid"
	if !v.Valid {
		verdict = "invalid"
	}
	fmt.Fprintf(&b, "%s: %s (checked: %s)\n", verdict, Count(v.Diagnostics), what)
	return b.Bytes()
}

// Summary is what a receipt says, for people.
func Summary(r agentic.Receipt) []byte {
	var b bytes.Buffer
	Field(&b, "request", r.RequestID)
	Field(&b, "action", r.ActionID+" of "+r.Origin)
	Field(&b, "outcome", string(r.Outcome))
	Field(&b, "observed", r.ObservedAt)
	Field(&b, "reason", r.Reason)
	if r.Evidence != nil {
		Field(&b, "evidence", r.Evidence.URL+" in state "+r.Evidence.State)
	}
	return b.Bytes()
}
