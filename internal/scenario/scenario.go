// Package scenario reads what a harness gives to the command's adapter, and says in
// the words of a scenario what is wrong with it.
//
// Not its job: carrying it out. It imports agentic, client, internal/advice and
// internal/strictjson.
package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// MaxBytes holds both documents and an input at their limits, with white space
// between the tokens.
const MaxBytes = 2 << 20

// Scenario is what a harness asks for.
type Scenario struct {
	Profile, OpenAPI []byte // JSON without white space
	Input            []byte // the same
	RequestID        string
	Ledger           string // a file, or a folder that exists

	Action  string       // of the profile; "" is its only one
	CrashAt client.Point // where the process has to end; "" is nowhere
	Now     time.Time    // the ledger's clock, UTC; zero is the real one
}

// instant is RFC 3339 in UTC with at most microseconds, which is what a ledger keeps.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)

// Parse reads one JSON object. Its error quotes nothing of what it was given but the
// names of members that this package knows.
func Parse(data []byte) (s Scenario, err error) {
	root, err := strictjson.Parse(data)
	if e, ok := errors.AsType[*strictjson.Error](err); ok { // without the name that it quotes
		return s, fmt.Errorf("%w in line %d, column %d", e.Reason, e.Line, e.Column)
	}
	if err == nil && root.Kind() != strictjson.Object {
		err = errors.New("it is not a JSON object")
	}
	if err != nil {
		return s, err
	}
	member := func(name string, kind strictjson.Kind) strictjson.Value {
		v, _ := root.Member(name)
		if v.Kind() != kind && err == nil {
			err = errors.New(`its member "` + name + `" is ` + v.Kind().One() + ", not " + kind.One())
		}
		return v
	}
	// A document keeps its meaning and its digest without its white space.
	s.Profile = member("profile", strictjson.Object).Compact()
	s.OpenAPI = member("openapi", strictjson.Object).Compact()
	s.Input = member("input", strictjson.Object).Compact()
	s.RequestID, _ = member("request_id", strictjson.String).Text()
	s.Ledger, _ = member("ledger_path", strictjson.String).Text()
	// These may be left out, and mean something when they are there.
	optional := func(name string, kind strictjson.Kind) (v strictjson.Value, given bool) {
		if _, given = root.Member(name); given && err == nil {
			v = member(name, kind)
		}
		return v, given && err == nil
	}
	if v, given := optional("test_crash_after_submit", strictjson.Bool); given && v.Truth() {
		s.CrashAt = client.AfterSubmit
	}
	if v, given := optional("test_crash_at", strictjson.String); given {
		name, _ := v.Text()
		switch {
		case s.CrashAt != "":
			err = errors.New(`its members "test_crash_after_submit" and "test_crash_at" both ask for a crash`)
		case !slices.Contains(client.Points(), client.Point(name)):
			err = errors.New(`its member "test_crash_at" names no point`)
		}
		s.CrashAt = client.Point(name)
	}
	if v, given := optional("action_id", strictjson.String); given {
		if s.Action, _ = v.Text(); s.Action == "" {
			err = errors.New(`its member "action_id" may not be empty`)
		}
	}
	if v, given := optional("test_now", strictjson.String); given {
		text, _ := v.Text()
		at, bad := time.Parse(time.RFC3339, text)
		if bad != nil || !instant.MatchString(text) || at.Year() < 1970 {
			err = errors.New(`its member "test_now" is not a time from 1970 on in UTC with at most microseconds, such as 2026-09-07T12:00:00.000000Z`)
		}
		s.Now = at
	}
	if err == nil && (s.RequestID == "" || s.Ledger == "") {
		err = errors.New(`its members "request_id" and "ledger_path" may not be empty`)
	}
	if err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// Error is an error in the words of a scenario, which has members and no
// flags. Its documents were parsed without their white space, so a line and a
// column would name no place in it.
func Error(err error) error {
	if e, ok := errors.AsType[*agentic.InvalidError](err); ok {
		return &agentic.InvalidError{Diagnostics: withoutLines(e.Diagnostics)}
	}
	if e, ok := errors.AsType[*agentic.InputError](err); ok {
		return &agentic.InputError{Diagnostics: withoutLines(e.Diagnostics)}
	}
	if e, ok := errors.AsType[*agentic.UnknownActionError](err); ok {
		if e.Action != "" {
			return advice.New("scenario", errors.New(`the profile has no action "`+e.Action+`"; it has: `+strings.Join(e.Known, ", ")), `Name one of them as "action_id".`)
		}
		return advice.New("scenario", fmt.Errorf("the profile has %d actions", len(e.Known)), `Name one of them as "action_id".`)
	}
	if e, ok := errors.AsType[*client.RequestIDError](err); ok {
		return advice.New("scenario", errors.New(`"request_id" is "`+e.RequestID+`"`), "Give 8 to 128 characters of A-Z, a-z, 0-9, _ and -.")
	}
	if e, ok := errors.AsType[*client.BindingError](err); ok {
		return advice.New("bound-to-another", e, "Give each scenario a request_id or a ledger_path of its own.")
	}
	return err
}

func withoutLines(found agentic.Diagnostics) agentic.Diagnostics {
	found = slices.Clone(found)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}
