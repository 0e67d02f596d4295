package story

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
)

const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// broken are answers that never become whole, for each Operation.
func broken() []Story {
	const group = "Slow and broken answers"
	half := func(text string) string { return text[:len(text)/2] }
	faults := []struct {
		id, title string
		timeout   int // ms
		sections  string
		level     conformance.Level
		do        func(o role) Reaction
	}{
		{"slow-headers", "gets no byte of an answer", 500, "6.8", conformance.Must, func(role) Reaction {
			return wire(func(t *Told, c *taken) { c.wait(t) })
		}},
		{"dripping-headers", "gets one header after the other and no end of them", 500, "6.8", conformance.Must, func(role) Reaction {
			return wire(func(t *Told, c *taken) { c.write(t, head); c.repeat(t, "X: y\r\n", 20*time.Millisecond) })
		}},
		{"endless-headers", "gets headers at full speed and no end of them", 2000, "6.8", conformance.Must, func(role) Reaction {
			return wire(func(t *Told, c *taken) { c.write(t, head); c.repeat(t, strings.Repeat("X: y\r\n", 5000), 0) })
		}},
		{"endless-informational", "gets 103 again and again and no final answer", 500, "6.8", conformance.Must, func(role) Reaction {
			return wire(func(t *Told, c *taken) { c.repeat(t, "HTTP/1.1 103 Early Hints\r\n\r\n", 20*time.Millisecond) })
		}},
		{"slow-body", "gets headers and half of a body", 500, "6.8", conformance.Must, func(o role) Reaction {
			return wire(func(t *Told, c *taken) {
				body := t.fill(o.text)
				c.write(t, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), half(body)))
				c.wait(t)
			})
		}},
		{"dripping-body", "gets a right body, and blanks behind it one by one without end", 500, "6.8", conformance.Must, func(o role) Reaction {
			return wire(func(t *Told, c *taken) { c.write(t, head+"\r\n"+o.text); c.repeat(t, " ", 20*time.Millisecond) })
		}},
		{"endless-body", "gets a right body, and blanks behind it at full speed without end", 2000, "6.8", conformance.Must, func(o role) Reaction {
			blanks := strings.Repeat(" ", 32<<10)
			return wire(func(t *Told, c *taken) { c.write(t, head+"\r\n"+o.text); c.repeat(t, blanks, 0) })
		}},
		{"closed", "is closed without a byte", 0, "6.5 6.9", conformance.Must, func(role) Reaction { return raw("") }},
		{"reset-in-header", "is reset within the header", 0, "6.5 6.9", conformance.Must, func(role) Reaction {
			return wire(func(t *Told, c *taken) { c.write(t, half(head)); c.reset() })
		}},
		{"reset-in-body", "is reset within the body", 0, "6.5 6.9", conformance.Must, func(o role) Reaction {
			return wire(func(t *Told, c *taken) {
				c.write(t, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, 4096, half(t.fill(o.text))))
				c.reset()
			})
		}},
		{"cut-chunk", "ends within a chunk of its body", 0, "6.5 6.9", conformance.Must, func(o role) Reaction {
			return raw(head + "Transfer-Encoding: chunked\r\n\r\n1000\r\n" + half(o.text))
		}},
		{"no-last-chunk", "ends with all of a right body, but without the last chunk", 0, "6.9 D15", conformance.Reading, func(o role) Reaction {
			return wire(func(t *Told, c *taken) {
				body := t.fill(o.text)
				c.write(t, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(body), body))
			})
		}},
		{"short", "ends with all of a right body, which is shorter than its Content-Length", 0, "6.9 D15", conformance.Reading, func(o role) Reaction {
			return wire(func(t *Told, c *taken) {
				body := t.fill(o.text)
				c.write(t, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body)+10, body))
			})
		}},
		{"not-http", "is answered with something that is not HTTP", 0, "6.5 6.9", conformance.Must, func(o role) Reaction { return raw(o.text) }},
	}
	var all []Story
	for _, o := range roles {
		for _, f := range faults {
			asks := "An answer that never becomes whole establishes nothing: the status decides, and without it the outcome is unknown."
			if f.sections == "6.8" {
				asks = "Response sizes and request times are bounded, and what is cut off there establishes nothing."
			}
			s := Story{Info: must(fmt.Sprintf("answers/%s/%s", o.id, f.id), group, fmt.Sprintf("%s %s: %s", o.name, f.title, o.want),
				"6.4 "+f.sections, asks), Terms: Terms{timeout: f.timeout}, Want: o.want,
				Hint: "Look at the time limit of a whole exchange (connection, headers and body), at the size limit while reading, and at how an incomplete answer is told from a whole one."}
			s.Level = f.level
			if o.id == theSubmit.id { // the reads after it need the time too, on a busy machine
				s.Terms.timeout *= 3
			}
			o.spoil(&s, f.do(o))
			all = append(all, s)
		}
	}
	return all
}

