package strictjson

import (
	"strconv"
	"strings"
)

// maxExponent bounds the decimal exponent that Parse accepts, so that exponent
// arithmetic cannot overflow. No number is ever expanded.
const maxExponent = 1_000_000_000_000_000

// Decimal is the exact value of a JSON number: sign, significant digits without
// leading or trailing zeros, and a power of ten. Two Decimals are equal (==)
// exactly when the numbers are.
type Decimal struct {
	negative bool
	digits   string // empty for zero
	exponent int64  // value = digits * 10^exponent
}

// parseDecimal normalizes a valid JSON number literal. ok is false when the
// normalized exponent is beyond maxExponent; that depends on the value only, not
// on its spelling.
func parseDecimal(lit string) (d Decimal, ok bool) {
	rest, negative := strings.CutPrefix(lit, "-")
	var exponent int64
	var err error
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		exponent, err = strconv.ParseInt(strings.TrimPrefix(rest[i+1:], "+"), 10, 62)
		rest = rest[:i]
	}
	whole, frac, _ := strings.Cut(rest, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return Decimal{}, true // zero, whatever the exponent
	}
	exponent += int64(len(digits) - len(trimmed) - len(frac))
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return Decimal{}, false
	}
	return Decimal{negative: negative, digits: trimmed, exponent: exponent}, true
}

// IsInteger reports whether the number has no fractional part, however it was
// written: 3, 3.0 and 30e-1 are integers.
func (d Decimal) IsInteger() bool { return d.digits == "" || d.exponent >= 0 }

// Magnitude is the power of ten of the first significant digit (0 for 7, 2 for
// 700); it tells how far a number would expand without expanding it.
func (d Decimal) Magnitude() int64 {
	if d.digits == "" {
		return 0
	}
	return d.exponent + int64(len(d.digits)) - 1
}

// Int64 returns the number as an integer; ok is false when it has a fractional
// part or does not fit.
func (d Decimal) Int64() (n int64, ok bool) {
	if d.digits == "" {
		return 0, true
	}
	if d.exponent < 0 || d.Magnitude() > 18 {
		return 0, false
	}
	s := d.digits + strings.Repeat("0", int(d.exponent))
	if d.negative {
		s = "-" + s
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// String is a short spelling of the number, and a valid JSON literal: equal
// numbers have equal spellings.
func (d Decimal) String() string { return string(d.append(nil)) }

func (d Decimal) append(b []byte) []byte {
	if d.digits == "" {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	n := int64(len(d.digits))
	exp := strconv.FormatInt(d.exponent, 10)
	switch {
	case d.exponent == 0:
		return append(b, d.digits...)
	case d.exponent > 0 && d.exponent <= int64(len(exp))+1:
		b = append(b, d.digits...)
		for range d.exponent {
			b = append(b, '0')
		}
		return b
	case d.exponent < 0 && -d.exponent < n:
		b = append(b, d.digits[:n+d.exponent]...)
		b = append(b, '.')
		return append(b, d.digits[n+d.exponent:]...)
	case d.exponent < 0 && 2-n-d.exponent <= int64(len(exp))+1:
		b = append(b, '0', '.')
		for range -d.exponent - n {
			b = append(b, '0')
		}
		return append(b, d.digits...)
	}
	b = append(b, d.digits...)
	b = append(b, 'e')
	return append(b, exp...)
}
