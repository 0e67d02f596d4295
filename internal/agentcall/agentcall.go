// Package agentcall is what a tool call of an agent means: which tools there are,
// which request a call is bound to, and what the agent is told.
//
// Its job is that an agent can act, lose the answer, ask again in the same or in
// other words, and still act once. A call is checked strictly before anything is
// saved, bound to one request ID before anything is sent, and executed detached from
// the caller. All words for a model are fixed text of this package; what a
// publisher, a service or a person wrote is escaped, bounded and marked (D6).
//
// Not its job: the protocol that carries calls, authentication, asking the person,
// and every decision about a request, which package client has. It imports package
// agentic, client, desk, and of internal escape, inputschema and strictjson.
//
// One call, straight down: Calls.Call finds the tool; arguments.go checks the raw
// bytes; guards.go looks for a request that this one may be a repeat of; run.go
// executes it; result.go says what became of it.
package agentcall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Defaults of a Config.
const (
	DefaultRepeat       = 24 * time.Hour
	DefaultRecent       = 2 * time.Minute
	DefaultAnswerWithin = 20 * time.Second
)

// Config is what a host decides for the calls of one principal. Engine and Plans are
// required.
type Config struct {
	// Engine makes the client: its Ledger, Transport, Scope, Logger and telemetry are
	// the host's. Observer, DuplicateWindow and CheckInput are set here.
	Engine client.Config

	// Plans are the actions that become tools.
	Plans []*agentic.Plan

	// Allow is the host's authorization of an action for this principal (section 6);
	// nil allows all of Plans. What is not allowed is no tool, and is never sent.
	Allow func(*agentic.Plan) bool

	// Repeat is how long a verified success answers the same action with the same
	// input. Zero is DefaultRepeat; a negative one looks at open requests only.
	Repeat time.Duration

	// Recent is how long a success counts as one whose answer was perhaps lost, until
	// the agent names its ID or a session is known to have read it (Call.Session). In
	// that time another input of the same action is held back. Zero is DefaultRecent;
	// a negative one looks at open requests only.
	Recent time.Duration

	// NoSameGuard makes a new request of every call, also of one that repeats another.
	// NoOpenGuard holds nothing back while a request with another input is open.
	NoSameGuard, NoOpenGuard bool

	// Turn, if not nil, gives the turn in what a name says to one caller at a time,
	// over all processes that use the ledger, and waits for it until ctx ends. Without
	// it two processes that bind different inputs at the same moment do not see each
	// other.
	Turn func(ctx context.Context, name ...string) (release func(), err error)

	// Confirm has Call give a *ConfirmError before anything is sent for the first time,
	// unless Call.Agreed says that a person agreed.
	Confirm bool

	// AnswerWithin bounds how long a call waits for its execution, which goes on
	// without it. Zero is DefaultAnswerWithin.
	AnswerWithin time.Duration

	// AllowLoopback is agentic.Options.AllowLoopback for validate_profile.
	AllowLoopback bool
}

