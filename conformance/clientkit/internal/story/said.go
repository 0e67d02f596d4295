package story

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

// said is a whole answer that is not what the draft asks for, or looks as if it were not.
// Its ID is below that of its Operation.
type said struct {
	id, title string
	level     conformance.Level
	sections  string
	do        Reaction
	want      agentic.Outcome
}

// answers are the answers of status and resource one thing at a time.
func answers() []Story {
	var all []Story
	for _, o := range roles[1:] {
		of, own := "the status", saidOfStatus()
		if o.id == theResource.id {
			of, own = "the resource", saidOfResource()
		}
		for _, s := range slices.Concat(saidOfBoth(o), own) {
			story := Story{Info: must(o.id+"/"+s.id, "Answers of "+of, fmt.Sprintf("%s %s: %s", of, s.title, s.want), s.sections,
				"Only a whole and right answer establishes an outcome or is evidence; everything else stays unknown."), Want: s.want,
				Hint: "Look at how this answer is checked before anything is concluded from it: " + s.title + "."}
			story.Level = s.level
			o.spoil(&story, s.do)
			all = append(all, story)
		}
	}
	return all
}

// saidOfBoth are answers that are wrong, or right, for a status as for a resource.
func saidOfBoth(o role) []said {
	text, section, decision := o.text, "4", "D12"
	codes, level := "4 6.9", conformance.Must // HTTP 200 is required for the status
	if o.id == theResource.id {
		section, decision, codes, level = "6.6", "D13", "6.6 D13", conformance.Reading
	}
	add := func(member string) string { return strings.Replace(text, "{", "{"+member+",", 1) }
	all := []said{
		{"charset", "is application/json; charset=utf-8", conformance.Reading, section + " " + decision, sayAs(200, "application/json; charset=utf-8", text), agentic.Succeeded},
		{"media-upper-case", "is Application/JSON", conformance.Reading, section + " " + decision, sayAs(200, "Application/JSON", text), agentic.Succeeded},
		{"more-members", "has a member more, which nothing names", conformance.Reading, section + " " + decision, say(200, add(`"more":[{"a":null}]`)), agentic.Succeeded},
		{"white-space", "is spread over lines", conformance.Reading, section + " " + decision, say(200, "\r\n\t "+strings.ReplaceAll(text, ",", "\n,\t")+"\n"), agentic.Succeeded},
		{"html", "is text/html with a right body", conformance.Reading, section + " " + decision, sayAs(200, "text/html", text), agentic.Unknown},
		{"plain", "is text/plain with a right body", conformance.Reading, section + " " + decision, sayAs(200, "text/plain", text), agentic.Unknown},
		{"no-media-type", "has no media type", conformance.Reading, section + " " + decision, sayAs(200, "", text), agentic.Unknown},
		{"two-media-types", "has two media types", conformance.Reading, section + " " + decision, func(t *Told, w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = []string{asJSON, "text/html"}
			_, _ = w.Write([]byte(t.fill(text)))
		}, agentic.Unknown},
		{"encoded", "has a content coding that nobody asked for", conformance.Reading, section + " D15", func(t *Told, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "x-unasked")
			say(200, text)(t, w, r)
		}, agentic.Unknown},
		{"empty", "is empty", conformance.Must, section + " 6.9", say(200, ""), agentic.Unknown},
		{"page", "is a page of HTML in spite of its media type", conformance.Must, section + " 6.9", say(200, "<!doctype html><title>Sign in</title>"), agentic.Unknown},
		{"half", "is half of a JSON text", conformance.Must, section + " 6.9", say(200, text[:len(text)*2/3]), agentic.Unknown},
		{"array", "is an array with the right object in it", conformance.Must, section + " 6.9", say(200, "["+text+"]"), agentic.Unknown},
		{"text", "is the right object as a JSON text", conformance.Must, section + " 6.9", func(t *Told, w http.ResponseWriter, r *http.Request) {
			say(200, fmt.Sprintf("%q", t.fill(text)))(t, w, r)
		}, agentic.Unknown},
		{"null", "is null", conformance.Must, section + " 6.9", say(200, "null"), agentic.Unknown},
		{"not-a-number", "has NaN in it, which is not JSON", conformance.Must, section + " 6.9", say(200, add(`"n":NaN`)), agentic.Unknown},
		{"single-quotes", "is written with single quotes", conformance.Must, section + " 6.9", say(200, strings.ReplaceAll(text, `"`, `'`)), agentic.Unknown},
		{"trailing-comma", "has a comma after its last member", conformance.Must, section + " 6.9", say(200, add(`"a":[1,]`)), agentic.Unknown},
		{"trailing-text", "has something behind its end", conformance.Must, section + " 6.9", say(200, text+"x"), agentic.Unknown},
		{"two-values", "is two JSON texts, the second of which says something else", conformance.Must, section + " 6.9", say(200, text+"\n"+unknownText), agentic.Unknown},
		{"byte-order-mark", "begins with a byte order mark", conformance.Reading, section + " D1", say(200, "\ufeff"+text), agentic.Unknown},
		{"utf-16", "is in UTF-16", conformance.Reading, section + " D1", func(t *Told, w http.ResponseWriter, r *http.Request) {
			say(200, "\xff\xfe"+strings.Join(strings.Split(t.fill(text), ""), "\x00")+"\x00")(t, w, r)
		}, agentic.Unknown},
		{"not-utf-8", "has a byte that is not UTF-8 in an unused member", conformance.Reading, section + " D1", say(200, add("\"note\":\"\xff\"")), agentic.Unknown},
		{"lone-surrogate", "has half of a surrogate pair in an unused member", conformance.Reading, section + " D1", say(200, add(`"note":"\ud83d"`)), agentic.Unknown},
		{"deep", "has an unused member 20,000 arrays deep", conformance.Reading, section + " D1",
			say(200, add(`"note":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000))), agentic.Unknown},
		{"duplicate-unused", "has a member twice that nothing names", conformance.Reading, section + " D1", say(200, add(`"a":1,"b":2,"a":1`)), agentic.Unknown},
		{"duplicate-nested", "has a member twice deep in an unused one", conformance.Reading, section + " D1", say(200, add(`"a":[{"b":1,"b":1}]`)), agentic.Unknown},
	}
	for _, code := range []int{201, 202, 203, 206, 299, 400, 401, 404, 409, 410, 429, 500, 503, 600} {
		all = append(all, said{fmt.Sprintf("http-%d", code), fmt.Sprintf("has HTTP status %d and a right body", code), level, codes, say(code, text), agentic.Unknown})
	}
	for _, code := range []int{204, 205, 300, 304} { // whose bodies no server writes for us
		all = append(all, said{fmt.Sprintf("http-%d", code), fmt.Sprintf("has HTTP status %d and a right body", code), level, codes, wire(func(t *Told, c *taken) {
			body := t.fill(text)
			c.write(t, fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", code, len(body), body))
		}), agentic.Unknown})
	}
	return all
}

// saidOfStatus are the members of a status answer.
func saidOfStatus() []said {
	all := []said{
		{"problem", "is application/problem+json", conformance.Reading, "4 D12", sayAs(200, "application/problem+json", statusText), agentic.Unknown},
		{"duplicate-status", "says pending and then succeeded, in one object", conformance.Reading, "4 D1", tell(`{"request_id":{key},"status":"pending","status":"succeeded","resource_id":{id}}`), agentic.Unknown},
		{"duplicate-status-reversed", "says succeeded and then failed, in one object", conformance.Reading, "4 D1", tell(`{"request_id":{key},"resource_id":{id},"status":"succeeded","status":"failed"}`), agentic.Unknown},
		{"duplicate-escaped", "has a second status, spelled with an escape", conformance.Reading, "4 D1", tell(`{"request_id":{key},"st\u0061tus":"failed","status":"succeeded","resource_id":{id}}`), agentic.Unknown},
		{"duplicate-request", "has the request ID of somebody else and then the right one", conformance.Reading, "4 D1", tell(`{"request_id":"somebody-elses","request_id":{key},"status":"succeeded","resource_id":{id}}`), agentic.Unknown},
		{"duplicate-resource", "names two resources", conformance.Reading, "4 D1", tell(`{"request_id":{key},"status":"succeeded","resource_id":"T-2","resource_id":{id}}`), agentic.Unknown},
		{"escaped", "writes its members and texts with escapes", conformance.Must, "4", tell(`{"request\u005fid":{key},"st\u0061tus":"\u0073ucceeded","resource_id":{id}}`), agentic.Succeeded},
		{"names-upper-case", "has its member names in upper case", conformance.Must, "4", tell(`{"REQUEST_ID":{key},"STATUS":"succeeded","RESOURCE_ID":{id}}`), agentic.Unknown},
	}
	wrong := func(id, title, request, word, resource string) {
		members := []string{`"request_id":` + request, `"status":` + word, `"resource_id":` + resource}
		var there []string
		for _, m := range members {
			if !strings.HasSuffix(m, ":") {
				there = append(there, m)
			}
		}
		all = append(all, said{id, title, conformance.Must, "4 6.9", tell("{" + strings.Join(there, ",") + "}"), agentic.Unknown})
	}
	const ok = `"succeeded"`
	for _, c := range [][3]string{
		{"other-request", "is of another request", `"00000000-0000-4000-8000-000000000000"`}, {"other-case", "has the request ID in upper case", "{KEY}"},
		{"no-request", "has no request ID", ""}, {"null-request", "has null as its request ID", "null"}, {"empty-request", "has an empty request ID", `""`},
		{"number-request", "has a number as its request ID", "1"}, {"array-request", "has the request ID in an array", "[{key}]"},
	} {
		wrong(c[0], c[1], c[2], ok, "{id}")
	}
	for _, c := range [][3]string{
		{"unknown-word", "has a word that the draft does not know", `"done"`}, {"upper-case", "says SUCCEEDED", `"SUCCEEDED"`}, {"blank", "says succeeded and a blank", `"succeeded "`},
		{"no-status", "has no status", ""}, {"null-status", "has null as its status", "null"}, {"true-status", "has true as its status", "true"},
		{"array-status", "has its status in an array", `["succeeded"]`},
	} {
		wrong(c[0], c[1], "{key}", c[2], "{id}")
	}
	for _, c := range [][3]string{
		{"null-resource", "says succeeded and names null", "null"}, {"empty-resource", "says succeeded and names an empty ID", `""`}, {"no-resource", "says succeeded and names nothing", ""},
		{"number-resource", "says succeeded and names a number", "1"}, {"array-resource", "says succeeded and names an array", "[{id}]"}, {"object-resource", "says succeeded and names an object", `{"id":{id}}`},
	} {
		wrong(c[0], c[1], "{key}", ok, c[2])
	}
	for _, word := range []agentic.Outcome{agentic.Pending, agentic.Failed} {
		for _, c := range [][3]string{{"resource", "names a resource", `,"resource_id":{id}`}, {"empty", "names an empty resource", `,"resource_id":""`}, {"nothing", "has no resource_id", ""}} {
			all = append(all, said{string(word) + "-with-" + c[0], "says " + string(word) + " and " + c[1], conformance.Reading, "4 D12",
				tell(`{"request_id":{key},"status":"` + string(word) + `"` + c[2] + "}"), agentic.Unknown})
		}
	}
	return all
}

// saidOfResource are what else may be wrong with the answer of a resource; its evidence is
// in scenarios_evidence.go.
func saidOfResource() []said {
	return []said{
		{"suffix", "is application/vnd.ticket+json", conformance.Reading, "6.6 D13", sayAs(200, "application/vnd.ticket+json", resourceText), agentic.Succeeded},
		{"duplicate-id", "has two IDs, the second of which is right", conformance.Reading, "6.6 D1", tell(`{"id":"T-2",` + resourceText[1:]), agentic.Unknown},
		{"duplicate-request", "belongs to two requests, the second of which is this", conformance.Reading, "6.6 D1", tell(`{"request_id":"somebody-elses",` + resourceText[1:]), agentic.Unknown},
		{"duplicate-state", "has two states, the second of which is right", conformance.Reading, "6.6 D1", tell(`{"status":"rejected",` + resourceText[1:]), agentic.Unknown},
		{"duplicate-input", "has two subjects, the second of which is right", conformance.Reading, "6.6 D1", tell(`{"subject":"other",` + resourceText[1:]), agentic.Unknown},
	}
}
