package servicekit

import (
	"fmt"
	"net/http"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const groupConflict = "Other input"

var conflictChecks = []check{
	{info("conflict/rejected", groupConflict, "other input with a used key is rejected", conformance.Must,
		"Different input for the same scoped ID is rejected, and the original outcome stays.", "5"),
		"Keep a fingerprint of the input with the record and compare it before anything else.",
		func(t *trial) error {
			return t.conflict(func(a answer) { t.expect("answer to other input", a.is4xx(), "4xx", a.code()) })
		}},
	{info("conflict/form", groupConflict, "other input is answered with 409 and a problem document", conformance.Reading,
		"The draft asks for a rejection and no code; 409 tells a client that the key is bound to something else.", "5", "D22"),
		"Answer 409 with application/problem+json (RFC 9457).",
		func(t *trial) error {
			return t.conflict(func(a answer) {
				t.expect("HTTP status", a.Status == http.StatusConflict, "409", a.code())
				t.expect("media type", isProblem(a), "application/problem+json", shorten(a.ContentType))
			})
		}},
	{info("conflict/concurrent", groupConflict, "of two inputs at once with one new key, one wins and is done once", conformance.Must,
		"The request ID is associated atomically with one input; different input for the same scoped ID is rejected.", "5"),
		"Store the fingerprint in the statement that claims the key.",
		conflictConcurrent},
}

const noOtherInput = missing("No other input was given: one would show it.")

// conflict sends other input with the key of the shared request.
func (t *trial) conflict(see func(answer)) error {
	if t.other == nil {
		return noOtherInput
	}
	return t.onMade(0, func(m made) error {
		a, err := t.post(m.with(*t.other), m.key)
		if err == nil {
			see(a)
		}
		return err
	})
}

func conflictConcurrent(t *trial) error {
	if t.other == nil {
		return noOtherInput
	}
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	parties := []party{t.first, t.first.with(*t.other)}
	return t.counted(1, func() error {
		answers, err := t.burst(burst/2, func(i int) request { return submission(parties[i%2], key) })
		if err != nil {
			return err
		}
		s, d, err := t.settle(t.first, key, t.settleTime)
		if err != nil {
			return err
		}
		if err := t.must("status", d.Usable && d.Outcome == agentic.Succeeded, "succeeded", word(s, d)); err != nil {
			return err
		}
		_, one, err := t.resource(parties[0], key, d.ResourceID)
		if err != nil {
			return err
		}
		_, two, err := t.resource(parties[1], key, d.ResourceID)
		if err != nil {
			return err
		}
		if t.otherwise("evidence of one of the inputs", one.Verified || two.Verified, "one", "none"); !one.Verified && !two.Verified {
			return errStop
		}
		if one.Verified && two.Verified {
			return missing("The two inputs do not differ at any evidence pointer, so the resource does not tell which one won: another pair would show it.")
		}
		winner := 0
		if two.Verified {
			winner = 1
		}
		for i, a := range answers {
			if i%2 != winner {
				t.expect(fmt.Sprintf("answer %d, to the input that lost", i+1), a.is4xx(), "4xx", a.code())
				continue
			}
			t.expect(fmt.Sprintf("answer %d, to the input that won", i+1), a.is2xx() || busy(a), whileItRuns, a.code())
		}
		return nil
	})
}
