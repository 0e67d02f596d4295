package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/google/go-cmp/cmp"
)

func openTest(t *testing.T, c Config) *Ledger {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "ledger.db")
	}
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func bindingOf(id string) client.Binding {
	return client.Binding{
		Scope: client.Scope{Principal: "alice", Environment: "production"}, RequestID: id,
		Origin: "https://support.example", ActionID: "create-ticket",
		Profile: client.Snapshot{Digest: "p", Body: []byte("{}")}, OpenAPI: client.Snapshot{Digest: "o", Body: []byte("{}")},
		InputDigest: "i", Input: []byte(`{"subject":"printer"}`),
	}
}

func pendingOf(b client.Binding) agentic.Receipt {
	return agentic.Receipt{Agentic: agentic.Version, RequestID: b.RequestID, ActionID: b.ActionID, Origin: b.Origin,
		Outcome: agentic.Pending, ObservedAt: "2026-03-01T12:30:16.000001Z", Reason: "Not yet."}
}

// Every connection that is ever opened has what durability rests on.
func TestPragmas(t *testing.T) {
	l := openTest(t, Config{})
	conns := map[string]*sql.Conn{"writer": l.conn}
	for i := range readConnections {
		c, err := l.readers.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[fmt.Sprintf("reader %d", i)] = c
	}
	for name, c := range conns {
		want := map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000", "foreign_keys": "1", "query_only": "1"}
		if name == "writer" {
			want["query_only"] = "0"
		}
		for pragma, v := range want {
			var got string
			if err := c.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != v {
				t.Errorf("%s: %s is %s, want %s", name, pragma, got, v)
			}
		}
	}
}

