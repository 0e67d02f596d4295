package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/transport"
)

// fetchTimeout bounds the reading of one document.
const fetchTimeout = 10 * time.Second

// maxInputFile bounds what is read as an input; agentic.Plan.CheckInput has the
// limit that counts.
const maxInputFile = 1 << 20

// read gives a file, or standard input for "-", up to one byte more than limit:
// whoever parses it says that it is too large.
func (a *app) read(name string, limit int64) ([]byte, error) {
	r := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil && name == "-" {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	return data, err
}

// readInput gives the action's input from --input: JSON, @FILE or -.
func (a *app) readInput(flag string) ([]byte, error) {
	switch {
	case flag == "-":
		return a.read("-", maxInputFile)
	case strings.HasPrefix(flag, "@"):
		return a.read(flag[1:], maxInputFile)
	}
	return []byte(flag), nil
}

// isURL reports whether a PROFILE argument is to be read over HTTP.
func isURL(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// planFlags name the documents and the action.
type planFlags struct {
	openapi string
	action  string
}

// loadPlan reads both documents and binds the action. A profile from a URL may
// only describe the origin it came from: it has no authority over others (section
// 2). Without --openapi the OpenAPI document is read from the profile's origin.
// Nothing is read from an origin that is not approved.
func (a *app) loadPlan(ctx context.Context, t *transport.Transport, opts agentic.Options, profile string, f planFlags) (*agentic.Plan, error) {
	data, from, err := a.loadProfile(ctx, t, profile)
	if err != nil {
		return nil, err
	}
	p, found := agentic.ParseProfile(data, opts)
	if err := found.Err(); err != nil {
		return nil, err
	}
	if from != "" && p.Origin != from {
		return nil, &remedyError{fmt.Errorf("the profile of %s describes actions of %s, and a profile has no authority over another origin", from, p.Origin),
			"origin-mismatch", "Ask the publisher, or save the profile to a file and approve " + p.Origin + " instead."}
	}
	action, err := chooseAction(p, f.action)
	if err != nil {
		return nil, err
	}
	data, err = a.loadOpenAPI(ctx, t, p, action, f.openapi)
	if err != nil {
		return nil, err
	}
	doc, ds := agentic.ParseOpenAPI(data)
	found = append(found, ds...)
	var plan *agentic.Plan
	if doc != nil {
		plan, ds = agentic.Bind(p, action.ID, doc)
		found = append(found, ds...)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, d := range found {
		writeDiagnostic(&b, d.Document, d)
	}
	_, _ = a.stderr.Write(b.Bytes()) // warnings are not worth an error
	return plan, nil
}

// loadProfile gives a profile and the origin it was read from, "" for a file.
func (a *app) loadProfile(ctx context.Context, t *transport.Transport, profile string) (data []byte, from string, err error) {
	if !isURL(profile) {
		data, err = a.read(profile, agentic.MaxProfileBytes)
		return data, "", err
	}
	u, err := url.Parse(profile)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, "", &usageError{fmt.Sprintf("%.200q is not a URL of a profile", profile), "Write it as https://HOST/agentic.json."}
	}
	from = u.Scheme + "://" + u.Host
	if err := t.Approve(from, ""); err != nil {
		return nil, "", err
	}
	data, err = t.Fetch(ctx, profile, agentic.MaxProfileBytes, fetchTimeout)
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, "", &remedyError{fmt.Errorf("cannot read the profile: %w", err), "fetch", "Look at the URL and whether the service runs."}
	}
	return data, from, nil
}

func (a *app) loadOpenAPI(ctx context.Context, t *transport.Transport, p *agentic.Profile, action agentic.Action, flag string) ([]byte, error) {
	if flag != "" {
		return a.read(flag, agentic.MaxOpenAPIBytes)
	}
	if err := t.Approve(p.Origin, action.ID); err != nil {
		return nil, fmt.Errorf("the OpenAPI document would be read from %s; give it with --openapi FILE or approve the origin: %w", p.Origin+action.OpenAPI, err)
	}
	data, err := t.Fetch(ctx, p.Origin+action.OpenAPI, agentic.MaxOpenAPIBytes, fetchTimeout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &remedyError{fmt.Errorf("cannot read the OpenAPI document %s: %w", p.Origin+action.OpenAPI, err), "fetch",
			"Look whether the service runs, or give the document with --openapi FILE."}
	}
	return data, nil
}

// chooseAction is the named action, or the only one.
func chooseAction(p *agentic.Profile, id string) (agentic.Action, error) {
	if id == "" && len(p.Actions) == 1 {
		return p.Actions[0], nil
	}
	if action, ok := p.Action(id); ok {
		return action, nil
	}
	return agentic.Action{}, &agentic.UnknownActionError{Action: id, Known: actionIDs(p)}
}

func actionIDs(p *agentic.Profile) []string {
	ids := make([]string, len(p.Actions))
	for i, action := range p.Actions {
		ids[i] = action.ID
	}
	return ids
}
