package servicekit

import (
	"slices"

	"github.com/agentic-go/agentic/conformance"
)

// checks are all checks, in the order in which they are made.
var checks = slices.Concat(documentChecks, submissionChecks, statusChecks, repeatChecks, conflictChecks, keyChecks, bodyChecks,
	scopeChecks, methodChecks, lostChecks, keptChecks)

// info makes an Info.
func info(id, group, title string, level conformance.Level, asks string, sections ...string) conformance.Info {
	return conformance.Info{ID: id, Group: group, Title: title, Level: level, Sections: sections, Asks: asks}
}
