package clientkit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/clientkit/internal/story"
)

// What the expectations of stories are called beside those of expect.go.
const (
	whatGaveUp   = "gives up an answer that does not end in time"
	whatTaken    = "reads no more than it may"
	whatAbroad   = "requests to another origin"
	whatOneCheck = "status reads"
	whatNoRead   = "resource reads"
	whatSegment  = "one escaped segment of the path"
)

// storyScenarios are the checks of package story.
func storyScenarios() []scenario {
	var all []scenario
	for _, s := range story.All() {
		all = append(all, scenario{Info: s.Info, hint: s.Hint, run: func(ctx context.Context, t *trial) error { return t.experience(ctx, s) }})
	}
	return all
}

// experience calls the client once in a story.
func (t *trial) experience(ctx context.Context, s story.Story) error {
	if err := t.custom(s.Terms.Profile(), s.Terms.OpenAPI(), cmp.Or(s.Input, exampleInput)); err != nil {
		return err
	}
	abroad, err := t.stranger()
	if err != nil {
		return err
	}
	told := t.tell(s)
	told.Abroad = abroad.origin
	rep, err := t.call(ctx, t.ask())
	if err != nil {
		return err
	}
	record := t.judge.record()
	if s.Want == "" {
		t.idle(record)
		t.Expect(whatOutcome, rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown, "no receipt, or one of unknown", string(rep.stdout))
		return nil
	}
	t.finished(rep, s.Want)
	stayed := listed(told.Stayed())
	t.expect(whatGaveUp, stayed == "none", fmt.Sprintf("within timeoutMs (%v) and %v to spare", told.Timeout, story.ToSpare), "still waiting: "+stayed)
	t.Expect(whatTaken, told.Taken() <= story.MostTaken, "64 KiB, and what the systems buffer", fmt.Sprint(told.Taken(), " bytes"))
	var seen []string
	for _, a := range abroad.record() {
		seen = append(seen, a.method+" "+a.path)
	}
	t.Expect(whatAbroad, len(seen) == 0, "none", listed(seen))
	t.looked(record, s)
	return nil
}

// looked takes down how the client read, where the story says it.
func (t *trial) looked(record []arrival, s story.Story) {
	count := map[operation]int{}
	for _, a := range record {
		count[a.op]++
		if s.Segment && a.op == resource {
			t.Expect(whatSegment, a.id == s.ResourceID && strings.Trim(a.path, pathBytes) == "", fmt.Sprintf("%+.200q", s.ResourceID), a.path)
		}
	}
	if s.NoRead {
		conformance.Equal(t.Recorder, whatNoRead, 0, count[resource])
	}
	if s.OneCheck {
		conformance.Equal(t.Recorder, whatOneCheck, 1, count[status])
	}
}

// pathBytes are all bytes that a path may hold (RFC 3986, 3.3).
const pathBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+,;=:@/"

// tell has the story's service answer, with the trial's documents, input and identity.
func (t *trial) tell(s story.Story) *story.Told {
	told := &story.Told{
		RequestID: t.requestID, ResourceID: cmp.Or(s.ResourceID, "T-1"), Input: t.input, Timeout: t.plan.Action.Recovery.Timeout, Closed: t.judge.closed,
		Unanswered: func(w http.ResponseWriter) {
			if rec, ok := w.(*recorded); ok {
				t.judge.mu.Lock()
				defer t.judge.mu.Unlock()
				rec.arrival.answer.silent = true
			}
		},
	}
	by := func(list []story.Reaction, honest story.Reaction) respond {
		return func(n int, w http.ResponseWriter, r *http.Request) bool {
			story.Pick(list, n, honest)(told, w, r)
			return true
		}
	}
	t.script(script{submit: by(s.Submit, story.HonestSubmit), status: by(s.Status, story.HonestStatus), resource: by(s.Resource, story.HonestResource)})
	return told
}
