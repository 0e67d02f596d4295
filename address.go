package agentic

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StatusURL is the absolute URL of the status of a request. The error is an
// *AddressError (D14).
func (p *Plan) StatusURL(requestID string) (string, error) {
	return p.address(p.statusPath, requestID)
}

// ResourceURL is the absolute URL of a resource. The error is an *AddressError
// (D14).
func (p *Plan) ResourceURL(resourceID string) (string, error) {
	return p.address(p.verifyPath, resourceID)
}

func (p *Plan) address(t pathTemplate, id string) (string, error) {
	if reason := unaddressable(id); reason != "" {
		return "", &AddressError{ID: shorten(strings.ToValidUTF8(id, "\uFFFD"), maxShown), Reason: reason}
	}
	return p.Origin + t.prefix + escapeSegment(id) + t.suffix, nil
}

// AddressError says that an ID cannot be one segment of a path: it is empty, "."
// or "..", longer than MaxIDBytes, not UTF-8, or holds a control character (D14).
type AddressError struct {
	ID     string // bounded, untrusted
	Reason string // one clause, without the ID
}

func (e *AddressError) Error() string { return "an ID that no URL can carry: " + e.Reason }

func addressReason(err error) string {
	if e, ok := errors.AsType[*AddressError](err); ok {
		return e.Reason
	}
	return err.Error()
}

// unaddressable says why an ID cannot be a path segment, or "". URL parsers
// fold "." and ".." even when their dots are percent-encoded.
func unaddressable(id string) string {
	switch {
	case id == "":
		return "it is empty"
	case id == "." || id == "..":
		return fmt.Sprintf("it is %q, which URLs fold away", id)
	case len(id) > MaxIDBytes:
		return fmt.Sprintf("it is longer than %d bytes", MaxIDBytes)
	case !utf8.ValidString(id):
		return "it is not UTF-8"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "it holds a control character"
	}
	return ""
}

// escapeSegment percent-encodes every byte but the unreserved ones of RFC 3986.
// url.PathEscape leaves more alone, such as ":" and "=".
func escapeSegment(id string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(id) {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}
