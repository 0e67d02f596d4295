package agentic

import (
	"fmt"
	"strings"
	"testing"
)

// largeOpenAPI is the example with other operations, up to the limit.
func largeOpenAPI(t testing.TB) []byte {
	example := string(readTestdata(t, "openapi.json"))
	var others strings.Builder
	for i := 0; len(example)+others.Len() < MaxOpenAPIBytes-400; i++ {
		fmt.Fprintf(&others, `"/other/%d/{id}": {"get": {"operationId": "readOther%d", "summary": "Read one of the other things.", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {"200": {"description": "The thing."}}}},`+"\n", i, i)
	}
	return []byte(edit(t, example, `"paths": {`, `"paths": {`+others.String()))
}

func BenchmarkLoad(b *testing.B) {
	profile := readTestdata(b, "profile.json")
	for _, bench := range []struct {
		name    string
		openapi []byte
	}{{"example", readTestdata(b, "openapi.json")}, {"256KiB", largeOpenAPI(b)}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(profile) + len(bench.openapi)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(profile, bench.openapi, "", Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
