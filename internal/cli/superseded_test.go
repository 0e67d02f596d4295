package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// What may happen twice is what the last one that was sent did, however many that
// were not stand in between.
func TestSupersededChain(t *testing.T) {
	l, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	scope := client.Scope{Principal: "ann"}
	doc := client.Snapshot{Digest: "aa", Body: []byte("{}")}
	for _, r := range []struct {
		id, supersedes string
		intent         client.Intent
	}{
		{"request-1", "", client.IntendSubmit},
		{"request-2", "request-1", client.IntendPrepare},
		{"request-3", "request-2", client.IntendPrepare},
		{"request-4", "request-none", client.IntendPrepare},
		{"request-5", "request-6", client.IntendPrepare},
		{"request-6", "request-5", client.IntendPrepare},
		{"request-7", "request-8", client.IntendPrepare},
		{"request-8", "", client.IntendPrepare},
	} {
		h, err := l.Begin(t.Context(), client.Binding{Scope: scope, RequestID: r.id, Origin: "https://o.example", ActionID: "a", Profile: doc, OpenAPI: doc,
			InputDigest: "bb", Input: []byte("{}"), Window: time.Hour, Term: time.Minute, Supersedes: r.supersedes}, r.intent, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{
		"request-1": "", "request-2": "request-1 attempted", "request-3": "request-1 attempted", "request-4": "request-none attempted",
		"request-5": "request-5 prepared", "request-7": "request-8 prepared",
	} {
		rec, err := l.Load(t.Context(), scope, id)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s := superseded(t.Context(), l, rec); s != nil {
			got = s.RequestID + " " + string(s.State)
		}
		if got != want {
			t.Errorf("%s is made instead of %q, want %q", id, got, want)
		}
	}
}
