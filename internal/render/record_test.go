package render

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/reconcile"
)

var noon = time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)

// leftover is a request whose evidence did not match.
func leftover() *client.Record {
	return &client.Record{
		Binding: client.Binding{RequestID: "request-1", ActionID: "create-ticket", Origin: "https://support.example", Window: 2 * time.Hour,
			Profile: client.Snapshot{Digest: "aa"}, OpenAPI: client.Snapshot{Digest: "bb"}, InputDigest: "cc", Input: []byte(`{"subject":"SECRET"}`),
			Scope: client.Scope{Principal: "ann", Environment: "test"}},
		State: client.Attempted, CreatedAt: noon, SeenAt: noon, AttemptedAt: noon,
		Observations: []client.Observation{
			{Kind: client.ExchangeSubmit, At: noon, Duration: 3 * time.Millisecond, Reach: client.Answered, Status: 201},
			{Kind: client.ExchangeVerify, At: noon, Duration: time.Millisecond, Reach: client.Answered, Status: 200, Checks: []agentic.Check{
				{Name: "http status", OK: true, Expected: "200", Found: "200"},
				{Name: "request_id", OK: true, Expected: `"request-1"`, Found: `"request-1"`},
				{Name: "status", Expected: "succeeded, failed, pending or unknown", Found: `"SECRET"`},
				{Name: "state /status", OK: true, Expected: `one of "SECRET"`, Found: `"SECRET"`},
				{Name: "input /subject", Expected: `"SECRET"`, Found: `"SECRET too"`}}}},
		Receipts: []agentic.Receipt{{Agentic: agentic.Version, RequestID: "request-1", ActionID: "create-ticket", Origin: "https://support.example",
			Outcome: agentic.Unknown, ObservedAt: agentic.FormatTime(noon), Reason: "The resource's /subject is not the input's /subject."}},
	}
}

// What is redacted is nowhere in the text or the JSON, the rest is, and the record
// that it was made of still has it.
func TestRedact(t *testing.T) {
	rec := leftover()
	whole := NewRecord(rec)
	hidden := whole.Redact()
	inJSON, err := JSON(hidden)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"text": string(hidden.Text()), "JSON": string(inJSON)} {
		if strings.Contains(text, "SECRET") {
			t.Errorf("%s shows it:\n%s", name, text)
		}
		for _, want := range []string{"input /subject", "http status", "cc"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
	}
	for _, want := range []string{"input         redacted: 20 bytes, sha256 cc\n", "ok     http status: 200\n", "ok     request_id: \"request-1\"\n", "wrong  status: expected succeeded, failed, pending or unknown, found redacted (8 bytes)\n", "ok     state /status: redacted (8 bytes)\n",
		"wrong  input /subject: expected redacted (8 bytes), found redacted (12 bytes)\n", "1. submit 2026-09-07T12:00:00.000000Z  HTTP 201 in 3ms\n"} {
		if !strings.Contains(string(hidden.Text()), want) {
			t.Errorf("no %q in\n%s", want, hidden.Text())
		}
	}
	if text := string(whole.Text()); strings.Count(text, "SECRET") != 5 || strings.Contains(text, "redacted") {
		t.Errorf("the whole record shows\n%s", text)
	}
	if d := cmp.Diff(leftover(), rec); d != "" {
		t.Errorf("the record itself was changed (-before +after):\n%s", d)
	}
}

// An answer that does not count says nothing, and that a member is not there is no
// secret.
func TestAnswerThatDoesNotCount(t *testing.T) {
	o := client.Observation{Kind: client.ExchangeStatus, At: noon, Reach: client.Answered, Status: 503, Outcome: agentic.Unknown, Checks: []agentic.Check{
		{Name: "http status", Expected: "200", Found: "503"},
		{Name: "request_id", Expected: `"request-1"`, Found: "nothing"},
		{Name: "status", Expected: "succeeded, failed, pending or unknown", Found: "503"}}}
	text := string(NewRecord(&client.Record{Observations: []client.Observation{o}}).Redact().Text())
	if strings.Contains(text, "says") || !strings.Contains(text, `wrong  request_id: expected "request-1", found nothing`) || !strings.Contains(text, "found redacted (3 bytes)") {
		t.Errorf("it shows\n%s", text)
	}
	o.Status, o.Checks = 200, []agentic.Check{{Name: "http status", OK: true, Expected: "200", Found: "200"}}
	if text := string(NewRecord(&client.Record{Observations: []client.Observation{o}}).Text()); !strings.Contains(text, "HTTP 200 in 0s, says unknown") {
		t.Errorf("an answer that counts shows\n%s", text)
	}
}

