package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentic-go/agentic/client"
	"golang.org/x/net/dns/dnsmessage"
)

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"126.255.255.255": true, "128.0.0.0": true, "169.253.255.255": true, "169.255.0.0": true, "172.15.255.255": true, "172.32.0.0": true,
		"192.0.1.0": true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true,
		"2606:4700::1111": true, "2a00:1450::1": true, "2001:4860:4860::8888": true, "2001:200::": true, "2003::1": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.0": false, "100.127.255.255": false,
		"127.0.0.1": false, "127.255.255.255": false, "169.254.169.254": false, "172.16.0.0": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.0.1": false, "198.18.0.0": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"192.31.196.1": false, "192.52.193.1": false, "192.175.48.1": false,
		"::": false, "::1": false, "::8.8.8.8": false, "::ffff:8.8.8.8": false, "::ffff:127.0.0.1": false, "::ffff:0:8.8.8.8": false,
		"64:ff9b::8.8.8.8": false, "64:ff9b::10.0.0.1": false, "64:ff9b:1::1": false, "100::1": false, "100:0:0:1::1": false,
		"2001::1": false, "2001:2::1": false, "2001:10::1": false, "2001:20::1": false, "2001:1ff:ffff::": false, "2001:db8::1": false,
		"2002:7f00:1::": false, "2002:808:808::": false, "2620:4f:8000::1": false, "3fff::1": false, "3fff:fff::1": false,
		"4000::1": false, "5f00::1": false, "fc00::1": false, "fd12:3456::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fec0::1": false, "ff02::1": false, "ff0e::1": false, "2001:db8::1%eth0": false, "2606:4700::1111%eth0": false,
	} {
		if got := public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("public(%s) = %v", addr, got)
		}
	}
	if public(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

// FuzzCheckAddress holds the check to the standard library's own classes, and an
// IPv4 address to one verdict in each of its spellings.
func FuzzCheckAddress(f *testing.F) {
	for _, s := range []string{"127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:80", "[::ffff:10.0.0.1]:80", "8.8.8.8:443", "x:1", ""} {
		f.Add(s)
	}
	strict, loose := newTransport(f, "https://service.example"), newTransport(f, "https://service.example")
	strict.config.AllowLoopback = false
	f.Fuzz(func(t *testing.T, address string) {
		allowed := strict.checkAddress(address, false) == nil
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			if allowed {
				t.Fatalf("%q is no address", address)
			}
			return
		}
		a := ap.Addr().Unmap()
		if allowed && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || !a.IsGlobalUnicast()) {
			t.Errorf("%s is allowed", address)
		}
		if strict.checkAddress(address, true) == nil {
			t.Errorf("%s is allowed without TLS", address)
		}
		if got := loose.checkAddress(address, true) == nil; got != a.IsLoopback() {
			t.Errorf("%s without TLS on loopback: %v", address, got)
		}
	})
}

// resolverOf makes every name resolve to addr.
func resolverOf(t *testing.T, addr netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe() // a stream: DNS messages come with a length before them
		go func() {
			defer there.Close()
			var size [2]byte
			if _, err := io.ReadFull(there, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(there, query); err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(query); err != nil {
				t.Error(err)
				return
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body: &dnsmessage.AResource{A: addr.As4()}}}
			}
			answer, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}()
		return here, nil
	}}
}

