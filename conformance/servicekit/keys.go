package servicekit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agentic-go/agentic/conformance"
)

const (
	groupKeys   = "Keys"
	groupBodies = "Bodies"
)

var keyChecks = []check{
	{info("key/missing", groupKeys, "a submission without a key is refused", conformance.Must,
		"The Idempotency-Key header is required.", "4", "D19"),
		"Answer 400 before anything is done.",
		func(t *trial) error { return t.refusedKeys(nil) }},
	{info("key/empty", groupKeys, "an empty key is refused", conformance.Reading,
		"An empty key names no request, and no status path can carry it.", "4", "D14", "D19"),
		"Answer 400: an empty key is no key.",
		func(t *trial) error { return t.refusedKeys([]string{""}) }},
	{info("key/twice", groupKeys, "two keys in one submission are refused", conformance.Reading,
		"Of two keys nobody knows which one the client saved.", "4", "D19"),
		"Count the header's values; frameworks take the first or join them.",
		func(t *trial) error { return t.refusedKeys([]string{t.key(), t.key()}) }},
	{info("key/malformed", groupKeys, "keys with blanks or other than ASCII, of 2,000 characters, and \"..\" are refused", conformance.Reading,
		"A key must come back exactly in a header, a path and a JSON string.", "4", "D14", "D19"),
		"Take 1 to 128 visible ASCII characters, and neither \".\" nor \"..\".",
		func(t *trial) error {
			for _, key := range []string{t.key() + " x", t.key() + "-\xc3\xa9", t.key() + "-\xff", t.key() + "-" + strings.Repeat("x", 2000), ".", ".."} {
				if err := t.refusedKeys([]string{key}); err != nil {
					return err
				}
			}
			return nil
		}},
	{info("key/case", groupKeys, "keys that differ in case are different requests", conformance.Reading,
		"request_id is the exact ID supplied by the client; the draft knows no folding.", "4", "D19"),
		"Compare keys byte for byte: mind the collation of the column.",
		caseOfKeys},
	{info("key/escaped", groupKeys, "keys that need escaping are found under their escaped path", conformance.Reading,
		"Identifiers are percent-encoded in a path, so an ID may hold \"/\" and \"%\"; the draft does not say which keys a service takes.", "4", "D14", "D19"),
		"Route on the escaped path and decode the one segment once.",
		escapedKeys},
}

// refusedKeys expects that a submission with these keys, none, one or several, is
// refused, and that nothing is made or tracked.
func (t *trial) refusedKeys(keys []string) error {
	q := submission(t.first, "")
	q.header = q.header[:1]
	for _, key := range keys {
		q.header = append(q.header, [2]string{t.first.plan.Action.Header, key})
	}
	return t.refuses(q, describe(keys), keys)
}

// refuses expects 4xx to what is wrong with a request, that nothing is made, and that none
// of the keys is tracked.
func (t *trial) refuses(q request, what string, keys []string) error {
	if _, err := t.made(); err != nil {
		return err
	}
	return t.counted(0, func() error {
		a, err := t.send(t.first.plan, q)
		if err != nil {
			return err
		}
		t.expect("answer to "+what, a.is4xx(), "4xx", a.code())
		for _, key := range keys {
			if _, err := t.first.plan.StatusURL(key); err != nil {
				continue // no client can ask for it
			}
			if err := t.nothing(t.first, key); err != nil {
				return err
			}
		}
		return nil
	})
}

func describe(keys []string) string {
	switch {
	case len(keys) == 0:
		return "no key"
	case len(keys) > 1:
		return fmt.Sprintf("%d keys", len(keys))
	case len(keys[0]) > 64:
		return fmt.Sprintf("a key of %d characters", len(keys[0]))
	}
	return fmt.Sprintf("the key %+q", keys[0])
}

func caseOfKeys(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	for !strings.ContainsAny(key, "abcdef") {
		key = t.key()
	}
	lower, err := t.make(t.first, key)
	if err != nil {
		return err
	}
	upper := strings.ToUpper(key)
	if err := t.nothing(t.first, upper); err != nil || t.failed {
		return err
	}
	if _, err := t.optional(upper); err != nil {
		return err
	}
	return t.stands(lower)
}

