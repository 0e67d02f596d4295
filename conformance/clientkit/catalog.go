package clientkit

import (
	"slices"
	"strings"

	"github.com/agentic-go/agentic/conformance"
)

// catalog is all checks in the order of a run.
func catalog() []scenario {
	return slices.Concat(
		draftScenarios(),
		faultScenarios(),
		wireScenarios(),
		resumeScenarios(),
		crashScenarios(),
		changeScenarios(),
		clockScenarios(),
		documentScenarios(),
		storyScenarios(),
		actionScenarios(),
	)
}

// must is the Info of a check of a binding sentence of the draft; sections are parted by
// blanks: "6.4 D8".
func must(id, group, title, sections, asks string) conformance.Info {
	return conformance.Info{ID: id, Group: group, Title: title, Level: conformance.Must, Sections: strings.Fields(sections), Asks: asks}
}

// reading is must for this project's reading of what the draft leaves open; its sections
// name a decision.
func reading(id, group, title, sections, asks string) conformance.Info {
	i := must(id, group, title, sections, asks)
	i.Level = conformance.Reading
	return i
}
