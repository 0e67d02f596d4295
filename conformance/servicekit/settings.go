package servicekit

import (
	"strings"

	"github.com/agentic-go/agentic/conformance"
)

// CheckCount says whether Run would refuse these as CountURL and CountPointer of Config.
func CheckCount(target, pointer string) error { return checkCount(target, pointer) }

// spent begins what would show a check that MaxRequests ended.
const spent = "The limit of "

// restarting begins an error of Config.Restart.
const restarting = "the restart: "

// Unspent counts the checks of a report that were not exercised because
// Config.MaxRequests was used up.
func Unspent(rep *conformance.Report) (n int) {
	for _, c := range rep.Checks {
		if c.Status == conformance.NotExercised && strings.HasPrefix(c.Missing, spent) {
			n++
		}
	}
	return n
}
