package story

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// quoted is an ID in quotes, with an ellipsis for what follows its first most bytes.
func quoted(id string, most int) string {
	if len(id) <= most {
		return strconv.Quote(id)
	}
	return strconv.Quote(strings.ToValidUTF8(id[:most], "")) + "…"
}

// identifiers are IDs that a URL carries only when they are escaped, and IDs that it
// cannot carry (section 4, D14).
func identifiers() []Story {
	const group = "Resource IDs"
	const hint = "Percent-encode every byte of the ID but the unreserved ones; helpers for whole paths or queries leave some alone, write + for a blank, or fold dots."
	var all []Story
	carry := func(level conformance.Level, name, id string) {
		s := Story{Info: must("ids/"+name, group, fmt.Sprintf("the resource is %s: read as one escaped segment, succeeded", quoted(id, 60)), "4 6.6",
			"Identifiers are percent-encoded when they are inserted as path parameter values."), ResourceID: id, Want: agentic.Succeeded, Hint: hint, Segment: true}
		if s.Level = level; level == conformance.Reading {
			s.Sections = append(s.Sections, "D14")
		}
		all = append(all, s)
	}
	for name, id := range ordered(
		"plain", "T-1_2.3~4", "blank", "a b", "slash", "a/b",
		"percent", "50%", "percent-hex", "a%2Fb", "percent-percent", "%25",
		"question", "a?b=c", "hash", "a#b", "plus", "a+b",
		"semicolon", "a;b=c", "ampersand", "a&b=c", "colon-at", "a:b@c",
		"quotes", `"a"'b'`, "backslash", `a\b`, "brackets", "[a]{b}<c>|^`",
		"comma", "a,b!$()*", "latin", "é", "cjk", "日本",
		"emoji", "😀", "decomposed", "e\u0301", "leading-slash", "/a",
		"trailing-slash", "a/", "double-slash", "a//b", "url", "http://127.0.0.1:1/a",
		"no-break-space", "a\u00a0b",
	) {
		carry(conformance.Must, name, id)
	}
	for name, id := range ordered(
		"escaped-climb", "..%2f..%2fadmin", "climb", "../../admin", "climb-backslash", `..\admin`,
		"escaped-dots", "%2e%2e", "three-dots", "...", "dot-name", ".a",
		"longest", strings.Repeat("x", 1024), "longest-escaped", strings.Repeat("é", 512), "right-to-left", "a\u202eb",
		"zero-width", "a\u200bb",
	) {
		carry(conformance.Reading, name, id)
	}
	for name, id := range ordered(
		"dot", ".", "dots", "..", "nul", "a\x00b",
		"line-feed", "a\nb", "carriage-return", "a\r\nX: y", "tab", "a\tb",
		"escape", "a\x1b[2Jb", "delete", "a\x7fb", "c1", "a\u0085b",
		"too-long", strings.Repeat("x", 1025), "too-long-escaped", strings.Repeat("é", 513), "much-too-long", strings.Repeat("x", 60000),
	) {
		all = append(all, Story{Info: reading("ids/refused-"+name, group, fmt.Sprintf("the resource is %s, which no path can carry: not read, unknown", quoted(id, 40)), "4 6.9 D14",
			"An ID that cannot be addressed as one path segment is never put into a URL."), ResourceID: id, Want: agentic.Unknown, Hint: "Check the ID before a URL is made of it.", NoRead: true})
	}
	for name, path := range ordered(
		"inside", "/tickets/{ticketId}/view", "suffix", "/tickets/{ticketId}.json", "prefix", "/tickets/t-{ticketId}",
	) {
		all = append(all, Story{Info: must("ids/placeholder-"+name, group, "the resource's path is "+path+": succeeded", "4 6.6", "Each read has exactly one placeholder, wherever it is in the path."),
			ResourceID: "a/b c", Terms: Terms{path: path}, Want: agentic.Succeeded, Segment: true})
	}
	return all
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