// TestRebinding approves names, and the address that they resolve to decides.
func TestRebinding(t *testing.T) {
	ca := newAuthority(t)
	s := newRawServer(t, func(*rawServer, *net.TCPConn, int64) {})
	_, port, _ := strings.Cut(s.Addr().String(), ":")
	hook := func(allowed string) func(*Config) {
		return func(c *Config) {
			c.AllowAddress = func(a netip.Addr) bool { return a == netip.MustParseAddr(allowed) }
		}
	}
	refused := result{0, client.NotSent, client.ClassAddress}
	connected := result{0, client.NotSent, client.ClassTLS} // the server hangs up: a connection was tried
	for _, tc := range []struct {
		name, origin, addr string
		change             func(*Config)
		want               result
	}{
		{"name to loopback", "https://service.example", "127.0.0.1", func(*Config) {}, refused},
		{"name to metadata", "https://service.example", "169.254.169.254", func(c *Config) { c.AllowLoopback = true }, refused},
		{"name to private", "https://service.example", "10.0.0.1", func(c *Config) { c.AllowLoopback = true }, refused},
		{"another address is allowed", "https://service.example", "127.0.0.1", hook("127.0.0.2"), refused},
		{"loopback literal", "https://127.0.0.1", "", func(*Config) {}, refused},
		{"mapped loopback literal", "https://[::ffff:7f00:1]", "", func(*Config) {}, refused},
		{"unspecified literal", "https://0.0.0.0", "", func(c *Config) { c.AllowLoopback = true }, refused},
		{"localhost", "https://localhost", "", func(*Config) {}, refused},
		{"HTTP to an address that is not loopback", "http://localhost", "10.0.0.1", func(c *Config) {
			c.AllowLoopback, c.AllowAddress = true, func(netip.Addr) bool { return true }
		}, refused},
		{"loopback allowed", "https://service.example", "127.0.0.1", func(c *Config) { c.AllowLoopback = true }, connected},
		{"address allowed", "https://service.example", "127.0.0.1", hook("127.0.0.1"), connected},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{Origins: []string{tc.origin + ":" + port}, RootCAs: ca.pool()}
			tc.change(&c)
			tr, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.CloseIdleConnections()
			if tc.addr != "" {
				tr.resolver = resolverOf(t, netip.MustParseAddr(tc.addr))
			}
			if strings.HasPrefix(tc.origin, "http:") {
				// The resolver of the system answers for localhost before ours is asked.
				ctx := context.WithValue(context.Background(), originKey{}, tc.origin)
				if c, err := tr.dial(ctx, "tcp", tc.addr+":"+port); err == nil {
					c.Close()
					t.Error("connected without TLS")
				}
				return
			}
			before := s.conns.Load()
			expect(t, tr.Submit(context.Background(), submission(c.Origins[0])), tc.want)
			expect(t, tr.Get(context.Background(), read(c.Origins[0], "/requests/1")), tc.want)
			if n := s.conns.Load() - before; (n != 0) != (tc.want == connected) {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestProxy: the environment has no say, the host has; and then the proxy's
// address is judged.
func TestProxy(t *testing.T) {
	var proxied atomic.Int64
	proxy := newRawServer(t, func(s *rawServer, c *net.TCPConn, _ int64) {
		got, _ := s.readBytes(c, -1)
		if strings.HasPrefix(string(got), "CONNECT service.example:443 ") {
			proxied.Add(1)
		}
		io.WriteString(c, "HTTP/1.1 502 s3cret\r\n\r\n")
	})
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.origin)
	}
	t.Setenv("NO_PROXY", "")

	if direct, err := New(Config{Origins: []string{"https://service.example"}}); err != nil {
		t.Fatal(err)
	} else {
		direct.resolver = resolverOf(t, netip.MustParseAddr("10.0.0.1"))
		want := result{0, client.NotSent, client.ClassAddress}
		expect(t, direct.Submit(context.Background(), submission("https://service.example")), want)
		expect(t, direct.Get(context.Background(), read("https://service.example", "/x")), want)
	}

	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	var asked []string
	c := Config{Origins: []string{"https://service.example", srv.URL}, AllowLoopback: true,
		Proxy: func(r *http.Request) (*url.URL, error) {
			asked = append(asked, r.URL.String())
			return url.Parse(proxy.origin)
		}}
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, tr.Submit(context.Background(), submission(srv.URL)), result{200, client.Answered, ""})
	expect(t, tr.Get(context.Background(), read(srv.URL, "/x")), result{200, client.Answered, ""})
	if len(asked) != 0 || proxy.conns.Load() != 0 {
		t.Errorf("an http origin went through a proxy: %q, %d connections", asked, proxy.conns.Load())
	}
	want := result{0, client.NotSent, client.ClassConnect}
	expect(t, tr.Submit(context.Background(), submission("https://service.example")), want)
	expect(t, tr.Get(context.Background(), read("https://service.example", "/x")), want)
	if got := fmt.Sprint(asked); got != "[https://service.example/ https://service.example/]" || proxied.Load() != 2 {
		t.Errorf("asked %s, %d CONNECTs", got, proxied.Load())
	}

	c.AllowLoopback, c.Origins = false, c.Origins[:1]
	if tr, err = New(c); err != nil {
		t.Fatal(err)
	}
	expect(t, tr.Submit(context.Background(), submission("https://service.example")), result{0, client.NotSent, client.ClassAddress})
}
