package escape

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTerminal(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "Create a ticket.", "Create a ticket."},
		{"letters of other scripts", "Grüße, 日本, привет, a\u0301", "Grüße, 日本, привет, a\u0301"},
		{"terminal sequence", "\x1b[31mred\x1b]0;t\a", `\x1b[31mred\x1b]0;t\x07`},
		{"C1 control", "\u009b31m", `\u009b31m`},
		{"lines", "a\nb\r\n\tc", `a\nb\r\n\tc`},
		{"backslash", `\x1b`, `\\x1b`},
		{"delete", "a\x7f", `a\x7f`},
		{"bidirectional", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"zero width", "a\u200bb\u200dc\ufeff", `a\u200bb\u200dc\ufeff`},
		{"no-break space", "a\u00a0b\u3000", `a\u00a0b\u3000`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"tags", "a\U000e0041", `a\U000e0041`},
		{"private use", "\ue000", `\ue000`},
		{"invisible letters", "\u3164\u115f\uffa0\u2800", `\u3164\u115f\uffa0\u2800`},
		{"variation selector", "\u2764\ufe0f", "\u2764" + `\ufe0f`},
		{"not UTF-8", "a\xff\xc3(", `a\xff\xc3(`},
		{"surrogate in UTF-8", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"replacement character itself", "\ufffd", "\ufffd"},
		{"mark without a base", "\u0301a", `\u0301a`},
		{"mark after an escape", "\n\u0301", `\n\u0301`},
		{"too many marks", "a" + strings.Repeat("\u0301", 6), "a" + strings.Repeat("\u0301", 4) + `\u0301\u0301`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Terminal(tt.in); got != tt.want {
				t.Errorf("Terminal(%q) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// What is quoted already is not escaped a second time, and nothing else is let
// through.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{
		`"\u001b[31m \\"`:       `"\u001b[31m \\"`,
		"\"\u202e\x1b\n\":\xff": `"\u202e\x1b\n":\xff`,
		`'it'\''s me'`:          `'it'\''s me'`,
		"\\\u0301":              `\\u0301`,
	} {
		if got := Quoted(in); got != want {
			t.Errorf("Quoted(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestShell(t *testing.T) {
	for in, want := range map[string]string{
		"https://support.example:8443": "https://support.example:8443",
		"":                             "''",
		"it's me":                      `'it'\''s me'`,
		"$(id)":                        "'$(id)'",
		"http://[::1]:80":              "'http://[::1]:80'",
		"~/x":                          "'~/x'",
		"=ls":                          "'=ls'",
		"naïve":                        "'naïve'",
		`a\nb`:                         `'a\nb'`,
		"\x1b[31m":                     `$'\033[31m'`,
		"a\n1'\\":                      `$'a\0121\047\134'`,
		"\u202e":                       `$'\342\200\256'`,
		"\xff":                         `$'\377'`,
	} {
		if got := Shell(in); got != want || Quoted(got) != got {
			t.Errorf("Shell(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestBounded(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"äöüß", 3, "äöü…"},
		{"ab\x1bc", 5, "ab…"},
		{"ab\x1bc", 6, `ab\x1b…`},
		{"", 0, ""},
	} {
		if got := Bounded(tt.in, tt.limit); got != tt.want {
			t.Errorf("Bounded(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	in := "{\"a\": \"x\u202ey\u009bz\x7f\U000e0041\u2764 日\\n\"}\n"
	want := `{"a": "x\u202ey\u009bz\u007f\udb40\udc41` + "\u2764 日" + `\n"}` + "\n"
	if got := string(JSON([]byte(in))); got != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
}

// What Terminal gives is printable, in one line, tells different texts apart,
// and is what Bounded gives with room enough.
func FuzzTerminal(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[0m", `\`, "\u202e\u0301\u0301\u0301\u0301\u0301", "\xff\xfe", `"`, "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Terminal(s)
		for _, r := range out {
			if !unicode.IsPrint(r) || !utf8.ValidString(out) {
				t.Fatalf("Terminal(%q) = %q has %U", s, out, r)
			}
		}
		back, err := strconv.Unquote(`"` + strings.ReplaceAll(out, `"`, `\"`) + `"`)
		if err != nil || back != s {
			t.Fatalf("Terminal(%q) = %q reads back as %q, %v", s, out, back, err)
		}
		quoted, word := Quoted(s), Shell(s)
		if quoted != out && !strings.Contains(s, `\`) {
			t.Fatalf("Quoted(%q) = %q, want %q", s, quoted, out)
		}
		for _, r := range quoted + word {
			if !unicode.IsPrint(r) {
				t.Fatalf("Quoted(%q) = %q or Shell = %q has %U", s, quoted, word, r)
			}
		}
		if Quoted(word) != word {
			t.Fatalf("Shell(%q) = %q is not shown as it is", s, word)
		}
		if b := Bounded(s, utf8.RuneCountInString(out)); b != out {
			t.Fatalf("Bounded(%q) = %q, want %q", s, b, out)
		}
	})
}

// JSON keeps the value and leaves nothing that a terminal acts on.
func FuzzJSON(f *testing.F) {
	f.Add("a\u202e\x7f\u009b\U000e0001")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out := JSON(doc)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != s {
			t.Fatalf("JSON(%s) = %s reads back as %q, %v", doc, out, back, err)
		}
		for _, r := range string(out) {
			if !unicode.IsPrint(r) {
				t.Fatalf("JSON(%s) = %s has %U", doc, out, r)
			}
		}
	})
}
