package clientkit

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const whatSegment = "one escaped segment of the path"

// resourceIDs are IDs that a URL carries only when they are escaped, and IDs that it
// cannot carry (section 4, D14).
func resourceIDs() []scenario {
	const group = "Resource IDs"
	const hint = "Percent-encode every byte of the ID but the unreserved ones; helpers for whole paths or queries leave some alone, write + for a blank, or fold dots."
	var all []story
	carry := func(level conformance.Level, name, id string) {
		s := story{Info: must("ids/"+name, group, fmt.Sprintf("the resource is %.60q: read as one escaped segment, succeeded", id), "4 6.6",
			"Identifiers are percent-encoded when they are inserted as path parameter values."), id: id, want: agentic.Succeeded, hint: hint, check: segments}
		if s.Level = level; level == conformance.Reading {
			s.Sections = append(s.Sections, "D14")
		}
		all = append(all, s)
	}
	for name, id := range ordered("plain", "T-1_2.3~4", "blank", "a b", "slash", "a/b", "percent", "50%", "percent-hex", "a%2Fb", "percent-percent", "%25", "question", "a?b=c", "hash", "a#b",
		"plus", "a+b", "semicolon", "a;b=c", "ampersand", "a&b=c", "colon-at", "a:b@c", "quotes", `"a"'b'`, "backslash", `a\b`, "brackets", "[a]{b}<c>|^`", "comma", "a,b!$()*",
		"latin", "é", "cjk", "日本", "emoji", "😀", "decomposed", "e\u0301", "leading-slash", "/a", "trailing-slash", "a/", "double-slash", "a//b", "url", "http://127.0.0.1:1/a", "no-break-space", "a\u00a0b") {
		carry(conformance.Must, name, id)
	}
	for name, id := range ordered("escaped-climb", "..%2f..%2fadmin", "climb", "../../admin", "climb-backslash", `..\admin`, "escaped-dots", "%2e%2e", "three-dots", "...", "dot-name", ".a", "longest", strings.Repeat("x", 1024),
		"longest-escaped", strings.Repeat("é", 512), "right-to-left", "a\u202eb", "zero-width", "a\u200bb") {
		carry(conformance.Reading, name, id)
	}
	for name, id := range ordered("dot", ".", "dots", "..", "nul", "a\x00b", "line-feed", "a\nb", "carriage-return", "a\r\nX: y", "tab", "a\tb", "escape", "a\x1b[2Jb", "delete", "a\x7fb", "c1", "a\u0085b",
		"too-long", strings.Repeat("x", 1025), "too-long-escaped", strings.Repeat("é", 513), "much-too-long", strings.Repeat("x", 60000)) {
		all = append(all, story{Info: reading("ids/refused-"+name, group, fmt.Sprintf("the resource is %.40q, which no path can carry: not read, unknown", id), "4 6.9 D14",
			"An ID that cannot be addressed as one path segment is never put into a URL."), id: id, want: agentic.Unknown, hint: "Check the ID before a URL is made of it.",
			check: func(t *told, _ reply) { conformance.Equal(t.Recorder, whatReadNo, 0, t.arrived(resource)) }})
	}
	for name, path := range ordered("inside", "/tickets/{ticketId}/view", "suffix", "/tickets/{ticketId}.json", "prefix", "/tickets/t-{ticketId}") {
		all = append(all, story{Info: must("ids/placeholder-"+name, group, "the resource's path is "+path+": succeeded", "4 6.6", "Each read has exactly one placeholder, wherever it is in the path."),
			id: "a/b c", terms: terms{path: path}, want: agentic.Succeeded, check: segments})
	}
	return stories(all)
}

// ordered gives pairs of texts in their order.
func ordered(pairs ...string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}

