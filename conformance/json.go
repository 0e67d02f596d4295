package conformance

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/agentic-go/agentic/internal/escape"
)

//go:embed report.schema.json
var reportSchema []byte

// ReportSchema is the JSON Schema (draft 2020-12) of the JSON form of a Report.
func ReportSchema() []byte { return slices.Clone(reportSchema) }

// WriteJSON writes the report in the form that Format names, indented, with a newline
// behind it. Code points that a terminal acts on are \u escapes; the value is the same.
// docs/conformance.md tells what each member means.
func (r *Report) WriteJSON(w io.Writer) error {
	c := *r // with arrays where a nil slice would be null
	c.Checks = append([]Result{}, r.Checks...)
	for i := range c.Checks {
		c.Checks[i].Sections = append([]string{}, c.Checks[i].Sections...)
		c.Checks[i].Tries = append([]Try{}, c.Checks[i].Tries...)
	}
	return writeJSON(w, c)
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	_, err := w.Write(escape.JSON(b.Bytes()))
	return err
}
