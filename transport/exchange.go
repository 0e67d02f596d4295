package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"golang.org/x/net/http/httpguts"
)

// exchange is one request and its answer.
type exchange struct {
	t          *Transport
	origin     string
	actionID   string
	url        string
	timeout    time.Duration
	limit      int                // of the answer's body, in bytes
	submission *client.Submission // nil for a read
	anonymous  bool               // no credentials

	caller    context.Context
	deadline  time.Time
	connected atomic.Bool // from here on a byte of the request may have left
}

// errTimeLimit is the cause of a context that ended by the exchange's own limit.
var errTimeLimit = errors.New("time limit of the exchange")

// errNoStatus is for a status below 100, which net/http lets through.
var errNoStatus = errors.New("no status of HTTP")

func (x *exchange) run(caller context.Context) client.Exchange {
	x.caller = caller
	if !x.t.origins[x.origin] {
		return x.refuse(client.ClassAddress, quoteOrigin(x.origin), errors.New("the host has not approved this origin"))
	}
	u, ok := below(x.origin, x.url)
	if !ok {
		return x.refuse(client.ClassAddress, x.origin, errors.New("the URL is not plainly below its origin"))
	}
	if err := caller.Err(); err != nil {
		return x.refuse(client.ClassCanceled, x.origin, fmt.Errorf("canceled before the request: %w", err))
	}
	header, class, err := x.header()
	if err != nil {
		if e := caller.Err(); e != nil {
			class, err = client.ClassCanceled, fmt.Errorf("canceled before the request: %w", e)
		}
		return x.refuse(class, x.origin, err)
	}

	if x.timeout <= 0 {
		x.timeout = DefaultTimeout
	}
	x.deadline = time.Now().Add(x.timeout)
	ctx, cancel := context.WithDeadlineCause(context.WithValue(caller, originKey{}, x.origin), x.deadline, errTimeLimit)
	defer cancel()

	var resp *http.Response
	if x.submission != nil {
		conn, e := x.t.http.NewClientConn(ctx, u.Scheme, hostPort(u))
		if e != nil {
			return x.fail(ctx, e, 0)
		}
		defer conn.Close()
		if ctx.Err() != nil {
			return x.fail(ctx, ctx.Err(), 0)
		}
		x.connected.Store(true)
		resp, err = conn.RoundTrip(x.post(ctx, u, header))
	} else {
		resp, err = x.t.http.RoundTrip(x.get(ctx, u, header))
	}
	if err != nil {
		return x.fail(ctx, err, 0)
	}
	defer resp.Body.Close()
	return x.read(ctx, resp)
}

// header makes the headers of the request, the credentials last.
func (x *exchange) header() (http.Header, client.ErrorClass, error) {
	h := http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {x.t.config.UserAgent},
	}
	if s := x.submission; s != nil {
		h["Content-Type"] = []string{"application/json"}
		if !httpguts.ValidHeaderFieldName(s.Header) || !validHeaderValue(s.RequestID) || s.RequestID == "" {
			return nil, client.ClassProtocol, errors.New("no header can carry this request ID")
		}
		h.Set(s.Header, s.RequestID)
	}
	if x.anonymous {
		return h, "", nil
	}
	err := x.t.addCredentials(x.caller, Credential{Origin: x.origin, ActionID: x.actionID}, h)
	return h, client.ClassCredential, err
}

// post has no GetBody: nothing can rewind its body and send it again. It asks the
// server to close, which leaves the waiting state of the connection there.
func (x *exchange) post(ctx context.Context, u *url.URL, h http.Header) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: h, Close: true,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(x.submission.Body)), Body: io.NopCloser(bytes.NewReader(x.submission.Body))}
	if r.ContentLength == 0 {
		r.Body = http.NoBody
	}
	return r.WithContext(ctx)
}

// get has an empty body that nothing can rewind, so that net/http does not send it
// again by itself when a kept connection breaks: the profile bounds what arrives
// (recovery.maxChecks). Over HTTP/1 such a body leaves no trace, over HTTP/2 an empty
// frame.
func (x *exchange) get(ctx context.Context, u *url.URL, h http.Header) *http.Request {
	r := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(""))}
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	}))
}

// read takes the answer within its limits. The status counts even when the rest
// is unusable.
func (x *exchange) read(ctx context.Context, resp *http.Response) client.Exchange {
	status := resp.StatusCode
	if status < 100 {
		return x.fail(ctx, errNoStatus, 0)
	}
	unusable := func(class client.ErrorClass, text string) client.Exchange {
		return client.Exchange{Answer: agentic.Answer{Status: status}, Reach: client.Answered, Class: class,
			Err: fmt.Errorf("%s: HTTP status %d: %s", x.origin, status, text)}
	}
	switch {
	case status < 200 || status > 599:
		return unusable(client.ClassProtocol, "not a final status of HTTP")
	case status >= 300 && status < 400:
		return unusable(client.ClassRedirect, "redirects are not followed")
	case encoded(resp.Header.Values("Content-Encoding")):
		return unusable(client.ClassEncoded, "the answer is encoded, which was not asked for")
	case resp.ContentLength > int64(x.limit):
		return unusable(client.ClassTooLarge, fmt.Sprintf("the body is over %d bytes", x.limit))
	}
	body, err := readBody(resp, x.limit)
	if err != nil {
		return x.fail(ctx, err, status)
	}
	if len(body) > x.limit {
		return unusable(client.ClassTooLarge, fmt.Sprintf("the body is over %d bytes", x.limit))
	}
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{
		Status: status,
		// Several Content-Type headers make one that no media type parses from.
		ContentType: strings.Join(resp.Header.Values("Content-Type"), ", "),
		Body:        body,
	}}
}

// readBody reads a body to its end, where net/http may keep the connection, or to
// one byte over the limit.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	var buf bytes.Buffer
	if resp.ContentLength >= 0 {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1))
	return buf.Bytes(), err
}

func encoded(values []string) bool {
	for _, v := range values {
		for coding := range strings.SplitSeq(v, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}

// refuse ends an exchange of which nothing was sent.
func (x *exchange) refuse(class client.ErrorClass, origin string, err error) client.Exchange {
	return client.Exchange{Reach: client.NotSent, Class: class, Err: fmt.Errorf("%s: %w", origin, err)}
}

// fail ends an exchange that the network, the time or the caller ended. A status
// that came before is kept.
func (x *exchange) fail(ctx context.Context, err error, status int) client.Exchange {
	e := client.Exchange{Reach: client.NotSent, Answer: agentic.Answer{Status: status}}
	switch {
	case status != 0:
		e.Reach = client.Answered
	case x.connected.Load():
		e.Reach = client.MaybeSent
	}
	class, cause := x.classify(ctx, err)
	e.Class, e.Err = class, fmt.Errorf("%s: %w", x.origin, cause)
	return e
}
