package clientkit

import (
	"context"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/ticket"
)

// asked is what a fault of the reference service asks of a client.
type asked struct {
	level    conformance.Level
	sections string
	asks     string
	tickets  int
}

// faultAsks has the faults that are not among the draft's seven. A fault that is neither
// there nor here fails a test.
var faultAsks = map[string]asked{
	"late": {conformance.Reading, "6.5 6.9 D11",
		"Checks go on while the status is pending; the last one decides.", 1},
	"failed": {conformance.Must, "4 6.5",
		"The status failed with HTTP 200 says that the action did not complete, and the receipt says so too.", 0},
	"wrong-state": {conformance.Must, "3 6.6 6.7",
		"A state that is not among successValues is no success.", 1},
	"wrong-input": {conformance.Must, "3 6.6 6.7",
		"Every pair of input evidence has to match; one that does not leaves the outcome unknown.", 1},
	"wrong-resource": {conformance.Must, "6.6 6.7",
		"The resource's own ID has to be the one that the status named.", 1},
	"other-request": {conformance.Must, "5 6.6 6.7",
		"The resource has to name this request as the one that made it.", 1},
	"malformed-status": {conformance.Must, "4 6.9",
		"A status answer that is not JSON establishes nothing.", 1},
	"duplicate-members": {conformance.Reading, "2 D1 D12",
		"JSON with a member given twice is no answer: two readers would take two meanings from it.", 1},
	"html-status": {conformance.Must, "4 6.9",
		"The status response is application/json; a page with HTTP 200 establishes nothing.", 1},
	"redirect": {conformance.Must, "2 6.8",
		"A redirect is rejected and never followed, even where it would succeed.", 1},
	"oversized": {conformance.Reading, "6.8 D15",
		"Response sizes are bounded, here at 64 KiB as in the reference transport: a longer answer establishes nothing.", 1},
	"compressed": {conformance.Reading, "6.8 D15",
		"An answer in a coding that nobody asked for is not used.", 1},
	"slow": {conformance.Must, "3 6.8 6.9",
		"Each request is bounded by timeoutMs; a status that does not come in time stays unknown.", 1},
	"dot-resource-id": {conformance.Reading, "4 6.9 D14",
		"An ID that no path segment can carry is not put into a URL, and the outcome is unknown.", 1},
	"expired": {conformance.Must, "4 5 6.9",
		"The status unknown is preserved: it is no proof that nothing happened, and no reason to send again.", 1},
}

// faultScenarios are the reference service's other faults.
func faultScenarios() []scenario {
	var all []scenario
	for _, f := range ticket.Faults() {
		a, ok := faultAsks[f.Name]
		if !ok {
			continue
		}
		info := must("service/"+f.Name, "Faults of the service", "the service "+f.Summary+": "+string(f.Outcome), a.sections, a.asks)
		info.Level = a.level
		all = append(all, scenario{Info: info, run: oneCall(f.Name, f.Outcome, a.tickets)})
	}
	return all
}

// oneCall is a trial of one execution against the reference service.
func oneCall(fault string, want agentic.Outcome, tickets int) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.ticket(ctx, fault); err != nil {
			return err
		}
		rep, err := t.call(ctx, t.ask())
		if err != nil {
			return err
		}
		t.finished(rep, want)
		t.tickets(ctx, tickets)
		return nil
	}
}
