package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

const (
	origin   = "https://support.example"
	actionID = "create-ticket"
)

const profileText = `{"agentic":"0.1.0-draft","origin":"` + origin + `","actions":[{"id":"` + actionID + `",
"description":"Create a support ticket.","openapi":"/openapi.json","submit":"createTicket","status":"getRequestStatus","verify":"getTicket",
"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":%d},
"bindings":{"statusRequestId":"requestId","verifyResourceId":"ticketId"},
"evidence":{"resourceIdPointer":"/id","requestIdPointer":"/request_id","statePointer":"/status","successValues":["open","closed"],
"inputBindings":[{"inputPointer":"/subject","resourcePointer":"/subject"}]},
"recovery":{"maxChecks":%d,"checkDelayMs":%d,"timeoutMs":%d,"retry":"never-automatically"}}]}`

const openAPIText = `{"openapi":"3.1.0","info":{"title":"Support","version":"1"},"paths":{
"/tickets":{"post":{"operationId":"createTicket","parameters":[{"name":"Idempotency-Key","in":"header","required":true,"schema":{"type":"string"}}],
"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{"201":{"description":"made"}}}},
"/requests/{requestId}":{"get":{"operationId":"getRequestStatus","parameters":[{"name":"requestId","in":"path","required":true,"schema":{"type":"string"}}],
"responses":{"200":{"description":"status"}}}},
"/tickets/{ticketId}":{"get":{"operationId":"getTicket","parameters":[{"name":"ticketId","in":"path","required":true,"schema":{"type":"string"}}],
"responses":{"200":{"description":"ticket"}}}}}}`

// limits are what a plan sets, as the model counts by them, whatever a planted fault
// makes of the plan.
type limits struct {
	checks          int
	delay, timeout  time.Duration
	window, term    time.Duration
	plan, unbounded *agentic.Plan
}

// variants are the plans of all runs, loaded once. The first is the example of the
// draft's reading guide.
var variants = sync.OnceValue(func() []*limits {
	var all []*limits
	for _, v := range []struct{ retention, checks, delay, timeout int }{
		{86400, 3, 100, 3000}, {60, 1, 0, 100}, {60, 3, 5000, 10000}, {3600, 2, 1000, 1000},
	} {
		plan, err := agentic.Load(fmt.Appendf(nil, profileText, v.retention, v.checks, v.delay, v.timeout), []byte(openAPIText), "", agentic.Options{})
		if err != nil {
			panic("sim: the simulator's own documents do not bind: " + err.Error())
		}
		broken := *plan
		broken.Action.Recovery.MaxChecks = 30
		all = append(all, &limits{
			checks: v.checks, delay: plan.Action.Recovery.CheckDelay, timeout: plan.Action.Recovery.Timeout,
			window: plan.Action.Retention, term: client.Term(plan.Action), plan: plan, unbounded: &broken,
		})
	}
	return all
})

// input is what a request asks for. Evidence covers the subject alone, so two inputs
// can differ where only the service sees it.
type input struct {
	subject string
	urgent  bool
	body    string // as it travels
	spaced  string // the same with white space
}

// inputs are all that are ever asked for.
var inputs = func() (all []input) {
	for _, subject := range []string{"printer", "screen"} {
		for _, urgent := range []bool{false, true} {
			all = append(all, input{subject: subject, urgent: urgent,
				body:   fmt.Sprintf(`{"subject":"%s","urgent":%t}`, subject, urgent),
				spaced: fmt.Sprintf(" {\n \"urgent\" : %t, \"subject\": \"%s\" } ", urgent, subject)})
		}
	}
	return all
}()

// inputOf finds what a body asks for, in either order of its members, or nil.
func inputOf(body string) *input {
	for i := range inputs {
		in := &inputs[i]
		if body == in.body || body == fmt.Sprintf(`{"urgent":%t,"subject":"%s"}`, in.urgent, in.subject) {
			return in
		}
	}
	return nil
}
