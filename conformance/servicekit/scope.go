package servicekit

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const groupScope = "Scope of keys"

const (
	noSecond  = missing("No second principal was given: one would show it.")
	noAnother = missing("No other action of the profile was given: one would show it.")
)

var scopeChecks = []check{
	{info("scope/principal", groupScope, "another principal's same key is another request", conformance.Must,
		"Keys are scoped to the authenticated principal and action.", "3", "5", "D19"),
		"The unique constraint of the records needs the principal beside the key.",
		func(t *trial) error {
			if t.config.Second == nil {
				return noSecond
			}
			second := t.first
			second.who = t.config.Second
			return t.separate(second)
		}},
	{info("scope/action", groupScope, "the same key in another action is another request", conformance.Must,
		"Keys are scoped to the authenticated principal and action.", "3", "5", "D19"),
		"The unique constraint of the records needs the action beside the key, and each action a status operation that knows its own.",
		func(t *trial) error {
			if t.another == nil {
				return noAnother
			}
			return t.separate(*t.another)
		}},
	{info("scope/foreign-status", groupScope, "the status of another principal's key tells of no outcome", conformance.Must,
		"Keys are scoped to the authenticated principal: for anybody else this key is not tracked.", "3", "5"),
		"Look the record up by principal, action and key together.",
		func(t *trial) error {
			return t.foreign(func(m made, p party) error { return t.nothing(p, m.key) })
		}},
	{info("scope/indistinguishable", groupScope, "the status of another principal's key looks like that of none", conformance.Reading,
		"The draft does not say what a foreign status shows; here it cannot be told from that of a key that was never used.", "5", "D24"),
		"Answer both from the same code, with the same bytes but for request_id.",
		indistinguishable},
	{info("scope/foreign-resource", groupScope, "another principal cannot read the resource", conformance.Reading,
		"The draft leaves authorization to the service; here a resource belongs to the principal whose request made it.", "1", "D24"),
		"Look the resource up by its owner, and answer 404. Resources that are meant to be shared make this an expected failure.",
		func(t *trial) error {
			return t.foreign(func(m made, p party) error {
				a, _, err := t.resource(p, m.key, m.resource)
				if err == nil {
					t.expect("answer", a.is4xx(), "4xx", a.code())
				}
				return err
			})
		}},
	{info("scope/no-credentials", groupScope, "without credentials nothing is done and nothing is told", conformance.Reading,
		"Keys are scoped to an authenticated principal; somebody without credentials is none.", "3", "5", "D19"),
		"Authenticate before anything else, and answer 401.",
		withoutCredentials},
}

// separate expects that the key of a first request is free for another party, whose
// request makes a resource of its own, and that both stand.
func (t *trial) separate(p party) error {
	if _, err := t.made(); err != nil {
		return err
	}
	var mine, theirs made
	err := t.counted(1, func() (err error) {
		mine, err = t.make(t.first, t.key())
		return err
	})
	if err != nil {
		return err
	}
	if err := t.nothing(p, mine.key); err != nil {
		return err
	}
	made := func() (err error) {
		theirs, err = t.make(p, mine.key)
		return err
	}
	if p.plan == t.first.plan { // the count is of the first action
		err = t.counted(1, made)
	} else {
		err = made()
	}
	if err != nil {
		return err
	}
	one, _ := mine.plan.ResourceURL(mine.resource)
	two, _ := theirs.plan.ResourceURL(theirs.resource)
	t.otherwise("resource of the other request", one != two, "one of its own", "the same")
	if err := t.stands(mine); err != nil {
		return err
	}
	return t.stands(theirs)
}

// foreign runs f with the shared request and the second principal.
func (t *trial) foreign(f func(m made, second party) error) error {
	if t.config.Second == nil {
		return noSecond
	}
	m, err := t.made()
	if err != nil {
		return err
	}
	second := m.party
	second.who = t.config.Second
	return f(m, second)
}

