// Package render turns what the parts of this module say into text for people and
// JSON for programs.
//
// Its job is that no text of a publisher, a service, a file or a flag reaches a
// terminal as it came: everything that a function here returns goes through
// internal/escape (D6), and every parameter named raw is escaped here. Not its job:
// writing anywhere, deciding anything, and which words belong to an error. It
// imports package agentic, client, desk and internal/escape.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/escape"
)

// JSON is one JSON value and a newline, without anything that a terminal would act
// on.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot write JSON: %w", err)
	}
	return escape.JSON(b.Bytes()), nil
}

// Receipt is a receipt as indented JSON.
func Receipt(r agentic.Receipt) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, r.Encode(), "", "  "); err != nil {
		return escape.JSON(r.Encode())
	}
	return escape.JSON(b.Bytes())
}

// Table aligns rows of escaped cells in columns.
func Table(rows [][]string) []byte {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Field writes one "name   value" line.
func Field(b *bytes.Buffer, name, raw string) { field(b, name, escape.Terminal(raw)) }

func field(b *bytes.Buffer, name, escaped string) { fmt.Fprintf(b, "%-13s %s\n", name, escaped) }

// Block shows JSON of a publisher or of a person indented under a name.
func Block(b *bytes.Buffer, name string, raw []byte) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, strings.Repeat(" ", 14), "  "); err != nil {
		Field(b, name, string(raw))
		return
	}
	field(b, name, string(escape.JSON(indented.Bytes())))
}

// OneLine joins the lines of joined errors, each once: a driver that tries an address
// in two ways says the same of it twice.
func OneLine(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// Plural is a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Count says how many errors and warnings there are.
func Count(ds agentic.Diagnostics) string {
	errs := 0
	for _, d := range ds {
		if d.Severity == agentic.SeverityError {
			errs++
		}
	}
	s := Plural(errs, "error")
	if warnings := len(ds) - errs; warnings > 0 {
		s += ", " + Plural(warnings, "warning")
	}
	return s
}

// Diagnostic shows one diagnostic as FILE:LINE:COLUMN with its remedy. The text of
// a document in it is quoted already.
func Diagnostic(b *bytes.Buffer, rawFile string, d agentic.Diagnostic) {
	b.WriteString(escape.Terminal(rawFile))
	if d.Line > 0 {
		fmt.Fprintf(b, ":%d:%d", d.Line, d.Column)
	}
	fmt.Fprintf(b, ": %s: %s [%s]\n", d.Severity, escape.Quoted(d.Problem), d.Code)
	if d.Pointer != "" {
		fmt.Fprintf(b, "    at %s\n", escape.Terminal(d.Pointer))
	}
	if d.Remedy != "" {
		fmt.Fprintf(b, "    %s\n", escape.Quoted(d.Remedy))
	}
}
