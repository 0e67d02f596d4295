package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

func TestTable(t *testing.T) {
	got := string(Table([][]string{{"A", "LONG", "C"}, {"größer", "x", "y"}}))
	if want := "A       LONG  C\ngrößer  x     y\n"; got != want {
		t.Errorf("table = %q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	e, w := agentic.Diagnostic{Severity: agentic.SeverityError}, agentic.Diagnostic{Severity: agentic.SeverityWarning}
	for want, ds := range map[string]agentic.Diagnostics{"0 errors": nil, "1 error": {e}, "2 errors, 1 warning": {e, w, e}, "0 errors, 2 warnings": {w, w}} {
		if got := Count(ds); got != want {
			t.Errorf("Count = %q, want %q", got, want)
		}
	}
}

// hostile drives a terminal in several ways; quoted is the same as a JSON string,
// with what JSON need not escape left in it.
const (
	hostile = "\x1b[2J\u202e\r\n\\"
	quoted  = "\"\\u001b[2J\u202e\\r\\n\\\\\""
)

// Text that nobody has quoted is escaped once, and so is text that is quoted.
func TestEscapedOnce(t *testing.T) {
	const raw, inJSON = `\x1b[2J\u202e\r\n\\`, `"\u001b[2J\u202e\r\n\\"`
	at := time.Unix(1_800_000_000, 0).UTC()
	receipt := agentic.Receipt{Agentic: agentic.Version, RequestID: hostile, Outcome: agentic.Unknown, Reason: hostile}
	rec := &client.Record{Binding: client.Binding{RequestID: hostile, Origin: hostile, ActionID: hostile, Input: []byte(`{"a":` + quoted + `}`)},
		State: client.Attempted, CreatedAt: at, SeenAt: at, Receipts: []agentic.Receipt{receipt},
		Observations: []client.Observation{{Kind: client.ExchangeVerify, Class: client.ClassBroken, Detail: hostile, Checks: []agentic.Check{
			{Name: "state /" + hostile, Expected: "one of " + quoted, Found: quoted}, {Name: "a", OK: true, Found: quoted}}}},
		Notes: []client.Note{{At: at, By: hostile, Verb: client.AttestSucceeded, Reason: hostile, ResourceID: hostile, NewID: hostile}}}
	rec.Supersedes = hostile
	judged := NewRecord(rec).Judged(desk.CaseOf(rec, at), at)
	var diagnostic, fields bytes.Buffer
	Diagnostic(&diagnostic, hostile, agentic.Diagnostic{Document: "input", Pointer: "/" + hostile, Line: 1, Column: 2, Severity: agentic.SeverityError, Code: "input/x",
		Problem: "It is " + quoted + ".", Remedy: "Not " + quoted + "."})
	Field(&fields, "name", hostile)
	Block(&fields, "block", []byte(`{"a":`+quoted+`}`))
	Block(&fields, "no JSON", []byte(hostile))
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"record": {string(NewRecord(rec).Text()), []string{
			"request       " + raw + "\n", "action        " + raw + " of " + raw + "\n", `"a": ` + inJSON, "broken (" + raw + ") in 0s",
			"wrong  state /" + raw + ": expected one of " + inJSON + ", found " + inJSON + "\n", "ok     a: " + inJSON + "\n", `"reason": ` + inJSON}},
		"judged": {string(judged.Text()), []string{"supersedes    " + raw + "\n", "by " + raw + ": " + raw + "\n       resource " + raw + "\n       new request " + raw + "\n",
			"wrong         state /" + raw + "\n", "settled       attest-succeeded by " + raw + ", as request " + raw + "\n"}},
		"redacted": {string(judged.Redact().Text()), []string{"wrong         state /" + raw + "\n", "wrong  state /" + raw + ": expected redacted (27 bytes), found redacted (20 bytes)\n"}},
		"listing": {string(Listing([]client.Summary{{RequestID: hostile, ActionID: hostile, Origin: hostile, Scope: client.Scope{Principal: hostile, Environment: hostile}}, {}}, client.Scope{}, at)),
			[]string{"\n" + raw + "  none     ended ", raw + "  " + raw + "\n"}},
		"diagnostic": {diagnostic.String(), []string{raw + ":1:2: error: It is " + inJSON + ". [input/x]\n    at /" + raw + "\n    Not " + inJSON + ".\n"}},
		"fields":     {fields.String(), []string{"name          " + raw + "\n", `"a": ` + inJSON, "no JSON       " + raw + "\n"}},
		"step":       {Step{Who: hostile, Name: "x", Text: hostile}.Line() + "\n", []string{raw + " x          " + raw + "\n"}},
		"event":      {Event(client.Verifying{ResourceID: hostile}).Line() + "\n", []string{"verifying  resource " + raw + "\n"}},
		"receipt":    {string(Receipt(receipt)) + "\n", []string{`"request_id": ` + inJSON}},
	} {
		for _, want := range tt.want {
			if !strings.Contains(tt.got, want) {
				t.Errorf("%s: no %s in\n%s", name, want, tt.got)
			}
		}
		if strings.ContainsAny(tt.got, "\x1b\u202e\r") {
			t.Errorf("%s drives the terminal: %q", name, tt.got)
		}
	}
	b, err := JSON(map[string]string{"a": "<\u202e\x7f>"})
	if diff := cmp.Diff("{\"a\":\"<\\u202e\\u007f>\"}\n", string(b)); err != nil || diff != "" {
		t.Errorf("JSON (-want +got):\n%s%v", diff, err)
	}
}

// Every event of the client has words of its own.
func TestEvents(t *testing.T) {
	refused := client.Observation{Reach: client.NotSent, Class: client.ClassConnect, Duration: time.Millisecond}
	for _, tt := range []struct {
		event client.Event
		want  Step
	}{
		{client.Saved{EventHead: client.EventHead{RequestID: "r"}, State: client.Prepared}, Step{Name: "saved", Text: "request r is in the ledger, prepared and not sent"}},
		{client.Saved{EventHead: client.EventHead{RequestID: "r"}, State: client.Attempted, MaySubmit: true}, Step{Name: "saved", Text: "request r is in the ledger, marked as attempted"}},
		{client.Saved{EventHead: client.EventHead{RequestID: "r"}, State: client.Attempted}, Step{Name: "saved", Text: "request r was attempted before; it is not sent again"}},
		{client.Submitting{EventHead: client.EventHead{Origin: "o"}}, Step{Name: "sending", Text: "POST to o, for the only time"}},
		{client.Submitted{Observation: client.Observation{Status: 201}}, Step{Name: "answered", Text: "HTTP 201 in 0s; this proves nothing yet"}},
		{client.Interrupted{Observation: refused}, Step{Name: "no answer", Text: "the POST did not leave this machine: connect in 1ms"}},
		{client.Interrupted{Observation: client.Observation{Reach: client.MaybeSent, Class: client.ClassBroken}}, Step{Name: "no answer", Text: "whether the POST arrived is unknown: broken in 0s"}},
		{client.Checking{N: 1, M: 3}, Step{Name: "checking", Text: "status, 1 of at most 3"}},
		{client.Checked{Observation: client.Observation{Status: 302, Class: client.ClassRedirect, Detail: "no"}, Reason: "Why."}, Step{Name: "status", Text: "HTTP 302, redirect (no) in 0s; Why."}},
		{client.Verified{Observation: client.Observation{Status: 200}, Reason: "Why."}, Step{Name: "evidence", Text: "HTTP 200 in 0s; Why."}},
		{client.Resulted{Receipt: agentic.Receipt{Outcome: agentic.Failed, Reason: "Why.", ObservedAt: "then"}, FromSaved: true}, Step{Name: "result", Text: "failed: Why. (from the saved receipt of then)"}},
	} {
		if diff := cmp.Diff(tt.want, Event(tt.event)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.event, diff)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"one":      "one",
		"one\ntwo": "one; two",
		"failed to connect to `user=agent`:\n\t127.0.0.1:5433: refused\n\t127.0.0.1:5433: refused\n\t[::1]:5433: refused": "failed to connect to `user=agent`: 127.0.0.1:5433: refused; [::1]:5433: refused",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}
