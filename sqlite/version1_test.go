package sqlite_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/google/go-cmp/cmp"
)

// version1 unpacks a ledger that version 1 of this package wrote, with seven
// requests of the example's documents that began a minute and more apart: prepared,
// attempted, pending, unknown, succeeded and failed ones, and one with a profile
// that no program can read any more.
func version1(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/ledger-v1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	v1Window = 24 * time.Hour
	v1Term   = 7*3*time.Second + 3*100*time.Millisecond + 30*time.Second
)

// Everything that version 1 saved is there, with what it did not save.
func TestVersion1(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	type v1 struct {
		id       string
		state    client.State
		created  time.Time
		seen     time.Time
		window   time.Duration
		outcomes []agentic.Outcome
		next     time.Time
	}
	check := func(id string, created, seen time.Time) time.Time {
		next, ok := client.NextCheck(id, created, seen, v1Window)
		if !ok {
			t.Fatal("no next check")
		}
		return next
	}
	want := []v1{ // oldest first
		{"prepared-1", client.Prepared, at(0), at(0), v1Window, nil, time.Time{}},
		{"attempted-1", client.Attempted, at(60e9), at(60e9), v1Window, nil, client.AfterAttempt(at(60e9), v1Term)},
		{"pending-1", client.Attempted, at(120e9), at(120e9), v1Window, []agentic.Outcome{agentic.Pending}, check("pending-1", at(120e9), at(120e9))},
		{"unknown-1", client.Attempted, at(180e9), at(190e9), v1Window, []agentic.Outcome{agentic.Pending, agentic.Unknown}, check("unknown-1", at(180e9), at(190e9))},
		{"succeeded-1", client.Attempted, at(250e9), at(260e9), v1Window, []agentic.Outcome{agentic.Unknown, agentic.Succeeded}, time.Time{}},
		{"failed-1", client.Attempted, at(320e9), at(320e9), v1Window, []agentic.Outcome{agentic.Failed}, time.Time{}},
		{"unreadable-1", client.Attempted, at(380e9), at(380e9), 0, []agentic.Outcome{agentic.Unknown}, time.Time{}},
	}
	path := version1(t)
	now := at(time.Hour)
	l := open(t, sqlite.Config{Path: path, Clock: func() time.Time { return now }})
	list, err := l.List(t.Context(), client.Filter{})
	if err != nil || len(list) != len(want) {
		t.Fatalf("List: %v, %v", list, err)
	}
	for i, w := range want {
		s := list[len(list)-1-i]
		if s.RequestID != w.id || s.NextCheck != w.next || s.WindowEnds != w.created.Add(w.window) {
			t.Errorf("%s: next check %v, window ends %v; want %+v", s.RequestID, s.NextCheck, s.WindowEnds, w)
		}
		r, err := l.Load(t.Context(), s.Scope, w.id)
		if err != nil {
			t.Fatal(err)
		}
		got := v1{id: r.RequestID, state: r.State, created: r.CreatedAt, seen: r.SeenAt, window: r.Window, next: s.NextCheck}
		for _, receipt := range r.Receipts {
			got.outcomes = append(got.outcomes, receipt.Outcome)
		}
		if d := cmp.Diff(w, got, cmp.AllowUnexported(v1{})); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if len(r.Observations) != len(r.Receipts) || string(r.Input) != `{"subject":"printer on fire"}` || len(r.OpenAPI.Body) < 1000 || len(r.Profile.Body) < 1000 {
			t.Errorf("%s: %d observations, input %s", w.id, len(r.Observations), r.Input)
		}
		if term := r.Term; w.window > 0 && term != v1Term {
			t.Errorf("%s: term %v", w.id, term)
		}
	}

	// A worker finds what is due, and a person what no program can judge.
	for name, tt := range map[string]struct {
		filter client.Filter
		want   string
	}{
		"due":          {client.Filter{Due: true, Order: client.DueFirst}, "attempted-1 pending-1 unknown-1"},
		"needs person": {client.Filter{NeedsPerson: true}, "unreadable-1"},
	} {
		got, err := l.List(t.Context(), tt.filter)
		var ids []string
		for _, s := range got {
			ids = append(ids, s.RequestID)
		}
		if err != nil || strings.Join(ids, " ") != tt.want {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}

	// The guard knows what version 1 bound, and so does a hold.
	rec, err := l.Load(t.Context(), list[0].Scope, "pending-1")
	if err != nil {
		t.Fatal(err)
	}
	again := rec.Binding
	again.RequestID, again.Guard = "request-new", client.Guard{On: true}
	var dup *client.DuplicateError
	if _, err := l.Begin(t.Context(), again, client.IntendSubmit, 0); !errors.As(err, &dup) || dup.Earlier.RequestID != "unreadable-1" {
		t.Errorf("Begin of the same again: %v", err)
	}
	h, err := l.Take(t.Context(), rec.Scope, "prepared-1", client.IntendSubmit, 0)
	if err != nil || !h.MaySubmit() {
		t.Fatalf("Take of a prepared request: %v", err)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

// Reading alone brings nothing forward, and says so.
func TestVersion1ReadOnly(t *testing.T) {
	path := version1(t)
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ReadOnly: true}); !errors.Is(err, sqlite.ErrOlder) {
		t.Fatalf("Open: %v", err)
	}
	if err := open(t, sqlite.Config{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, sqlite.Config{Path: path, ReadOnly: true}).Close(); err != nil {
		t.Fatal(err)
	}
	// A program of version 1 that still has the file open goes on writing its rows.
	if _, err := rawDB(t, path).Exec(`
INSERT INTO ledger_request (principal, environment, request_id, origin, action_id, profile_digest, openapi_digest, input_digest,
    input, input_sum, state, created_at, seen_at, attempted_at, fence, entries)
SELECT principal, environment, 'late-1', origin, action_id, profile_digest, openapi_digest, input_digest, input, input_sum, state,
    created_at, seen_at, attempted_at, fence, entries FROM ledger_request WHERE request_id = 'attempted-1'`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ReadOnly: true}); !errors.Is(err, sqlite.ErrOlder) {
		t.Fatalf("Open with a row of version 1: %v", err)
	}
	l := open(t, sqlite.Config{Path: path})
	list, err := l.List(t.Context(), client.Filter{Due: true})
	if err != nil || len(list) != 4 || list[0].WindowEnds.Sub(list[0].CreatedAt) != v1Window {
		t.Errorf("List: %v, %v", list, err)
	}
}

// More requests than one commit takes are all filled in.
func TestVersion1Many(t *testing.T) {
	path := version1(t)
	db := rawDB(t, path)
	if _, err := db.Exec(`
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
INSERT INTO ledger_request (principal, environment, request_id, origin, action_id, profile_digest, openapi_digest, input_digest,
    input, input_sum, state, created_at, seen_at, attempted_at, fence, entries)
SELECT principal, environment, 'many-' || i, origin, action_id, profile_digest, openapi_digest, input_digest, input, input_sum, state,
    created_at, seen_at, attempted_at, fence, entries FROM ledger_request, n WHERE request_id = 'attempted-1'`); err != nil {
		t.Fatal(err)
	}
	l := open(t, sqlite.Config{Path: path})
	list, err := l.List(t.Context(), client.Filter{Due: true})
	if err != nil || len(list) != 2503 {
		t.Errorf("List: %d, %v", len(list), err)
	}
	for _, s := range list {
		if s.WindowEnds.Sub(s.CreatedAt) != v1Window {
			t.Fatal(fmt.Sprint(s))
		}
	}
}
