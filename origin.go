package agentic

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// originFault says why an origin is not canonical (D3), as a clause for a
// sentence about it; "" when it is.
//
// Canonical is what the WHATWG URL standard serializes. On top of that a host
// must be one that can be looked up: labels of 1 to 63 of a-z, 0-9, "-" and "_",
// at most 253 in all. The standard's parser lets "a..b" or "a!b" through, which
// name no host.
func originFault(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || (scheme != "https" && scheme != "http") {
		return `does not start with "https://"`
	}
	for _, c := range []byte(rest) {
		switch {
		case c <= 0x20 || c >= 0x7f:
			return "holds a character that is not visible ASCII; an internationalized host is written in punycode"
		case 'A' <= c && c <= 'Z':
			return "has a host that is not in lower case"
		case c == '@':
			return "holds credentials"
		case c == '/', c == '\\':
			return "has a path"
		case c == '?':
			return "has a query"
		case c == '#':
			return "has a fragment"
		case c == '%':
			return "holds a percent escape"
		}
	}
	host, port, hasPort := rest, "", false
	if strings.HasPrefix(rest, "[") {
		i := strings.IndexByte(rest, ']')
		if i < 0 {
			return "has an IPv6 address without its closing bracket"
		}
		host = rest[:i+1]
		if port, hasPort = strings.CutPrefix(rest[i+1:], ":"); !hasPort && port != "" {
			return "holds text after the bracket of an IPv6 address"
		}
	} else {
		host, port, hasPort = strings.Cut(rest, ":")
	}
	if fault := hostFault(host); fault != "" {
		return fault
	}
	if hasPort {
		return portFault(scheme, port)
	}
	return ""
}

func portFault(scheme, port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return "has a port that is not a number from 0 to 65535"
	case strconv.FormatUint(n, 10) != port:
		return "has a port with leading zeros"
	case (scheme == "https" && n == 443) || (scheme == "http" && n == 80):
		return "names the default port of its scheme"
	}
	return ""
}

func hostFault(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "has brackets around something that is not an IPv6 address"
		}
		if want := serializeIPv6(addr); want != host {
			return "has an IPv6 address that is not in its shortest form, " + want
		}
		return ""
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case host == "":
		return "has no host"
	case last == "":
		return "has a host that ends in a dot"
	case isNumeric(last):
		// The standard reads such a host as an IPv4 address and nothing else.
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
			return "has a host that reads as a number and is not an IPv4 address of four decimal parts"
		}
		return ""
	case len(host) > 253:
		return "has a host of more than 253 characters"
	}
	punycode := false
	for _, label := range labels {
		if label == "" {
			return "has a host with an empty label"
		}
		if len(label) > 63 {
			return "has a host with a label of more than 63 characters"
		}
		for _, c := range []byte(label) {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return fmt.Sprintf("has the character %q in its host", c)
			}
		}
		punycode = punycode || strings.HasPrefix(label, "xn--")
	}
	if punycode {
		if ascii, err := toASCII.ToASCII(host); err != nil || ascii != host {
			return "has a host with a label that is not valid punycode"
		}
	}
	return ""
}

// toASCII is "domain to ASCII" of the WHATWG URL standard.
var toASCII = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.StrictDomainName(false), idna.CheckHyphens(false))

// isNumeric is the "ends in a number" test of the WHATWG URL standard for the
// last label of a host: digits, or 0x and hexadecimal digits.
func isNumeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// serializeIPv6 is the host serializer of the WHATWG URL standard. It differs
// from netip on IPv4-mapped addresses, which it writes in hexadecimal.
func serializeIPv6(a netip.Addr) string {
	if a.Is4In6() {
		b := a.As16()
		return fmt.Sprintf("[::ffff:%x:%x]", int(b[12])<<8|int(b[13]), int(b[14])<<8|int(b[15]))
	}
	return "[" + a.String() + "]"
}

// isLoopback reports whether a canonical origin is one of the three hosts that
// section 2 allows for local development.
func isLoopback(origin string) bool {
	_, rest, _ := strings.Cut(origin, "://")
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
		if after, ok := strings.CutPrefix(rest, host); ok && (after == "" || after[0] == ':') {
			return true
		}
	}
	return false
}

// pathFault says why a path is not one of section 2 and D4, as a clause for a
// sentence about it; "" when it is: root-relative, of visible ASCII, without
// traversal or empty segments, escapes, braces, query, fragment or backslash.
func pathFault(p string) string {
	if !strings.HasPrefix(p, "/") {
		return "does not start with a slash"
	}
	for _, c := range []byte(p) {
		switch {
		case c <= 0x20 || c >= 0x7f:
			return "holds a character that is not visible ASCII"
		case c == '\\':
			return "holds a backslash"
		case c == '?':
			return "has a query"
		case c == '#':
			return "has a fragment"
		case c == '%':
			return "holds a percent escape"
		case c == '{', c == '}':
			return "holds a brace that is not part of its one placeholder"
		}
	}
	for segment := range strings.SplitSeq(p[1:], "/") {
		switch segment {
		case "":
			return "has an empty segment"
		case ".", "..":
			return "has a traversal segment"
		}
	}
	return ""
}

// CheckOrigin says why a host may not approve an origin, as a clause for a
// sentence about it: it is not canonical (D3), or it is neither HTTPS nor, when
// opts allow that, HTTP on a loopback host (section 2). It is nil for the rest.
func CheckOrigin(origin string, opts Options) error {
	switch fault := originFault(origin); {
	case fault != "":
		return errors.New(fault)
	case strings.HasPrefix(origin, "https:"):
		return nil
	case !isLoopback(origin):
		return errors.New("is not HTTPS, and HTTP is for localhost, 127.0.0.1 and [::1] only")
	case !opts.AllowLoopback:
		return errors.New("is not HTTPS, and HTTP on loopback was not allowed")
	}
	return nil
}
