package servicekit

import (
	"strings"

	"github.com/agentic-go/agentic/conformance"
)

// What the expectations are called that a hint of their own follows from.
const (
	whatLate   = "requests that ran into their time limit"
	whatPosted = "answer to the submission"
	whatMade   = "resources made"
)

// credentials is the hint for a service that lets nobody in.
const credentials = "The service answers 401 or 403 from the first request on: check the credentials that the run was given (--header-from-env)."

// hint says where to look for what first did not hold; of is the check's own hint, for
// what the check is about. denied says that the service refused the credentials of the
// run at once.
func hint(first conformance.Expectation, denied bool, of string) string {
	switch {
	case denied:
		return credentials
	case first.What == whatLate, strings.HasPrefix(first.Found, "no answer: "+noAnswer):
		return "The service did not answer in time: see what it waits for, and whether it is there at all."
	case first.What == whatPosted:
		return "The submission itself was refused: compare what it carries and what came back with the OpenAPI document. " + of
	case first.What == whatMade && first.Found == "0":
		return "Nothing was made where something was expected: look whether the write is committed, and whether the count is of this action's resources."
	case first.What == whatMade && strings.HasPrefix(first.Found, "-"):
		return "There are fewer resources than before: the count is exact only while nobody else uses the service."
	}
	return of
}

// unable is the hint for an error of the kit itself.
func unable(err error) string {
	switch text := err.Error(); {
	case strings.HasPrefix(text, restarting):
		return "Run the restart command by hand: it has to end with exit code 0, and in time, once the service can be reached again."
	case strings.HasPrefix(text, "no connection to the service"):
		return "Look whether the service runs, and can be reached from here."
	}
	return ""
}
