package excerpt

import (
	"net/http"
	"strings"
	"testing"
)

func TestBuffer(t *testing.T) {
	for _, tt := range []struct {
		end  bool
		want string
		more bool
		in   []string
	}{
		{false, "abc", false, []string{"a", "bc"}}, {false, "abcd", true, []string{"abc", "def", "g"}}, {true, "defg", true, []string{"abc", "def", "g"}},
		{true, "defg", true, []string{"abcdefg"}}, {true, "abcd", false, []string{"ab", "cd"}},
	} {
		b := &Buffer{Limit: 4, End: tt.end}
		for _, s := range tt.in {
			if n, err := b.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("%q: %d, %v", s, n, err)
			}
		}
		if _, more := b.State(); string(b.Bytes()) != tt.want || more != tt.more {
			t.Errorf("%q: %q, %v", tt.in, b.Bytes(), more)
		}
	}
}

func TestText(t *testing.T) {
	long := []byte(strings.Repeat("b", 999) + "end")
	if got := Begin(long); got != strings.Repeat("b", 999)+"e… (1002 bytes)" {
		t.Error(got)
	}
	if got := End(long); !strings.HasPrefix(got, "(1002 bytes) …b") || !strings.HasSuffix(got, "bend") {
		t.Error(got)
	}
	h := http.Header{"B": {"1", "2"}, "Authorization": {"secret"}}
	if got, want := Header(h), "\nAuthorization: [redacted]\nB: 1\nB: 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
