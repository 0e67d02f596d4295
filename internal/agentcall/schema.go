package agentcall

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic/internal/inputschema"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// errSchema says that a request schema cannot be made one that stands alone.
var errSchema = errors.New("the request schema refers to what cannot be put in its place, or is too large")

// Keywords of JSON Schema 2020-12 by what their values are; all others hold data.
const (
	oneSchema   = " additionalProperties unevaluatedProperties items unevaluatedItems contains not if then else propertyNames additionalItems contentSchema "
	mapOfSchema = " properties patternProperties dependentSchemas "
	listSchema  = " allOf anyOf oneOf prefixItems "
	closing     = " additionalProperties unevaluatedProperties unevaluatedItems " // true and false are usual there
	definitions = " $defs definitions "
	moving      = " $id $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor "
)

func among(words, name string) bool {
	return name != "" && !strings.Contains(name, " ") && strings.Contains(words, " "+name+" ")
}

// expander puts what local references refer to in their place, so that a schema
// stands alone. A reference that leads back to itself stays one, to "$defs".
type expander struct {
	doc, root strictjson.Value // references are looked up in doc, and then in the schema itself
	names     map[string]string
	targets   map[string]strictjson.Value
	order     []string
}

// expand gives the request schema of an OpenAPI document without references into it.
func expand(doc, schema strictjson.Value) ([]byte, error) {
	x := &expander{doc: doc, root: schema, names: map[string]string{}, targets: map[string]strictjson.Value{}}
	var b bytes.Buffer
	if err := x.schema(&b, schema, nil, 0); err != nil {
		return nil, err
	}
	if len(x.order) == 0 {
		return b.Bytes(), nil
	}
	body := b.Bytes()
	if len(body) < 2 || body[0] != '{' {
		return nil, errSchema
	}
	var out bytes.Buffer
	out.WriteString(`{"$defs":{`)
	for i := 0; i < len(x.order); i++ { // it grows while it is written
		if i > 0 {
			out.WriteByte(',')
		}
		key := x.order[i]
		out.Write(strictjson.Quote(x.names[key]))
		out.WriteByte(':')
		if err := x.schema(&out, x.targets[key], []string{key}, 0); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	if len(body) > 2 {
		out.WriteByte(',')
	}
	out.Write(body[1:])
	if out.Len() > inputschema.MaxSchemaBytes {
		return nil, errSchema
	}
	return out.Bytes(), nil
}

func (x *expander) schema(b *bytes.Buffer, v strictjson.Value, open []string, depth int) error {
	if depth > strictjson.MaxDepth/2 || b.Len() > inputschema.MaxSchemaBytes {
		return errSchema
	}
	if v.Kind() != strictjson.Object {
		b.Write(v.Compact())
		return nil
	}
	if ref, ok := v.Member("$ref"); ok {
		return x.reference(b, v, ref, open, depth)
	}
	return x.object(b, v, open, depth)
}

// reference writes what a reference refers to. Other keywords beside it count too.
func (x *expander) reference(b *bytes.Buffer, v, ref strictjson.Value, open []string, depth int) error {
	text, ok := ref.Text()
	if !ok || !strings.HasPrefix(text, "#") {
		return errSchema
	}
	pointer, err := url.PathUnescape(text[1:])
	if err != nil {
		return errSchema
	}
	key, target := "doc:"+pointer, strictjson.Value{}
	found := false
	if pointer != "" {
		target, found = x.doc.Lookup(pointer)
	}
	if !found {
		key = "schema:" + pointer
		if target, found = x.root.Lookup(pointer); !found {
			return errSchema
		}
	}
	siblings := v.Len() > 1
	if siblings {
		b.WriteString(`{"allOf":[`)
	}
	if slices.Contains(open, key) {
		if x.names[key] == "" {
			x.names[key] = "r" + strconv.Itoa(len(x.order)+1)
			x.targets[key] = target
			x.order = append(x.order, key)
		}
		b.WriteString(`{"$ref":"#/$defs/` + x.names[key] + `"}`)
	} else if err := x.schema(b, target, append(slices.Clip(open), key), depth+1); err != nil {
		return err
	}
	if siblings {
		b.WriteByte(',')
		if err := x.object(b, v, open, depth+1); err != nil {
			return err
		}
		b.WriteString(`]}`)
	}
	return nil
}

// object writes a schema's keywords, without its own "$ref" and definitions.
func (x *expander) object(b *bytes.Buffer, v strictjson.Value, open []string, depth int) error {
	b.WriteByte('{')
	first := true
	for _, m := range v.Members() {
		if among(moving, m.Name) {
			return errSchema
		}
		if m.Name == "$ref" || among(definitions, m.Name) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.Write(strictjson.Quote(m.Name))
		b.WriteByte(':')
		if err := each(b, m, func(s strictjson.Value) error { return x.schema(b, s, open, depth+1) }); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// each writes the value of a keyword, and calls schema for every schema in it.
func each(b *bytes.Buffer, m strictjson.Member, schema func(strictjson.Value) error) error {
	kind := m.Value.Kind()
	switch {
	case among(oneSchema, m.Name) && (kind == strictjson.Object || kind == strictjson.Bool && !among(closing, m.Name)):
		return schema(m.Value)
	case among(mapOfSchema, m.Name) && kind == strictjson.Object:
		b.WriteByte('{')
		for i, p := range m.Value.Members() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(strictjson.Quote(p.Name))
			b.WriteByte(':')
			if err := schema(p.Value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case among(listSchema, m.Name) && kind == strictjson.Array:
		b.WriteByte('[')
		for i, s := range m.Value.Elements() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := schema(s); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	b.Write(m.Value.Compact())
	return nil
}
