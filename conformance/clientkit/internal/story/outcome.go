package story

import (
	"fmt"
	"net/http"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// outcomes are what a sequence of answers comes to.
func outcomes() []Story {
	const group = "Outcomes"
	down := say(http.StatusServiceUnavailable, `{}`)
	absent := say(http.StatusNotFound, `{}`)
	pending, failed, unknown := tell(pendingText), tell(failedText), tell(unknownText)
	noRead := func(s *Story) { s.NoRead = true }
	var all []Story
	add := func(level conformance.Level, id, title, sections, asks string, want agentic.Outcome, checks int, status, resource []Reaction, also func(*Story)) {
		s := Story{Info: must("outcomes/"+id, group, title+": "+string(want), sections, asks), Terms: Terms{checks: checks}, Want: want,
			Status: status, Resource: resource}
		if also != nil {
			also(&s)
		}
		s.Level = level
		all = append(all, s)
	}
	add(conformance.Must, "failed", "the status is failed", "4", "failed is the service's own word that the action did not complete.", agentic.Failed, 3, always(failed), nil, noRead)
	add(conformance.Reading, "failed-at-once", "the status is failed, and then it would be succeeded", "4 D11", "failed is authoritative, so it ends the checks at once.",
		agentic.Failed, 3, []Reaction{failed, HonestStatus}, nil,
		func(s *Story) { s.OneCheck = true })
	add(conformance.Must, "unknown", "the status is unknown, and the resource would be right", "4 6.9", "unknown proves nothing, and only a status of succeeded leads to the resource.",
		agentic.Unknown, 3, always(unknown), nil, noRead)
	add(conformance.Must, "pending", "the status is pending, and the resource would be right", "4 6.9", "A status that stays pending is preserved as pending.",
		agentic.Pending, 3, always(pending), nil, noRead)
	add(conformance.Reading, "pending-succeeded", "the status is pending and then succeeded", "6.5 6.6 D11", "Checks go on within maxChecks.", agentic.Succeeded, 3, []Reaction{pending, HonestStatus}, nil, nil)
	add(conformance.Reading, "unknown-succeeded", "the status is unknown and then succeeded", "6.5 6.6 D11", "unknown is no end within maxChecks.", agentic.Succeeded, 3, []Reaction{unknown, HonestStatus}, nil, nil)
	add(conformance.Reading, "unavailable-succeeded", "the status answers 503 and then succeeded", "6.5 6.6 D11", "A status that could not be read is read again within maxChecks.",
		agentic.Succeeded, 3, []Reaction{down, HonestStatus}, nil, nil)
	add(conformance.Reading, "pending-failed", "the status is pending and then failed", "4 D11", "Checks go on within maxChecks.", agentic.Failed, 3, []Reaction{pending, failed}, nil, nil)
	add(conformance.Reading, "pending-unknown", "the last status is unknown after pending", "6.9 D11", "The last check decides.", agentic.Unknown, 2, []Reaction{pending, unknown}, nil, nil)
	add(conformance.Reading, "unknown-pending", "the last status is pending after unknown", "6.9 D11", "The last check decides.", agentic.Pending, 2, []Reaction{unknown, pending}, nil, nil)
	add(conformance.Reading, "pending-unavailable", "the last status answers 503 after pending", "6.9 D11", "The last check decides.", agentic.Unknown, 2, []Reaction{pending, down}, nil, nil)
	add(conformance.Must, "absent", "the status is succeeded and the resource stays absent", "6.6 6.7 6.9", "What cannot be verified is unknown.", agentic.Unknown, 2, nil, always(absent), nil)
	add(conformance.Must, "absent-then-right", "the resource is absent, then right", "6.6 6.7", "A resource that shows its evidence within the checks is verified.",
		agentic.Succeeded, 2, nil, []Reaction{absent, HonestResource}, nil)
	add(conformance.Reading, "succeeded-failed", "the status is succeeded without a resource, then failed", "4 D11", "A service that contradicts itself is believed in neither.",
		agentic.Unknown, 2, []Reaction{HonestStatus, failed}, always(absent), nil)
	add(conformance.Reading, "succeeded-pending", "the status is succeeded without a resource, then pending", "6.9 D11", "The last check decides.",
		agentic.Pending, 2, []Reaction{HonestStatus, pending}, always(absent), nil)
	for _, n := range []int{1, 3, 10} {
		add(conformance.Must, fmt.Sprintf("bound-%d", n), fmt.Sprintf("the status would be succeeded after maxChecks of %d", n), "3 6.8", "There are at most maxChecks status checks in one execution.",
			agentic.Pending, n, append(slicesOf(n, pending), HonestStatus), nil, nil)
	}
	return all
}

func slicesOf(n int, r Reaction) []Reaction {
	list := make([]Reaction, n, n+1)
	for i := range list {
		list[i] = r
	}
	return list
}

// submissions are answers to the POST, none of which makes an outcome.
func submissions() []Story {
	const group = "Answers to the POST"
	const hint = "Look at what the client concludes from the answer to its POST: nothing but what it reads afterwards makes an outcome."
	var all []Story
	add := func(level conformance.Level, id, title, sections, asks string, do Reaction, status []Reaction, want agentic.Outcome) {
		s := Story{Info: must("submission/"+id, group, title+": "+string(want), sections, asks), Submit: always(do), Status: status, Want: want, Hint: hint}
		s.Level = level
		all = append(all, s)
	}
	const claims = "A successful answer to the submission establishes no completion."
	for _, code := range []int{200, 201, 202} {
		add(conformance.Must, fmt.Sprintf("%d-unknown", code), fmt.Sprintf("the POST gets %d and all of a resource, the status is unknown", code), "4 6.7", claims,
			say(code, resourceText), always(tell(unknownText)), agentic.Unknown)
		add(conformance.Must, fmt.Sprintf("%d-pending", code), fmt.Sprintf("the POST gets %d and a body that says succeeded, the status is pending", code), "4 6.7 6.9", claims,
			say(code, statusText), always(tell(pendingText)), agentic.Pending)
	}
	add(conformance.Must, "201-failed", "the POST gets 201 and all of a resource, the status is failed", "4", claims, HonestSubmit, always(tell(failedText)), agentic.Failed)
	const ambiguous = "The answer to the submission does not decide; status and resource evidence do."
	for _, code := range []int{500, 502, 503, 504} {
		add(conformance.Must, fmt.Sprintf("%d-succeeded", code), fmt.Sprintf("the POST gets %d, and status and resource prove it", code), "4 6.5", ambiguous, say(code, `{}`), nil, agentic.Succeeded)
	}
	for _, code := range []int{400, 401, 403, 404, 410, 429, 204, 299} {
		do := say(code, `{}`)
		if code == http.StatusNoContent {
			do = func(_ *Told, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		}
		add(conformance.Reading, fmt.Sprintf("%d-succeeded", code), fmt.Sprintf("the POST gets %d, and status and resource prove it", code), "4 6.5 D10", ambiguous, do, nil, agentic.Succeeded)
	}
	add(conformance.Reading, "says-failed", "the POST gets 200 and a body that says failed, and status and resource prove it", "4 6.5 D10", ambiguous, tell(failedText), nil, agentic.Succeeded)
	add(conformance.Reading, "says-nothing", "the POST gets 200 and a page, and status and resource prove it", "4 6.5 D10", ambiguous, sayAs(200, "text/html", "<!doctype html>"), nil, agentic.Succeeded)
	for _, code := range []int{http.StatusConflict, http.StatusUnprocessableEntity} {
		const refused = "A service that refused this very submission may tell under its ID of somebody's earlier request."
		for _, c := range []struct {
			name   string
			status []Reaction
			want   agentic.Outcome
		}{{"succeeded", nil, agentic.Unknown}, {"pending", always(tell(pendingText)), agentic.Pending}, {"failed", always(tell(failedText)), agentic.Failed}} {
			add(conformance.Reading, fmt.Sprintf("%d-%s", code, c.name), fmt.Sprintf("the POST gets %d, and the status is %s", code, c.name), "5 6.7 D10", refused, say(code, `{}`), c.status, c.want)
		}
	}
	return all
}
