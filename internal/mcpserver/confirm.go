package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
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

// canAsk reports whether a client has a way to show a form.
func canAsk(r *mcp.CallToolRequest) bool {
	can := r.ClientCapabilities()
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// asksItself reports whether a client takes a result that asks for input, and makes the
// call again with it. All others are sent a request meanwhile.
func asksItself(s *mcp.ServerSession) bool {
	params := s.InitializeParams()
	return params == nil || params.ProtocolVersion >= stateless
}

func form(q *agentcall.Question) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: question(q), RequestedSchema: confirmSchema}
}

// ask is the result that has a client ask the person.
func (p *principal) ask(q *agentcall.Question) *mcp.CallToolResult {
	s := state{p.name, q.Tool, q.RequestID, q.Origin, q.ActionID, q.InputDigest, time.Now().Add(askFor).Unix()}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{confirmID: form(q)}, RequestState: p.seal(s)}
}

// maxOpen bounds the questions that one principal has open at once.
const maxOpen = 100

// asked is a question that a session was sent. It outlives the call that led to it: the
// same call again waits for the same answer. Another session asks anew, as nobody may
// see the first one any more.
type asked struct {
	question agentcall.Question
	about    string
	expires  time.Time
	done     chan struct{} // closed when refusal is set
	refusal  string        // empty is yes
}

// wait waits for a person to agree, and gives the question that was agreed to or why
// nothing is sent.
func (p *principal) wait(ctx context.Context, session *mcp.ServerSession, q *agentcall.Question, ending <-chan struct{}) (o *asked, refusal string) {
	about := strings.Join([]string{session.ID(), q.Tool, q.Origin, q.ActionID, q.InputDigest}, " ")
	if q.Tool == "submit_request" {
		about += " " + q.RequestID // the ID of a call of an action is new each time
	}
	if o = p.put(ctx, session, q, about); o == nil {
		return nil, "Too many questions to the person are open. Nothing was sent by this call. Tell the user to answer them."
	}
	select {
	case <-o.done:
		if o.refusal != "" {
			p.forget(o)
		}
		return o, o.refusal
	case <-ending:
		return nil, "The server is shutting down before the person has answered. Nothing was sent by this call. Make the same call again later."
	case <-ctx.Done():
		return nil, "The person has not answered yet whether this may be sent. Nothing was sent by this call. The question stays open for " +
			time.Until(o.expires).Round(time.Second).String() + ": make the same call again to wait for the answer; it does not ask twice."
	}
}

// put gives the open question about something, which it asks when there is none. It
// is nil when there are too many.
func (p *principal) put(ctx context.Context, session *mcp.ServerSession, q *agentcall.Question, about string) *asked {
	p.asking.Lock()
	defer p.asking.Unlock()
	now := time.Now()
	for key, o := range p.open {
		if now.After(o.expires) {
			delete(p.open, key)
		}
	}
	if o := p.open[about]; o != nil {
		return o
	}
	if len(p.open) >= maxOpen {
		return nil
	}
	o := &asked{question: *q, about: about, expires: now.Add(askFor), done: make(chan struct{})}
	p.open[about] = o
	go func() {
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), o.expires)
		defer cancel()
		answer, err := session.Elicit(ctx, form(q))
		if err != nil {
			o.refusal = "The person could not be asked: the client gave an error, or an answer that is not the form's. Nothing was sent by this call. Tell the user."
			p.forget(o)
		} else {
			o.refusal = refusalOf(answer)
		}
		close(o.done)
	}()
	return o
}

// forget ends a question, so that the same call asks anew.
func (p *principal) forget(o *asked) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.open[o.about] == o {
		delete(p.open, o.about)
	}
}

// refusalOf is why an answer is no yes, and empty for a yes.
func refusalOf(a *mcp.ElicitResult) string {
	yes, _ := a.Content["send"].(bool)
	switch {
	case a.Action == "accept" && yes:
		return ""
	case a.Action == "cancel":
		return "The person closed the question without an answer. Nothing was sent by this call. Do not try it again or in another way unless the user asks for it."
	}
	return "The person did not agree. Nothing was sent by this call. Do not try it again or in another way unless the user asks for it."
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
	if refusal := refusalOf(answer); refusal != "" {
		return nil, refusal
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
