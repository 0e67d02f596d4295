package strictjson

import (
	"fmt"
	"strings"
	"testing"
)

// largeDocuments are documents of about size bytes, each heavy in one way.
func largeDocuments(size int) map[string][]byte {
	repeat := func(open, item, end string) []byte {
		n := (size - len(open) - len(end)) / len(item)
		return []byte(open + strings.TrimSuffix(strings.Repeat(item, n), ",") + end)
	}
	var names strings.Builder
	for i := 0; names.Len() < size-20; i++ {
		fmt.Fprintf(&names, `"m%d":%d,`, i, i)
	}
	operation := `{"get":{"operationId":"getTicket","parameters":[{"name":"ticketId","in":"path","required":true,"schema":{"type":"string"}}],` +
		`"responses":{"200":{"description":"A ticket.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Ticket"}}}}}}},`
	return map[string][]byte{
		"operations":   repeat(`[`, operation, `]`),
		"members":      []byte(`{` + strings.TrimSuffix(names.String(), ",") + `}`),
		"zeros":        repeat(`[`, `0,`, `]`),
		"empty arrays": repeat(`[`, `[],`, `]`),
		"one string":   repeat(`"`, `abcdefgh`, `"`),
		"quotes":       repeat(`"`, `\"`, `"`),
		"backslashes":  repeat(`"`, `\\`, `"`),
		"digits":       repeat(``, `7`, ``),
		"deep":         []byte(strings.Repeat(`{"`+strings.Repeat("n", size/64-5)+`":`, 63) + `0` + strings.Repeat(`}`, 63)),
	}
}

func BenchmarkParse(b *testing.B) {
	for name, doc := range largeDocuments(256 << 10) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	for name, doc := range largeDocuments(64 << 10) {
		b.Run(name, func(b *testing.B) {
			v, err := Parse(doc)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				v.Canonical()
			}
		})
	}
}
