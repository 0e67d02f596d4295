package clientkit

import "slices"

// hostileScenarios are checks of one call each against a service that answers in a wrong,
// broken or unusual way.
func hostileScenarios() []scenario {
	return slices.Concat(
		brokenAnswers(), answerSizes(), redirects(), informational(), saidAnswers(), outcomes(), submissions(), evidence(), resourceIDs(), actionScenarios(),
	)
}
