// Package servicekit checks a live service against section 5 of the draft, and
// sections 2, 3 and 4 where they bind a service.
//
// Its job is to behave like many clients at once, and like bad ones: it submits,
// repeats, changes, races, drops connections, and judges by what the service itself
// tells afterwards: status, resource, and a counter if the service has one. What is a
// MUST of the draft and what is this project's reading is told apart by each check.
//
// It makes real resources, and sends other methods to the status of its own request where
// the OpenAPI document has no such operation: the service must be the operator's own, and
// one that may hold test data (Config.Owned). It talks to the profile's origin alone, over HTTP/1.1,
// each request over a connection of its own, never follows a redirect, uses no proxy,
// and stops at Config.MaxRequests. Credentials, the values of inputs and of resources
// are in no report; the IDs of requests and resources are.
//
// Not its job: certifying anything, load, authentication itself, and what would take as
// long as the tracking window. It imports package agentic, conformance, transport (for the
// headers that are not for credentials), internal/strictjson, net, net/http (to read
// answers) and httpguts.
package servicekit

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/transport"
)

// DefaultMaxRequests is how many requests a run may send, for each repeat.
const DefaultMaxRequests = 600

// ErrNotOwned says that Config.Owned is not set: nothing was sent.
var ErrNotOwned = errors.New("servicekit: the run makes real resources: it needs the operator's word that the service is their own")

// Principal is who talks to the service.
type Principal struct {
	Header http.Header // credentials; sent to the origin alone, never shown
}

// Config says what is checked and how. Profile, OpenAPI, Input and Owned are required.
type Config struct {
	Profile, OpenAPI []byte // the documents that the service advertises
	ProfileURL       string // where Profile was read at its origin; "": it may be at /agentic.json or elsewhere
	Action           string // "" is the profile's only action
	Input            []byte // of the action: makes a resource each time it is sent with a new key
	OtherInput       []byte // a different one that also succeeds; nil: what needs it is not exercised
	RefusedInput     []byte // one that the business definitely refuses; nil: likewise

	First, Second *Principal // nil First is one without credentials; nil Second: not exercised

	OtherAction      string // another action of the profile, described in the same OpenAPI document
	OtherActionInput []byte

	// CountURL is a root-relative GET whose JSON document counts the action's resources
	// at CountPointer (RFC 6901, "" is the whole document). It is asked with the
	// credentials of First. With it, and while nobody else uses the service, what was
	// made is judged exactly.
	CountURL, CountPointer string

	// Restart ends the service and starts it again; it returns when the service can be
	// reached at the same origin. nil: not exercised.
	Restart func(context.Context) error

	Owned         bool           // the service is the operator's, who wants it tried
	AllowLoopback bool           // accept an http origin, and addresses, of this machine
	RootCAs       *x509.CertPool // verify the service; nil are the system's

	MaxRequests int           // 0 is DefaultMaxRequests for each repeat
	Timeout     time.Duration // of one exchange; 0 is 15 seconds
	Settle      time.Duration // how long a new request may take to become final; 0 follows from the profile

	Repeat   int
	Seed     uint64
	Match    []string // patterns of conformance.Select; none is all
	Tool     conformance.Tool
	Progress func(done, total int, last conformance.Result)
}

// Checks are all checks, in the order in which Run makes them.
func Checks() []conformance.Info {
	infos := make([]conformance.Info, len(checks))
	for i, c := range checks {
		infos[i] = c.Info
	}
	return infos
}

// Run checks the service. Its error says that nothing was tried, because c is at
// fault (ErrNotOwned; *agentic.InvalidError for a document, *agentic.InputError for an
// input), or that ctx ended. Faults of the service are in the report.
func Run(ctx context.Context, c Config) (*conformance.Report, error) {
	if !c.Owned {
		return nil, ErrNotOwned
	}
	r, err := newRun(c)
	if err != nil {
		return nil, fmt.Errorf("servicekit: %w", err)
	}
	chosen, err := choose(c.Match)
	if err != nil {
		return nil, fmt.Errorf("servicekit: %w", err)
	}
	cases := make([]conformance.Case, len(chosen))
	for i, c := range chosen {
		cases[i] = conformance.Case{Info: c.Info, Run: func(ctx context.Context, rec *conformance.Recorder) error { return r.try(ctx, c, rec) }}
	}
	plan := r.first.plan
	subject := conformance.Subject{Name: plan.Origin, Origin: plan.Origin, Action: plan.Action.ID}
	return conformance.Run(ctx, conformance.Service, subject, c.Tool, cases, conformance.Options{
		Repeat: c.Repeat, Seed: c.Seed, Timeout: caseTime + 4*r.settleTime, GiveUp: giveUp, Progress: c.Progress,
	})
}

// A service that only runs into time limits is not asked hundreds of times: mostLate
// requests end a check, and giveUp checks in a row, in which every request did, the run.
const (
	mostLate = 3
	giveUp   = 5
)

