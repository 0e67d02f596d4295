package wiretest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// findStage is the stage of a name.
func findStage(t *testing.T, name string) Stage {
	t.Helper()
	for _, s := range Stages() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no stage %q", name)
	return Stage{}
}

func TestStages(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Stages() {
		if names[s.Name] {
			t.Errorf("two stages are %q", s.Name)
		}
		names[s.Name] = true
		if s.Does == "" || s.fault.do == nil || s.fault.open == (s.fault.when != nil) {
			t.Errorf("%s is not whole", s.Name)
		}
		if strings.Contains(s.Name, "reused") != s.Reused || strings.HasPrefix(s.Name, "http2") != (s.Protocol == HTTP2) {
			t.Errorf("%s is named after another variant", s.Name)
		}
	}
}

// TestArrival feeds requests byte for byte, in every form in which a client may
// write them, and looks where each place is and what is counted.
func TestArrival(t *testing.T) {
	const head = "POST /tickets HTTP/1.1\r\nHost: x\r\nidempotency-KEY: k-1\r\n"
	type seen struct {
		Begun, Line, Key, Unheaded, Headed, Body, Whole int // bytes at which each place is first
		Post                                            Post
	}
	post := func(reach Reach, header, body int) Post {
		return Post{Key: "k-1", Connection: 1, Reach: reach, Header: header, Body: body}
	}
	for _, tc := range []struct {
		name, text string
		want       seen
	}{
		{"length", head + "Content-Length: 4\r\n\r\nabcd", seen{1, 24, 55, 75, 76, 78, 80, post(Whole, 76, 4)}},
		{"body cut", head + "Content-Length: 4\r\n\r\nab", seen{1, 24, 55, 75, 76, 78, 0, post(Bodied, 76, 2)}},
		{"body missing", head + "Content-Length: 4\r\n\r\n", seen{1, 24, 55, 75, 76, 0, 0, post(Headed, 76, 0)}},
		{"no body", head + "\r\n", seen{1, 24, 55, 56, 57, 57, 57, post(Whole, 57, 0)}},
		{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", seen{1, 24, 55, 84, 85, 86, 97, post(Whole, 85, 12)}},
		{"quoted key", strings.Replace(head, "k-1", `"k-1"`, 1) + "\r\n", seen{1, 24, 57, 58, 59, 59, 59, post(Whole, 59, 0)}},
		{"blank line before", "\r\n" + head + "\r\n", seen{3, 26, 57, 58, 59, 59, 59, post(Whole, 57, 0)}},
		{"cut", head[:10], seen{1, 0, 0, 0, 0, 0, 0, Post{Connection: 1, Reach: Begun, Header: 10}}},
		{"no key", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", seen{1, 17, 28, 27, 28, 28, 28, Post{Connection: 1, Reach: Whole, Header: 28}}},
		{"GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", seen{1, 16, 27, 26, 27, 27, 27, Post{}}},
		{"PUT", "PUT / HTTP/1.1\r\nHost: x\r\n\r\n", seen{1, 16, 27, 26, 27, 27, 27, Post{}}},
		{"POSTS", "POSTS / HTTP/1.1\r\nHost: x\r\n\r\n", seen{1, 18, 29, 28, 29, 29, 29, Post{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &server{began: time.Now()}
			a := &arrival{c: &conn{s: s, n: 1}, length: -1}
			var got seen
			mark := func(at *int, n int, is bool) {
				if is && *at == 0 {
					*at = n
				}
			}
			for i := range len(tc.text) {
				if !a.feed([]byte{tc.text[i]}) {
					t.Fatalf("refused at byte %d", i)
				}
				mark(&got.Begun, i+1, begun(a))
				mark(&got.Line, i+1, requestLine(a))
				mark(&got.Key, i+1, keyLine(a))
				mark(&got.Unheaded, i+1, headLess1(a))
				mark(&got.Headed, i+1, headed(a))
				mark(&got.Body, i+1, inBody(a))
				mark(&got.Whole, i+1, whole(a))
			}
			if len(s.posts) > 0 {
				got.Post = *s.posts[0]
				got.Post.At = 0
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNotHTTP(t *testing.T) {
	for _, text := range []string{"POST /\r\n\r\n", "\x16\x03\x01\r\n\r\n", "POST " + strings.Repeat("x", maxHead)} {
		a := &arrival{c: &conn{s: &server{}, n: 1}, length: -1}
		ok := true
		for i := 0; ok && i < len(text); i++ {
			ok = a.feed([]byte{text[i]})
		}
		if ok {
			t.Errorf("%.20q is taken as a request", text)
		}
	}
}

// TestWhatIsRead: each stage breaks where it says, as the server and the client
// see it. The resets keep the server from reading on.
func TestWhatIsRead(t *testing.T) {
	request := func(key string) string {
		return "POST /tickets HTTP/1.1\r\nHost: x\r\nIdempotency-Key: " + key + "\r\nContent-Length: 22\r\n\r\n" + `{"subject":"wiretest"}`
	}
	all := len(request("wiretest-" + strings.Repeat("A", 26)))
	head := all - 22
	for _, tc := range []struct {
		stage        string
		reach        Reach
		header, body int
		answer       string // what the client reads; "RST" at its end is a reset
	}{
		{"begun-reset", Begun, 1, 0, "RST"},
		{"line-reset", Begun, len("POST /tickets HTTP/1.1\r\n"), 0, "RST"},
		{"key-reset", Begun, head - len("Content-Length: 22\r\n\r\n"), 0, "RST"},
		{"unheaded-reset", Begun, head - 1, 0, "RST"},
		{"headed-reset", Headed, head, 0, "RST"},
		{"body-reset", Bodied, head, 11, "RST"},
		{"whole-reset", Whole, head, 22, "RST"},
		{"begun-fin", Whole, head, 22, ""},
		{"answer-status-fin", Whole, head, 22, "HTTP/1.1 2"},
		{"answer-header-fin", Whole, head, 22, "HTTP/1.1 200 OK\r\nContent-Type: "},
		{"answer-body-fin", Whole, head, 22, head1(200, length(11)) + "\r\n" + `{"ok`},
		{"answer-body-reset", Whole, head, 22, head1(200, length(11)) + "\r\n" + `{"okRST`},
		{"answer-chunk-fin", Whole, head, 22, head1(200, "Transfer-Encoding: chunked") + "\r\nb\r\n" + `{"ok`},
		{"whole-103-silence", Whole, head, 22, "HTTP/1.1 103 Early Hints\r\n\r\n..."},
		{"whole-silence", Whole, head, 22, "..."},
		{"answer-307", Whole, head, 22, head1(307, "Location: /tickets", length(11)) + "\r\n" + okBody + "..."},
		{"whole-408", Whole, head, 22, head1(408, "Connection: close", length(0)) + "\r\n"},
		{"flood-fin", Whole, head, 22, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 200)},
	} {
		t.Run(tc.stage, func(t *testing.T) {
			t.Parallel()
			var answer string
			r, err := Try(t.Context(), findStage(t, "http1/fresh/"+tc.stage), func(_ context.Context, target Target) error {
				c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(target.URL, "http://"), "/tickets"))
				if err != nil {
					return err
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Second / 2))
				io.WriteString(c, request(target.Key))
				var b bytes.Buffer
				_, err = io.Copy(&b, c)
				answer = b.String()
				var timeout net.Error
				switch {
				case errors.As(err, &timeout) && timeout.Timeout():
					answer += "..."
				case err != nil:
					answer += "RST"
				}
				return err
			})
			if err != nil || r.Check() != nil || !r.Struck || len(r.Posts) != 1 || r.Protocol != HTTP1 || r.Connections != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			want := Post{Connection: 1, Reach: tc.reach, Header: tc.header, Body: tc.body, At: r.Posts[0].At}
			if tc.reach != Begun {
				want.Key = r.Key
			}
			if diff := cmp.Diff(want, r.Posts[0]); diff != "" {
				t.Errorf("post (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.answer, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// tape keeps what was read.
type tape struct {
	net.Conn
	read []byte
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read = append(t.read, p[:n]...)
	return n, err
}

// TestEndingsOfTLS: each ending of TLS is its own on the wire and to a client.
// Close_notify and a fatal alert are records of 19 bytes.
func TestEndingsOfTLS(t *testing.T) {
	const record = "\x17\x03\x03\x00\x13"
	var alert tls.AlertError
	for _, tc := range []struct {
		stage  string
		record bool // the last thing sent
		is     func(error) bool
	}{
		{"whole-fin", true, func(err error) bool { return err == nil }},
		{"whole-cut", false, func(err error) bool { return err == nil || errors.Is(err, io.ErrUnexpectedEOF) }},
		{"whole-reset", false, func(err error) bool { return err != nil && strings.Contains(err.Error(), "reset") }},
		{"whole-alert", true, func(err error) bool {
			return errors.As(err, &alert) || err != nil && strings.Contains(err.Error(), "remote error: tls")
		}},
	} {
		t.Run(tc.stage, func(t *testing.T) {
			t.Parallel()
			var end error
			var taped tape
			r, err := Try(t.Context(), findStage(t, "http1-tls/fresh/"+tc.stage), func(_ context.Context, target Target) error {
				tcp, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(target.URL, "https://"), "/tickets"))
				if err != nil {
					return err
				}
				defer tcp.Close()
				taped.Conn = tcp
				c := tls.Client(&taped, &tls.Config{RootCAs: target.RootCAs, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13})
				c.SetDeadline(time.Now().Add(time.Second))
				fmt.Fprintf(c, "POST /tickets HTTP/1.1\r\n%s: %s\r\n\r\n", Header, target.Key)
				_, end = io.Copy(io.Discard, c)
				return nil
			})
			if err != nil || len(r.Posts) != 1 || r.Check() != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			n := len(taped.read)
			if n < 24 || (string(taped.read[n-24:n-19]) == record) != tc.record || !tc.is(end) {
				t.Errorf("the client: %v, after %d bytes that end in %x", end, n, taped.read[max(0, n-24):])
			}
		})
	}
}

func TestTryRefuses(t *testing.T) {
	if _, err := Try(t.Context(), Stage{Name: "made up"}, single); err == nil {
		t.Error("a made-up stage is tried")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Try(ctx, findStage(t, "http1/fresh/whole-silence"), func(inner context.Context, target Target) error {
		cancel()
		return single(inner, target)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the end of the context", err)
	}
	if _, err := Try(ctx, findStage(t, "http1/fresh/answered"), single); !errors.Is(err, context.Canceled) {
		t.Errorf("%v with an ended context", err)
	}
}

// TestCheckTells everything a person needs, and nothing of header or body.
func TestCheckTells(t *testing.T) {
	r := Result{Stage: findStage(t, "http2/reused/headed-rst-refused-stream"), Key: "k", Posts: []Post{
		{Key: "k", Connection: 1, Stream: 3, Reused: true, Reach: Headed, Header: 200, At: 12340 * time.Microsecond},
		{Key: "k", Connection: 1, Stream: 5, Reused: true, Reach: Whole, Header: 200, Body: 22, At: 15 * time.Millisecond},
	}}
	const want = `http2/reused/headed-rst-refused-stream: sent twice: 2 POSTs of one submission; the server sends RST_STREAM with REFUSED_STREAM after HEADERS (HTTP itself would let a client send again: RFC 9113, 8.7)
  at 12.3ms over connection 1, stream 3 (reused): its header, 200 + 0 bytes
  at 15ms over connection 1, stream 5 (reused): all of it, 200 + 22 bytes`
	if diff := cmp.Diff(want, fmt.Sprint(r.Check())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Posts = r.Posts[:1]
	if err := r.Check(); err != nil {
		t.Errorf("one POST: %v", err)
	}
}
