package proof

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// orderState is what is recorded of one request: absent, pending, done or
// refused.
type orderState struct {
	is    string // "" is absent
	input string
	id    string // with done; anyID until somebody learns it
}

// anyID is the resource of a submission that was not answered.
const anyID = "?"

// orderModel is what submit, status and settle may do to one request, and answer.
var orderModel = porcupine.Model{
	Init: func() any { return orderState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(orderState), input.(operation)
		switch o.kind {
		case "submit":
			return s.submit(o)
		case "status":
			return s.status(o)
		default:
			return s.settle(o)
		}
	},
	DescribeOperation: func(input, _ any) string { return input.(operation).String() },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

func (o operation) String() string {
	end := "never"
	if o.returned != never {
		end = time.Duration(o.returned).String()
	}
	return fmt.Sprintf("%s(%s%s) = %d %q %s  [%s, %s]", o.kind, o.input, o.resource, o.code, o.word, o.id, time.Duration(o.called), end)
}

func (s orderState) submit(o operation) (bool, orderState) {
	first := orderState{is: map[string]string{"done": "done", "pending": "pending", "refuse": "refused"}[o.do], input: o.input, id: o.id}
	switch o.word {
	case "": // done now, or later than anybody looks
		if s.is != "" {
			return true, s
		}
		if first.is == "done" {
			first.id = anyID
		}
		return true, first
	case "conflict":
		return s.is != "" && s.input != o.input, s
	}
	if word, again := strings.CutSuffix(o.word, " again"); again {
		return s.is == word && s.input == o.input && s.learns(o.id), s.with(o.id)
	}
	return s.is == "" && o.word == first.is, first
}

func (s orderState) status(o operation) (bool, orderState) {
	switch o.word {
	case "unknown":
		return s.is == "", s
	case "pending":
		return s.is == "pending", s
	case "failed":
		return s.is == "refused", s
	case "succeeded":
		return s.is == "done" && s.learns(o.id), s.with(o.id)
	}
	return o.word == "", s
}

func (s orderState) settle(o operation) (bool, orderState) {
	to := orderState{is: "done", input: s.input, id: o.resource}
	if o.resource == "" {
		to.is = "refused"
	}
	switch {
	case o.word == "" && s.is != "pending":
		return true, s
	case o.word == "not pending":
		return s.is != "pending" && s != to, s
	}
	return s.is == "pending" || s == to, to
}

func (s orderState) learns(id string) bool { return s.id == id || s.id == anyID }

func (s orderState) with(id string) orderState {
	s.id = id
	return s
}

// checkBound is how long the check of one request may take.
const checkBound = 20 * time.Second

// linear gives the requests whose calls cannot be put in one order that fits the
// model and the times.
func (h *history) linear() (faults []string) {
	byKey := map[orderKey][]porcupine.Operation{}
	for _, o := range h.calls {
		if o.kind == "status" && o.word == "" {
			continue // says nothing and changes nothing
		}
		byKey[o.orderKey] = append(byKey[o.orderKey], porcupine.Operation{Input: o, Call: o.called, Return: o.returned})
	}
	for k, ops := range byKey {
		if got := porcupine.CheckOperationsTimeout(orderModel, ops, checkBound); got != porcupine.Ok {
			slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
			var list strings.Builder
			for _, op := range ops {
				fmt.Fprintf(&list, "\n\t%s", op.Input)
			}
			faults = append(faults, fmt.Sprintf("%v is not linearizable: %s%s", k, got, list.String()))
		}
	}
	return faults
}

// The checker refuses what a wrong service would answer, and takes what a right
// one may.
func TestModelRefuses(t *testing.T) {
	ticks := int64(0)
	then := func(o operation) operation {
		o.called, o.returned = ticks+1, ticks+2
		ticks += 2
		return o
	}
	submit := func(do, input, word, id string) operation {
		return then(operation{kind: "submit", do: do, input: input, answer: answer{word: word, id: id}})
	}
	status := func(word, id string) operation {
		return then(operation{kind: "status", answer: answer{word: word, id: id}})
	}
	settle := func(resource, word string) operation {
		return then(operation{kind: "settle", resource: resource, answer: answer{word: word}})
	}
	lost := func(o operation) operation {
		o.word, o.id, o.returned = "", "", never
		return o
	}
	beside := func(a, b operation) []operation {
		b.called = a.called
		return []operation{a, b}
	}
	for _, c := range []struct {
		name  string
		right bool
		calls []operation
	}{
		{"a whole life", true, []operation{status("unknown", ""), submit("done", "a", "done", "T"), submit("done", "a", "done again", "T"),
			submit("done", "b", "conflict", ""), status("succeeded", "T"), settle("C", "not pending")}},
		{"pending and completed", true, []operation{submit("pending", "a", "pending", ""), status("pending", ""), settle("C", "settled"),
			settle("C", "settled"), settle("", "not pending"), submit("pending", "a", "done again", "C")}},
		{"pending and failed", true, []operation{submit("pending", "a", "pending", ""), settle("", "settled"), status("failed", "")}},
		{"lost, and seen later", true, []operation{lost(submit("done", "a", "", "")), status("unknown", ""), status("succeeded", "T"), status("succeeded", "T")}},
		{"lost, and never done", true, []operation{lost(submit("done", "a", "", "")), status("unknown", ""), submit("done", "b", "done", "T")}},
		{"a repeat overtakes", true, beside(submit("done", "a", "done", "T"), submit("done", "a", "done again", "T"))},
		{"done twice", false, []operation{submit("done", "a", "done", "T"), submit("done", "a", "done", "U")}},
		{"done twice at once", false, beside(submit("done", "a", "done", "T"), submit("done", "a", "done", "U"))},
		{"a repeat before the first", false, []operation{submit("done", "a", "done again", "T"), submit("done", "a", "done", "T")}},
		{"a repeat with another resource", false, []operation{submit("done", "a", "done", "T"), submit("done", "a", "done again", "U")}},
		{"a repeat with other input", false, []operation{submit("done", "a", "done", "T"), submit("done", "b", "done again", "T")}},
		{"a conflict with itself", false, []operation{submit("done", "a", "done", "T"), submit("done", "a", "conflict", "")}},
		{"a conflict with nothing", false, []operation{submit("done", "a", "conflict", ""), submit("done", "b", "done", "T")}},
		{"forgotten", false, []operation{submit("done", "a", "done", "T"), status("unknown", "")}},
		{"failed falsely", false, []operation{submit("done", "a", "done", "T"), status("failed", "")}},
		{"succeeded falsely", false, []operation{submit("refuse", "a", "refused", ""), status("succeeded", "T")}},
		{"succeeded, and then not", false, []operation{lost(submit("done", "a", "", "")), status("succeeded", "T"), status("unknown", "")}},
		{"two resources of a lost one", false, []operation{lost(submit("done", "a", "", "")), status("succeeded", "T"), status("succeeded", "U")}},
		{"completed twice", false, []operation{submit("pending", "a", "pending", ""), settle("C", "settled"), settle("D", "settled")}},
		{"failed after completion", false, []operation{submit("pending", "a", "pending", ""), settle("C", "settled"), settle("", "settled")}},
		{"completed what is absent", false, []operation{settle("C", "settled")}},
		{"refused a completion", false, []operation{submit("pending", "a", "pending", ""), settle("C", "not pending"), status("pending", "")}},
	} {
		faults := (&history{calls: c.calls}).linear()
		if right := len(faults) == 0; right != c.right {
			t.Errorf("%s: linearizable is %t", c.name, right)
		}
	}
}