// caseTime bounds one try beside the time that requests take to settle.
const caseTime = 2 * time.Minute

// choose gives the checks that a pattern names.
func choose(patterns []string) ([]check, error) {
	infos, err := conformance.Select(Checks(), patterns)
	if err != nil {
		return nil, err
	}
	var chosen []check
	for _, c := range checks {
		if slices.ContainsFunc(infos, func(i conformance.Info) bool { return i.ID == c.ID }) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// newRun checks the configuration and makes everything ready.
func newRun(c Config) (*run, error) {
	opts := agentic.Options{AllowLoopback: c.AllowLoopback}
	plan, err := agentic.Load(c.Profile, c.OpenAPI, c.Action, opts)
	if err != nil {
		return nil, err
	}
	if c.ProfileURL != "" {
		path, ok := strings.CutPrefix(c.ProfileURL, plan.Origin)
		if err := checkTarget(path); !ok || err != nil {
			return nil, errors.New("the ProfileURL is not one of the profile's origin")
		}
	}
	if c.MaxRequests < 0 || c.Repeat < 0 || c.Settle < 0 || c.Timeout < 0 {
		return nil, errors.New("a limit is negative")
	}
	r := &run{config: c, first: party{plan: plan, who: c.First}, settleTime: c.Settle}
	if r.first.who == nil {
		r.first.who = &Principal{}
	}
	for name, p := range map[string]*Principal{"First": r.first.who, "Second": c.Second} {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("the headers of %s: %w", name, err)
		}
	}
	if r.first.in, err = plan.CheckInput(c.Input); err != nil {
		return nil, fmt.Errorf("the Input: %w", err)
	}
	if c.OtherInput != nil {
		other, err := plan.CheckInput(c.OtherInput)
		if err != nil {
			return nil, fmt.Errorf("the OtherInput: %w", err)
		}
		if other.Digest() == r.first.in.Digest() {
			return nil, errors.New("the OtherInput is structurally equal to the Input (D20)")
		}
		r.other = &other
	}
	if c.RefusedInput != nil {
		// The evidence pointers of a refused input need not resolve: nothing is verified.
		if v, err := strictjson.Parse(c.RefusedInput); err != nil || v.Kind() != strictjson.Object {
			return nil, errors.New("the RefusedInput is not a strict JSON object")
		}
	}
	if c.OtherAction != "" {
		if r.another, err = r.anotherAction(c, opts); err != nil {
			return nil, err
		}
	}
	if err := checkCount(c.CountURL, c.CountPointer); err != nil {
		return nil, err
	}
	if r.settleTime == 0 {
		rec := plan.Action.Recovery
		execution := time.Duration(rec.MaxChecks) * (rec.CheckDelay + time.Second)
		r.settleTime = min(max(2*execution, 5*time.Second), 30*time.Second)
	}
	r.prober, err = newProber(plan.Origin, c)
	return r, err
}

func (r *run) anotherAction(c Config, opts agentic.Options) (*party, error) {
	if c.OtherAction == r.first.plan.Action.ID {
		return nil, errors.New("the OtherAction is the action itself")
	}
	plan, err := agentic.Load(c.Profile, c.OpenAPI, c.OtherAction, opts)
	if err != nil {
		return nil, fmt.Errorf("the OtherAction: %w", err)
	}
	if plan.Action.OpenAPI != r.first.plan.Action.OpenAPI {
		return nil, errors.New("the OtherAction is described in another OpenAPI document")
	}
	in, err := plan.CheckInput(c.OtherActionInput)
	if err != nil {
		return nil, fmt.Errorf("the OtherActionInput: %w", err)
	}
	return &party{plan: plan, who: r.first.who, in: in}, nil
}

// check refuses headers that name or frame a request, or could break out of it. Its
// error names no value.
func (p *Principal) check() error {
	if p == nil {
		return nil
	}
	for name, values := range p.Header {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return errors.New("a name that no header can have")
		case transport.ReservedHeader(name):
			return fmt.Errorf("%s is not for credentials", name)
		case slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
			return fmt.Errorf("a value of %s that no header can carry", name)
		}
	}
	return nil
}

func checkCount(target, pointer string) error {
	if target == "" {
		if pointer != "" {
			return errors.New("a CountPointer without a CountURL")
		}
		return nil
	}
	if err := checkTarget(target); err != nil {
		return fmt.Errorf("the CountURL is %w", err)
	}
	if !strictjson.ValidPointer(pointer) {
		return errors.New("the CountPointer is not a JSON Pointer")
	}
	return nil
}

// checkTarget refuses what is not written as the target of a request.
func checkTarget(target string) error {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || u.RequestURI() != target || strings.ContainsAny(target, "#\\") {
		return errors.New("not a root-relative path")
	}
	return nil
}
