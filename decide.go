package agentic

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// Answer is what came back over HTTP from one exchange, already within the
// limits of D15. The zero Answer is no answer at all.
type Answer struct {
	Status      int    // HTTP status code, 0 without an answer
	ContentType string // the header as it was sent
	Body        []byte
}

// Check is one thing that an answer had to be, with what was found. Expected and
// Found are for people: short, bounded, untrusted (D6).
type Check struct {
	Name     string `json:"name"` // such as "status", "request_id", "input /subject"
	OK       bool   `json:"ok"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// StatusDecision is what a status answer says of a request (section 4, D12).
type StatusDecision struct {
	Usable     bool    // every check passed: the answer establishes Outcome
	Outcome    Outcome // Unknown unless Usable
	ResourceID string  // set only with Succeeded
	Checks     []Check
	Reason     string // one sentence, for a receipt
}

// DecideStatus reads the answer of the status operation. Only HTTP 200 with
// application/json, strict JSON, the exact request_id, a known status and the
// resource_id that fits it counts; everything else is Unknown (D12). Other
// members are ignored. Usable with Succeeded is the service's claim, and not
// verified yet.
func DecideStatus(requestID string, a Answer) StatusDecision {
	cs := checks{answer: "status answer"}
	root, parsed := cs.json(a, "application/json", func(media string) bool { return media == "application/json" })
	var outcome Outcome
	var resourceID string
	if parsed && cs.add("object", root.Kind() == strictjson.Object, "an object", root.Kind().String(),
		"The status answer is not a JSON object.") {
		id, _ := root.Member("request_id")
		cs.add("request_id", sameText(id, requestID), quoted(requestID), show(id),
			"The status answer names another request_id or none.")
		outcome, resourceID = cs.outcome(root)
	}
	d := StatusDecision{Usable: cs.reason == "", Outcome: Unknown, Checks: cs.list, Reason: cs.reason}
	if !d.Usable {
		return d
	}
	d.Outcome, d.ResourceID = outcome, resourceID
	switch outcome {
	case Succeeded:
		d.Reason = "The service says that the action succeeded; its resource is not verified yet."
	case Failed:
		d.Reason = "The service says that the action did not complete."
	case Pending:
		d.Reason = "The service says that the action is not resolved yet."
	default:
		d.Reason = "The service says that it does not know the outcome."
	}
	return d
}

// outcome reads status and the resource_id that has to fit it.
func (cs *checks) outcome(root strictjson.Value) (o Outcome, resourceID string) {
	status, _ := root.Member("status")
	text, _ := status.Text()
	o = Outcome(text)
	if !cs.add("status", o.Valid(), "succeeded, failed, pending or unknown", show(status),
		"The status answer has no status that the draft knows.") {
		return Unknown, ""
	}
	id, _ := root.Member("resource_id")
	if o != Succeeded {
		cs.add("resource_id", id.Kind() == strictjson.Null, "null", show(id),
			fmt.Sprintf("The status answer says %s, but its resource_id is not null.", o))
		return o, ""
	}
	resourceID, _ = id.Text()
	cs.add("resource_id", resourceID != "", "a string that is not empty", show(id),
		"The status answer says succeeded, but its resource_id is not a string with content.")
	return o, resourceID
}

// ResourceDecision is what a resource answer proves of a request (section 6.6,
// D13).
type ResourceDecision struct {
	Verified bool // every check passed
	Checks   []Check
	Evidence *ReceiptEvidence // set only when Verified
	Reason   string           // one sentence, for a receipt
}

// DecideResource checks the evidence in the answer of the verify operation: HTTP
// 200, a JSON media type, strict JSON, then resource ID, request ID, success
// state and every input pair. A missing value never matches. A resource ID that
// no URL can carry (D14) is never verified, whatever the answer is.
func (p *Plan) DecideResource(requestID, resourceID string, in Input, a Answer) ResourceDecision {
	cs := checks{answer: "resource answer"}
	url, err := p.ResourceURL(resourceID)
	if err != nil {
		cs.add("resource url", false, "an ID that is one path segment", quoted(resourceID),
			"The service named a resource that no URL can carry: "+addressReason(err)+".")
		return ResourceDecision{Checks: cs.list, Reason: cs.reason}
	}
	ev := p.Action.Evidence
	proof := &ReceiptEvidence{URL: url, ResourceID: resourceID, RequestID: requestID}
	root, parsed := cs.json(a, "application/json or +json", isJSONMedia)
	if parsed {
		id, _ := root.Lookup(ev.ResourceIDPointer)
		cs.add("resource id "+ev.ResourceIDPointer, sameText(id, resourceID), quoted(resourceID), show(id),
			"The resource does not have the resource ID that the service named.")
		request, _ := root.Lookup(ev.RequestIDPointer)
		cs.add("request id "+ev.RequestIDPointer, sameText(request, requestID), quoted(requestID), show(request),
			"The resource does not belong to this request ID.")
		state, _ := root.Lookup(ev.StatePointer)
		text, isText := state.Text()
		cs.add("state "+ev.StatePointer, isText && slices.Contains(ev.SuccessValues, text),
			"one of "+quotedList(ev.SuccessValues), show(state),
			"The resource is not in a state that counts as success.")
		proof.State = text
		for _, pair := range ev.InputBindings {
			want, given := in.value.Lookup(pair.InputPointer)
			got, found := root.Lookup(pair.ResourcePointer)
			if cs.add("input "+pair.InputPointer, given && found && strictjson.Equal(want, got), show(want), show(got),
				fmt.Sprintf("The resource's %s is not the input's %s.", shorten(pair.ResourcePointer, maxShown), shorten(pair.InputPointer, maxShown))) {
				proof.Matched = append(proof.Matched, pair)
			}
		}
	}
	if cs.reason != "" {
		return ResourceDecision{Checks: cs.list, Reason: cs.reason}
	}
	return ResourceDecision{Verified: true, Checks: cs.list, Evidence: proof,
		Reason: "The resource has the expected resource ID, request ID, state and input values."}
}

// checks collects what an answer had to be. reason belongs to the first check
// that failed; no text of the service is in it.
type checks struct {
	answer string
	list   []Check
	reason string
}

func (cs *checks) add(name string, ok bool, expected, found, reason string) bool {
	cs.list = append(cs.list, Check{Name: shorten(name, maxShown), OK: ok,
		Expected: shorten(expected, maxShown), Found: shorten(found, maxShown)})
	if !ok && cs.reason == "" {
		cs.reason = reason
	}
	return ok
}

// json checks what every answer has to be, and parses the body. Every check is
// made, whether or not an earlier one failed, for the people who read them.
func (cs *checks) json(a Answer, media string, accepts func(media string) bool) (root strictjson.Value, ok bool) {
	if a.Status == 0 {
		cs.add("http status", false, "200", "no answer", "There was no "+cs.answer+".")
		return root, false
	}
	cs.add("http status", a.Status == 200, "200", strconv.Itoa(a.Status),
		fmt.Sprintf("The %s had HTTP status %d instead of 200.", cs.answer, a.Status))
	found, _, err := mime.ParseMediaType(a.ContentType)
	cs.add("media type", err == nil && accepts(found), media, quoted(a.ContentType),
		fmt.Sprintf("The media type of the %s is not %s.", cs.answer, media))
	if len(a.Body) > MaxResponseBytes {
		cs.add("size", false, fmt.Sprintf("at most %d bytes", MaxResponseBytes), fmt.Sprintf("%d bytes", len(a.Body)),
			fmt.Sprintf("The %s is longer than %d bytes.", cs.answer, MaxResponseBytes))
		return root, false
	}
	root, err = strictjson.Parse(a.Body)
	if err == nil {
		return root, cs.add("json", true, "strict JSON", "strict JSON", "")
	}
	where := ""
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		where = fmt.Sprintf(": %s in line %d, column %d", e.Reason, e.Line, e.Column)
	}
	return root, cs.add("json", false, "strict JSON", err.Error(),
		fmt.Sprintf("The %s is not strict JSON%s.", cs.answer, where))
}

// isJSONMedia takes application/json and every type with the suffix +json.
func isJSONMedia(media string) bool {
	major, minor, slash := strings.Cut(media, "/")
	if !slash || major == "" {
		return false
	}
	return media == "application/json" || strings.HasSuffix(minor, "+json") && minor != "+json"
}

// sameText reports whether v is that very string; the empty one identifies
// nothing.
func sameText(v strictjson.Value, want string) bool {
	s, ok := v.Text()
	return ok && s == want && want != ""
}

func quotedList(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = quoted(w)
	}
	return strings.Join(list, ", ")
}