// withDefaults fills in what a host left out.
func (cfg Config) withDefaults() Config {
	if cfg.Repeat == 0 {
		cfg.Repeat = DefaultRepeat
	}
	if cfg.Recent == 0 {
		cfg.Recent = DefaultRecent
	}
	if cfg.AnswerWithin <= 0 {
		cfg.AnswerWithin = DefaultAnswerWithin
	}
	if cfg.Allow == nil {
		cfg.Allow = func(*agentic.Plan) bool { return true }
	}
	if cfg.Engine.Logger == nil {
		cfg.Engine.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Calls are the calls of one principal. It is safe for concurrent use.
type Calls struct {
	cfg    Config
	client *client.Client
	ledger client.Ledger
	tools  []*tool
	byName map[string]*tool
	gates  map[actionKey]chan struct{} // holds one token each: its owner binds requests of the action

	life      context.Context // of the executions; it ends with Shutdown
	end       context.CancelFunc
	calling   sync.WaitGroup // calls
	executing sync.WaitGroup // executions

	mu     sync.Mutex
	closed bool                 // no more calls
	ended  bool                 // no more executions
	runs   map[string]*run      // what executes now, by request ID
	known  map[string]time.Time // IDs that the agent has named, and when
	read   map[string]reading   // by request ID: who has read its success
}

// actionKey names what the guards keep apart inside a scope.
type actionKey struct{ origin, action string }

// New makes the calls of one principal. The caller must Shutdown them.
func New(cfg Config) (*Calls, error) {
	if len(cfg.Plans) == 0 {
		return nil, errors.New("agentcall: Config.Plans is empty")
	}
	c := &Calls{
		cfg: cfg.withDefaults(), ledger: cfg.Engine.Ledger, byName: map[string]*tool{}, gates: map[actionKey]chan struct{}{},
		runs: map[string]*run{}, known: map[string]time.Time{}, read: map[string]reading{},
	}
	engine := c.cfg.Engine
	engine.CheckInput = nil // done here, before
	engine.DuplicateWindow = max(0, c.cfg.Repeat)
	if c.cfg.NoSameGuard {
		engine.DuplicateWindow = -1
	}
	observer := engine.Observer
	engine.Observer = func(e client.Event) {
		if observer != nil {
			observer(e)
		}
		c.observe(e)
	}
	var err error
	if c.client, err = client.New(engine); err != nil {
		return nil, err
	}
	for _, t := range c.actionTools() {
		c.tools = append(c.tools, t)
		key := t.key()
		if _, there := c.gates[key]; there {
			return nil, fmt.Errorf("agentcall: the action %s of %s is there twice", key.action, key.origin)
		}
		c.gates[key] = make(chan struct{}, 1)
	}
	c.tools = append(c.tools, c.fixedTools()...)
	for _, t := range c.tools {
		c.byName[t.Name] = t
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Tool is one tool as an agent sees it.
type Tool struct {
	Name        string // unique, of [A-Za-z0-9_-], at most 64
	Title       string
	Description string // for the model: own words, and publisher's text marked
	Input       []byte // JSON Schema of the arguments
	Output      []byte // JSON Schema of Answer.Structured

	ReadOnly    bool // changes nothing anywhere
	Idempotent  bool // the same call again has no further effect
	Destructive bool // may change or remove something at the service
	OpenWorld   bool // talks to a service
}

// tool is a Tool with what it does.
type tool struct {
	Tool
	plan     *agentic.Plan // of an action; nil otherwise
	reserved string        // the member of the arguments that is for this package
	schema   []byte        // that inputs are checked against; nil when it cannot be
	do       func(context.Context, *tool, Call) (*Answer, error)
}

func (t *tool) key() actionKey { return actionKey{t.plan.Origin, t.plan.Action.ID} }

// Tools are the tools that this principal may use.
func (c *Calls) Tools() []Tool {
	out := make([]Tool, len(c.tools))
	for i, t := range c.tools {
		out[i] = t.Tool
	}
	return out
}

// Call is one tool call.
type Call struct {
	Tool      string
	Arguments []byte // raw JSON, as it came; empty is {}

	// Progress, if not nil, is told what happens while the call waits, on the
	// goroutine of the call.
	Progress func(Progress)

	// Session names a client whose messages come in order and who reads every answer
	// as long as it lives, as over a pipe. Empty where an answer can be lost on its way.
	Session string

	// Agreed is the Question of the *ConfirmError that a person said yes to.
	Agreed *Question

	began time.Time // when Call took it
}

// Progress is one step of an execution. N grows from 1; Total is 0 when it is not
// known. Text is this package's own.
type Progress struct {
	N, Total int
	Text     string
}

// Answer is what the agent is told.
type Answer struct {
	Structured []byte // one JSON object, escaped, valid by the tool's Output
	Text       string // the same in a few sentences of this package's own
}

// Error says why a call was refused. It is certain that this call sent nothing.
type Error struct {
	Code    string // stable
	Message string // sentences for a model, escaped
}

func (e *Error) Error() string { return e.Message }

const nothingSent = " Nothing was sent by this call."

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...) + nothingSent}
}

// ErrFault says that this program failed in the middle of a call, and that nobody
// knows what it came to.
var ErrFault = errors.New("this server failed in the middle of the call, and it is not known whether anything was sent: make the same call again, which finds the first request; do not change its words")

// Call carries out one tool call. The error is an *Error, a *ConfirmError, ErrFault, or,
// when ctx ended before anything was bound, that of ctx. Whatever may have been sent
// is told in the Answer.
func (c *Calls) Call(ctx context.Context, call Call) (_ *Answer, err error) {
	t := c.byName[call.Tool]
	if t == nil {
		return nil, refuse("no-such-tool", "There is no such tool, or it is not allowed to this principal.")
	}
	if !c.enter() {
		return nil, refuse("shutting-down", "The server is shutting down.")
	}
	defer c.calling.Done()
	defer c.recovered("a call", &err)
	call.began = time.Now()
	return t.do(ctx, t, call)
}

func (c *Calls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.calling.Add(1)
	return true
}

// recovered makes ErrFault of a panic, which must not end the server of others. What
// the panic says may hold an input, so only its type and the stack are logged.
func (c *Calls) recovered(where string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	what := fmt.Sprintf("%T", p)
	if e, ok := p.(runtime.Error); ok {
		what = e.Error()
	}
	c.cfg.Engine.Logger.Error("a fault of this program in "+where, "panic", what, "stack", string(debug.Stack()))
	*err = ErrFault
}

// lastWords is how long Shutdown waits for calls whose executions have ended. A client
// that does not read must not keep it.
const lastWords = 2 * time.Second

// Shutdown takes no more calls and waits for what runs until ctx ends. What runs
// then is interrupted: it is in the ledger and can be resumed. It returns when
// nothing is executed any more.
func (c *Calls) Shutdown(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.calling.Wait(); c.executing.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.end()
	c.executing.Wait()
	select {
	case <-done:
	case <-time.After(lastWords):
	}
}
