// Package documents finds the documents of an action: a profile and its OpenAPI
// document, from files, standard input or an approved origin.
//
// Its job is that nothing is read from an origin that the host has not approved,
// and that a profile from an origin speaks for that origin alone (section 2). Not
// its job: what a valid document is, which package agentic says, and approving. It
// imports package agentic, transport and internal/advice.
package documents

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/transport"
)

// fetchTimeout bounds the reading of one document.
const fetchTimeout = 10 * time.Second

// Read gives a file, or stdin for "-", up to one byte more than limit: whoever
// parses it says that it is too large, and Truthful by how much. When ctx ends it
// returns the error of ctx at once, and leaves a read behind that nobody can end:
// of a terminal, or of a pipe that has no writer.
func Read(ctx context.Context, stdin io.Reader, name string, limit int) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read(stdin, name, limit)
		done <- result{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		return r.data, r.err
	}
}

func read(stdin io.Reader, name string, limit int) ([]byte, error) {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil && name == "-" {
		return nil, advice.New("file", fmt.Errorf("cannot read standard input: %w", err), "Give a file instead, or look at what writes to this command.")
	}
	return data, err
}

// Truthful mends what a diagnostic says of a document that Read did not read to
// its end: nobody knows its size.
func Truthful(found agentic.Diagnostics, data []byte, limit int) agentic.Diagnostics {
	if len(data) > limit {
		for i := range found {
			if found[i].Code == found[i].Document+"/too-large" {
				found[i].Problem = fmt.Sprintf("There are more than %d bytes, and that is the most.", limit)
			}
		}
	}
	return found
}

// Names tell where each document of a diagnostic came from: a file, "-" or a URL,
// by the name that the diagnostic has for it, such as "profile".
type Names map[string]string

// Of is the name of a document, or the document's own when it has none.
func (n Names) Of(document string) string {
	if name := n[document]; name != "" && name != "-" {
		return name
	}
	return document
}

// IsURL reports whether the name of a profile is to be read over HTTP.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// Source is where documents come from.
type Source struct {
	Stdin     io.Reader            // for the name "-"
	Names     Names                // Plan writes down what it reads, unless it is nil
	Transport *transport.Transport // of the approved origins
	Options   agentic.Options
}

// Plan reads both documents and binds the action; "" is the profile's only one.
// The profile is a file, "-", or a URL of the origin that it describes. Without
// openapi the OpenAPI document is read from the profile's origin. Warnings of a
// usable pair are in Plan.Warnings.
//
// The errors are those of agentic.Load, *client.OriginError, *fs.PathError, the
// context's, and *advice.Error for the rest.
func (s Source) Plan(ctx context.Context, profile, openapi, action string) (*agentic.Plan, error) {
	data, from, err := s.profile(ctx, profile)
	if err != nil {
		return nil, err
	}
	p, found := agentic.ParseProfile(data, s.Options)
	found = Truthful(found, data, agentic.MaxProfileBytes)
	if err := found.Err(); err != nil {
		return nil, err
	}
	if from != "" && p.Origin != from {
		return nil, advice.New("origin-mismatch", fmt.Errorf("the profile of %s describes actions of %s, and a profile has no authority over another origin", from, p.Origin),
			"Ask the publisher, or save the profile to a file and approve "+p.Origin+" instead.")
	}
	chosen, err := p.Choose(action)
	if err != nil {
		return nil, err
	}
	data, err = s.openapi(ctx, p.Origin, chosen, openapi)
	if err != nil {
		return nil, err
	}
	doc, ds := agentic.ParseOpenAPI(data)
	found = append(found, Truthful(ds, data, agentic.MaxOpenAPIBytes)...)
	var plan *agentic.Plan
	if doc != nil {
		plan, ds = agentic.Bind(p, chosen.ID, doc)
		found = append(found, ds...)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	plan.Warnings = found
	return plan, nil
}

// profile gives a profile and the origin it was read from, "" for a file.
func (s Source) profile(ctx context.Context, name string) (data []byte, from string, err error) {
	s.named("profile", name)
	if !IsURL(name) {
		data, err = Read(ctx, s.Stdin, name, agentic.MaxProfileBytes)
		return data, "", err
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" { // not shown: it may hold a password
		return nil, "", advice.BadUsage("the URL of the profile has no host, or has credentials or a fragment", "Write it as https://HOST/agentic.json.")
	}
	from = u.Scheme + "://" + u.Host
	if err := s.Transport.Approve(from, ""); err != nil {
		return nil, "", err
	}
	data, err = s.Transport.Fetch(ctx, name, agentic.MaxProfileBytes, fetchTimeout)
	if err != nil {
		return nil, "", explain(ctx, fmt.Errorf("cannot read the profile %s: %w", name, err), "Look at the URL and whether the service runs.")
	}
	return data, from, nil
}

func (s Source) openapi(ctx context.Context, origin string, action agentic.Action, name string) ([]byte, error) {
	if name != "" {
		s.named("openapi", name)
		return Read(ctx, s.Stdin, name, agentic.MaxOpenAPIBytes)
	}
	at := origin + action.OpenAPI
	s.named("openapi", at)
	if err := s.Transport.Approve(origin, action.ID); err != nil {
		return nil, fmt.Errorf("the OpenAPI document would be read from %s; give it with --openapi FILE or approve the origin: %w", at, err)
	}
	data, err := s.Transport.Fetch(ctx, at, agentic.MaxOpenAPIBytes, fetchTimeout)
	if err != nil {
		return nil, explain(ctx, fmt.Errorf("cannot read the OpenAPI document %s: %w", at, err),
			"Look whether the service runs, or give the document with --openapi FILE.")
	}
	return data, nil
}

func (s Source) named(document, name string) {
	if s.Names != nil {
		s.Names[document] = name
	}
}

// explain adds advice, unless the caller has given up.
func explain(ctx context.Context, err error, remedy string) error {
	if end := ctx.Err(); end != nil {
		return end
	}
	return advice.New("fetch", err, remedy)
}
