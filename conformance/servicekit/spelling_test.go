package servicekit

import (
	"testing"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// Every spelling is other bytes and the same value.
func TestSpellings(t *testing.T) {
	const all = `{"a/b":[1,-0,2.50,1e3,1.5E-7,true,null,{}],"é":{"x":"😀\"\\\u0000/","":[]},"z":12345678901234567890}`
	for _, c := range []struct {
		input string
		says  [3]bool // whether each spelling changes it
	}{
		{all, [3]bool{true, true, true}},
		{`{"n":1}`, [3]bool{true, true, true}},
		{`{"s":"x"}`, [3]bool{true, true, false}},
		{`{}`, [3]bool{true, false, false}},
	} {
		v, err := strictjson.Parse([]byte(c.input))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range spellings {
			b, ok := s.write(v)
			if ok != c.says[i] {
				t.Errorf("%s of %s: %t", s.name, c.input, ok)
			}
			again, err := strictjson.Parse(b)
			if err != nil || !strictjson.Equal(v, again) || again.Digest() != v.Digest() {
				t.Errorf("%s of %s: %s (%v)", s.name, c.input, b, err)
			}
			if ok && string(b) == string(v.Compact()) {
				t.Errorf("%s of %s is the same bytes", s.name, c.input)
			}
		}
	}
}