// segments: each read of a resource has its ID as one segment of RFC 3986, and it decodes
// to that very ID.
func segments(t *told, _ reply) {
	for _, a := range t.judge.record() {
		if a.op == resource {
			plain := strings.Trim(a.path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+,;=:@/") == ""
			t.Expect(whatSegment, a.id == t.story.id && plain, fmt.Sprintf("%+.200q", t.story.id), a.path)
		}
	}
}

// actionScenarios name one action of a profile that has two, whose operations differ.
func actionScenarios() []scenario {
	const group = "Several actions"
	of := func(i conformance.Info, run func(context.Context, *trial) error) scenario {
		return scenario{Info: i, feature: FeatureActionID, run: run}
	}
	one := func(action string, want agentic.Outcome) func(context.Context, *trial) error {
		return func(ctx context.Context, t *trial) error {
			if err := t.twoActions(action); err != nil {
				return err
			}
			rep, err := t.call(ctx, t.ask().with(action))
			if err == nil {
				t.finished(rep, want)
			}
			return err
		}
	}
	return []scenario{
		of(must("actions/first", group, "the first of two actions: its operations alone are used, succeeded", "3 4 6.1", "An action names its three operations."), one("create-ticket", agentic.Succeeded)),
		of(must("actions/second", group, "the second of two actions: its operations alone are used, succeeded", "3 4 6.1", "An action names its three operations."), one("create-note", agentic.Succeeded)),
		of(must("actions/unknown", group, "the action is none of the profile's: nothing is sent", "3 6.1", "Actions have stable identifiers, and only one that is described can be bound."),
			func(ctx context.Context, t *trial) error {
				if err := t.twoActions("create-ticket"); err != nil {
					return err
				}
				rep, err := t.call(ctx, t.ask().with("create-tickets"))
				if err == nil {
					t.Expect(whatOutcome, rep.receipt == nil || rep.receipt.Outcome == agentic.Unknown, "no receipt, or one of unknown", string(rep.stdout))
					t.silent(rep)
				}
				return err
			}),
		of(must("actions/other-on-resume", group, "the same request ID is used again for the other action: nothing is sent for it", "6.2 6.4 D8",
			"A request is bound to its action before it is sent, and is submitted at most once."),
			func(ctx context.Context, t *trial) error {
				if err := t.twoActions("create-ticket"); err != nil {
					return err
				}
				first, err := t.call(ctx, t.ask().with("create-ticket"))
				if err != nil {
					return err
				}
				t.finished(first, agentic.Succeeded)
				again, err := t.call(ctx, t.ask().with("create-note"))
				if err == nil {
					r := again.receipt
					t.Expect(whatOutcome, r == nil || r.ActionID == "create-ticket" || r.Outcome == agentic.Unknown, "no receipt of the other action but unknown", string(again.stdout))
					t.sent(t.ask(), 1)
				}
				return err
			}),
	}
}

// with is the ask with an action.
func (a ask) with(action string) ask {
	a.action = action
	return a
}

// twoActions gives the trial a profile of two actions, create-ticket and create-note, and
// an honest service of the one.
func (t *trial) twoActions(action string) error {
	note := strings.NewReplacer("create-ticket", "create-note", "createTicket", "createNote", "getRequestStatus", "getNoteStatus", "getTicket", "getNote", "ticketId", "noteId")
	var s terms
	profile := withOrigin(s.profile(), t.judge.origin)
	begin := strings.Index(profile, `[{"id"`) + 1
	second := note.Replace(profile[begin : len(profile)-2])
	profile = profile[:len(profile)-2] + "," + second + "]}"
	openapi := s.openapi()
	begin = strings.Index(openapi, `"/tickets"`)
	paths := strings.NewReplacer(`"/tickets`, `"/notes`, `"/requests`, `"/note-requests`).Replace(openapi[begin : len(openapi)-2])
	openapi = openapi[:len(openapi)-2] + "," + note.Replace(paths) + "}}"
	plan, err := agentic.Load([]byte(profile), []byte(openapi), action, agentic.Options{AllowLoopback: true})
	if err != nil {
		return err
	}
	t.plan, t.profile, t.openapi, t.input = plan, []byte(profile), []byte(openapi), []byte(exampleInput)
	t.judge.mu.Lock()
	p := &t.judge.paths
	p.submit, p.status, p.resource = plan.Paths()
	t.judge.mu.Unlock()
	told := &told{trial: t, story: story{id: "T-1"}}
	answers := func(r reaction) respond {
		return func(_ int, w http.ResponseWriter, req *http.Request) bool { r(told, w, req); return true }
	}
	t.script(script{submit: answers(honestSubmit), status: answers(honestStatus), resource: answers(honestResource)})
	return nil
}
