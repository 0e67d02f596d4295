package agentic

import (
	"fmt"
	"strings"
)

// Severity of a Diagnostic.
type Severity string

// An error makes a document unusable, a warning does not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one problem of a document: where it is, what is wrong, and how
// to mend it. Problem and Pointer may hold text of the document, quoted and
// bounded, and still have to be escaped for a terminal, log, page or model (D6).
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`     // stable, such as "profile/duplicate-member"
	Document string   `json:"document"` // "profile", "openapi", "input" or "receipt"
	Pointer  string   `json:"pointer"`  // RFC 6901; "" is the whole document
	Line     int      `json:"line"`     // 1-based, 0 when there is no place
	Column   int      `json:"column"`   // 1-based, in code points
	Problem  string   `json:"problem"`  // one sentence
	Remedy   string   `json:"remedy"`   // one sentence
}

// String is the diagnostic in one line, without the remedy.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.Document)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	if d.Pointer != "" {
		b.WriteString(" " + d.Pointer)
	}
	fmt.Fprintf(&b, ": %s: %s [%s]", d.Severity, d.Problem, d.Code)
	return b.String()
}

// Diagnostics are all problems found, in the order of the documents.
type Diagnostics []Diagnostic

// HasErrors reports whether any of them makes a document unusable.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.Severity == SeverityError {
			return true
		}
	}
	return false
}

// Err is an *InvalidError with these diagnostics, or nil without errors.
func (ds Diagnostics) Err() error {
	if !ds.HasErrors() {
		return nil
	}
	return &InvalidError{Diagnostics: ds}
}

// InvalidError says that a profile, OpenAPI document or receipt is invalid.
type InvalidError struct{ Diagnostics Diagnostics }

func (e *InvalidError) Error() string { return "invalid document: " + firstOf(e.Diagnostics) }

// InputError says that an input cannot be sent: not a JSON object, too large, or
// without an evidence value that the action needs (section 4, D18).
type InputError struct{ Diagnostics Diagnostics }

func (e *InputError) Error() string { return "invalid input: " + firstOf(e.Diagnostics) }

// UnknownActionError says that a profile has no action of that ID, or that none
// was named and the profile has several.
type UnknownActionError struct {
	Action string   // "" when none was named
	Known  []string // the profile's action IDs
}

func (e *UnknownActionError) Error() string {
	if e.Action == "" {
		return fmt.Sprintf("the profile has %d actions; name one of: %s", len(e.Known), strings.Join(e.Known, ", "))
	}
	return fmt.Sprintf("the profile has no action %q; it has: %s", e.Action, strings.Join(e.Known, ", "))
}

func firstOf(ds Diagnostics) string {
	errors := 0
	first := "no diagnostics"
	for _, d := range ds {
		if d.Severity != SeverityError {
			continue
		}
		if errors == 0 {
			first = d.String()
		}
		errors++
	}
	if errors > 1 {
		first += fmt.Sprintf(" (and %d more)", errors-1)
	}
	return first
}
