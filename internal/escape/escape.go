// Package escape makes untrusted text safe to show (D6): what a publisher, a
// service, a file or an ID says can neither drive a terminal nor hide or reorder
// what a person reads.
//
// Its job is text for terminals and logs, JSON that is printed, and words of a
// command that a person can copy. It is not for HTML or URLs. It imports the
// standard library only.
package escape

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks in a row are shown as they are. Living
// scripts stack up to four; more than that overwrites the lines above and below.
const maxMarks = 4

// Terminal gives s as one line of printable text. Everything else becomes a
// visible escape in the syntax of Go: \n, \t, \r, \x1b for ASCII and for bytes
// that are not UTF-8, \u202e or \U000e0001 for other code points. That holds for
// control, format (bidirectional, zero-width), unassigned, private-use and
// invisible code points, every space but U+0020, a combining mark that has
// nothing before it, and the fifth and later marks in a row. A backslash is
// doubled, so no two texts look the same: strconv.Unquote gives s back, once the
// quotation marks in it are escaped.
func Terminal(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	write(s, func(piece string) bool { b.WriteString(piece); return true })
	return b.String()
}

// Quoted is Terminal for text that is quoted already, as JSON or for a shell, so
// that a backslash in it begins an escape: it stays as it is.
func Quoted(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	write(s, func(piece string) bool {
		if piece == `\\` {
			piece = `\`
		}
		b.WriteString(piece)
		return true
	})
	return b.String()
}

// Bounded is Terminal cut after limit code points of output, with an ellipsis in
// the place of what is missing. An escape is never cut in two.
func Bounded(s string, limit int) string {
	var b strings.Builder
	n := 0
	write(s, func(piece string) bool {
		size := utf8.RuneCountInString(piece)
		if n+size > limit {
			b.WriteString("…")
			return false
		}
		n += size
		b.WriteString(piece)
		return true
	})
	return b.String()
}

// write gives s piece by piece, each a rune or its escape, until yield says stop.
func write(s string, yield func(piece string) bool) {
	marks := maxMarks // a mark at the start would land on what stands before the text
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+size]
		i += size
		switch {
		case r == utf8.RuneError && size == 1:
			piece, marks = `\x`+hex(uint64(piece[0]), 2), maxMarks
		case unicode.IsMark(r) && visible(r) && marks < maxMarks:
			marks++
		case unicode.IsMark(r) || r == '\\' || !visible(r):
			piece, marks = escaped(r), maxMarks
		default:
			marks = 0
		}
		if !yield(piece) {
			return
		}
	}
}

// visible reports whether a terminal shows r as itself, in its place. IsPrint
// leaves out controls, format characters and spaces; the rest are letters,
// symbols and marks without a shape.
func visible(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsPrint(r) && r != brailleBlank &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r)
}

func escaped(r rune) string {
	switch {
	case r == '\\':
		return `\\`
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return `\x` + hex(uint64(r), 2)
	case r <= 0xffff:
		return `\u` + hex(uint64(r), 4)
	}
	return `\U` + hex(uint64(r), 8)
}

func hex(n uint64, width int) string {
	s := strconv.FormatUint(n, 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// JSON gives a valid JSON document in which every code point outside ASCII that
// Terminal would escape is a \u escape, and so is U+007F. The value is the same;
// the control characters below U+0020 are escaped by JSON itself, or are the
// white space between tokens.
func JSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		if c := doc[i]; c < 0x7f {
			out = append(out, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(doc[i:])
		switch {
		case visible(r):
			out = append(out, doc[i:i+size]...)
		case r > 0xffff:
			hi, lo := surrogates(r)
			out = append(out, `\u`+hex(uint64(hi), 4)+`\u`+hex(uint64(lo), 4)...)
		default:
			out = append(out, `\u`+hex(uint64(r), 4)...)
		}
		i += size
	}
	return out
}

// Shell gives s as one word of a POSIX shell that Quoted leaves as it is. What a
// terminal would not show as itself is in the $'...' of POSIX.1-2024, which bash,
// zsh and ksh know, as octal bytes.
func Shell(s string) string {
	switch {
	case s != "" && s[0] != '=' && strings.IndexFunc(s, special) < 0:
		return s
	case Quoted(s) == s:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		if c < 0x20 || c >= 0x7f || c == '\'' || c == '\\' {
			o := strconv.FormatUint(uint64(c), 8)
			b.WriteString(`\` + strings.Repeat("0", 3-len(o)) + o)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('\'')
	return b.String()
}

// special reports whether a shell may see more than a letter in r.
func special(r rune) bool {
	lower := r | 0x20
	return (lower < 'a' || lower > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@%+,", r)
}

// surrogates are the two halves of a code point above U+FFFF in UTF-16.
func surrogates(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}
