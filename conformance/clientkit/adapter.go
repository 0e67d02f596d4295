package clientkit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentic-go/agentic/internal/strictjson"
)

// What an Adapter says of who wrote its client.
const (
	AuthorshipProject  = "project"
	AuthorshipExternal = "external-self-declared"
)

// FeatureTestNow is the feature of a client that takes test_now, an RFC 3339 time in
// UTC with microseconds, as its ledger's clock for the whole of that call.
const FeatureTestNow = "test_now"

// FeatureActionID is the feature of a client that takes action_id, the action of a profile
// that has several.
const FeatureActionID = "action_id"

// features are all of them, each with what a client without it leaves untried.
var features = map[string]string{
	FeatureTestNow:  "The client's clock cannot be set from outside.",
	FeatureActionID: "The interface of the draft's runner names no action, so a profile with several cannot be given to the client.",
}

// MaxAdapterBytes is the most that ParseAdapter reads.
const MaxAdapterBytes = 16 << 10

// Adapter says how a client is started: the adapter's file of the draft's runner, and
// the optional members of the input that the client knows beyond it.
type Adapter struct {
	Name       string   // in the client's own words: untrusted (D6)
	Authorship string   // AuthorshipProject or AuthorshipExternal
	Command    []string // program and arguments; never a line for a shell
	Features   []string // such as FeatureTestNow
}

// ParseAdapter reads an adapter's file: one strict JSON object with the members name,
// authorship, command and optionally features, and no other.
func ParseAdapter(data []byte) (Adapter, error) {
	a, err := parseAdapter(data)
	if err != nil {
		return Adapter{}, fmt.Errorf("adapter: %w", err)
	}
	return a, nil
}

func parseAdapter(data []byte) (a Adapter, err error) {
	if len(data) > MaxAdapterBytes {
		return a, fmt.Errorf("the file is longer than %d bytes", MaxAdapterBytes)
	}
	root, err := strictjson.Parse(data)
	if err != nil {
		return a, err
	}
	if root.Kind() != strictjson.Object {
		return a, fmt.Errorf("the file is not a JSON object but %s", root.Kind().One())
	}
	for _, m := range root.Members() {
		switch m.Name {
		case "name":
			a.Name, err = filled(m)
		case "authorship":
			a.Authorship, err = filled(m)
		case "command":
			a.Command, err = texts(m)
		case "features":
			a.Features, err = texts(m)
		default:
			err = fmt.Errorf("there is no member %q; there are name, authorship, command and features", m.Name)
		}
		if err != nil {
			return a, err
		}
	}
	return a, a.check()
}

// check refuses what no client can be started with.
func (a Adapter) check() error {
	switch {
	case a.Name == "":
		return errors.New(`the member "name" is missing`)
	case a.Authorship != AuthorshipProject && a.Authorship != AuthorshipExternal:
		return fmt.Errorf("authorship is %q, not %q or %q", a.Authorship, AuthorshipProject, AuthorshipExternal)
	case len(a.Command) == 0 || a.Command[0] == "":
		return errors.New("command names no program")
	}
	for _, f := range a.Features {
		if features[f] == "" {
			return fmt.Errorf("there is no feature %q; there are %s", f, strings.Join(slices.Sorted(maps.Keys(features)), " and "))
		}
	}
	return nil
}

// knows reports whether the client takes a member beyond those of the draft's runner.
func (a Adapter) knows(feature string) bool { return slices.Contains(a.Features, feature) }

func filled(m strictjson.Member) (string, error) {
	s, ok := m.Value.Text()
	if !ok || s == "" {
		return "", fmt.Errorf("the member %q is not a text with something in it", m.Name)
	}
	return s, nil
}

func texts(m strictjson.Member) ([]string, error) {
	if m.Value.Kind() != strictjson.Array {
		return nil, fmt.Errorf("the member %q is not an array of texts", m.Name)
	}
	var all []string
	for _, v := range m.Value.Elements() {
		s, ok := v.Text()
		if !ok {
			return nil, fmt.Errorf("the member %q holds something that is no text", m.Name)
		}
		all = append(all, s)
	}
	return all, nil
}
