package mcpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentic-go/agentic/internal/agentcall"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// askFor is how long a person has to agree.
const askFor = 10 * time.Minute

// state goes through the client between the question and its answer. A MAC binds it
// to this process.
type state struct {
	Principal   string `json:"principal"`
	Tool        string `json:"tool"`
	RequestID   string `json:"request_id"`
	Origin      string `json:"origin"`
	ActionID    string `json:"action_id"`
	InputDigest string `json:"input_digest"`
	Expires     int64  `json:"expires"` // Unix seconds
}

const confirmID = "confirm"

var confirmSchema = json.RawMessage(`{"type":"object","properties":{"send":{"type":"boolean","title":"Send it","description":"Yes: it is sent, once. No: nothing is sent."}},"required":["send"]}`)

// ask asks the person by way of the client. A client that cannot is refused.
func (p *principal) ask(r *mcp.CallToolRequest, q *agentcall.Question) *mcp.CallToolResult {
	can := r.ClientCapabilities()
	if can == nil || can.Elicitation == nil || can.Elicitation.Form == nil && can.Elicitation.URL != nil {
		return failure("A person has to agree before this is sent, and this client has no way to ask one (elicitation). Nothing was sent by this call. Tell the user.")
	}
	s := state{p.name, q.Tool, q.RequestID, q.Origin, q.ActionID, q.InputDigest, time.Now().Add(askFor).Unix()}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{confirmID: &mcp.ElicitParams{Mode: "form", Message: question(q), RequestedSchema: confirmSchema}},
		RequestState:  p.seal(s),
	}
}

// question is what the person reads.
func question(q *agentcall.Question) string {
	return fmt.Sprintf("An agent wants to send this, once:\n\naction: %s\nPOST to: %s\ninput (written by the agent, escaped): %s\n\nSend it?",
		escape.Bounded(q.ActionID, 64), escape.Bounded(q.URL, 600), escape.Quoted(string(escape.JSON(q.Input))))
}

// seal writes a state with its MAC.
func (p *principal) seal(s state) string {
	body, _ := json.Marshal(s) // strings and a number
	return base64.RawURLEncoding.EncodeToString(append(p.mac(body), body...))
}

func (p *principal) mac(body []byte) []byte {
	h := hmac.New(sha256.New, p.key[:])
	h.Write([]byte("agentic confirm 1\n"))
	h.Write(body)
	return h.Sum(nil)
}

// reply reads what came back: the question that a person said yes to, or why nothing
// is sent. With neither, the person is asked again.
func (p *principal) reply(params *mcp.CallToolParamsRaw) (q *agentcall.Question, refusal string) {
	s, ok := p.unseal(params.RequestState)
	if !ok || s.Principal != p.name || time.Now().Unix() >= s.Expires {
		return nil, "" // of another principal or process, or too old
	}
	answer, ok := params.InputResponses[confirmID].(*mcp.ElicitResult)
	if !ok {
		return nil, ""
	}
	if yes, _ := answer.Content["send"].(bool); answer.Action != "accept" || !yes {
		return nil, "The person did not agree. Nothing was sent by this call. Do not try it again or in another way unless the user asks for it."
	}
	return &agentcall.Question{Tool: s.Tool, RequestID: s.RequestID, Origin: s.Origin, ActionID: s.ActionID, InputDigest: s.InputDigest}, ""
}

func (p *principal) unseal(text string) (s state, ok bool) {
	if len(text) > 16<<10 {
		return s, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < sha256.Size || !hmac.Equal(raw[:sha256.Size], p.mac(raw[sha256.Size:])) {
		return s, false
	}
	v, err := strictjson.Parse(raw[sha256.Size:])
	if err != nil {
		return s, false
	}
	member := func(name string) string { m, _ := v.Member(name); t, _ := m.Text(); return t }
	expires, _ := v.Member("expires")
	d, _ := expires.Decimal()
	at, ok := d.Int64()
	return state{member("principal"), member("tool"), member("request_id"), member("origin"), member("action_id"), member("input_digest"), at}, ok
}
