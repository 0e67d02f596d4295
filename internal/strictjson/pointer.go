package strictjson

import "strings"

// Lookup resolves an RFC 6901 pointer below v. ok is false when the pointer is
// malformed or names nothing: an array takes only "0" or a decimal without
// leading zero inside its bounds (D5).
func (v Value) Lookup(pointer string) (found Value, ok bool) {
	if pointer == "" {
		return v, v.kind != Invalid
	}
	if !ValidPointer(pointer) {
		return Value{}, false
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = unescapeToken.Replace(token)
		switch v.kind {
		case Object:
			v, ok = v.Member(token)
		case Array:
			v, ok = v.element(token)
		default:
			ok = false
		}
		if !ok {
			return Value{}, false
		}
	}
	return v, true
}

func (v Value) element(token string) (Value, bool) {
	if token == "" || len(token) > 9 || (token[0] == '0' && token != "0") {
		return Value{}, false
	}
	n := 0
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return Value{}, false
		}
		n = n*10 + int(c-'0')
	}
	if n >= len(v.elems) {
		return Value{}, false
	}
	return v.elems[n], true
}

// ValidPointer reports whether s is an RFC 6901 pointer: empty, or "/" and
// tokens in which "~" stands only in "~0" and "~1".
func ValidPointer(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || (s[i+1] != '0' && s[i+1] != '1')) {
			return false
		}
	}
	return true
}

var (
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
)

// EscapeToken is one reference token of a pointer, escaped.
func EscapeToken(s string) string { return escapeToken.Replace(s) }
