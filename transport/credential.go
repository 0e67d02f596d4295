package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Credential names the one exchange that credentials are asked for.
type Credential struct {
	Origin   string
	ActionID string
}

// reserved headers belong to the exchange or to the connection. A credential that
// could set them could change what is sent or how it is framed.
var reserved = map[string]bool{
	"Connection": true, "Cookie2": true, "Date": true, "Expect": true, "Forwarded": true, "Host": true,
	"Http2-Settings": true, "Keep-Alive": true, "Max-Forwards": true, "Priority": true, "Range": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "User-Agent": true, "Via": true,
	"Idempotency-Key": true, "X-Idempotency-Key": true, "X-Http-Method": true, "X-Method-Override": true,
	"X-Http-Method-Override": true,
}

// ReservedHeader reports whether a header is not for credentials: it names or
// frames the request (Idempotency-Key, Host, Content-*, Accept*, If-*,
// Transfer-Encoding), or it belongs to a connection or a proxy. The name may be
// in any case.
func ReservedHeader(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return reserved[name] || strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "Accept") ||
		strings.HasPrefix(name, "If-") || strings.HasPrefix(name, "Proxy-")
}

// quietError tells what happened without the text of its cause, which may hold a
// secret; a host can still match the cause.
type quietError struct {
	text  string
	cause error
}

func (e *quietError) Error() string { return e.text }
func (e *quietError) Unwrap() error { return e.cause }

// addCredentials asks the host for the credentials of one exchange and adds them
// to h. On an error h is as it was. No error tells a value or a refused name.
func (t *Transport) addCredentials(ctx context.Context, c Credential, h http.Header) error {
	if t.config.Credentials == nil {
		return nil
	}
	given, err := t.config.Credentials(ctx, c)
	if err != nil {
		return &quietError{"the host's credential function failed", err}
	}
	for name, values := range given {
		if !httpguts.ValidHeaderFieldName(name) {
			return errors.New("the host's credentials have a header without a valid name")
		}
		if ReservedHeader(name) || h[http.CanonicalHeaderKey(name)] != nil {
			return errors.New("the host's credentials set the header " + http.CanonicalHeaderKey(name) +
				", which is not for credentials")
		}
		for _, v := range values {
			if !validHeaderValue(v) {
				return errors.New("the host's credentials have a value that no header can carry")
			}
		}
	}
	for name, values := range given {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return nil
}

func validHeaderValue(v string) bool { return httpguts.ValidHeaderFieldValue(v) }
