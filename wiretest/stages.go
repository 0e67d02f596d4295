package wiretest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http2"
)

// fault is what a server does once.
type fault struct {
	name    string
	does    string // completes "the server …"
	permits string
	open    bool                // it strikes an open connection, before anything of the POST was read
	when    func(*arrival) bool // otherwise: as soon as this much of the POST has arrived
	large   bool                // the POST has a large body
	keeps   bool                // the connection is served on; otherwise nothing is written after do
	do      func(*conn, *arrival)
}

// Stages has all stages: those of HTTP/1.1, plain and over TLS, and of HTTP/2, each
// on a fresh and on a reused connection. The stages "…/answered" break nothing.
func Stages() []Stage {
	var all []Stage
	for _, v := range []struct {
		name     string
		protocol string
		tls      bool
		faults   []fault
	}{
		{"http1", HTTP1, false, faults1(false)},
		{"http1-tls", HTTP1, true, faults1(true)},
		{"http2", HTTP2, true, faults2()},
	} {
		for _, reused := range []bool{false, true} {
			where := "fresh"
			if reused {
				where = "reused"
			}
			for _, f := range v.faults {
				all = append(all, Stage{Name: v.name + "/" + where + "/" + f.name, Protocol: v.protocol, TLS: v.tls,
					Reused: reused, Does: f.does, Permits: f.permits, fault: f})
			}
		}
	}
	return all
}

// ending is a way to end a connection.
type ending struct {
	name, does string
	end        func(*conn)
}

func endings(tls bool) []ending {
	if !tls {
		return []ending{{"fin", "closes", (*conn).fin}, {"reset", "resets the connection", (*conn).reset}}
	}
	return []ending{{"fin", "closes with close_notify", (*conn).fin}, {"cut", "closes TCP without close_notify", (*conn).cut},
		{"reset", "resets the connection", (*conn).reset}}
}

// ended is do for an ending that comes after first, nil for nothing.
func ended(first func(*conn, *arrival), e ending) func(*conn, *arrival) {
	return func(c *conn, a *arrival) {
		if first != nil {
			first(c, a)
		}
		e.end(c)
	}
}

// faults1 are those of HTTP/1.1.
func faults1(tls bool) []fault {
	all := answers()
	for _, e := range endings(tls) {
		all = append(all, fault{name: "open-" + e.name, does: e.does + " before it reads", open: true, do: ended(nil, e)})
	}
	duringRead := endings(tls)
	if tls {
		duringRead = append(duringRead, ending{"alert", "sends a fatal TLS alert and closes", (*conn).alert})
	}
	for _, e := range duringRead {
		for _, p := range []struct {
			name, does string
			when       func(*arrival) bool
		}{
			{"begun", "after one byte of the POST", begun},
			{"line", "after its request line", requestLine},
			{"key", "after the line of its key", keyLine},
			{"unheaded", "one byte before the end of its header", headLess1},
			{"headed", "after its header", headed},
			{"body", "in its body", inBody},
			{"whole", "after the whole POST", whole},
		} {
			all = append(all, fault{name: p.name + "-" + e.name, does: e.does + " " + p.does, when: p.when, do: ended(nil, e)})
		}
		all = append(all, fault{name: "large-" + e.name, does: e.does + " in a body of 1 MiB", when: bodied, large: true, do: ended(nil, e)})
	}
	for _, e := range endings(tls) {
		for _, cut := range cutAnswers() {
			all = append(all, fault{name: cut.name + "-" + e.name, does: e.does + " " + cut.does, when: whole, do: ended(partly(cut.text), e)})
		}
		all = append(all, fault{name: "flood-" + e.name, does: "sends 200 informational answers and " + e.does, when: whole,
			do: ended(func(c *conn, a *arrival) {
				for range 200 {
					c.inform(a, http.StatusEarlyHints)
				}
				c.wait()
			}, e)})
	}
	fin := endings(tls)[0]
	timedOut := partly(head1(http.StatusRequestTimeout, "Connection: close", length(0)) + "\r\n")
	return append(all,
		fault{name: "open-408", does: "says 408 on the open connection and closes", permits: "RFC 9110, 15.5.9", open: true, do: ended(timedOut, fin)},
		fault{name: "begun-408", does: "says 408 after one byte of the POST and closes", permits: "RFC 9110, 15.5.9", when: begun, do: ended(timedOut, fin)},
		fault{name: "whole-408", does: "answers 408 and closes", permits: "RFC 9110, 15.5.9", when: whole, do: ended(timedOut, fin)},
		fault{name: "answer-close", does: "answers 200 with Connection: close, and closes", when: whole, do: ended(func(c *conn, a *arrival) {
			c.respond(a, http.StatusOK, "Connection: close")
		}, fin)},
		fault{name: "answer-early", does: "answers 503 after the header and closes", when: headed,
			do: ended(partly(head1(http.StatusServiceUnavailable, "Connection: close", length(0))+"\r\n"), fin)},
		fault{name: "answer-not-http", does: "answers something that is not HTTP and closes", when: whole, do: ended(partly("SSH-2.0-wiretest\r\n"), fin)},
	)
}

