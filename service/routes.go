package service

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
)

// profilePath is where Register serves the profile (section 2).
const profilePath = "/agentic.json"

// Register puts the operations and the documents on a mux, on the paths of the
// documents, and checks that they fit. The publisher's read of each action, the
// verify operation, must be on the mux already.
//
// A mux that does not serve what the documents promise is an error that says
// which pattern is at fault; then it must not be served. What cannot be seen is a
// pattern for one single ID, such as "GET /requests/latest".
func (t *Tracker[Tx]) Register(mux *http.ServeMux) error {
	err := errors.Join(
		mount(mux, "GET "+profilePath, t.profile),
		mount(mux, "GET "+t.openapiPath(), t.openapi))
	for _, a := range t.actions {
		err = errors.Join(err,
			mount(mux, "POST "+a.submit.path, a.submit),
			mount(mux, "GET "+a.status.path.pattern(), a.status))
	}
	if err != nil {
		return err
	}
	return t.Check(func(method, path string) http.Handler {
		h, pattern := mux.Handler(t.probe(method, path))
		// A catch-all is no sign that somebody serves this path, and clients of the
		// draft follow no redirect, such as that of a pattern that ends in a slash.
		if pattern == "" || pattern == "/" || reflect.TypeOf(h) == reflect.TypeOf(http.RedirectHandler("/", http.StatusFound)) {
			return nil
		}
		return h
	})
}

func (s *server) openapiPath() string { return s.actions[0].plan.Action.OpenAPI }

// probe is a request as a client of the profile's origin sends it.
func (s *server) probe(method, path string) *http.Request {
	u, err := url.Parse(s.actions[0].plan.Origin + path)
	if err != nil {
		u = &url.URL{Path: path} // the validator takes no such path
	}
	return &http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// mount makes an error of the panic of a mux that has a conflicting pattern.
func mount(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("service: cannot serve %s on this mux: %v", pattern, v)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

// Check is Register's check for a publisher with a router of another kind. route
// says who serves a path; nil is nobody. For submit, status and documents it must
// be the very handler that the Tracker gave; for verify, one of the publisher.
func (t *Tracker[Tx]) Check(route func(method, path string) http.Handler) error {
	var faults []error
	ours := func(method, path string, want http.Handler, what string) {
		switch got := route(method, path); {
		case got == nil:
			faults = append(faults, fmt.Errorf("service: nobody serves %s %s, %s", method, path, what))
		case got != want:
			faults = append(faults, fmt.Errorf("service: %s %s, %s, is served by another handler: a more specific pattern hides it", method, path, what))
		}
	}
	ours("GET", profilePath, t.profile, "the profile")
	ours("GET", t.openapiPath(), t.openapi, "the OpenAPI document")
	for _, a := range t.actions {
		ours("POST", a.submit.path, a.submit, "the submission of "+a.id)
		ours("GET", a.status.path.sample(), a.status, "the status of "+a.id)
		got := route("GET", a.verify.sample())
		if got == nil || t.isOurs(got) {
			faults = append(faults, fmt.Errorf("service: nobody serves GET %s, the read of %s: put your handler on it first", a.verify, a.id))
		}
	}
	return errors.Join(faults...)
}

func (s *server) isOurs(h http.Handler) bool {
	for _, a := range s.actions {
		if h == a.submit || h == a.status {
			return true
		}
	}
	return h == s.profile || h == s.openapi
}
