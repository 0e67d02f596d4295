package agentic

import (
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAddress(t *testing.T) {
	p := evidencePlan()
	for id, want := range map[string]string{
		"T-1":          "T-1",
		"a.b_c~d-e":    "a.b_c~d-e",
		"...":          "...",
		"a/../b":       "a%2F..%2Fb",
		"%2e%2e":       "%252e%252e",
		"a b+c?d#e":    "a%20b%2Bc%3Fd%23e",
		`\:@&=;,!*'`:   "%5C%3A%40%26%3D%3B%2C%21%2A%27",
		"é€😀":          "%C3%A9%E2%82%AC%F0%9F%98%80",
		"{x}":          "%7Bx%7D",
		"\u202e\u00a0": "%E2%80%AE%C2%A0",
	} {
		for _, build := range []struct {
			got  func(string) (string, error)
			want string
		}{
			{p.StatusURL, "https://support.example/requests/" + want},
			{p.ResourceURL, "https://support.example/tickets/" + want + "/full"},
		} {
			if got, err := build.got(id); err != nil || got != build.want {
				t.Errorf("%q: got %q, %v; want %q", id, got, err, build.want)
			}
		}
	}
}

func TestAddressRefused(t *testing.T) {
	p := evidencePlan()
	for id, reason := range map[string]string{
		"":                                      "empty",
		".":                                     `"."`,
		"..":                                    `".."`,
		strings.Repeat("x", MaxIDBytes+1):       "1024",
		strings.Repeat("é", MaxIDBytes/2) + "x": "1024",
		"a\x00":                                 "control",
		"\n":                                    "control",
		"a\tb":                                  "control",
		"\x7f":                                  "control",
		"\u0080":                                "control",
		"x\u009fy":                              "control",
		"\x80":                                  "UTF-8",
		"\xed\xa0\x80":                          "UTF-8",
	} {
		for _, build := range []func(string) (string, error){p.StatusURL, p.ResourceURL} {
			got, err := build(id)
			e, ok := errors.AsType[*AddressError](err)
			if !ok || got != "" || !strings.Contains(e.Reason, reason) {
				t.Errorf("%.20q: got %q, %v", id, got, err)
				continue
			}
			if !utf8.ValidString(e.ID) || utf8.RuneCountInString(e.ID) > maxShown {
				t.Errorf("%.20q: the error carries %q", id, e.ID)
			}
		}
	}
}

// Whatever the ID is, the URL stays on the origin, and its path is the template
// with that ID in one segment, also after another parser has read it.
func TestAddressProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hostile := []string{".", "..", "/", "//", "\\", "%", "%2f", "%2e", "?", "#", "@", ":", ";", "[", "]", "é", "😀", " ", "+", "a", "Z", "0", "-", "_", "~", "\u2028", "{", "}", "host.example"}
	p := evidencePlan()
	built := 0
	for range 20000 {
		var b strings.Builder
		for range rng.IntN(8) {
			if rng.IntN(4) == 0 {
				b.WriteRune(rune(rng.IntN(utf8.MaxRune)))
			} else {
				b.WriteString(hostile[rng.IntN(len(hostile))])
			}
		}
		id := b.String()
		got, err := p.ResourceURL(id)
		if err != nil {
			if unaddressable(id) == "" {
				t.Fatalf("%q: %v", id, err)
			}
			continue
		}
		built++
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		if u.Scheme != "https" || u.Host != "support.example" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
			t.Fatalf("%q leaves the path: %+v", id, u)
		}
		if "https://support.example"+u.EscapedPath() != got || u.String() != got {
			t.Fatalf("%q: a parser reads %q, built %q", id, u.String(), got)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if len(segments) != 4 {
			t.Fatalf("%q: %d segments in %q", id, len(segments), got)
		}
		if decoded, err := url.PathUnescape(segments[2]); err != nil || decoded != id {
			t.Fatalf("%q: decoded as %q, %v", id, decoded, err)
		}
		if clean := u.JoinPath().EscapedPath(); clean != u.EscapedPath() {
			t.Fatalf("%q: cleaning the path makes it %q", id, clean)
		}
	}
	if built < 10000 {
		t.Errorf("only %d URLs were built", built)
	}
}
