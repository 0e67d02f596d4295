package servicekit_test

import (
	"testing"

	"github.com/agentic-go/agentic/conformance"
)

func TestTicketOnSQLite(t *testing.T) {
	rep := check(t, startDesk(t, "", "").config())
	passes(t, rep)
}

// passes expects that nothing of a report failed.
func passes(t *testing.T, rep *conformance.Report) {
	t.Helper()
	if !rep.OK() || rep.Summary.Passed == 0 {
		t.Errorf("summary: %+v", rep.Summary)
		show(t, rep)
	}
}
