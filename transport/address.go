package transport

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

type rawConn = syscall.RawConn

// refusedError says that an address is not one the host reaches.
type refusedError struct{ addr string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the address %s is not public and the host does not allow it", e.addr)
}

// checkAddress judges an address just before the connection to it, so that it is
// the resolved one and no later answer of a resolver counts. A plain connection
// is without TLS and goes to loopback only.
func (t *Transport) checkAddress(address string, plain bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{addr: "of an unknown form"}
	}
	addr := ap.Addr().Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		if t.config.AllowLoopback {
			return nil
		}
	case plain:
		return &refusedError{addr: addr.String()}
	case public(ap.Addr()):
		return nil
	}
	if t.config.AllowAddress != nil && t.config.AllowAddress(addr) {
		return nil
	}
	return &refusedError{addr: addr.String()}
}

// special are the blocks that are no public unicast addresses, from the IANA
// registries of special-purpose IPv4 and IPv6 addresses. IPv6 outside 2000::/3
// needs no entry: public refuses it whole, and with it loopback, mapped and NAT64
// addresses, ULA, link-local, site-local and multicast.
var special = prefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // carrier-grade NAT
	"127.0.0.0/8",       // loopback
	"169.254.0.0/16",    // link-local, cloud metadata
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments
	"192.0.2.0/24",      // documentation
	"192.31.196.0/24",   // AS112
	"192.52.193.0/24",   // AMT
	"192.88.99.0/24",    // 6to4 relays
	"192.168.0.0/16",    // private
	"192.175.48.0/24",   // AS112
	"198.18.0.0/15",     // benchmarking
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/23",         // protocol assignments: Teredo, ORCHID, benchmarking
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4, carries an IPv4 address
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

var globalUnicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	ps := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		ps[i] = netip.MustParsePrefix(s)
	}
	return ps
}

// public reports whether addr is a public unicast address. An IPv4-mapped IPv6
// address is not: it would be an IPv4 address in disguise. Nor is one with a
// zone, which no Prefix contains.
func public(addr netip.Addr) bool {
	if !addr.Is4() && !globalUnicast6.Contains(addr) {
		return false
	}
	for _, p := range special {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// originOf is scheme and host of an absolute URL as they are written.
func originOf(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.Scheme + "://" + u.Host, true
}

// below parses an address that has to lie below the origin and has to go onto the
// wire as it is written: no credentials, no fragment, only visible ASCII, and
// nothing that net/url would spell in another way.
func below(origin, address string) (*url.URL, bool) {
	rest, ok := strings.CutPrefix(address, origin)
	if !ok || !strings.HasPrefix(rest, "/") {
		return nil, false
	}
	for _, c := range []byte(rest) {
		if c <= 0x20 || c >= 0x7f || c == '#' {
			return nil, false
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host != origin || u.User != nil || u.Opaque != "" || u.RequestURI() != rest {
		return nil, false
	}
	return u, true
}

// hostPort is the address to connect to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// quoteOrigin makes an origin of unknown content fit for an error.
func quoteOrigin(origin string) string {
	const most = 256
	if len(origin) > most {
		origin = origin[:most]
	}
	if q := fmt.Sprintf("%+q", origin); q != `"`+origin+`"` {
		return q
	}
	return origin
}
