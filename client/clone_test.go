package client_test

import (
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// A change of a clone does not reach the record, nor the other way round.
func TestClone(t *testing.T) {
	id := "T-1"
	r := client.Record{
		Binding:      client.Binding{Input: []byte("a")},
		Observations: []client.Observation{{Checks: []agentic.Check{{Name: "a"}}}},
		Notes:        []client.Note{{Verb: client.Recheck}},
		Receipts: []agentic.Receipt{{ResourceID: &id, Evidence: &agentic.ReceiptEvidence{
			State: "a", Matched: []agentic.Pair{{InputPointer: "/a"}},
		}}},
	}
	c := r.Clone()
	c.Input[0] = 'b'
	c.Observations[0].Checks[0].Name = "b"
	c.Notes[0].Verb = client.Abandon
	*c.Receipts[0].ResourceID, c.Receipts[0].Evidence.State, c.Receipts[0].Evidence.Matched[0].InputPointer = "T-2", "b", "/b"
	e := r.Receipts[0].Evidence
	if string(r.Input) != "a" || r.Observations[0].Checks[0].Name != "a" || r.Notes[0].Verb != client.Recheck ||
		id != "T-1" || e.State != "a" || e.Matched[0].InputPointer != "/a" {
		t.Errorf("%+v, %s, %+v", r, id, e)
	}
}
