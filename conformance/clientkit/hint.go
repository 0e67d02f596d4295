package clientkit

import (
	"strconv"
	"strings"

	"github.com/agentic-go/agentic/conformance"
)

// hint says where to look for what first did not hold; of is the check's own hint, for
// what the check is about.
func hint(first conformance.Expectation, of string) string {
	what, _, _ := strings.Cut(first.What, numbered)
	switch what {
	case whatTime:
		return "The client was still running when its time was over: look for a wait without an end, or give a call more time."
	case whatExit, whatCrash:
		if strings.Contains(first.Found, bySignal) {
			return "The client crashed or was killed. What it wrote to standard error before is in the notes."
		}
		return "What the client wrote to standard error is in the notes. A valid receipt is exit code 0, whatever its outcome."
	case whatStdout:
		return "Print the one receipt on standard output, and everything else on standard error."
	case whatPosts:
		want, err := strconv.Atoi(first.Expected)
		found, err2 := strconv.Atoi(first.Found)
		switch {
		case err != nil || err2 != nil:
		case found > want:
			return "Either the client sends again, or its HTTP library does: some repeat a POST that carries Idempotency-Key when its connection breaks. " + of
		case found < want:
			return "The client stopped before it sent. What it wrote to standard error is in the notes; the documents' origin on this machine has to be allowed."
		}
	}
	return of
}
