package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// maxMessage bounds one message of a client, in bytes.
const maxMessage = 1 << 20

// maxID is the greatest integer ID that every JSON library keeps exact.
const maxID = 1<<53 - 1

// wrong says why something is no message that is taken. It is answered, and the
// connection lives on. ID is the JSON of the ID to answer, or nil when none is known.
type wrong struct {
	code int
	why  string // own words, without anything of the message
	id   []byte
}

func (w *wrong) Error() string { return w.why }

// answer is the JSON-RPC response, one line with its end.
func (w *wrong) answer() []byte {
	id := w.id
	if id == nil {
		id = []byte("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, w.code, strictjson.Quote(w.why))
}

// errNoAnswer is a response that belongs to nothing. A response is never answered.
var errNoAnswer = errors.New("a response without an ID that can be one")

// decode reads one message strictly. The SDK alone takes duplicate members, IDs with a
// fraction and depths that end its connection. The error is a *wrong or errNoAnswer.
func decode(data []byte) (jsonrpc.Message, error) {
	v, err := strictjson.Parse(data)
	if err != nil {
		e, _ := errors.AsType[*strictjson.Error](err)
		w := &wrong{jsonrpc.CodeInvalidRequest, "the message is refused: " + e.Reason.Error(), loneID(data)}
		if !json.Valid(data) {
			w.code = jsonrpc.CodeParseError
		}
		return nil, w
	}
	id, hasID := v.Member("id")
	w := &wrong{code: jsonrpc.CodeInvalidRequest}
	if usableID(id) {
		w.id = id.Compact()
	}
	_, hasResult := v.Member("result")
	_, hasError := v.Member("error")
	method, hasMethod := v.Member("method")
	version, _ := v.Member("jsonrpc")
	tag, _ := version.Text()
	switch {
	case v.Kind() == strictjson.Array:
		w.why = "batches are not taken: send one object at a time"
	case v.Kind() != strictjson.Object:
		w.why = "a message is one JSON object"
	case !hasMethod && (hasResult || hasError):
		if w.id == nil {
			return nil, errNoAnswer
		}
		m, err := jsonrpc.DecodeMessage(data)
		if _, ok := m.(*jsonrpc.Response); err == nil && ok && tag == "2.0" && hasResult != hasError {
			return m, nil
		}
		return badResponse(w.id) // who asked must not wait for ever
	case tag != "2.0":
		w.why = `jsonrpc is not "2.0"`
	case hasID && w.id == nil:
		w.why = "the ID is neither a string nor an integer of at most 2^53-1"
	case method.Kind() != strictjson.String:
		w.why = "there is no method that is a string"
	default:
		m, err := jsonrpc.DecodeMessage(data)
		if _, ok := m.(*jsonrpc.Request); err == nil && ok {
			return m, nil
		}
		w.why = "this is no request"
	}
	return nil, w
}

// badResponse is an error in the place of a response that is none.
func badResponse(id []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.DecodeMessage((&wrong{jsonrpc.CodeInvalidRequest, "the client's response is no response of the protocol", id}).answer())
	if err != nil {
		return nil, errNoAnswer
	}
	return m, nil
}

// usableID reports whether an ID is what the protocol has: a string or an integer.
func usableID(v strictjson.Value) bool {
	if _, ok := v.Text(); ok {
		return true
	}
	d, ok := v.Decimal()
	if !ok {
		return false
	}
	n, ok := d.Int64()
	return ok && -maxID <= n && n <= maxID
}

// loneID finds the ID of a message that is too deep, has duplicate members or is cut
// off, when exactly one is readable; otherwise nil.
func loneID(data []byte) (id []byte) {
	depth, start, text := 0, 0, false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case text && c == '\\':
			i++ // what it escapes is part of the text
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth == 1 {
				if start = i + 1; c == '[' {
					return nil
				}
			}
		case depth == 1 && (c == ',' || c == '}'):
			if !member(data[start:i], &id) {
				return nil
			}
			if start = i + 1; c == '}' {
				return id
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return id
}

// member takes the ID from one member of an object. It reports false when the member is
// an ID that cannot be answered, or the second one.
func member(raw []byte, id *[]byte) bool {
	v, err := strictjson.Parse(slices.Concat([]byte("{"), raw, []byte("}")))
	if err != nil {
		return !bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"id"`))
	}
	got, ok := v.Member("id")
	if !ok {
		return true
	}
	if *id != nil || !usableID(got) {
		return false
	}
	*id = got.Compact()
	return true
}