// faults2 are those of HTTP/2.
func faults2() []fault {
	all := answers()
	settings := func(c *conn, _ *arrival) { c.frame(func(f *http2.Framer) { f.WriteSettings() }) }
	for _, e := range endings(true) {
		all = append(all,
			fault{name: "open-" + e.name, does: e.does + " before it reads", open: true, do: ended(settings, e)},
			fault{name: "open-goaway-" + e.name, does: "sends GOAWAY before it reads and " + e.does, permits: safe, open: true,
				do: ended(goAway(0, http2.ErrCodeNo), e)},
			fault{name: "headed-" + e.name, does: e.does + " after HEADERS", when: headed, do: ended(nil, e)},
			fault{name: "large-" + e.name, does: e.does + " after the first DATA of 1 MiB", when: bodied, large: true, do: ended(nil, e)},
			fault{name: "whole-" + e.name, does: e.does + " after the whole POST", when: whole, do: ended(nil, e)},
			fault{name: "answer-headed-" + e.name, does: e.does + " after the HEADERS of its answer", when: whole, do: ended(begin2, e)},
			fault{name: "answer-body-" + e.name, does: e.does + " in the DATA of its answer", when: whole, do: ended(part2, e)},
		)
	}
	places := []struct {
		name, does string
		when       func(*arrival) bool
		first      func(*conn, *arrival)
	}{
		{"headed", "after HEADERS", headed, nil},
		{"whole", "after the whole POST", whole, nil},
		{"answer-headed", "after the HEADERS of its answer", whole, begin2},
		{"answer-body", "in the DATA of its answer", whole, part2},
	}
	for _, p := range places {
		early := p.first == nil
		for _, code := range []http2.ErrCode{http2.ErrCodeRefusedStream, http2.ErrCodeNo, http2.ErrCodeCancel, http2.ErrCodeProtocol,
			http2.ErrCodeInternal, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeHTTP11Required} {
			f := fault{name: p.name + "-rst-" + slug(code), does: fmt.Sprintf("sends RST_STREAM with %v %s", code, p.does), when: p.when, keeps: true,
				do: after(p.first, rst(code))}
			switch {
			case early && code == http2.ErrCodeRefusedStream:
				f.permits = safe
			case early && code == http2.ErrCodeHTTP11Required:
				f.permits = "RFC 9113, 7"
			}
			all = append(all, f)
		}
		codes := []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeEnhanceYourCalm}
		if !early {
			codes = codes[:1]
		}
		for _, code := range codes {
			for _, last := range []struct {
				name, does string
				id         int64
			}{{"below", "a last stream of 0", 0}, {"at", "the POST as last stream", atStream}, {"above", "the highest last stream", 1<<31 - 1}} {
				f := fault{name: p.name + "-goaway-" + slug(code) + "-" + last.name, when: p.when, keeps: true,
					does: fmt.Sprintf("sends GOAWAY with %v and %s %s, and stays", code, last.does, p.does), do: after(p.first, goAway(last.id, code))}
				if early && last.id == 0 {
					f.permits = safe
				}
				closes := f
				closes.name, closes.does = f.name+"-fin", strings.TrimSuffix(f.does, "stays")+"closes"
				closes.keeps, closes.do = false, ended(after(f.do, func(c *conn, _ *arrival) { c.wait() }), endings(true)[0])
				all = append(all, f, closes)
			}
		}
	}
	return append(all,
		fault{name: "open-goaway", does: "sends GOAWAY before it reads and stays", permits: safe, open: true, do: goAway(0, http2.ErrCodeNo)},
		fault{name: "open-no-streams", does: "allows no streams", open: true, do: func(c *conn, _ *arrival) {
			c.frame(func(f *http2.Framer) { f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) })
		}},
		fault{name: "whole-pings", does: "answers nothing but PING", when: whole, keeps: true, do: nothing},
		fault{name: "whole-bad-frame", does: "sends DATA on stream 0 and stays", when: whole, keeps: true, do: func(c *conn, _ *arrival) {
			c.frame(func(f *http2.Framer) { f.WriteRawFrame(http2.FrameData, 0, 0, []byte(okBody)) })
		}},
	)
}

