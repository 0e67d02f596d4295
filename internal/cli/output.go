package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/escape"
)

// writeJSON prints one JSON value and a newline, without anything that a terminal
// would act on.
func (a *app) writeJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	return a.print(escape.JSON(b.Bytes()))
}

// writeReceipt prints a receipt: in one line with --json, indented without.
func (a *app) writeReceipt(r agentic.Receipt) error {
	if a.json {
		return a.writeJSON(r)
	}
	return a.print(append(receiptText(r), '\n'))
}

// receiptText is a receipt as indented JSON.
func receiptText(r agentic.Receipt) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, r.Encode(), "", "  "); err != nil {
		return escape.JSON(r.Encode())
	}
	return escape.JSON(b.Bytes())
}

// print writes to stdout. A result that nobody can read is an error.
func (a *app) print(b []byte) error {
	if _, err := a.stdout.Write(b); err != nil {
		return fmt.Errorf("cannot write to standard output: %w", err)
	}
	return nil
}

// say writes one line to stderr. Its arguments have to be escaped.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...) // progress is not worth an error
}

// table aligns rows of escaped cells in columns.
func table(rows [][]string) []byte {
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

// field writes one "name   value" line; the value has to be escaped.
func field(b *bytes.Buffer, name, value string) { fmt.Fprintf(b, "%-13s %s\n", name, value) }

// block shows JSON of a publisher or of a person indented under a name.
func block(b *bytes.Buffer, name string, doc []byte) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, doc, strings.Repeat(" ", 14), "  "); err != nil {
		field(b, name, escape.Terminal(string(doc)))
		return
	}
	field(b, name, string(escape.JSON(indented.Bytes())))
}
