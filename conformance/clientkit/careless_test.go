package clientkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// careless is a client of one call that is right but for one habit of everyday code.
type careless struct {
	floats    bool // decodes numbers to float64, in what it sends and in what it compares
	follows   bool // follows redirects, as HTTP clients do by default
	boundless bool // has neither a time limit nor a size limit
	unescaped bool // puts IDs into URLs as they are
	lenient   bool // decodes answers with encoding/json, whatever their code and media type are
	pointing  bool // resolves pointers as it seems right
	deaf      bool // does not hear that its submission was refused
	twice     bool // checks once more than it may
}

var carelessClients = map[string]careless{"nothing": {}, "floats": {floats: true}, "follows": {follows: true}, "boundless": {boundless: true},
	"unescaped": {unescaped: true}, "lenient": {lenient: true}, "pointing": {pointing: true}, "deaf": {deaf: true}, "twice": {twice: true}}

func (c careless) main(ctx context.Context, stdin io.Reader, stdout io.Writer) (int, error) {
	var w wish
	if err := json.NewDecoder(stdin).Decode(&w); err != nil {
		return 1, err
	}
	r, err := c.execute(ctx, w)
	if err != nil {
		return 1, err
	}
	_, err = fmt.Fprintln(stdout, string(r.Encode()))
	return 0, err
}