// safe is where HTTP/2 says that a request was not acted on.
const safe = "RFC 9113, 8.7"

// atStream stands for the stream of the POST.
const atStream = -1

func nothing(*conn, *arrival) {}

func slug(code http2.ErrCode) string {
	return strings.ToLower(strings.ReplaceAll(code.String(), "_", "-"))
}

// after is do for first, nil for nothing, and then next.
func after(first, next func(*conn, *arrival)) func(*conn, *arrival) {
	return func(c *conn, a *arrival) {
		if first != nil {
			first(c, a)
			c.wait()
		}
		next(c, a)
	}
}

func begin2(c *conn, a *arrival) {
	c.headers2(a.stream, http.StatusOK, []string{length(len(okBody))}, false)
}

func part2(c *conn, a *arrival) {
	begin2(c, a)
	c.frame(func(f *http2.Framer) { f.WriteData(a.stream, false, []byte(okBody[:4])) })
}

func rst(code http2.ErrCode) func(*conn, *arrival) {
	return func(c *conn, a *arrival) { c.frame(func(f *http2.Framer) { f.WriteRSTStream(a.stream, code) }) }
}

// goAway begins with SETTINGS where nothing was sent yet.
func goAway(last int64, code http2.ErrCode) func(*conn, *arrival) {
	return func(c *conn, a *arrival) {
		c.frame(func(f *http2.Framer) {
			id := uint32(max(last, 0))
			switch {
			case a == nil:
				f.WriteSettings()
			case last == atStream:
				id = a.stream
			}
			f.WriteGoAway(id, code, nil)
		})
	}
}

// bodied is after the first of the body.
func bodied(a *arrival) bool { return a.body > 0 || a.whole }

// answers are the faults that either protocol can say: silence, and whole answers
// that a client may take as a reason to send again.
func answers() []fault {
	all := []fault{
		{name: "answered", does: "answers 200", when: whole, keeps: true, do: func(c *conn, a *arrival) { c.respond(a, http.StatusOK) }},
		{name: "headed-silence", does: "is silent after the header", when: headed, do: nothing},
		{name: "whole-silence", does: "is silent after the whole POST", when: whole, do: nothing},
	}
	for _, status := range []int{http.StatusContinue, http.StatusEarlyHints} {
		all = append(all, fault{name: fmt.Sprintf("whole-%d-silence", status), does: fmt.Sprintf("says %d and is silent", status), when: whole,
			do: func(c *conn, a *arrival) { c.inform(a, status) }})
	}
	all = append(all, fault{name: "headed-100-silence", does: "says 100 after the header and is silent", when: headed,
		do: func(c *conn, a *arrival) { c.inform(a, http.StatusContinue) }})
	for _, s := range []struct {
		status  int
		permits string
		lines   []string
	}{
		{302, "", []string{"Location: /tickets"}},
		{307, "RFC 9110, 15.4.8", []string{"Location: /tickets"}},
		{308, "RFC 9110, 15.4.9", []string{"Location: /tickets"}},
		{401, "RFC 9110, 15.5.2", []string{`WWW-Authenticate: Basic realm="wiretest"`}},
		{409, "", nil},
		{421, "RFC 9110, 15.5.20", nil},
		{425, "RFC 8470, 5.2", nil},
		{429, "", []string{"Retry-After: 0"}},
		{500, "", nil},
		{502, "", nil},
		{503, "RFC 9110, 10.2.3", []string{"Retry-After: 0"}},
		{504, "", nil},
	} {
		all = append(all, fault{name: fmt.Sprintf("answer-%d", s.status), does: fmt.Sprintf("answers %d", s.status), permits: s.permits, when: whole, keeps: true,
			do: func(c *conn, a *arrival) { c.respond(a, s.status, slices.Clone(s.lines)...) }})
	}
	return all
}
