package servicekit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// spelling writes a JSON value in another way that is structurally equal (D2).
type spelling struct {
	name    string
	space   bool // white space between all tokens
	reverse bool // members the other way round
	escape  bool // every character of every string as \uXXXX
	number  bool // 1 as 1.0
}

var spellings = []spelling{
	{name: "white space and members in another order", space: true, reverse: true},
	{name: "escaped characters", escape: true},
	{name: "numbers in another form", number: true},
}

// write is v in the spelling; ok is false when v has nothing that it changes.
func (s spelling) write(v strictjson.Value) (b []byte, ok bool) {
	w := speller{spelling: s}
	w.value(v)
	return w.out.Bytes(), !bytes.Equal(w.out.Bytes(), v.Compact())
}

type speller struct {
	spelling
	out bytes.Buffer
}

func (w *speller) value(v strictjson.Value) {
	switch v.Kind() {
	case strictjson.Object:
		members := slices.Clone(v.Members())
		if w.reverse {
			slices.Reverse(members)
		}
		w.token("{")
		for i, m := range members {
			if i > 0 {
				w.token(",")
			}
			w.text(m.Name)
			w.token(":")
			w.value(m.Value)
		}
		w.token("}")
	case strictjson.Array:
		w.token("[")
		for i, e := range v.Elements() {
			if i > 0 {
				w.token(",")
			}
			w.value(e)
		}
		w.token("]")
	case strictjson.String:
		text, _ := v.Text()
		w.text(text)
	case strictjson.Number:
		literal, _ := v.Literal()
		if w.number {
			literal = otherNumber(literal)
		}
		w.token(literal)
	default:
		w.token(string(v.Compact()))
	}
}

func (w *speller) token(s string) {
	if w.space {
		w.out.WriteString(" \n\t")
	}
	w.out.WriteString(s)
}

func (w *speller) text(s string) {
	if !w.escape {
		w.token(string(strictjson.Quote(s)))
		return
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04X`, unit)
	}
	b.WriteByte('"')
	w.token(b.String())
}

// otherNumber is another literal of the same value: a fraction gets another zero, a
// whole number a fraction; with an exponent the letter changes.
func otherNumber(literal string) string {
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		letter := "e"
		if literal[i] == 'e' {
			letter = "E"
		}
		return otherNumber(literal[:i]) + letter + literal[i+1:]
	}
	if strings.Contains(literal, ".") {
		return literal + "0"
	}
	return literal + ".0"
}