// Who settled it and as what is said at once.
func TestSettledLine(t *testing.T) {
	for want, n := range map[string]client.Note{
		"supersede by ann, as request request-2":   {Verb: client.Supersede, By: "ann", NewID: "request-2"},
		"attest-succeeded by bob, as resource T-1": {Verb: client.AttestSucceeded, By: "bob", ResourceID: "T-1"},
		`abandon by \x1b[1m`:                       {Verb: client.Abandon, By: "\x1b[1m"},
	} {
		rec := leftover()
		rec.Notes = []client.Note{{Verb: client.AttestFailed, By: "first"}, n, {Verb: client.Recheck, By: "last"}}
		if text := string(NewRecord(rec).Text()); !strings.Contains(text, "settled       "+want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A media type is the service's own words: only what says what went wrong is shown.
func TestRedactMediaType(t *testing.T) {
	for found, want := range map[string]string{
		`"text/html"`: `"text/html"`, `"application/json"`: `"application/json"`, `""`: `""`,
		`"text/html; SECRET"`: "redacted (19 bytes)", `"SECRET/x"`: "redacted (10 bytes)",
	} {
		rec := &client.Record{Observations: []client.Observation{{Kind: client.ExchangeStatus, Checks: []agentic.Check{
			{Name: "media type", Expected: "application/json", Found: found}}}}}
		got := NewRecord(rec).Redact().Observations[0].Checks[0]
		if got.Found != want || got.Expected != "application/json" {
			t.Errorf("%s is shown as %+v", found, got)
		}
	}
}

// Before a successor is sent, what is known of the request before it is said.
func TestBecame(t *testing.T) {
	for want, old := range map[string]client.Summary{
		"HAS SUCCEEDED":              {State: client.Attempted, Outcome: agentic.Succeeded, Settled: client.Supersede},
		"has failed, by its receipt": {State: client.Attempted, Outcome: agentic.Failed, Settled: client.Supersede},
		"was found done by a person": {State: client.Attempted, Outcome: agentic.Unknown, Settled: client.AttestSucceeded},
		"was never sent":             {State: client.Prepared, Settled: client.Supersede},
		"may have happened":          {State: client.Attempted, Outcome: agentic.Pending, Settled: client.AttestFailed},
	} {
		if got := became(&old); !strings.HasPrefix(got, want) {
			t.Errorf("%+v %s, want %q", old, got, want)
		}
	}
}

// A record says how much time is left, why the request is open, and what each
// choice risks.
func TestJudged(t *testing.T) {
	rec := leftover()
	for _, tt := range []struct {
		now  time.Time
		next time.Time
		want []string
	}{
		{noon.Add(time.Minute), noon.Add(time.Hour), []string{"window        ends 2026-09-07T14:00:00.000000Z, 1h59m left\n", "next check    2026-09-07T13:00:00.000000Z,",
			"why           The service said that it succeeded", "the POST      It was answered with HTTP status 201", "wrong         status\n              input /subject\nlook for      Anything",
			"\n              A result of this input", "  supersede         Makes a new request", "\n                    Risk: The first request may have happened"}},
		{noon.Add(2 * time.Hour), time.Time{}, []string{"window        ended 2026-09-07T14:00:00.000000Z\nprofile", "needs         a person\n"}},
	} {
		text := string(NewRecord(rec).Judged(desk.CaseOf(rec, tt.now), tt.next).Text())
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

// A tombstone shows that it is one, and nothing that is not there.
func TestTombstone(t *testing.T) {
	rec := &client.Record{Binding: client.Binding{RequestID: "request-1", ActionID: "a", Origin: "https://o.example", InputDigest: "cc"}, State: client.Attempted,
		CreatedAt: noon, SeenAt: noon, AttemptedAt: noon, PurgedAt: noon, Purged: agentic.Unknown, PurgedSettled: client.Abandon}
	text := string(NewRecord(rec).Redact().Text())
	if !strings.HasSuffix(text, "purged        2026-09-07T12:00:00.000000Z\n") || !strings.Contains(text, "outcome       unknown\nsettled       by a person: abandon\n") || strings.Contains(text, "sha256") {
		t.Errorf("tombstone:\n%s", text)
	}
}

func TestListing(t *testing.T) {
	line := func(change func(*client.Summary)) client.Summary {
		s := client.Summary{Scope: client.Scope{Principal: "ann"}, RequestID: "r", ActionID: "a", Origin: "o", State: client.Attempted, CreatedAt: noon, WindowEnds: noon.Add(time.Hour)}
		change(&s)
		return s
	}
	now := noon.Add(10 * time.Minute)
	list := []client.Summary{
		line(func(s *client.Summary) { s.Outcome = agentic.Pending }),
		line(func(*client.Summary) {}),
		line(func(s *client.Summary) { s.State = client.Prepared }),
		line(func(s *client.Summary) { s.State, s.WindowEnds = client.Prepared, now }),
		line(func(s *client.Summary) { s.Outcome, s.WindowEnds = agentic.Unknown, noon.Add(time.Minute) }),
		line(func(s *client.Summary) { s.Outcome = agentic.Succeeded }),
		line(func(s *client.Summary) { s.Outcome, s.Settled = agentic.Succeeded, client.AttestFailed }),
		line(func(s *client.Summary) { s.Outcome, s.Settled = agentic.Unknown, client.AttestFailed }),
		line(func(s *client.Summary) { s.Settled = client.AttestSucceeded }),
		line(func(s *client.Summary) { s.State, s.Settled = client.Prepared, client.Abandon }),
		line(func(s *client.Summary) { s.Settled = client.Supersede }),
		line(func(s *client.Summary) { s.Outcome, s.PurgedAt = agentic.Failed, noon }),
	}
	want := `REQUEST  OUTCOME             LEFT   NEEDS           AGE  ACTION  ORIGIN
r        pending             50m    reading         10m  a       o
r        none                50m    reading         10m  a       o
r        none                50m    sending         10m  a       o
r        none                ended  preparing anew  10m  a       o
r        unknown             ended  person          10m  a       o
r        succeeded           -      -               10m  a       o
r        succeeded           -      -               10m  a       o
r        attested-failed     -      -               10m  a       o
r        attested-succeeded  -      -               10m  a       o
r        abandoned           -      -               10m  a       o
r        superseded          -      -               10m  a       o
r        purged              -      -               10m  a       o
`
	if d := cmp.Diff(want, string(Listing(list, client.Scope{Principal: "ann"}, now))); d != "" {
		t.Errorf("listing (-want +got):\n%s", d)
	}
	list[1].Scope.Principal = "bob"
	if head, _, _ := strings.Cut(string(Listing(list[:2], client.Scope{Principal: "ann"}, now)), "\n"); !strings.HasSuffix(head, "ORIGIN  PRINCIPAL") {
		t.Errorf("head of two principals: %q", head)
	}
	if head, _, _ := strings.Cut(string(Listing(list[1:2], client.Scope{Principal: "ann", Environment: "test"}, now)), "\n"); !strings.HasSuffix(head, "ORIGIN  PRINCIPAL  ENVIRONMENT") {
		t.Errorf("head of one other scope: %q", head)
	}
	if b := Lines(list[4:5], now)[0]; !b.NeedsPerson || !b.Open || b.LeftSeconds != 0 || b.WindowEnds != "2026-09-07T12:01:00.000000Z" || b.PurgedAt != nil {
		t.Errorf("line %+v", b)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 59 * time.Second: "59s", 13 * time.Minute: "13m", 2*time.Hour + 5*time.Minute: "2h05m", 167 * time.Hour: "6d23h"} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestUntil(t *testing.T) {
	rec := leftover()
	rec.State = client.Prepared
	for left, want := range map[time.Duration]string{1: "It can be sent until its tracking window ends, at 2026-09-07T14:00:00", 0: "It is not sent any more: its tracking window ended at 2026-09-07T14:00:00"} {
		if got := Until(rec, noon.Add(rec.Window-left)); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for verb, want := range map[client.Verb]string{
		client.AttestFailed: "request r cannot be attested as failed: it was purged", client.Recheck: "request r cannot be rechecked: it was purged",
		"x": "cannot x request r: it was purged",
	} {
		if got := Refused(&client.NoteError{RequestID: "r", Verb: verb, Reason: "it was purged"}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a pass could not ask has its reason below, and an origin what would approve it.
func TestPassErrors(t *testing.T) {
	got := string(Pass(reconcile.Report{Done: []reconcile.Done{
		{RequestID: "request-1", Origin: "https://a.example", Kind: reconcile.NotApproved, Err: errors.New("no")},
		{RequestID: "request-2", Origin: "https://b.example", Kind: reconcile.Held, Err: errors.New("held")},
	}}))
	if want := "request-1: no\n  If you trust this origin: --approve https://a.example\nrequest-2: held\n"; !strings.HasSuffix(got, want) {
		t.Errorf("pass %q, want at its end %q", got, want)
	}
}
