package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/savedform"
	"github.com/google/go-cmp/cmp"
)

// abandoned makes a request that a person has settled.
func abandoned(t *testing.T, l *Ledger, b client.Binding) {
	t.Helper()
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	n := client.Note{By: "bob", Verb: client.Abandon, Reason: "nobody needs it"}
	if err := errors.Join(h.Finish(t.Context(), nil, pendingOf(b)), h.Release(), l.AddNote(t.Context(), b.Scope, b.RequestID, n)); err != nil {
		t.Fatal(err)
	}
}

// What was purged is in no file any more, while the ledger is still open.
func TestPurgeOverwrites(t *testing.T) {
	l := openTest(t, Config{})
	const secret = "the-secret-of-alice"
	for i := range 50 {
		b := bindingOf(fmt.Sprintf("request-%d", i))
		b.Input = bytes.Repeat([]byte(secret), 1+i*20) // some need pages of their own
		b.Profile = client.Snapshot{Digest: fmt.Sprint("p", i%3), Body: bytes.Repeat([]byte(secret), 500)}
		abandoned(t, l, b)
	}
	found := func() (n int) {
		for _, suffix := range []string{"", "-wal"} {
			all, err := os.ReadFile(l.path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(all, []byte(secret))
		}
		return n
	}
	if found() == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	p, err := l.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true})
	if d := cmp.Diff(client.Purged{Requests: 50, Entries: 50, Snapshots: 4}, p); err != nil || d != "" {
		t.Fatalf("Purge: %v (-want +got):\n%s", err, d)
	}
	if n := found(); n != 0 {
		t.Errorf("it is still there %d times", n)
	}
	list, err := l.List(t.Context(), client.Filter{})
	if err != nil || len(list) != 50 || list[0].PurgedAt.IsZero() || list[0].Settled != client.Abandon {
		t.Errorf("List: %v, %v", list, err)
	}
}

// A purge commits chunk by chunk, so that others get their turn; what it removes is
// what it said without Apply.
func TestPurgeChunks(t *testing.T) {
	var commits atomic.Int64
	l := openTest(t, Config{KillPoint: func(name string) {
		if name == "sqlite/committed" {
			commits.Add(1)
		}
	}})
	b := bindingOf("request-0")
	abandoned(t, l, b)
	const n = 2*purgeChunk + 1
	if _, err := l.conn.ExecContext(t.Context(), `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO ledger_request (principal, environment, request_id, origin, action_id, profile_digest, openapi_digest, input_digest,
    input, input_sum, state, created_at, seen_at, attempted_at, fence, entries, settled, intent)
SELECT principal, environment, 'many-' || i, origin, action_id, profile_digest, openapi_digest, input_digest, input, input_sum, state,
    created_at, seen_at, attempted_at, fence, 0, settled, intent FROM ledger_request, n`, n-1); err != nil {
		t.Fatal(err)
	}
	open := bindingOf("request-open")
	h, err := l.Begin(t.Context(), open, client.IntendSubmit, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	o := client.PurgeOptions{Before: time.Now().Add(time.Hour)}
	want := client.Purged{Requests: n, Entries: 1, Open: 1} // the open one needs the documents
	for _, apply := range []bool{false, true} {
		o.Apply = apply
		commits.Store(0)
		got, err := l.Purge(t.Context(), o)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("Purge with Apply %v: %v (-want +got):\n%s", apply, err, d)
		}
		if c := commits.Load(); !apply && c != 0 || apply && c != 3 {
			t.Errorf("Apply %v: %d commits", apply, c)
		}
	}
	if _, err := l.Load(t.Context(), open.Scope, open.RequestID); err != nil {
		t.Error(err)
	}
}

// A document that a purge found unneeded and a new request needs meanwhile stays.
func TestPurgeKeepsWhatIsNeededMeanwhile(t *testing.T) {
	l := openTest(t, Config{})
	b := bindingOf("request-1")
	for _, d := range []client.Snapshot{b.Profile, b.OpenAPI, {Digest: "unneeded"}} {
		if _, err := l.insert.snapshot.Exec(d.Digest, notNull(d.Body), savedform.Sum(d.Body)); err != nil {
			t.Fatal(err)
		}
	}
	p := purge{ledger: l}
	digests, err := p.unneeded(t.Context(), " WHERE FALSE")
	if err != nil || len(digests) != 3 {
		t.Fatalf("unneeded: %v, %v", digests, err)
	}
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Release(), p.remove(t.Context(), digests, 0)); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Load(t.Context(), b.Scope, b.RequestID); err != nil || !bytes.Equal(r.OpenAPI.Body, b.OpenAPI.Body) {
		t.Errorf("Load: %v", err)
	}
	if p.done.Snapshots != 1 {
		t.Errorf("%+v", p.done)
	}
}

// Nothing of a tombstone changes, and it cannot be deleted.
func TestTombstoneGuards(t *testing.T) {
	l := openTest(t, Config{})
	abandoned(t, l, bindingOf("request-1"))
	if p, err := l.Purge(t.Context(), client.PurgeOptions{Before: time.Now().Add(time.Hour), Apply: true}); err != nil || p.Requests != 1 {
		t.Fatalf("Purge: %+v, %v", p, err)
	}
	for _, q := range []string{
		`UPDATE ledger_request SET purged_at = NULL`,
		`UPDATE ledger_request SET outcome = 'succeeded'`,
		`UPDATE ledger_request SET seen_at = seen_at + 1`,
		`UPDATE ledger_request SET request_id = 'request-2'`,
		`DELETE FROM ledger_request`,
	} {
		if _, err := l.conn.ExecContext(t.Context(), q); err == nil {
			t.Errorf("SQLite takes %s", q)
		}
	}
}

// A ledger that was opened for reading counts what a purge would remove, and writes
// nothing.
func TestDeskReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	abandoned(t, openTest(t, Config{Path: path}), bindingOf("request-1"))
	l := openTest(t, Config{Path: path, ReadOnly: true})
	o := client.PurgeOptions{Before: time.Now().Add(time.Hour)}
	if p, err := l.Purge(t.Context(), o); err != nil || p.Requests != 1 || p.Snapshots != 2 {
		t.Errorf("Purge without Apply: %+v, %v", p, err)
	}
	o.Apply = true
	if _, err := l.Purge(t.Context(), o); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Purge: %v", err)
	}
	n := client.Note{By: "bob", Verb: client.Abandon, Reason: "old"}
	if err := l.AddNote(t.Context(), bindingOf("").Scope, "request-1", n); !errors.Is(err, ErrReadOnly) {
		t.Errorf("AddNote: %v", err)
	}
}
