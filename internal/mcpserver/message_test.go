package mcpserver

import (
	"bytes"
	"errors"
	"testing"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// FuzzDecode: a message is taken or answered by one line of strict JSON, and the ID that
// is answered is the only one that the message has.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{``, `[]`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`, `{"jsonrpc":"2.0","id":"\"`, `{"jsonrpc":"2.0","id":1,"error":7}`, `{"id":1,"a":[[{"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		w, isWrong := errors.AsType[*wrong](err)
		if (m == nil) != (err != nil) || err != nil && !isWrong && err != errNoAnswer {
			t.Fatalf("got %v and %v", m, err)
		}
		if !isWrong {
			return
		}
		line := w.answer()
		v, err := strictjson.Parse(line)
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("answered by %q: %v", line, err)
		}
		doc, err := strictjson.Parse(data)
		want, _ := doc.Member("id")
		if got, _ := v.Member("id"); err == nil && got.Kind() != strictjson.Null && !strictjson.Equal(got, want) {
			t.Errorf("answered ID %s instead of %s", got.Compact(), want.Compact())
		}
	})
}