// A file that is up to date does not start goose, and goose says the version that
// this program knows.
func TestMigrateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for range 3 {
		l := openTest(t, Config{Path: path})
		rows, err := l.readers.Query(`SELECT version_id FROM ` + migrationTable + ` ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for rows.Next() {
			var v int64
			if err := rows.Scan(&v); err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if d := cmp.Diff([]int64{0, 1, schemaVersion}, got); d != "" {
			t.Fatalf("versions (-want +got):\n%s", d)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// One verified action is two commits, a repeat of it none, and every other hold
// one for its fence.
func TestCommitsPerAction(t *testing.T) {
	var mu sync.Mutex
	commits := 0
	l := openTest(t, Config{KillPoint: func(name string) {
		if name == "sqlite/committed" {
			mu.Lock()
			defer mu.Unlock()
			commits++
		}
	}})
	b := bindingOf("request-1")
	wantCommits := func(what string, want int) {
		t.Helper()
		if commits != want {
			t.Errorf("%s: %d commits, want %d", what, commits, want)
		}
		commits = 0
	}
	begin := func() client.Hold {
		t.Helper()
		h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	finish := func(h client.Hold, r agentic.Receipt) {
		t.Helper()
		if err := errors.Join(h.Finish(t.Context(), nil, r), h.Release()); err != nil {
			t.Fatal(err)
		}
	}
	h := begin()
	wantCommits("Begin", 1)
	finish(h, pendingOf(b))
	wantCommits("Finish", 1)
	h = begin()
	wantCommits("Begin again", 1)
	failed := pendingOf(b)
	failed.Outcome = agentic.Failed
	finish(h, failed)
	wantCommits("Finish again", 1)
	if err := begin().Release(); err != nil {
		t.Fatal(err)
	}
	wantCommits("Begin on a final receipt", 0)
}

// Whatever a late holder gets in between the look of the next one and its fence,
// the next one looks again: it never goes on from a record that has moved.
func TestTakeComparesWhatItRead(t *testing.T) {
	final := pendingOf(bindingOf("request-1"))
	final.Outcome = agentic.Failed
	for name, between := range map[string]func(client.Hold) error{
		"observed": func(h client.Hold) error { return h.Observe(context.Background(), make([]client.Observation, 1)) },
		"pending":  func(h client.Hold) error { return h.Finish(context.Background(), nil, pendingOf(h.Record().Binding)) },
		"failed":   func(h client.Hold) error { return h.Finish(context.Background(), nil, final) },
	} {
		t.Run(name, func(t *testing.T) {
			l := openTest(t, Config{})
			b := bindingOf("request-1")
			late, err := l.Begin(t.Context(), b, client.IntendPrepare, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer late.Release()
			r, err := l.read(t.Context(), b.Scope, b.RequestID)
			if err != nil {
				t.Fatal(err)
			}
			if err := between(late); err != nil {
				t.Fatal(err)
			}
			if done, err := l.take(t.Context(), r, true, l.now()); done || err != nil {
				t.Fatalf("take of a record that moved: %v, %v", done, err)
			}
			if rec, err := l.Load(t.Context(), b.Scope, b.RequestID); err != nil || rec.State != client.Prepared {
				t.Fatalf("Load: %v, %v", rec, err)
			}
		})
	}
}

// A full disk is an error with a name; what was saved stays, and the ledger works
// again when there is space.
func TestFull(t *testing.T) {
	l := openTest(t, Config{})
	b := bindingOf("request-1")
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := l.conn.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		t.Helper()
		if _, err := l.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages)
	long := pendingOf(b)
	long.Reason = strings.Repeat("long ", 20000)
	full := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrFull) || !errors.Is(err, client.ErrLedger) {
			t.Fatalf("%s on a full disk: %v", what, err)
		}
	}
	full("Finish", h.Finish(t.Context(), nil, long))
	big := bindingOf("request-2")
	big.Input = make([]byte, 16<<10)
	_, err = l.Begin(t.Context(), big, client.IntendSubmit, time.Minute)
	full("Begin", err)
	r, err := l.Load(t.Context(), b.Scope, b.RequestID)
	if err != nil || len(r.Receipts) != 0 {
		t.Fatalf("Load: %v, %v", r, err)
	}
	limit(1 << 30)
	if err := h.Finish(t.Context(), nil, long); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Begin(t.Context(), big, client.IntendSubmit, time.Minute)
	if err != nil || !again.MaySubmit() {
		t.Fatalf("Begin when there is space: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}

// A file that another program keeps locked is an error with a name, for everybody
// who waits at once and not one after the other.
func TestBusy(t *testing.T) {
	l := openTest(t, Config{})
	if _, err := l.conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 200"); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", dsn(l.path, writes))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			b := bindingOf(fmt.Sprintf("request-%d", i))
			if _, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute); !errors.Is(err, ErrBusy) {
				t.Errorf("Begin in a locked file: %v", err)
			}
			if r, err := l.Load(t.Context(), b.Scope, b.RequestID); r != nil || errors.Is(err, client.ErrLedger) {
				t.Errorf("Load in a locked file: %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("32 callers waited %v for one lock of 0.2 s", took)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	h, err := l.Begin(t.Context(), bindingOf("request-1"), client.IntendSubmit, time.Minute)
	if err != nil || !h.MaySubmit() {
		t.Fatalf("Begin when the file is free: %v", err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
}

// The file's own guards: what was saved cannot be changed, by any program that
// keeps the schema.
func TestSchemaGuards(t *testing.T) {
	l := openTest(t, Config{})
	b := bindingOf("request-1")
	h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if err := h.Finish(t.Context(), nil, pendingOf(b)); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "bob", Verb: client.Recheck, Reason: "late"}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`UPDATE ledger_request SET state = 'prepared'`,
		`UPDATE ledger_request SET state = 'prepared', attempted_at = NULL`,
		`UPDATE ledger_request SET attempted_at = attempted_at + 1`,
		`UPDATE ledger_request SET origin = 'https://other.example'`,
		`UPDATE ledger_request SET input = x'00'`,
		`UPDATE ledger_request SET created_at = 0`,
		`UPDATE ledger_request SET state = 'sent'`,
		`UPDATE ledger_entry SET receipt = NULL`,
		`UPDATE ledger_snapshot SET body = x'00'`,
		`DELETE FROM ledger_snapshot`,
		`DELETE FROM ledger_request`,
		`DELETE FROM ledger_entry`,
		`UPDATE ledger_request SET window_us = 1`,
		`UPDATE ledger_request SET intent = 0`,
		`UPDATE ledger_request SET supersedes = 'request-2'`,
		`UPDATE ledger_request SET purged_at = 1, input = x'', profile_digest = '', openapi_digest = ''`, // it is open
		`UPDATE ledger_note SET reason = 'another'`,
		`DELETE FROM ledger_note`,
	} {
		if _, err := l.conn.ExecContext(t.Context(), q); err == nil {
			t.Errorf("SQLite takes %s", q)
		}
	}
}

// A row that cannot be right is an error, never a guess and never a panic.
func TestDamagedRows(t *testing.T) {
	tests := map[string]string{
		"state":                 `UPDATE ledger_request SET state = 'sent'`,
		"state back":            `UPDATE ledger_request SET state = 'prepared'`,
		"attempt without time":  `UPDATE ledger_request SET attempted_at = NULL`,
		"seen before creation":  `UPDATE ledger_request SET seen_at = created_at - 1`,
		"input":                 `UPDATE ledger_request SET input = x'7b7d'`,
		"sum of input":          `UPDATE ledger_request SET input_sum = x''`,
		"profile":               `UPDATE ledger_snapshot SET body = x'7b7d20' WHERE digest = 'p'`,
		"no OpenAPI document":   `DELETE FROM ledger_snapshot WHERE digest = 'o'`,
		"outcome":               `UPDATE ledger_request SET outcome = 'succeeded'`,
		"outcome of nothing":    `UPDATE ledger_request SET outcome = NULL`,
		"a receipt less":        `DELETE FROM ledger_entry WHERE seq = 2`,
		"all receipts less":     `DELETE FROM ledger_entry`,
		"first receipt less":    `DELETE FROM ledger_entry WHERE seq = 1`,
		"a receipt more":        `INSERT INTO ledger_entry (request, seq, observations) VALUES (1, 3, '[]')`,
		"a gap":                 `UPDATE ledger_entry SET seq = 9 WHERE seq = 2`,
		"a time too far off":    `UPDATE ledger_request SET seen_at = 9223372036854775807`,
		"attempt after seen":    `UPDATE ledger_request SET attempted_at = seen_at + 1`,
		"entries":               `UPDATE ledger_request SET entries = -1`,
		"receipt not JSON":      `UPDATE ledger_entry SET receipt = 'succeeded'`,
		"receipt empty":         `UPDATE ledger_entry SET receipt = ''`,
		"receipt of another":    `UPDATE ledger_entry SET receipt = replace(receipt, 'request-1', 'request-2')`,
		"receipt twice":         `UPDATE ledger_entry SET receipt = receipt || receipt`,
		"observations not JSON": `UPDATE ledger_entry SET observations = '{'`,
		"observations object":   `UPDATE ledger_entry SET observations = '{}'`,
		"observations unknown":  `UPDATE ledger_entry SET observations = '[{"body":"x"}]'`,
		"observations twice":    `UPDATE ledger_entry SET observations = '[{}][{}]'`,
		"window":                `UPDATE ledger_request SET window_us = -1`,
		"settled by nobody":     `DELETE FROM ledger_note`,
		"settled by no verb":    `UPDATE ledger_request SET settled = 'recheck'`,
		"settled otherwise":     `UPDATE ledger_request SET settled = 'supersede'`,
		"not settled":           `UPDATE ledger_request SET settled = NULL`,
		"a note's time":         `UPDATE ledger_note SET at = 9223372036854775807`,
		"purged with receipts":  `UPDATE ledger_request SET purged_at = seen_at`,
		"observations number":   `UPDATE ledger_entry SET observations = '[{"status":1e400}]'`,
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			l := openTest(t, Config{})
			b := bindingOf("request-1")
			for range 2 {
				h, err := l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(h.Finish(t.Context(), nil, pendingOf(b)), h.Release()); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.AddNote(t.Context(), b.Scope, b.RequestID, client.Note{By: "bob", Verb: client.Abandon, Reason: "old"}); err != nil {
				t.Fatal(err)
			}
			for _, q := range []string{
				"PRAGMA foreign_keys = 0", "PRAGMA ignore_check_constraints = 1",
				"DROP TRIGGER ledger_entry_stays", "DROP TRIGGER ledger_snapshot_stays", "DROP TRIGGER ledger_binding_stays", "DROP TRIGGER ledger_attempt_stays",
				"DROP TRIGGER ledger_entry_kept", "DROP TRIGGER ledger_note_stays", "DROP TRIGGER ledger_note_kept", "DROP TRIGGER ledger_limits_stay",
				damage,
			} {
				if _, err := l.conn.ExecContext(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			var err error
			wantCorrupt := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ErrCorrupt) || !errors.Is(err, client.ErrLedger) {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err = l.Load(t.Context(), b.Scope, b.RequestID)
			wantCorrupt("Load", err)
			_, err = l.Begin(t.Context(), b, client.IntendSubmit, time.Minute)
			wantCorrupt("Begin", err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = l.Take(ctx, b.Scope, b.RequestID, client.IntendPrepare, time.Minute) // Begin left no lock
			wantCorrupt("Take", err)
		})
	}
}
