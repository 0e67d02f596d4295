package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

var verbs = []client.Verb{client.Recheck, client.AttestSucceeded, client.AttestFailed, client.Abandon, client.Supersede}

func TestVerbs(t *testing.T) {
	for _, v := range verbs {
		if !v.Valid() || v.Settles() != (v != client.Recheck) {
			t.Errorf("%s: valid %v, settles %v", v, v.Valid(), v.Settles())
		}
	}
	for _, v := range []client.Verb{"", "retry", "Abandon", "abandon ", "attest"} {
		if v.Valid() || v.Settles() {
			t.Errorf("%q: valid %v, settles %v", v, v.Valid(), v.Settles())
		}
	}
}

// What a person may do depends on what stands, and never on the verb alone.
func TestAdmits(t *testing.T) {
	all := strings.Repeat("+", len(verbs))
	for _, tt := range []struct {
		name string
		sum  client.Summary
		want string // + or - for each verb
	}{
		{"prepared", client.Summary{State: client.Prepared}, "---++"},
		{"prepared and left", client.Summary{State: client.Prepared, Settled: client.Abandon}, "---++"},
		{"attempted", client.Summary{State: client.Attempted}, all},
		{"pending", client.Summary{State: client.Attempted, Outcome: agentic.Pending}, all},
		{"unknown", client.Summary{State: client.Attempted, Outcome: agentic.Unknown}, all},
		{"settled before", client.Summary{State: client.Attempted, Outcome: agentic.Unknown, Settled: client.AttestFailed}, all},
		{"succeeded", client.Summary{State: client.Attempted, Outcome: agentic.Succeeded}, "-----"},
		{"failed", client.Summary{State: client.Attempted, Outcome: agentic.Failed}, "-----"},
		{"failed and settled", client.Summary{State: client.Attempted, Outcome: agentic.Failed, Settled: client.Abandon}, "-----"},
		{"purged", client.Summary{State: client.Attempted, Outcome: agentic.Unknown, Settled: client.Abandon, PurgedAt: made}, "-----"},
		{"purged before it was sent", client.Summary{State: client.Prepared, Settled: client.Abandon, PurgedAt: made}, "-----"},
	} {
		tt.sum.RequestID = testID
		got := ""
		for _, v := range verbs {
			err := tt.sum.Admits(v)
			if err == nil {
				got += "+"
				continue
			}
			got += "-"
			ne, ok := errors.AsType[*client.NoteError](err)
			if !ok || ne.RequestID != testID || ne.Verb != v || ne.Reason == "" {
				t.Errorf("%s, %s: %#v", tt.name, v, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s of %v", tt.name, got, tt.want, verbs)
		}
		if err := tt.sum.Admits("retry"); !isA[*client.NoteError](err) {
			t.Errorf("%s admits another verb: %v", tt.name, err)
		}
	}
}

func TestNoteValidate(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	full := client.Note{By: long(256), Verb: client.AttestSucceeded, Reason: long(2048), ResourceID: long(1024)}
	valid := []client.Note{
		full,
		{By: "a", Verb: client.Recheck, Reason: "b"},
		{By: " \x1b[1m\x00 ", Verb: client.AttestFailed, Reason: "line\nline"}, // escaped where it is shown
		{By: "a", Verb: client.Abandon, Reason: "b"},
		{By: "a", Verb: client.Supersede, Reason: "b", NewID: "request-2"},
	}
	for _, n := range valid {
		if err := n.Validate(); err != nil {
			t.Errorf("%.60q: %v", fmt.Sprint(n), err)
		}
	}
	for name, change := range map[string]func(n *client.Note){
		"nobody":                 func(n *client.Note) { n.By = "" },
		"a blank":                func(n *client.Note) { n.By = "\t \u00a0" },
		"long by":                func(n *client.Note) { n.By = long(257) },
		"by not UTF-8":           func(n *client.Note) { n.By = "a\xff" },
		"no reason":              func(n *client.Note) { n.Reason = "" },
		"a blank reason":         func(n *client.Note) { n.Reason = " " },
		"long reason":            func(n *client.Note) { n.Reason = long(2049) },
		"a surrogate in UTF-8":   func(n *client.Note) { n.Reason = "\xed\xa0\x80" },
		"no resource":            func(n *client.Note) { n.ResourceID = "" },
		"a blank resource":       func(n *client.Note) { n.ResourceID = " " },
		"long resource":          func(n *client.Note) { n.ResourceID = long(1025) },
		"a resource of failure":  func(n *client.Note) { n.Verb = client.AttestFailed },
		"a resource of recheck":  func(n *client.Note) { n.Verb = client.Recheck },
		"a resource, superseded": func(n *client.Note) { n.Verb, n.NewID = client.Supersede, "request-2" },
		"a new ID":               func(n *client.Note) { n.NewID = "request-2" },
		"no verb":                func(n *client.Note) { n.Verb, n.ResourceID = "", "" },
		"another verb":           func(n *client.Note) { n.Verb, n.ResourceID = "retry", "" },
		"no new ID":              func(n *client.Note) { n.Verb, n.ResourceID = client.Supersede, "" },
		"a bad new ID":           func(n *client.Note) { n.Verb, n.ResourceID, n.NewID = client.Supersede, "", "../../x" },
	} {
		n := full
		change(&n)
		if err := n.Validate(); err == nil {
			t.Errorf("a note was taken: %s", name)
		}
	}
}

func TestOpenAndNeedsPerson(t *testing.T) {
	ends := made.Add(time.Hour)
	for name, tt := range map[string]struct {
		sum         client.Summary
		open, needs bool
	}{
		"prepared":  {client.Summary{State: client.Prepared}, true, false},
		"left":      {client.Summary{State: client.Prepared, Settled: client.Abandon}, false, false},
		"attempted": {client.Summary{State: client.Attempted}, true, true},
		"pending":   {client.Summary{State: client.Attempted, Outcome: agentic.Pending}, true, true},
		"unknown":   {client.Summary{State: client.Attempted, Outcome: agentic.Unknown}, true, true},
		"attested":  {client.Summary{State: client.Attempted, Outcome: agentic.Unknown, Settled: client.AttestFailed}, false, false},
		"succeeded": {client.Summary{State: client.Attempted, Outcome: agentic.Succeeded}, false, false},
		"failed":    {client.Summary{State: client.Attempted, Outcome: agentic.Failed}, false, false},
		"purged":    {client.Summary{State: client.Attempted, Outcome: agentic.Unknown, PurgedAt: made}, false, false},
	} {
		tt.sum.WindowEnds = ends
		got := []bool{tt.sum.Open(), tt.sum.NeedsPerson(ends.Add(-time.Microsecond)), tt.sum.NeedsPerson(ends), tt.sum.NeedsPerson(ends.Add(time.Hour))}
		if want := []bool{tt.open, false, tt.needs, tt.needs}; !slices.Equal(got, want) {
			t.Errorf("%s: open and needs a person before, at and after the end: %v, want %v", name, got, want)
		}
	}
}

// What a guard compares cannot be shifted from one part to the next.
func TestIntent64(t *testing.T) {
	base := client.Binding{Scope: client.Scope{Principal: "ab", Environment: "c"}, Origin: "d", ActionID: "e", InputDigest: "f"}
	same := base
	same.RequestID, same.Input, same.Fresh, same.Window, same.Profile.Digest = testID, []byte("x"), true, time.Hour, "p"
	if same.Intent64() != base.Intent64() {
		t.Error("what a guard does not compare is in the digest")
	}
	if got := base.Intent64(); got != 8405556197363247884 { // ledgers keep it
		t.Errorf("the digest of what was saved long ago is another now: %d", got)
	}
	seen := map[int64]string{base.Intent64(): "base"}
	for name, change := range map[string]func(b *client.Binding){
		"principal":       func(b *client.Binding) { b.Scope.Principal = "Ab" },
		"environment":     func(b *client.Binding) { b.Scope.Environment = "" },
		"origin":          func(b *client.Binding) { b.Origin = "D" },
		"action":          func(b *client.Binding) { b.ActionID = "E" },
		"input":           func(b *client.Binding) { b.InputDigest = "F" },
		"shifted":         func(b *client.Binding) { b.Scope = client.Scope{Principal: "a", Environment: "bc"} },
		"shifted further": func(b *client.Binding) { b.Scope.Environment, b.Origin = "cd", "" },
		"swapped":         func(b *client.Binding) { b.Origin, b.ActionID = b.ActionID, b.Origin },
	} {
		b := base
		change(&b)
		if other, ok := seen[b.Intent64()]; ok {
			t.Errorf("%s is the same as %s", name, other)
		}
		seen[b.Intent64()] = name
	}
}
