package story

import (
	"fmt"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// evidence checks what of a resource counts as that of the request (section 6.6).
func evidence() []Story {
	const group = "Evidence"
	const asks = "Resource ID, request ID, success state and all input pairs are checked, and a missing value is no match."
	var all []Story
	wrong := func(id, title, text string) {
		all = append(all, Story{Info: must("evidence/"+id, group, title+": unknown", "3 6.6 6.7 6.9", asks), Input: threeInput, Terms: Terms{pairs: threePairs},
			Resource: always(say(200, text)), Want: agentic.Unknown, Hint: "The one thing that is wrong: " + title + "."})
	}
	const members = `"subject":"Printer","place":{"floor":2},"urgent":true}`
	all = append(all, Story{Info: must("evidence/right", group, "every piece is right: succeeded", "3 6.6 6.7", asks), Input: threeInput, Terms: Terms{pairs: threePairs}, Want: agentic.Succeeded})
	wrong("id", "the resource has another ID", `{"id":"T-2","request_id":{key},"status":"open",{members}`)
	wrong("id-number", "the resource's ID is the number that the text of its ID names", `{"id":1,"request_id":{key},"status":"open",{members}`)
	all[len(all)-1].ResourceID = "1"
	wrong("id-case", "the resource's ID is in lower case", `{"id":"t-1","request_id":{key},"status":"open",{members}`)
	wrong("id-missing", "the resource has no ID", `{"request_id":{key},"status":"open",{members}`)
	wrong("request", "the resource belongs to another request", `{"id":{id},"request_id":"00000000-0000-4000-8000-000000000000","status":"open",{members}`)
	wrong("request-case", "the resource's request ID is in upper case", `{"id":{id},"request_id":{KEY},"status":"open",{members}`)
	wrong("request-missing", "the resource has no request ID", `{"id":{id},"status":"open",{members}`)
	wrong("request-null", "the resource's request ID is null", `{"id":{id},"request_id":null,"status":"open",{members}`)
	wrong("state", "the resource is in a state that is no success", `{"id":{id},"request_id":{key},"status":"rejected",{members}`)
	wrong("state-case", "the resource's state differs in case from a success", `{"id":{id},"request_id":{key},"status":"Open",{members}`)
	wrong("state-missing", "the resource has no state", `{"id":{id},"request_id":{key},{members}`)
	wrong("state-array", "the resource's state is an array of a success", `{"id":{id},"request_id":{key},"status":["open"],{members}`)
	const right = `{"id":{id},"request_id":{key},"status":"open",`
	wrong("first-pair", "the first of three input pairs differs", right+strings.Replace(members, "Printer", "Copier", 1))
	wrong("middle-pair", "the second of three input pairs differs", right+strings.Replace(members, "2", "3", 1))
	wrong("last-pair", "the last of three input pairs differs", right+strings.Replace(members, "true", "false", 1))
	wrong("last-pair-missing", "the last of three input pairs is missing in the resource", right+strings.Replace(members, `,"urgent":true`, "", 1))
	all = append(all, Story{Info: must("evidence/closed", group, "the state is the second of successValues: succeeded", "3 6.6", asks),
		Resource: always(say(200, `{"id":{id},"request_id":{key},"status":"closed",{members}`)), Want: agentic.Succeeded})
	return all
}

const threeInput = `{"subject":"Printer","place":{"floor":2},"urgent":true}`

var threePairs = []string{"/subject", "/subject", "/place/floor", "/place/floor", "/urgent", "/urgent"}

// values compares a value of the input with one of the resource (section 3, D2).
func values() []Story {
	const binding, reads = conformance.Must, conformance.Reading
	const yes, no = agentic.Succeeded, agentic.Unknown
	var all []Story
	for _, v := range []struct {
		id, input, resource string
		want                agentic.Outcome
		level               conformance.Level
	}{
		{"integer", `7`, `7`, yes, binding},
		{"other-integer", `7`, `8`, no, binding},
		{"beyond-2-53", `9007199254740993`, `9007199254740993`, yes, reads},
		{"beyond-2-53-off-by-one", `9007199254740993`, `9007199254740992`, no, reads},
		{"beyond-2-64-off-by-one", `18446744073709551617`, `18446744073709551616`, no, reads},
		{"negative-beyond-2-53-off-by-one", `-9007199254740993`, `-9007199254740992`, no, reads},
		{"decimal-point", `1`, `1.0`, yes, reads},
		{"exponent", `1`, `1e0`, yes, reads},
		{"exponent-spelling", `100000`, `1E+5`, yes, reads},
		{"fraction-spelling", `0.10`, `10e-2`, yes, reads},
		{"negative-zero", `0`, `-0`, yes, reads},
		{"sign", `1`, `-1`, no, binding},
		{"fraction-beyond-double", `0.1`, `0.1000000000000000055511151231257827`, no, reads},
		{"fraction-close", `0.30000000000000004`, `0.3`, no, binding},
		{"huge", `1e400`, `10e399`, yes, reads},
		{"huge-differs", `1e400`, `1e401`, no, reads},
		{"tiny-is-not-zero", `1e-400`, `0`, no, reads},
		{"true-one", `true`, `1`, no, binding},
		{"one-true", `1`, `true`, no, binding},
		{"false-zero", `false`, `0`, no, binding},
		{"false-null", `false`, `null`, no, binding},
		{"text-number", `"1"`, `1`, no, binding},
		{"number-text", `1`, `"1"`, no, binding},
		{"true-text", `true`, `"true"`, no, binding},
		{"null-text", `null`, `"null"`, no, binding},
		{"null", `null`, `null`, yes, reads},
		{"null-zero", `null`, `0`, no, binding},
		{"null-empty-text", `null`, `""`, no, binding},
		{"text-null", `"x"`, `null`, no, binding},
		{"empty-text", `""`, `""`, yes, binding},
		{"zero-empty-text", `0`, `""`, no, binding},
		{"escapes", `"A/\"\\"`, `"\u0041\/\u0022\u005c"`, yes, binding},
		{"surrogate-pair", `"😀"`, `"\ud83d\uDE00"`, yes, binding},
		{"normalization", "\"\u00e9\"", "\"e\u0301\"", no, binding},
		{"compatibility", "\"\ufb01\"", `"fi"`, no, binding},
		{"case", `"Straße"`, `"STRASSE"`, no, binding},
		{"letter-case", `"a"`, `"A"`, no, binding},
		{"trailing-blank", `"a"`, `"a "`, no, binding},
		{"control-character", `"a\u0000b"`, `"a\u0000b"`, yes, binding},
		{"after-nul", `"a\u0000b"`, `"a\u0000c"`, no, binding},
		{"line-separator", `"\u2028"`, "\"\u2028\"", yes, binding},
		{"member-order", `{"a":1,"b":{"c":[1,2],"d":null}}`, `{"b":{"d":null,"c":[1,2]},"a":1}`, yes, binding},
		{"member-more", `{"a":1}`, `{"a":1,"b":2}`, no, binding},
		{"member-less", `{"a":1,"b":2}`, `{"a":1}`, no, binding},
		{"member-null-or-missing", `{"a":1,"b":null}`, `{"a":1}`, no, binding},
		{"member-name-case", `{"a":1}`, `{"A":1}`, no, binding},
		{"member-deep", `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, no, binding},
		{"member-numbers", `{"a":[1,2.50]}`, `{"a":[1.0,2.5]}`, yes, reads},
		{"proto-member", `{"__proto__":{"x":1}}`, `{"__proto__":{"x":2}}`, no, binding},
		{"array", `[1,"a",null]`, `[1,"a",null]`, yes, binding},
		{"array-order", `[1,2]`, `[2,1]`, no, binding},
		{"array-more", `[1,2]`, `[1,2,3]`, no, binding},
		{"array-text", `[1,2]`, `"1,2"`, no, binding},
		{"empty-array-object", `[]`, `{}`, no, binding},
		{"empty-array-null", `[]`, `null`, no, binding},
		{"array-object", `["a"]`, `{"0":"a"}`, no, binding},
		{"array-of-one", `["a"]`, `"a"`, no, binding},
	} {
		verb := "is"
		if v.want == no {
			verb = "is not"
		}
		s := Story{Info: must("values/"+v.id, "Values of the evidence", fmt.Sprintf("the input's %s %s the resource's %s: %s", v.input, verb, v.resource, v.want), "3 6.6",
			"Input evidence is compared as structural JSON equality: members in any order, texts by their code points, numbers by their value."),
			Input: `{"subject":"s","v":` + v.input + `}`, Terms: Terms{pairs: []string{"/subject", "/subject", "/v", "/v"}}, Want: v.want,
			Resource: always(say(200, `{"id":{id},"request_id":{key},"status":"open","subject":"s","v":`+v.resource+`}`)),
			Hint:     "Look at how two JSON values are compared, and whether numbers pass through a floating-point type, in what is sent and in what is compared."}
		if s.Level = v.level; v.level == reads {
			s.Sections = append(s.Sections, "D2")
		}
		all = append(all, s)
	}
	return all
}

// pointers resolves evidence pointers (section 3, RFC 6901, D5).
func pointers() []Story {
	const group = "Pointers"
	const asks = "JSON Pointers use the rules of RFC 6901, and what they do not find is no match."
	var all []Story
	for _, p := range []struct {
		id, title                               string
		input, inputPointer, members, inPointer string
		want                                    agentic.Outcome
	}{
		{"array", "an element of an array", `{"items":[{"sku":"A"},{"sku":"B"}]}`, "/items/1/sku", `"items":[{"sku":"x"},{"sku":"B"}]`, "/items/1/sku", agentic.Succeeded},
		{"array-other-element", "the wanted value is at another element", `{"items":["A"]}`, "/items/0", `"items":["x","A"]`, "/items/0", agentic.Unknown},
		{"slash", "~1 is a slash in a name", `{"a/b":"A","a":{"b":"x"}}`, "/a~1b", `"a":{"b":"x"},"a/b":"A"`, "/a~1b", agentic.Succeeded},
		{"slash-decoy", "~1 does not part two names", `{"v":"A"}`, "/v", `"a":{"b":"A"},"a/b":"x"`, "/a~1b", agentic.Unknown},
		{"tilde", "~0 is a tilde in a name", `{"m~n":"A"}`, "/m~0n", `"m~n":"A","m~0n":"x"`, "/m~0n", agentic.Succeeded},
		{"tilde-decoy", "~0 is not itself", `{"v":"A"}`, "/v", `"m~n":"x","m~0n":"A"`, "/m~0n", agentic.Unknown},
		{"tilde-one", "~01 is the name ~1, and no slash", `{"~1":"A","/":"x"}`, "/~01", `"/":"x","~1":"A"`, "/~01", agentic.Succeeded},
		{"tilde-one-decoy", "~01 is unescaped once", `{"v":"A"}`, "/v", `"/":"A","~1":"x"`, "/~01", agentic.Unknown},
		{"number-name", "a number names a member of an object", `{"0":"A"}`, "/0", `"0":"A"`, "/0", agentic.Succeeded},
		{"zero-name", "01 names a member of an object", `{"01":"A","1":"x"}`, "/01", `"1":"x","01":"A"`, "/01", agentic.Succeeded},
		{"empty-name", "a pointer may name the empty member", `{"":"A"}`, "/", `"":"A"`, "/", agentic.Succeeded},
		{"percent", "a pointer is not percent-decoded", `{"a%2Fb":"A"}`, "/a%2Fb", `"a/b":"x","a%2Fb":"A"`, "/a%2Fb", agentic.Succeeded},
		{"name-case", "names are told apart by case", `{"v":"A"}`, "/v", `"V":"A"`, "/v", agentic.Unknown},
		{"unicode", "a name is of any characters", `{"größe 😀":"A"}`, "/größe 😀", `"gr\u00f6\u00dfe \ud83d\ude00":"A"`, "/größe 😀", agentic.Succeeded},
		{"dot", "a dot parts nothing", `{"a.b":"A"}`, "/a.b", `"a":{"b":"x"},"a.b":"A"`, "/a.b", agentic.Succeeded},
		{"leading-zero", "no index of an array begins with a zero", `{"v":"A"}`, "/v", `"items":["x","A"]`, "/items/01", agentic.Unknown},
		{"past-end", "- is behind the end of an array", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/-", agentic.Unknown},
		{"negative", "-1 is no index", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/-1", agentic.Unknown},
		{"plus", "+0 is no index", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/+0", agentic.Unknown},
		{"blank", "a blank is no part of an index", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/ 0", agentic.Unknown},
		{"fraction", "0.0 is no index", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/0.0", agentic.Unknown},
		{"other-digits", "digits of other scripts are no index", `{"v":"A"}`, "/v", `"items":["x","A"]`, "/items/١", agentic.Unknown},
		{"overflow", "2 to the power of 64 is not 0", `{"v":"A"}`, "/v", `"items":["A"]`, "/items/18446744073709551616", agentic.Unknown},
		{"length", "length names nothing in an array", `{"v":1}`, "/v", `"items":["A"]`, "/items/length", agentic.Unknown},
		{"text-length", "length names nothing in a text", `{"v":1}`, "/v", `"v":"A"`, "/v/length", agentic.Unknown},
		{"text-index", "an index names nothing in a text", `{"v":"A"}`, "/v", `"v":"A"`, "/v/0", agentic.Unknown},
		{"through-null", "nothing is below null", `{"v":null}`, "/v", `"v":null`, "/v/x", agentic.Unknown},
		{"missing", "a missing value is no match for null", `{"v":null}`, "/v", `"w":null`, "/v", agentic.Unknown},
		{"missing-text", "a missing value is no match for an empty text", `{"v":""}`, "/v", `"w":""`, "/v", agentic.Unknown},
		{"inherited", "what no document has, such as __proto__, is missing", `{"v":{}}`, "/v", `"w":{}`, "/__proto__", agentic.Unknown},
		{"missing-input", "the input has no such value, nor has the resource", `{"v":"A"}`, "/missing", `"v":"A"`, "/missing", ""},
		{"missing-input-inherited", "toString is no value of the input", `{"v":"A"}`, "/toString", `"v":"A"`, "/toString", ""},
		{"missing-input-length", "length is no value of the input's array", `{"items":["A"]}`, "/items/length", `"v":1`, "/v", ""},
		{"missing-input-index", "the input's array ends before the index", `{"items":["A"]}`, "/items/1", `"items":["A"]`, "/items/1", ""},
	} {
		s := Story{Info: must("pointers/"+p.id, group, fmt.Sprintf("%s: %s", p.title, p.want), "3 6.6", asks), Input: p.input, Terms: Terms{pairs: []string{p.inputPointer, p.inPointer}}, Want: p.want,
			Resource: always(say(200, `{"id":{id},"request_id":{key},"status":"open",`+p.members+`}`)), Hint: "Look at how the pointer " + p.inPointer + " is resolved: " + p.title + "."}
		if p.want == "" {
			s.Title, s.Sections, s.Asks = p.title+": nothing is sent", []string{"3", "4", "6.1"}, "The input evidence fields are required before anything is sent."
		}
		all = append(all, s)
	}
	nested := Story{Info: must("pointers/nested", group, "ID, request ID and state are deep in the resource, behind escapes and indexes: succeeded", "3 6.6", asks), Want: agentic.Succeeded,
		Terms:    Terms{id: "/data/0/id", request: "/meta/x~1request~0id", state: "/data/1/states/0"},
		Resource: always(say(200, `{"id":"x","request_id":"x","status":"x","data":[{"id":{id}},{"states":["open"]}],"meta":{"x/request~id":{key}},{members}`))}
	decoy := nested
	decoy.Info = must("pointers/nested-decoy", group, "the top of the resource is right, but the pointers name other places: unknown", "3 6.6", asks)
	decoy.Want, decoy.Resource = agentic.Unknown, always(HonestResource)
	return append(all, nested, decoy)
}
