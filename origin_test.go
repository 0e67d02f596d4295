package agentic

import (
	"net/url"
	"strings"
	"testing"
)

func TestOriginCanonical(t *testing.T) {
	for _, origin := range []string{
		"https://support.example", "https://support.example:8443", "https://support.example:80", "https://support.example:0", "https://support.example:65535",
		"https://localhost", "https://intranet", "https://a_b.example", "https://-a-.example", "https://r3---sn.example", "https://1.a", "https://0x7g", "https://1e",
		"https://xn--bcher-kva.example", "https://www.xn--fiqs8s", "https://xn--zckzah", "https://xn--strae-oqa.example",
		"https://127.0.0.1", "https://0.0.0.0:8443", "https://255.255.255.255",
		"https://[::1]", "https://[::]:8443", "https://[2001:db8::1]", "https://[2001:db8:0:1:1:1:1:1]", "https://[::ffff:7f00:1]", "https://[1:0:0:2::3]", "https://[fe80::1]",
		"https://" + strings.Repeat(strings.Repeat("a", 62)+".", 3) + strings.Repeat("a", 63),
		"https://" + strings.Repeat("a", 63),
	} {
		if fault := originFault(origin); fault != "" {
			t.Errorf("%s %s", origin, fault)
		}
	}
}

func TestOriginNotCanonical(t *testing.T) {
	tests := []struct{ origin, fault string }{
		{"", "https://"}, {"https", "https://"}, {"ftp://support.example", "https://"}, {"HTTPS://support.example", "https://"}, {" https://support.example", "https://"},
		{"https:/support.example", "https://"}, {"//support.example", "https://"},
		{"https://", "no host"}, {"https://:8443", "no host"}, {"https://[]", "IPv6"},
		{"https://Support.example", "lower case"}, {"https://support.EXAMPLE", "lower case"}, {"https://[2001:DB8::1]", "lower case"},
		{"https://support.example.", "ends in a dot"}, {"https://127.0.0.1.", "ends in a dot"}, {"https://.", "ends in a dot"},
		{"https://support..example", "empty label"}, {"https://.example", "empty label"},
		{"https://support.example/", "path"}, {"https://support.example/a", "path"}, {`https://support.example\`, "path"}, {`https://support.example\@evil.example`, "path"},
		{"https://support.example?", "query"}, {"https://support.example#", "fragment"},
		{"https://user@support.example", "credentials"}, {"https://user:password@support.example", "credentials"}, {"https://@support.example", "credentials"},
		{"https://support.example:443", "default port"}, {"http://localhost:80", "default port"}, {"https://[::1]:443", "default port"},
		{"https://support.example:", "port"}, {"https://support.example:08443", "leading zeros"}, {"https://support.example:00", "leading zeros"},
		{"https://support.example:65536", "port"}, {"https://support.example:-1", "port"}, {"https://support.example:+1", "port"}, {"https://support.example:1_0", "port"},
		{"https://support.example:80:80", "port"}, {"https://support.example:99999999999999999999", "port"},
		{"https://support%2eexample", "percent"}, {"https://[fe80::1%25eth0]", "percent"}, {"https://support.example%00", "percent"},
		{"https://support.exa\tmple", "visible ASCII"}, {"https://support.example\n", "visible ASCII"}, {"https://support .example", "visible ASCII"}, {"https://\x00", "visible ASCII"},
		{"https://bücher.example", "punycode"}, {"https://ｓupport.example", "punycode"}, {"https://support。example", "punycode"}, {"https://a\u00ad.example", "punycode"},
		{"https://xn--", "punycode"}, {"https://xn--a.example", "punycode"}, {"https://xn--example-.example", "punycode"}, {"https://xn--bcher-kva-.example", "punycode"},
		{"https://xn--strasse-.example", "punycode"}, {"https://xn--a-ecp.ru", "punycode"}, {"https://xn--99999999.example", "punycode"}, {"https://xn--0ca24w.example", "punycode"},
		{"https://0x7f.1", "reads as a number"}, {"https://2130706433", "reads as a number"}, {"https://127.1", "reads as a number"}, {"https://0177.0.0.1", "reads as a number"},
		{"https://127.0.0.01", "reads as a number"}, {"https://256.0.0.1", "reads as a number"}, {"https://1.2.3.4.5", "reads as a number"}, {"https://support.1", "reads as a number"},
		{"https://support.0x", "reads as a number"}, {"https://support.0xff", "reads as a number"}, {"https://0", "reads as a number"}, {"https://127.0.0.0x1", "reads as a number"},
		{"https://[0:0:0:0:0:0:0:1]", "shortest form, [::1]"}, {"https://[::0001]", "shortest form"}, {"https://[2001:db8::0:1]", "shortest form"},
		{"https://[::ffff:127.0.0.1]", "shortest form, [::ffff:7f00:1]"}, {"https://[::127.0.0.1]", "shortest form"}, {"https://[1:0:0:2:0:0:0:3]", "shortest form"},
		{"https://[1::2:3:4:5:6:7]", "shortest form"},
		{"https://[127.0.0.1]", "not an IPv6"}, {"https://[::1", "closing bracket"}, {"https://[::1]a", "after the bracket"}, {"https://::1", "no host"}, {"https://[[::1]]", "after the bracket"},
		{"https://[::1]:", "port"}, {"https://a[::1]", "'['"},
		{"https://a!b.example", "'!'"}, {"https://a,b", "','"}, {"https://a{b}", "'{'"}, {"https://*.example", "'*'"}, {"https://a^b", "'^'"}, {"https://a|b", "'|'"}, {"https://a<b", "'<'"},
		{"https://" + strings.Repeat("a", 64) + ".example", "63"}, {"https://" + strings.Repeat("a.", 127), "dot"}, {"https://" + strings.Repeat("a.", 127) + "a", "253"},
	}
	for _, tt := range tests {
		if fault := originFault(tt.origin); fault == "" || !strings.Contains(fault, tt.fault) {
			t.Errorf("%q: %q does not say %q", tt.origin, fault, tt.fault)
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	tests := []struct {
		origin              string
		production, allowed bool
	}{
		{"https://support.example", true, true},
		{"https://localhost", true, true},
		{"http://localhost", false, true},
		{"http://localhost:4318", false, true},
		{"http://127.0.0.1:4318", false, true},
		{"http://[::1]:4318", false, true},
		{"http://support.example", false, false},
		{"http://localhost.example", false, false},
		{"http://localhosts", false, false},
		{"http://127.0.0.2", false, false},
		{"http://127.0.0.11", false, false},
		{"http://[::ffff:7f00:1]", false, false},
		{"http://0.0.0.0", false, false},
		{"http://127.1", false, false},
		{"http://LOCALHOST", false, false},
	}
	for _, tt := range tests {
		if got := CheckOrigin(tt.origin, Options{}) == nil; got != tt.production {
			t.Errorf("%s is approved for production: %v", tt.origin, got)
		}
		if got := CheckOrigin(tt.origin, Options{AllowLoopback: true}) == nil; got != tt.allowed {
			t.Errorf("%s is approved with loopback: %v", tt.origin, got)
		}
	}
}

func TestPathFault(t *testing.T) {
	for _, p := range []string{"/a", "/a/b", "/.well-known/openapi.json", "/...", "/a..b", "/..a", "/a:b@c;d=e,f!$&'()*+~^|", "/a.", "/A"} {
		if fault := pathFault(p); fault != "" {
			t.Errorf("%q %s", p, fault)
		}
	}
	tests := []struct{ path, fault string }{
		{"", "slash"}, {"a", "slash"}, {"https://evil.example/a", "slash"}, {`\a`, "slash"},
		{"/", "empty segment"}, {"//evil.example/a", "empty segment"}, {"/a//b", "empty segment"}, {"/a/", "empty segment"},
		{"/.", "traversal"}, {"/..", "traversal"}, {"/a/../b", "traversal"}, {"/./a", "traversal"}, {"/a/.", "traversal"},
		{"/.\t./a", "visible ASCII"}, {"/\t/evil.example", "visible ASCII"}, {"/a\n", "visible ASCII"}, {"/a b", "visible ASCII"}, {"/é", "visible ASCII"}, {"/a\x7f", "visible ASCII"}, {"/\u2025/a", "visible ASCII"},
		{"/%2e%2e/a", "percent"}, {"/a%20b", "percent"}, {"/%", "percent"},
		{`/a\b`, "backslash"}, {`/\evil.example`, "backslash"}, {"/a?b", "query"}, {"/a#b", "fragment"}, {"/{a}", "brace"}, {"/a}", "brace"},
	}
	for _, tt := range tests {
		if fault := pathFault(tt.path); fault == "" || !strings.Contains(fault, tt.fault) {
			t.Errorf("%q: %q does not say %q", tt.path, fault, tt.fault)
		}
	}
}

// FuzzOrigin holds that what is canonical is also what the standard library's URL
// parser makes of it, with nothing but scheme and host.
func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"https://support.example:8443", "https://[::1]", "https://xn--bcher-kva.example", "http://127.0.0.1:4318", "https://a..b", "https://0x7f.1", `https://a\b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, origin string) {
		if originFault(origin) != "" {
			return
		}
		u, err := url.Parse(origin)
		if err != nil {
			t.Fatal(err)
		}
		if u.String() != origin || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin {
			t.Errorf("%q parses to %q with host %q", origin, u, u.Host)
		}
	})
}
