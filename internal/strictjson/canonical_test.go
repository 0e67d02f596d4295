package strictjson

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func itoa(i int) string { return strconv.Itoa(i) }

// Documents of one class are structurally equal, and of two classes never (D2).
var classes = [][]string{
	{`0`, `-0`, `0.0`, `0e5`, `-0.00E-7`, `0e99999999999999999999`},
	{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `1.000`, `1E+0`},
	{`-1`, `-1.0`},
	{`true`}, {`false`}, {`null`}, {`"1"`}, {`"true"`}, {`""`}, {`"null"`},
	{`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
	{`9007199254740992`},
	{`0.1`, `1e-1`, `0.10`}, {`0.1000000000000000055511151231257827`},
	{`1e400`, `10e399`}, {`1e401`}, {`1e-400`}, {`-1e400`},
	{`1e1000000000000000`, `0.1e1000000000000001`}, {`1e999999999999999`},
	{`100`, `1e2`, `1.00e2`}, {`1000`, `1e3`}, {`12300`, `123e2`, `1.23e4`}, {`0.00123`, `123e-5`, `1.23e-3`},
	{`"a"`, `"\u0061"`}, {`"A"`}, {`"é"`, `"\u00e9"`, `"\u00E9"`}, {`"e\u0301"`},
	{`"😀"`, `"\ud83d\ude00"`}, {`"/"`, `"\/"`}, {`"\u0000"`}, {`"\n"`, `"\u000a"`}, {`"<"`, `"\u003c"`},
	{`[]`}, {`{}`}, {`[[]]`}, {`[{}]`}, {`[null]`},
	{`[1,2]`, ` [ 1.0 , 2 ] `}, {`[2,1]`}, {`[1,2,2]`}, {`[12]`},
	{`{"a":1,"b":[{"c":1,"d":2}]}`, `{"b":[{"d":2,"c":1e0}],"\u0061":1}`},
	{`{"a":1}`}, {`{"a":null}`}, {`{"A":1}`}, {`{"a":"1"}`}, {`{"":1}`}, {`{"a":1,"b":null}`}, {`{"ab":1}`},
}

func TestEqualAndCanonical(t *testing.T) {
	for i, x := range classes {
		for _, a := range x {
			v := parse(t, a)
			for j, y := range classes {
				for _, b := range y {
					checkPair(t, v, parse(t, b))
					if Equal(v, parse(t, b)) != (i == j) {
						t.Errorf("%s and %s: equal is %v", a, b, i != j)
					}
				}
			}
		}
	}
	if Equal(Value{}, Value{}) {
		t.Error("a missing value matches a missing value")
	}
}

// checkPair holds equality, canonical form and digest together.
func checkPair(t *testing.T, v, w Value) {
	t.Helper()
	equal := Equal(v, w)
	if Equal(w, v) != equal {
		t.Errorf("%s and %s: equality is not symmetric", v.Compact(), w.Compact())
	}
	if (string(v.Canonical()) == string(w.Canonical())) != equal {
		t.Errorf("%s and %s: equal is %v, canonical forms are %s and %s", v.Compact(), w.Compact(), equal, v.Canonical(), w.Canonical())
	}
	if (v.Digest() == w.Digest()) != equal {
		t.Errorf("%s and %s: equal is %v, and the digests say otherwise", v.Compact(), w.Compact(), equal)
	}
}

// checkForms holds a value and its two spellings together.
func checkForms(t *testing.T, v Value) {
	t.Helper()
	for _, form := range [][]byte{v.Canonical(), v.Compact()} {
		again, err := Parse(form)
		if err != nil {
			t.Fatalf("%s is not strict: %v", form, err)
		}
		if !Equal(v, again) || string(again.Canonical()) != string(v.Canonical()) || string(again.Compact()) != string(form) {
			t.Errorf("%s came back as %s", form, again.Compact())
		}
		if !json.Valid(form) {
			t.Errorf("%s is not valid JSON", form)
		}
	}
}

func TestForms(t *testing.T) {
	for _, doc := range accepted {
		checkForms(t, parse(t, doc))
	}
	v := parse(t, ` { "b" : [ 1.50 , "\u003c\u2028\/" ] , "a" : { } } `)
	if got, want := string(v.Compact()), "{\"b\":[1.50,\"<\u2028/\"],\"a\":{}}"; got != want {
		t.Errorf("compact: got %s, want %s", got, want)
	}
	if got, want := string(v.Canonical()), "{\"a\":{},\"b\":[1.5,\"<\u2028/\"]}"; got != want {
		t.Errorf("canonical: got %s, want %s", got, want)
	}
	// A digest is saved with every request: its form may not change unnoticed.
	if got, want := v.Digest(), "4af21d00a2994d2fa12489cbc1ced90154610bbc0b7283c0ead953740c117821"; got != want {
		t.Errorf("digest: got %s, want %s", got, want)
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{"": `""`, "a\"\\": `"a\"\\"`, "<&>": `"<&>"`, "\n\x00\x1b": `"\n\u0000\u001b"`, "é\u2028": "\"é\u2028\"", "a\xffb": "\"a\uFFFDb\""} {
		if got := string(Quote(s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestDecimal(t *testing.T) {
	type facts struct {
		text      string
		integer   bool
		magnitude int64
		int64     int64
		fits      bool
	}
	for lit, want := range map[string]facts{
		`0`: {"0", true, 0, 0, true}, `-0.0e9`: {"0", true, 0, 0, true},
		`7`: {"7", true, 0, 7, true}, `700`: {"700", true, 2, 700, true}, `3.0`: {"3", true, 0, 3, true}, `30e-1`: {"3", true, 0, 3, true},
		`1e3`: {"1e3", true, 3, 1000, true}, `1e4`: {"1e4", true, 4, 10000, true}, `-25e-1`: {"-2.5", false, 0, 0, false},
		`0.5`: {"0.5", false, -1, 0, false}, `0.01`: {"0.01", false, -2, 0, false}, `0.001`: {"1e-3", false, -3, 0, false},
		`9223372036854775807`:  {"9223372036854775807", true, 18, 9223372036854775807, true},
		`9223372036854775808`:  {"9223372036854775808", true, 18, 0, false},
		`-9223372036854775808`: {"-9223372036854775808", true, 18, -9223372036854775808, true},
		`1e18`:                 {"1e18", true, 18, 1000000000000000000, true}, `1e19`: {"1e19", true, 19, 0, false},
		`1e1000000000000000`: {"1e1000000000000000", true, 1000000000000000, 0, false},
	} {
		d, ok := parse(t, lit).Decimal()
		n, fits := d.Int64()
		got := facts{d.String(), d.IsInteger(), d.Magnitude(), n, fits}
		if !fits {
			got.int64 = 0
		}
		if !ok || got != want {
			t.Errorf("%s: got %+v, want %+v", lit, got, want)
		}
	}
}

// Against math/big: every literal of a grid keeps its exact value, and its
// canonical spelling is not longer than it.
func TestDecimalAgainstBig(t *testing.T) {
	rats := map[string]*big.Rat{}
	spellings := map[string]string{}
	for _, sign := range []string{"", "-"} {
		for _, digits := range []string{"0", "1", "10", "12", "100", "1200", "99999", "100000000001", "12345678901234567890"} {
			for _, frac := range []string{"", ".0", ".1", ".10", ".01", ".0001000", ".99999999999999999999"} {
				for _, exp := range []string{"", "e0", "E1", "e+2", "e-1", "e-2", "e-3", "e-10", "e-19", "e10", "e25", "e-025"} {
					lit := sign + digits + frac + exp
					d, ok := parse(t, lit).Decimal()
					if !ok {
						t.Fatalf("%s: no number", lit)
					}
					want, _ := new(big.Rat).SetString(lit)
					got, ok := new(big.Rat).SetString(d.String())
					if !ok || got.Cmp(want) != 0 {
						t.Fatalf("%s: spelled %s", lit, d)
					}
					if d.IsInteger() != want.IsInt() {
						t.Fatalf("%s: integer is %v", lit, d.IsInteger())
					}
					if n, ok := d.Int64(); ok != (want.IsInt() && want.Num().IsInt64()) || ok && n != want.Num().Int64() {
						t.Fatalf("%s: int64 is %d, %v", lit, n, ok)
					}
					if len(d.String()) > len(lit) {
						t.Fatalf("%s: the canonical spelling %s is longer", lit, d)
					}
					rats[d.String()] = want
					if old, ok := spellings[want.String()]; ok && old != d.String() {
						t.Fatalf("%s: one value has the spellings %s and %s", lit, old, d)
					}
					spellings[want.String()] = d.String()
				}
			}
		}
	}
	if len(rats) < 500 {
		t.Errorf("only %d values", len(rats))
	}
}

func FuzzParse(f *testing.F) {
	for _, doc := range accepted {
		f.Add([]byte(doc))
	}
	for _, tt := range refused {
		f.Add([]byte(tt.doc[:min(len(tt.doc), 1000)]))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Parse(doc)
		if err != nil {
			e := err.(*Error)
			if e.Reason == nil || e.Line < 1 || e.Column < 1 || e.Line > len(doc)+1 || len(e.Error()) > 2500 {
				t.Fatalf("%q: %#v", doc, e)
			}
			if json.Valid(doc) && (e.Reason == ErrSyntax || e.Reason == ErrEmpty || e.Reason == ErrTrailing) {
				t.Fatalf("%q is refused as %v, and encoding/json takes it", doc, e)
			}
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("%q is accepted, and encoding/json refuses it", doc)
		}
		checkForms(t, v)
		checkPair(t, v, v)
	})
}

func FuzzEqual(f *testing.F) {
	for i, x := range classes {
		for _, a := range x {
			f.Add(a, x[0])
			f.Add(a, classes[(i+1)%len(classes)][0])
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		v, errA := Parse([]byte(a))
		w, errB := Parse([]byte(b))
		if errA != nil || errB != nil {
			return
		}
		checkPair(t, v, w)
		// Both under one roof, in either order: members do not care, elements do.
		x := parseFuzz(t, `{"a":`+a+`,"b":`+b+`}`)
		y := parseFuzz(t, `{"b":`+b+`,"a":`+a+`}`)
		if x.Kind() != Invalid && !Equal(x, y) {
			t.Fatalf("%s and %s differ by the order of members", x.Compact(), y.Compact())
		}
		x, y = parseFuzz(t, `[`+a+`,`+b+`]`), parseFuzz(t, `[`+b+`,`+a+`]`)
		if x.Kind() != Invalid && Equal(x, y) != Equal(v, w) {
			t.Fatalf("%s and %s", x.Compact(), y.Compact())
		}
	})
}

// parseFuzz takes what is too deep only after it was wrapped as nothing.
func parseFuzz(t *testing.T, doc string) Value {
	t.Helper()
	v, err := Parse([]byte(doc))
	if err != nil && !strings.Contains(err.Error(), ErrDepth.Error()) {
		t.Fatal(err)
	}
	return v
}