// optional submits with a key that the service may refuse. Either nothing is made and
// tracked, or one resource with its evidence.
func (t *trial) optional(key string) (taken bool, err error) {
	before, exact, err := t.count()
	if err != nil {
		return false, err
	}
	a, err := t.post(t.first, key)
	if err != nil {
		return false, err
	}
	want := int64(0)
	if a.is4xx() {
		err = t.nothing(t.first, key)
	} else if err = t.must(whatPosted, a.is2xx(), "2xx, or 4xx", a.code()); err == nil {
		want = 1
		_, err = t.succeeds(t.first, key)
	}
	if err != nil || !exact {
		return want == 1, err
	}
	after, _, err := t.count()
	t.expect(whatMade, after-before == want, fmt.Sprint(want), fmt.Sprint(after-before))
	return want == 1, err
}

func escapedKeys(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key, odd := t.key(), 0
	for _, suffix := range []string{"/x", "%41", "?a=b#c", "+&\"<>", "A"} {
		// It must not be confused with one before.
		if err := t.nothing(t.first, key+suffix); err != nil || t.failed {
			return err
		}
		taken, err := t.optional(key + suffix)
		if err != nil {
			return err
		}
		if taken && suffix != "A" {
			odd++
		}
	}
	if odd == 0 {
		return missing("The service takes no keys that need escaping, which the draft leaves to it.")
	}
	return nil
}

var bodyChecks = []check{
	{info("body/media-type", groupBodies, "a body of another media type is refused", conformance.Reading,
		"The request body is application/json; the service is responsible for input validation.", "4", "D19"),
		"Answer 415 unless the Content-Type is application/json.",
		func(t *trial) error {
			for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
				key := t.key()
				q := submission(t.first, key)
				if q.header[0][1] = media; media == "" {
					q.header = q.header[1:]
				}
				if err := t.refuses(q, "a body of "+cmp.Or(media, "no media type"), []string{key}); err != nil {
					return err
				}
			}
			return nil
		}},
	{info("body/malformed", groupBodies, "a body that is not one strict JSON object is refused", conformance.Reading,
		"The input is a JSON object; what is not strict JSON has no one meaning to track.", "4", "D1", "D18"),
		"Parse strictly before the key is claimed, and answer 400.",
		func(t *trial) error {
			in := t.first.in.Body()
			for _, body := range []struct {
				what string
				text []byte
			}{
				{"no body", nil}, {"a body without its last byte", in[:len(in)-1]}, {"two objects", slices.Concat(in, in)},
				{"an array of the object", slices.Concat([]byte("["), in, []byte("]"))}, {"null", []byte("null")}, {"an object with all members twice", twice(in)},
			} {
				key := t.key()
				q := submission(t.first, key)
				q.body = body.text
				if err := t.refuses(q, body.what, []string{key}); err != nil {
					return err
				}
			}
			return nil
		}},
	{info("body/oversized", groupBodies, "a body of 2 MiB is refused", conformance.Reading,
		"Inputs are at most 16 KiB for the reference client; a service bounds what it reads.", "4", "D18"),
		"Limit the body before it is read, and answer 413.",
		oversized},
}

// twice is an object with all its members given twice.
func twice(object []byte) []byte {
	inner := bytes.TrimSpace(object)
	inner = inner[1 : len(inner)-1]
	return slices.Concat([]byte("{"), inner, []byte(","), inner, []byte("}"))
}

func oversized(t *trial) error {
	if _, err := t.made(); err != nil {
		return err
	}
	key := t.key()
	q := submission(t.first, key)
	in := q.body
	q.body = slices.Concat(in[:1], bytes.Repeat([]byte(" "), 2<<20), in[1:])
	return t.counted(0, func() error {
		a, err := t.send(t.first.plan, q)
		if err != nil {
			return err
		}
		// Who refuses before the end may close the connection, and the answer is lost.
		t.expect("answer", a.is4xx() || a.Status == 0, "4xx, or a closed connection", a.code())
		return t.nothing(t.first, key)
	})
}

// isProblem reports whether an answer is an RFC 9457 problem document.
func isProblem(a answer) bool {
	media, _, _ := strings.Cut(a.ContentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/problem+json")
}