func indistinguishable(t *trial) error {
	return t.foreign(func(m made, second party) error {
		foreign, _, err := t.status(second, m.key)
		if err != nil {
			return err
		}
		key := t.key()
		none, _, err := t.status(second, key)
		if err != nil {
			return err
		}
		t.expect("HTTP status", foreign.Status == none.Status && foreign.whole() && none.whole(), none.code(), foreign.code())
		t.expect("media type", foreign.ContentType == none.ContentType, shorten(none.ContentType), shorten(foreign.ContentType))
		// Keys of one length: what is left after their replacement has to be equal.
		same := bytes.Equal(bytes.ReplaceAll(foreign.Body, []byte(m.key), []byte(key)), none.Body)
		t.otherwise("body but for the key", same, "the same bytes", strconv.Itoa(len(foreign.Body))+" other bytes")
		return nil
	})
}

func withoutCredentials(t *trial) error {
	if len(t.first.who.Header) == 0 {
		return missing("The run has no credentials, so the service knows one principal: a service with authentication would show it.")
	}
	m, err := t.made()
	if err != nil {
		return err
	}
	nobody := t.first
	nobody.who = &Principal{}
	key := t.key()
	err = t.counted(0, func() error {
		a, err := t.post(nobody, key)
		if err != nil {
			return err
		}
		t.expect("answer to the submission", a.is4xx(), "4xx", a.code())
		return t.nothing(t.first, key)
	})
	if err != nil {
		return err
	}
	return t.nothing(nobody, m.key)
}

const groupMethods = "Methods and redirects"

var methodChecks = []check{
	{info("redirect/none", groupMethods, "no operation answers with a redirect", conformance.Must,
		"A client rejects redirects during action execution, so an operation that redirects cannot be used.", "2"),
		"Serve the operations at the very paths of the OpenAPI document; mind trailing slashes and http to https.",
		func(t *trial) error {
			b, err := t.shared()
			if err != nil {
				return err
			}
			redirects := func(what string, a answer) {
				t.expect(what, a.whole() && a.Status/100 != 3, "a whole answer that is no redirect", a.code())
			}
			redirects("submission", b.posted)
			a, d, err := t.status(b.party, b.key)
			if err != nil {
				return err
			}
			redirects("status", a)
			if a, _, err = t.status(b.party, t.key()); err != nil {
				return err
			}
			redirects("status of an unknown key", a)
			if d.Outcome == agentic.Succeeded {
				if a, _, err = t.resource(b.party, b.key, d.ResourceID); err != nil {
					return err
				}
				redirects("resource", a)
			}
			return nil
		}},
	{info("method/safe", groupMethods, "HEAD and OPTIONS change nothing", conformance.Reading,
		"Safe methods do nothing (RFC 9110); the draft uses none but GET.", "4", "5"),
		"Route each operation by its method.",
		func(t *trial) error {
			return t.onMade(0, func(m made) error { return t.methods(m, http.MethodHead, http.MethodOptions) })
		}},
	{info("method/status", groupMethods, "the status operation cannot be written to", conformance.Reading,
		"The status is what the service determined; only the submission makes it.", "4", "5"),
		"Answer 405 to every method but GET and HEAD.",
		func(t *trial) error {
			return t.onMade(0, func(m made) error {
				return t.methods(m, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
			})
		}},
}

// methods sends a request of each method to the status of a request, and safe ones to
// the submission too. What the OpenAPI document gives a meaning is left alone.
func (t *trial) methods(m made, names ...string) error {
	address, err := m.plan.StatusURL(m.key)
	if err != nil {
		return err
	}
	submit, status, _ := m.plan.Paths()
	document, err := strictjson.Parse(m.plan.OpenAPI.Source())
	if err != nil {
		return err
	}
	described := func(path, method string) bool {
		_, ok := document.Lookup("/paths/" + strictjson.EscapeToken(path) + "/" + strings.ToLower(method))
		return ok
	}
	for _, method := range names {
		safe := method == http.MethodHead || method == http.MethodOptions
		if !described(status, method) {
			q := request{method: method, target: strings.TrimPrefix(address, m.plan.Origin), who: m.who}
			a, err := t.send(m.plan, q)
			if err != nil {
				return err
			}
			if !safe {
				t.expect(method+" on the status", a.is4xx() || a.Status == http.StatusNotImplemented, "4xx, or 501", a.code())
			}
		}
		if safe && !described(submit, method) {
			q := submission(m.party, t.key())
			q.method, q.body = method, nil
			if _, err := t.send(m.plan, q); err != nil {
				return err
			}
		}
	}
	return nil
}