func (c careless) execute(ctx context.Context, w wish) (agentic.Receipt, error) {
	plan, err := agentic.Load(w.Profile, w.OpenAPI, "", agentic.Options{AllowLoopback: true})
	if err != nil {
		return agentic.Receipt{}, err
	}
	in, err := plan.CheckInput(w.Input)
	if err != nil {
		return agentic.Receipt{}, err
	}
	body := []byte(w.Input)
	if c.floats {
		var v any
		if json.Unmarshal(body, &v) == nil {
			body, _ = json.Marshal(v)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10}}
	if !c.boundless {
		client.Timeout = plan.Action.Recovery.Timeout
	}
	if !c.follows {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	receipt := agentic.Receipt{Agentic: agentic.Version, RequestID: w.RequestID, ActionID: plan.Action.ID, Origin: plan.Origin,
		Outcome: agentic.Unknown, ObservedAt: agentic.FormatTime(time.Now()), Reason: "It is so."}
	posted := c.exchange(ctx, client, http.MethodPost, plan.SubmitURL(), w.RequestID, body)
	refused := !c.deaf && (posted.Status == http.StatusConflict || posted.Status == http.StatusUnprocessableEntity)
	claimed := false
	checks := plan.Action.Recovery.MaxChecks
	if c.twice {
		checks++
	}
	for range checks {
		url, _ := plan.StatusURL(w.RequestID)
		d := agentic.DecideStatus(w.RequestID, c.take(c.exchange(ctx, client, http.MethodGet, url, "", nil)))
		if receipt.Outcome = d.Outcome; d.Outcome == agentic.Failed {
			if claimed {
				receipt.Outcome = agentic.Unknown
			}
			break
		}
		if d.Outcome != agentic.Succeeded {
			continue
		}
		if receipt.Outcome = agentic.Unknown; refused {
			break
		}
		claimed = true
		if url, err = plan.ResourceURL(d.ResourceID); c.unescaped {
			before, _ := plan.ResourceURL("x")
			url, err = strings.Replace(before, "/x", "/"+d.ResourceID, 1), nil
		}
		if err != nil {
			continue
		}
		a := c.take(c.exchange(ctx, client, http.MethodGet, url, "", nil))
		if e := c.verify(plan, in, w, d.ResourceID, a); e != nil {
			receipt.Outcome, receipt.Evidence, receipt.ResourceID = agentic.Succeeded, e, &e.ResourceID
			break
		}
	}
	return receipt, nil
}

// take makes of an answer what the client takes it for.
func (c careless) take(a agentic.Answer) agentic.Answer {
	if !c.lenient {
		return a
	}
	var doc map[string]any
	if json.NewDecoder(bytes.NewReader(a.Body)).Decode(&doc) != nil {
		return a
	}
	body, _ := json.Marshal(doc)
	return agentic.Answer{Status: http.StatusOK, ContentType: "application/json", Body: body}
}

func (c careless) verify(plan *agentic.Plan, in agentic.Input, w wish, id string, a agentic.Answer) *agentic.ReceiptEvidence {
	if !c.floats && !c.pointing {
		return plan.DecideResource(w.RequestID, id, in, a).Evidence
	}
	var have, want any
	ev := plan.Action.Evidence
	if a.Status != http.StatusOK || c.decode(a.Body, &have) != nil || c.decode(w.Input, &want) != nil {
		return nil
	}
	state, _ := c.find(have, ev.StatePointer).(string)
	if c.find(have, ev.ResourceIDPointer) != id || c.find(have, ev.RequestIDPointer) != w.RequestID || !slices.Contains(ev.SuccessValues, state) {
		return nil
	}
	for _, p := range ev.InputBindings {
		if x := c.find(have, p.ResourcePointer); x == nil || !reflect.DeepEqual(x, c.find(want, p.InputPointer)) {
			return nil
		}
	}
	url, err := plan.ResourceURL(id)
	if err != nil {
		return nil
	}
	return &agentic.ReceiptEvidence{URL: url, ResourceID: id, RequestID: w.RequestID, State: state, Matched: ev.InputBindings}
}

// decode takes a number beyond float64 for zero and goes on.
func (c careless) decode(data []byte, v *any) error {
	err := json.Unmarshal(data, v)
	if _, beyond := errors.AsType[*json.UnmarshalTypeError](err); beyond {
		return nil
	}
	return err
}

func (careless) find(v any, pointer string) any {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~0", "~"), "~1", "/") // the wrong way round
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			n, err := strconv.Atoi(strings.TrimSpace(token))
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

func (c careless) exchange(ctx context.Context, client *http.Client, method, url, key string, body []byte) agentic.Answer {
	header := map[string]string{}
	if key != "" {
		header = map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"}
	}
	limit := agentic.MaxResponseBytes + 1
	if c.boundless {
		limit = 1 << 40
	}
	a, _ := exchange(ctx, client, method, url, header, body, limit)
	if c.boundless {
		a.Body = a.Body[:min(len(a.Body), agentic.MaxResponseBytes)]
	}
	return a
}

// carelessFails are the checks that are about each habit.
var carelessFails = []fails{
	{"floats", "values/beyond-2-53-off-by-one", whatOutcome, "succeeded"},
	{"floats", "values/beyond-2-53", whatBody, "9007199254740992"},
	{"floats", "values/beyond-2-64-off-by-one", whatEvidence, "no evidence"},
	{"floats", "values/fraction-beyond-double", whatOutcome, "succeeded"},
	{"floats", "values/tiny-is-not-zero", whatOutcome, "succeeded"},
	{"follows", "redirects/submit/302-same-origin", whatFollowed, "GET /elsewhere/tickets"},
	{"follows", "redirects/submit/307-same-origin", whatPosts, "2"},
	{"follows", "redirects/submit/308-other-origin", whatAbroad, "POST /elsewhere/tickets"},
	{"follows", "redirects/status/301-other-origin", whatAbroad, "GET /elsewhere/requests/"},
	{"follows", "redirects/resource/303-same-origin", whatFollowed, "GET /elsewhere/tickets/T-1"},
	{"boundless", "answers/submit/slow-headers", whatGaveUp, "POST /tickets"},
	{"boundless", "answers/status/dripping-headers", whatGaveUp, "GET /requests/"},
	{"boundless", "answers/status/dripping-body", whatGaveUp, "GET /requests/"},
	{"boundless", "answers/resource/slow-body", whatGaveUp, "GET /tickets/T-1"},
	{"boundless", "answers/resource/endless-body", whatTaken, "bytes"},
	{"boundless", "sizes/status/over-chunked", whatOutcome, "succeeded"},
	{"unescaped", "ids/slash", whatElsewhere, "/tickets/a/b"},
	{"unescaped", "ids/percent-hex", whatSegment, "/tickets/a%2Fb"},
	{"unescaped", "ids/question", whatElsewhere, "/tickets/a?b=c"},
	{"unescaped", "ids/hash", whatSegment, "/tickets/a"},
	{"unescaped", "ids/climb", whatElsewhere, "admin"},
	{"unescaped", "ids/refused-dots", whatNoRead, "2"},
	{"unescaped", "ids/refused-too-long", whatNoRead, "2"},
	{"lenient", "status/duplicate-status", whatOutcome, "succeeded"},
	{"lenient", "status/http-404", whatOutcome, "succeeded"},
	{"lenient", "status/html", whatStatus, "the client reports succeeded"},
	{"lenient", "status/trailing-text", whatOutcome, "succeeded"},
	{"lenient", "status/not-utf-8", whatOutcome, "succeeded"},
	{"lenient", "resource/http-410", whatEvidence, "no evidence"},
	{"lenient", "resource/duplicate-id", whatEvidence, "no evidence"},
	{"pointing", "pointers/leading-zero", whatOutcome, "succeeded"},
	{"pointing", "pointers/plus", whatEvidence, "no evidence"},
	{"pointing", "pointers/blank", whatOutcome, "succeeded"},
	{"pointing", "pointers/tilde-one-decoy", whatOutcome, "succeeded"},
	{"deaf", "submission/409-succeeded", whatOutcome, "succeeded"},
	{"deaf", "submission/422-succeeded", whatOutcome, "succeeded"},
	{"twice", "outcomes/bound-1", whatChecks, "2"},
	{"twice", "outcomes/bound-10", whatChecks, "11"},
}

// TestCareless: each habit fails the checks that are about it, for its reason.
func TestCareless(t *testing.T) {
	atOnce(t, carelessFails, func(t *testing.T, c fails) {
		c.hold(t, inside(carelessClients[c.client].main).try(t, Config{Match: []string{c.check}}).Checks[0])
	})
}

// TestCarelessOfNothing: without a habit the client passes all stories, so nothing but
// the habit fails them.
func TestCarelessOfNothing(t *testing.T) {
	groups := map[string]bool{}
	for _, s := range storyScenarios() {
		groups[s.Group] = true
	}
	var match []string
	for g := range groups {
		match = append(match, g)
	}
	for _, c := range inside(careless{}.main).try(t, Config{Parallel: 16, Match: match}).Checks {
		if c.Status != conformance.Passed {
			t.Errorf("%s is %s: %s\n  %s", c.ID, c.Status, c.Missing, failures(c))
		}
	}
}