// sizes are answers at the limit and over it.
func sizes() []Story {
	const group, kib64 = "Sizes of answers", agentic.MaxResponseBytes
	const asks = "The reference transport limits each answer to 64 KiB: one of exactly that is usable, one byte more is not."
	sized := func(o role, size int, chunked bool) Reaction {
		return func(t *Told, w http.ResponseWriter, _ *http.Request) {
			body := []byte(t.fill(o.text))
			body = append(body, strings.Repeat(" ", size-len(body))...)
			w.Header().Set("Content-Type", asJSON)
			if chunked {
				_, _ = w.Write(body[:1000])
				_ = http.NewResponseController(w).Flush()
				body = body[1000:]
			} else {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			_, _ = w.Write(body)
		}
	}
	var all []Story
	add := func(s Story, spoil func(*Story, Reaction), r Reaction) {
		s.Hint = "Look at what the limit counts, and at the comparison at its edge."
		spoil(&s, r)
		all = append(all, s)
	}
	for _, o := range roles {
		for _, chunked := range []bool{false, true} {
			how, name := "content-length", "with a Content-Length"
			if chunked {
				how, name = "chunked", "in chunks"
			}
			add(Story{Info: reading(fmt.Sprintf("sizes/%s/limit-%s", o.id, how), group, fmt.Sprintf("%s gets exactly 64 KiB %s: succeeded", o.name, name), "6.8 D15", asks),
				Want: agentic.Succeeded}, o.spoil, sized(o, kib64, chunked))
			add(Story{Info: reading(fmt.Sprintf("sizes/%s/over-%s", o.id, how), group, fmt.Sprintf("%s gets 64 KiB and one byte %s: %s", o.name, name, o.want), "6.8 D15", asks),
				Want: o.want}, o.spoil, sized(o, kib64+1, chunked))
		}
		add(Story{Info: reading(fmt.Sprintf("sizes/%s/headers", o.id), group, fmt.Sprintf("%s gets 2 MiB of headers: %s", o.name, o.want), "6.8 D15",
			"Response sizes are bounded, and headers are a part of a response."), Want: o.want}, o.spoil, wire(func(t *Told, c *taken) {
			body := t.fill(o.text)
			c.write(t, head+strings.Repeat("X-Large: "+strings.Repeat("x", 8000)+"\r\n", 260)+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		}))
	}
	return all
}

// redirects are all redirects of all operations, none of which may be followed.
func redirects() []Story {
	const group = "Redirects"
	var all []Story
	for _, o := range roles {
		for _, code := range []int{301, 302, 303, 307, 308} {
			for _, abroad := range []bool{false, true} {
				where, place := "same-origin", "another path"
				if abroad {
					where, place = "other-origin", "another origin"
				}
				s := Story{Info: must(fmt.Sprintf("redirects/%s/%d-%s", o.id, code, where), group,
					fmt.Sprintf("%s is redirected to %s with %d: not followed, unknown", o.name, place, code), "2 6.4 6.8",
					"A client rejects redirects during action execution; a redirected POST was its one POST."),
					Want: agentic.Unknown,
					Hint: "HTTP clients follow redirects by default, and 307 and 308 send the POST again: turn that off for all three operations."}
				if o.id == theSubmit.id { // nothing was done, and nobody knows of it
					s.Status = always(tell(unknownText))
				}
				o.spoil(&s, func(t *Told, w http.ResponseWriter, r *http.Request) {
					origin := ""
					if abroad {
						origin = t.Abroad
					}
					w.Header().Set("Location", origin+"/elsewhere"+r.URL.EscapedPath())
					say(code, o.text)(t, w, r)
				})
				all = append(all, s)
			}
		}
	}
	return all
}

// informational answers come before the final one, which alone counts.
func informational() []Story {
	const group = "Informational answers"
	var all []Story
	for _, o := range roles {
		s := Story{Info: reading("informational/"+o.id, group, o.name+" gets 102 and 103 before its answer: succeeded", "4 D15",
			"Informational answers are no answers (RFC 9110, 15.2); the final one counts."), Want: agentic.Succeeded}
		o.spoil(&s, func(t *Told, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusProcessing)
			w.Header().Set("Link", "</a>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			say(http.StatusOK, o.text)(t, w, r)
		})
		all = append(all, s)
		if o.id != theSubmit.id {
			s = Story{Info: must("informational/switching-"+o.id, group, o.name+" gets 101 with a right body behind it: unknown", "4 6.9",
				"Only HTTP 200 establishes an outcome; nobody asked for another protocol."), Want: agentic.Unknown}
			o.spoil(&s, raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Type: application/json\r\n\r\n"+o.text))
			all = append(all, s)
		}
	}
	return all
}
