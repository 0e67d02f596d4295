package savedform_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/savedform"
)

func TestObservationsComeBack(t *testing.T) {
	for _, list := range [][]client.Observation{
		nil,
		{{Kind: client.ExchangeStatus, At: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Duration: 7, Reach: client.Answered, Status: 200,
			Outcome: agentic.Pending, Checks: []agentic.Check{{Name: "a", OK: true, Expected: "<&>", Found: "\u2028\x00"}}}, {}},
	} {
		s, err := savedform.Encode(list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := savedform.Decode[client.Observation](s)
		if d := cmp.Diff(list, got); err != nil || d != "" {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
}

func TestNotesComeBack(t *testing.T) {
	list := []client.Note{{At: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), By: "alice", Verb: client.Supersede, Reason: "why", NewID: "request-2"}}
	s, err := savedform.Encode(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := savedform.Decode[client.Note](s)
	if d := cmp.Diff(list, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestWhatWeDidNotWriteIsRefused(t *testing.T) {
	for _, s := range []string{"", "{}", "[", "[]]", `[{"other":1}]`, `[{}] x`, "nul"} {
		if got, err := savedform.Decode[client.Observation](s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func record() *client.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	return &client.Record{
		Binding: client.Binding{RequestID: "request-1", ActionID: "a", Origin: "https://a.example", Input: []byte("{}"),
			Profile: client.Snapshot{Body: []byte("p")}, OpenAPI: client.Snapshot{Body: []byte("o")}},
		State: client.Attempted, CreatedAt: at, SeenAt: at, AttemptedAt: at,
	}
}

func TestCheckRequest(t *testing.T) {
	sums := func(r *client.Record) [3][]byte {
		return [3][]byte{savedform.Sum(r.Profile.Body), savedform.Sum(r.OpenAPI.Body), savedform.Sum(r.Input)}
	}
	for want, change := range map[string]func(*client.Record){
		"":                                     func(*client.Record) {},
		"state sent":                           func(r *client.Record) { r.State = "sent" },
		"the wrong time of its attempt":        func(r *client.Record) { r.State = client.Prepared },
		"a time that cannot be":                func(r *client.Record) { r.SeenAt = r.SeenAt.Add(-1) },
		"a window of":                          func(r *client.Record) { r.Window = -1 },
		"the input is not what was saved":      func(r *client.Record) { r.Input = []byte("{ }") },
		"the profile is not what was saved":    func(r *client.Record) { r.Profile.Body = nil },
		"a purged request that has its":        func(r *client.Record) { r.PurgedAt = r.SeenAt },
		"the OpenAPI document is not what was": func(r *client.Record) { r.OpenAPI.Body = []byte("x") },
	} {
		r := record()
		saved := sums(r)
		change(r)
		err := savedform.CheckRequest(r, saved)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	tomb := record()
	tomb.PurgedAt, tomb.Input, tomb.Profile.Body, tomb.OpenAPI.Body = tomb.SeenAt, nil, nil, nil
	if err := savedform.CheckRequest(tomb, [3][]byte{}); err != nil {
		t.Error(err)
	}
}

func TestEntriesAndOutcome(t *testing.T) {
	r := record()
	receipt := agentic.Receipt{Agentic: agentic.Version, RequestID: r.RequestID, ActionID: r.ActionID, Origin: r.Origin,
		Outcome: agentic.Unknown, ObservedAt: "2026-03-01T12:30:16.000001Z", Reason: "why"}
	if err := savedform.AppendEntry(r, "[]", ""); err != nil || savedform.CheckOutcome(r, "") != nil {
		t.Error(err)
	}
	if err := savedform.AppendEntry(r, "[]", string(receipt.Encode())); err != nil || len(r.Receipts) != 1 {
		t.Error(err)
	}
	if err := savedform.CheckOutcome(r, "unknown"); err != nil {
		t.Error(err)
	}
	for _, outcome := range []string{"", "failed"} {
		if savedform.CheckOutcome(r, outcome) == nil {
			t.Errorf("the outcome %q", outcome)
		}
	}
	r.PurgedAt = r.SeenAt
	if savedform.CheckOutcome(r, "unknown") == nil {
		t.Error("a tombstone with a receipt")
	}
	r.Receipts = nil
	if savedform.CheckOutcome(r, "unknown") != nil || savedform.CheckOutcome(r, "done") == nil {
		t.Error("the outcome of a tombstone")
	}
	receipt.RequestID = "request-2"
	for _, bad := range [][2]string{{"x", ""}, {"[]", "{}"}, {"[]", string(receipt.Encode())}} {
		if savedform.AppendEntry(r, bad[0], bad[1]) == nil {
			t.Errorf("%q", bad)
		}
	}
}
