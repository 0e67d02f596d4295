package strictjson

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Equal reports structural equality: numbers by their exact value (D2), members
// in any order, everything else by kind and content. The zero Value, which is
// what a failed lookup gives, equals nothing, not even itself.
func Equal(a, b Value) bool {
	if a.kind != b.kind || a.kind == Invalid {
		return false
	}
	switch a.kind {
	case Bool:
		return a.truth == b.truth
	case Number:
		x, _ := a.Decimal()
		y, _ := b.Decimal()
		return x == y
	case String:
		return a.text == b.text
	case Array:
		return slices.EqualFunc(a.elems, b.elems, Equal)
	case Object:
		if len(a.members) != len(b.members) {
			return false
		}
		x, y := sorted(a.members), sorted(b.members)
		for i := range x {
			if x[i].Name != y[i].Name || !Equal(x[i].Value, y[i].Value) {
				return false
			}
		}
	}
	return true
}

func sorted(ms []Member) []Member {
	byName := func(a, b Member) int { return strings.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(ms, byName) {
		return ms
	}
	ms = slices.Clone(ms)
	slices.SortFunc(ms, byName)
	return ms
}

// Canonical is the one spelling that all structurally equal values share: no
// white space, members sorted by name, numbers as Decimal.String.
func (v Value) Canonical() []byte { return v.write(nil, true) }

// Compact is the value without white space, its members and number literals as
// they were written.
func (v Value) Compact() []byte { return v.write(nil, false) }

// Digest is the SHA-256 of the canonical form, in lower-case hexadecimal.
func (v Value) Digest() string {
	sum := sha256.Sum256(v.Canonical())
	return hex.EncodeToString(sum[:])
}

func (v Value) write(b []byte, canonical bool) []byte {
	switch v.kind {
	case Null:
		return append(b, "null"...)
	case Bool:
		if v.truth {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case Number:
		if canonical {
			d, _ := v.Decimal()
			return d.append(b)
		}
		return append(b, v.text...)
	case String:
		return quote(b, v.text)
	case Array:
		b = append(b, '[')
		for i, e := range v.elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.write(b, canonical)
		}
		return append(b, ']')
	case Object:
		ms := v.members
		if canonical {
			ms = sorted(ms)
		}
		b = append(b, '{')
		for i, m := range ms {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(quote(b, m.Name), ':')
			b = m.Value.write(b, canonical)
		}
		return append(b, '}')
	}
	return b
}

// quote appends a string literal. Text that came from Parse is valid UTF-8, so
// the error of AppendQuote cannot occur.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// Quote is the JSON string literal of s, with the fewest escapes. Invalid UTF-8
// becomes U+FFFD.
func Quote(s string) []byte { return quote(nil, s) }
