package cli

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
)

// newClient makes the client of one request to one origin.
func (a *app) newClient(l client.Ledger, origin string, h http.Header, reach *reachFlags, lf *ledgerFlags, more ...func(*client.Config)) (*client.Client, error) {
	t, err := reach.transport(origin, h)
	if err != nil {
		return nil, err
	}
	cfg := client.Config{Ledger: l, Transport: t, Scope: lf.scope(), Observer: a.observe}
	for _, change := range more {
		change(&cfg)
	}
	return client.New(a.instrumented(cfg))
}

// observe shows progress on stderr.
func (a *app) observe(e client.Event) {
	if a.begun != nil {
		a.begun()
	}
	a.say("%s", render.Event(e).Line())
}

// waitNotice is how long an execution may take to begin before a person is told
// why it does not.
const waitNotice = time.Second

// executing stands before an execution and says what it waits for, if its first
// event does not come soon. The caller calls done behind it.
func (a *app) executing() (done func()) {
	var mu sync.Mutex
	over := false
	timer := time.AfterFunc(waitNotice, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			a.say("%s", render.Step{Name: "waiting", Text: "waiting for another execution of this request, or for the ledger"}.Line())
		}
	})
	a.begun = func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
	return a.begun
}

// settle runs an execution, prints its receipt, says what may be done next, and
// sets the exit code. attempted says that the request may have been sent before.
func (a *app) settle(attempted bool, execute func() (client.Result, error)) error {
	done := a.executing()
	res, err := execute()
	done()
	if err != nil {
		return unsettled(err, res.RequestID, res.Sent, attempted)
	}
	a.exit = outcomeExit(res.Receipt.Outcome)
	switch {
	case res.WindowEnded:
		a.say("Nothing is read any more. What a person can do: %s", escape.Quoted(a.showCommand(res.RequestID)))
	case !res.Receipt.Outcome.Final():
		a.say("To ask again later: %s", escape.Quoted(a.resumeCommand(res.RequestID, "")))
	}
	if res.Receipt.Outcome == agentic.Unknown {
		a.say("Do not start the action anew before a person has looked: it may have happened.")
	}
	return a.saved(a.writeReceipt(res.Receipt), res.RequestID, string(res.Receipt.Outcome))
}

// saved says of a result that could not be printed where it is.
func (a *app) saved(err error, requestID, result string) error {
	if err == nil {
		return nil
	}
	return advice.New("output", errors.Join(fmt.Errorf("request %s is saved as %s", requestID, result), err), "To see it: "+a.showCommand(requestID))
}
