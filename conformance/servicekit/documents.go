package servicekit

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const groupDocuments = "Published documents"

// profilePath is where a profile may be served; a publisher may give another URL instead
// (section 2).
const profilePath = "/agentic.json"

// profileAt is where this run looks for the profile.
func (r *run) profileAt() string {
	if r.config.ProfileURL != "" {
		return strings.TrimPrefix(r.config.ProfileURL, r.first.plan.Origin)
	}
	return profilePath
}

var documentChecks = []check{
	{info("documents/profile", groupDocuments, "the profile that is served is the one that was given", conformance.Must,
		"The UTF-8 JSON profile is served as application/json, at /agentic.json or at a URL that the publisher gives; clients bind requests to that snapshot.", "2"),
		"Serve the same file that clients are given, without a redirect.",
		func(t *trial) error { return served(t, t.profileAt(), t.config.Profile) }},
	{info("documents/openapi", groupDocuments, "the OpenAPI document is served where the profile says", conformance.Must,
		"actions[].openapi is the root-relative URL of the OpenAPI description, which clients bind requests to.", "2", "3"),
		"Serve the same document as clients are given at that path, without a redirect.",
		func(t *trial) error { return served(t, t.first.plan.Action.OpenAPI, t.config.OpenAPI) }},
	{info("documents/valid", groupDocuments, "the served documents are strict JSON, valid, and bind", conformance.Must,
		"The profile validates against the schema, passes the binding checks, and no document has duplicate member names.", "2", "3", "4", "D1"),
		"agentic validate names every problem with its place.",
		servedValid},
	{info("documents/size", groupDocuments, "the documents keep to their sizes", conformance.Should,
		"The profile is at most 64 KiB, the OpenAPI document at most 256 KiB.", "2"),
		"Take out of the OpenAPI document what the action does not need.",
		servedSize},
	{info("documents/caching", groupDocuments, "the documents have cache controls and an ETag that works", conformance.Should,
		"Publishers use normal HTTP cache controls and ETags.", "2"),
		"Send Cache-Control and a strong ETag, and answer If-None-Match with 304.",
		caching},
}

// document fetches a published document as anybody does, or with credentials when
// they are asked for.
func (t *trial) document(path string, header ...[2]string) (answer, error) {
	a, err := t.get(party{plan: t.first.plan}, t.first.plan.Origin+path, header...)
	if err == nil && (a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden) {
		t.Note("%s is served with credentials only.", path)
		return t.get(t.first, t.first.plan.Origin+path, header...)
	}
	return a, err
}

// profileElsewhere says that the profile is not at its usual place, where it need not be.
const profileElsewhere = missing("The given profile is not what is served at /agentic.json, which the draft does not ask for: it may have another address. Giving PROFILE as the URL at which it is served would show it.")

// elsewhere reports whether an answer leaves open where the profile is served: nobody said
// that it is here, and something else is.
func (t *trial) elsewhere(path string, a answer) bool {
	if t.config.ProfileURL != "" || path != profilePath {
		return false
	}
	have, err := strictjson.Parse(a.Body)
	return a.Status != http.StatusOK || err != nil || have.Digest() != t.first.plan.Profile.Digest()
}

// published fetches both documents; openapi alone when the profile is elsewhere.
func (t *trial) published(each func(path string, a answer)) error {
	for _, path := range []string{t.profileAt(), t.first.plan.Action.OpenAPI} {
		a, err := t.document(path)
		if err != nil {
			return err
		}
		if t.elsewhere(path, a) {
			continue
		}
		each(path, a)
	}
	return nil
}

func absent(a answer) bool { return a.Status == http.StatusNotFound || a.Status == http.StatusGone }

func served(t *trial, path string, given []byte) error {
	a, err := t.document(path)
	if err != nil {
		return err
	}
	if t.elsewhere(path, a) {
		return profileElsewhere
	}
	if err := t.must("HTTP status", a.Status == http.StatusOK && a.lost == "", "200", a.code()); err != nil {
		return err
	}
	media, params, err := mime.ParseMediaType(a.ContentType)
	charset, has := params["charset"]
	t.expect("media type", err == nil && media == "application/json" && (!has || strings.EqualFold(charset, "utf-8")), "application/json in UTF-8", shorten(a.ContentType))
	want, err := strictjson.Parse(given)
	if err != nil {
		return err
	}
	have, err := strictjson.Parse(a.Body)
	if err != nil {
		t.expect("document", false, "strict JSON", fmt.Sprintf("%d bytes that are not", len(a.Body)))
		return nil
	}
	t.expect("digest of the document", have.Digest() == want.Digest(), want.Digest(), have.Digest())
	return nil
}

func servedValid(t *trial) error {
	documents := map[string][]byte{t.profileAt(): t.config.Profile}
	if err := t.published(func(path string, a answer) { documents[path] = a.Body }); err != nil {
		return err
	}
	_, err := agentic.Load(documents[t.profileAt()], documents[t.first.plan.Action.OpenAPI], t.first.plan.Action.ID,
		agentic.Options{AllowLoopback: t.config.AllowLoopback})
	found := "valid"
	if err != nil {
		found = err.Error()
	}
	t.expect("documents", err == nil, "valid", found)
	return nil
}

func servedSize(t *trial) error {
	return t.published(func(path string, a answer) {
		limit := agentic.MaxOpenAPIBytes
		if path == t.profileAt() {
			limit = agentic.MaxProfileBytes
		}
		t.expect("size of "+path, len(a.Body) <= limit && a.lost == "", fmt.Sprintf("at most %d bytes", limit), fmt.Sprintf("%d bytes", len(a.Body)))
	})
}

func caching(t *trial) error {
	var tags [][2]string // path and tag
	err := t.published(func(path string, a answer) {
		controls := a.header.Get("Cache-Control") + a.header.Get("Expires")
		t.expect("cache controls of "+path, controls != "", "Cache-Control or Expires", "none")
		tag := a.header.Get("ETag")
		if t.expect("ETag of "+path, tag != "", "an ETag", cmp.Or(shorten(tag), "none")) {
			tags = append(tags, [2]string{path, tag})
		}
	})
	if err != nil {
		return err
	}
	for _, tag := range tags {
		a, err := t.document(tag[0], [2]string{"If-None-Match", tag[1]})
		if err != nil {
			return err
		}
		t.expect("If-None-Match on "+tag[0], a.Status == http.StatusNotModified, "304", a.code())
	}
	return nil
}
