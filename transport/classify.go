package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/agentic-go/agentic/client"
)

// classify names the class of a failure and says it in words of this package: the
// text of net/http quotes what the service sent, which may be a credential.
func (x *exchange) classify(ctx context.Context, err error) (client.ErrorClass, error) {
	var refused *refusedError
	if errors.As(err, &refused) {
		return client.ClassAddress, refused
	}
	if e := x.caller.Err(); e != nil {
		return client.ClassCanceled, fmt.Errorf("canceled: %w", e)
	}
	var timeout interface{ Timeout() bool }
	if ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		// A socket may see a deadline before its context does.
		if d, ok := x.caller.Deadline(); ok && d.Before(x.deadline) {
			return client.ClassCanceled, fmt.Errorf("canceled: %w", context.DeadlineExceeded)
		}
		return client.ClassTimeout, fmt.Errorf("no answer within %v", x.timeout)
	}
	if reason := tlsReason(err); reason != "" {
		return client.ClassTLS, errors.New(reason)
	}
	if !x.connected.Load() {
		return x.classifyConnect(err)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "headers exceeded"), strings.Contains(text, "header list larger"):
		return client.ClassTooLarge, fmt.Errorf("the headers are over %d bytes", x.t.config.MaxHeaderBytes)
	case broken(err, text):
		return client.ClassBroken, errors.New("the connection ended before the answer did")
	}
	return client.ClassProtocol, errors.New("the answer is not HTTP")
}

// classifyConnect is for a failure before there was a connection.
func (x *exchange) classifyConnect(err error) (client.ErrorClass, error) {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return client.ClassConnect, errors.New("its name has no address")
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		where, why := "", "no connection"
		if op.Addr != nil {
			where = " to " + op.Addr.String()
		}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			why = errno.Error()
		}
		return client.ClassConnect, fmt.Errorf("no connection%s: %s", where, why)
	}
	if x.t.config.Proxy != nil {
		return client.ClassConnect, errors.New("no connection through the proxy")
	}
	return client.ClassTLS, errors.New("the connection ended in the TLS handshake")
}

// tlsReason is why TLS refused, "" for an error of another kind. It quotes nothing
// of a certificate.
func tlsReason(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "the server's certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet"
	case errors.As(err, &verify), errors.As(err, &invalid):
		return "the server's certificate is not valid"
	case errors.As(err, &record):
		return "the server does not speak TLS"
	case errors.As(err, &op) && op.Op == "remote error":
		return "the server refused the TLS connection: " + op.Err.Error() // a text of crypto/tls, by number
	case strings.HasPrefix(err.Error(), "tls: "):
		return "the TLS handshake failed"
	}
	return ""
}

// broken reports whether the connection or stream ended, as far as net/http lets
// one tell; the errors of its HTTP/2 have no exported types.
func broken(err error, text string) bool {
	var op *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &op) {
		return true
	}
	for _, s := range []string{"server closed idle connection", "GOAWAY", "received from peer",
		"client connection lost", "client conn", "connection force closed", "ClientConn closed"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
