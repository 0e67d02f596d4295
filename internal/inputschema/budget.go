package inputschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxWork bounds one check. A unit is about 16 bytes of a value held against one
// keyword or one instruction of a pattern, so a check ends in about half a second
// at worst. References can make the work exponential in the schema's size,
// which no limit on the size would stop.
const maxWork = 1_000_000

// maxPattern bounds the compiled size of one pattern, in instructions.
const maxPattern = 2_000

var errCostly = errors.New("it takes too much work")

// budget is what is left of the work of one check.
type budget struct {
	left     int
	patterns map[string]*pattern
}

// pattern is a compiled pattern and its size in instructions.
type pattern struct {
	*regexp.Regexp
	size int
}

// pattern is the library's regular expression engine: RE2, bounded in size.
func (b *budget) pattern(s string) (jsonschema.Regexp, error) {
	if p, ok := b.patterns[s]; ok {
		return p, nil
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPattern {
		return nil, fmt.Errorf("a pattern compiles to %d instructions, and %d is the most", len(prog.Inst), maxPattern)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	p := &pattern{Regexp: re, size: len(prog.Inst)}
	b.patterns[s] = p
	return p, nil
}

// weigh makes the library pay for one schema object before it holds it against a
// value. The library has no hook for that; the format of a schema is the one thing
// that it asks before it follows references, and formats are not asserted here.
//
// The cost is that of the object's own keywords, its subschemas left out.
func (b *budget) weigh(ctx *jsonschema.CompilerContext, object map[string]any) (jsonschema.SchemaExt, error) {
	cost := 1
	for name, value := range object {
		switch name {
		case "const", "enum":
			cost += size(value)
			continue
		case "pattern":
			if s, ok := value.(string); ok && b.patterns[s] != nil {
				cost += b.patterns[s].size
			}
		case "patternProperties":
			if members, ok := value.(map[string]any); ok {
				for s := range members {
					if b.patterns[s] != nil {
						cost += b.patterns[s].size
					}
				}
			}
		}
		switch value := value.(type) {
		case []any:
			cost += len(value)
		case map[string]any:
			cost += len(value)
		}
		cost++
	}
	ctx.Enqueue(nil).Format = &jsonschema.Format{Name: "budget", Validate: func(v any) error {
		b.pay(cost * (1 + size(v)/16))
		return nil
	}}
	return nil, nil
}

// pay panics with errCostly when nothing is left, which Check recovers: the
// library has no other way out.
func (b *budget) pay(units int) {
	b.left -= units
	if b.left < 0 {
		panic(errCostly)
	}
}

// size is about the number of bytes of a value.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for name, e := range v {
			n += len(name) + size(e)
		}
	}
	return n
}
