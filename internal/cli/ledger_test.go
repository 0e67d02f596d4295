package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/place"
)

// breakable is a ticket service that can make a ledger unusable while it has a
// POST, and so can mend it.
func breakable(t *testing.T, ledger string) (origin string, posts func() int, mend func()) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	rename := func(from, to string) {
		db, err := sql.Open("sqlite", ledger)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("PRAGMA busy_timeout=5000; ALTER TABLE " + from + " RENAME TO " + to); err != nil {
			t.Error(err)
		}
	}
	origin = between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			mu.Lock()
			n++
			mu.Unlock()
			rename("ledger_entry", "away")
		}
		next.ServeHTTP(w, r)
	})
	return origin, func() int { mu.Lock(); defer mu.Unlock(); return n }, func() { rename("away", "ledger_entry") }
}

// A ledger that breaks after the POST must not cost the request its name: the
// error has the ID and leads back to this ledger, and there is no second write.
func TestLedgerBreaksAfterThePost(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	origin, posts, mend := breakable(t, ledger)
	reach := []string{"--approve", origin, "--allow-loopback", "--ledger", ledger, "--json"}
	code, out, diag := runHere(t, append([]string{"run", origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes"}, reach...)...)
	var got struct{ Error failure }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Error.Code != "ledger" || !client.ValidRequestID(got.Error.RequestID) {
		t.Fatalf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	id := got.Error.RequestID
	for _, want := range []string{"the action may have been sent as request " + id, "Mend this ledger and ask again. Do not use another ledger for an action that may be in this one", "agentic resume " + id + " --ledger " + ledger + " --approve " + origin} {
		if !strings.Contains(diag, want) || !strings.Contains(got.Error.Message+got.Error.Remedy, want) {
			t.Errorf("no %q in %s", want, diag)
		}
	}
	if strings.Contains(out+diag, "another place") {
		t.Errorf("leads to another ledger: %s", diag)
	}

	// So does every other command that meets the broken ledger.
	for _, command := range [][]string{{"resume", id, "--approve", origin, "--allow-loopback"}, {"requests", "show", id},
		{"run", origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--request-id", id, "--approve", origin, "--allow-loopback"}} {
		code, out, diag := runHere(t, append(command, "--ledger", ledger, "--json")...)
		if code != exitError || !strings.Contains(out, `"request_id":"`+id+`"`) || !strings.Contains(diag, "agentic resume "+id) || strings.Contains(diag, "another place") {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", command[0], code, out, diag)
		}
	}
	mend()
	code, out, diag = runHere(t, append([]string{"resume", id}, reach...)...)
	if code != exitOK || !strings.Contains(out, `"outcome":"succeeded"`) || posts() != 1 {
		t.Errorf("resume: exit code %d, %d POSTs, stdout %s, stderr %s", code, posts(), out, diag)
	}
}

// A ledger that does not open is no reason to name another one.
func TestLedgerDoesNotOpen(t *testing.T) {
	s := startTestTickets(t, "normal")
	place := t.TempDir() // a folder is no ledger
	code, out, diag := runHere(t, "run", s.Origin+"/agentic.json", "--approve", s.Origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--json", "--ledger", place)
	if code != exitError || !strings.Contains(out, `"code":"ledger"`) || strings.Contains(out, "request_id") || !strings.Contains(diag, "Look at its name") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
}

// What is printed stands, with its exit code, when the ledger does not close well.
func TestLedgerDoesNotClose(t *testing.T) {
	s := startTestTickets(t, "wrong-evidence")
	path := filepath.Join(t.TempDir(), "ledger.db")
	reach := []string{"--approve", s.Origin, "--allow-loopback"}
	for _, tt := range []struct {
		args []string
		exit int
	}{
		{append([]string{"run", s.Origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1"}, reach...), exitUnknown},
		{append([]string{"prepare", s.Origin + "/agentic.json", "--input", `{"subject":"y"}`, "--request-id", "request-2"}, reach...), exitOK},
		{append([]string{"resume", "request-1"}, reach...), exitUnknown},
		{[]string{"requests", "list"}, exitOK},
		{[]string{"requests", "show", "request-1"}, exitOK},
		{[]string{"requests", "show", "request-9"}, exitError},
	} {
		var out, diag bytes.Buffer
		a := testApp(&out, &diag)
		a.open = func(ctx context.Context, p place.Place, o place.Options) (ledger, error) {
			l, err := openPlace(ctx, p, o)
			inner := l.close
			l.close = func() error { return errors.Join(inner(), errors.New("\x1bno space left")) }
			return l, err
		}
		code := a.run(t.Context(), append(tt.args, "--ledger", path, "--json"))
		if code != tt.exit || strings.Count(out.String(), "\n") != 1 || !strings.Contains(diag.String(), `did not close well, which changes nothing of what it has saved: \x1bno space left`) {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", tt.args, code, out.String(), diag.String())
		}
	}
}

// brokenPipe is a standard output that nobody reads.
type brokenPipe struct{ written bytes.Buffer }

func (w *brokenPipe) Write(b []byte) (int, error) {
	w.written.Write(b)
	return 0, errors.New("broken pipe")
}

// A receipt that cannot be printed is an error that names the request; nothing is
// printed behind the broken value.
func TestReceiptCannotBePrinted(t *testing.T) {
	s := startTestTickets(t, "normal")
	var out brokenPipe
	var diag bytes.Buffer
	a := testApp(&out, &diag)
	code := a.run(t.Context(), []string{"run", s.Origin + "/agentic.json", "--approve", s.Origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--json",
		"--request-id", "-request-1", "--ledger", filepath.Join(t.TempDir(), "it's.db")})
	if code != exitError || strings.Count(out.written.String(), "\n") != 1 || !strings.Contains(diag.String(), "request -request-1 is saved as succeeded") ||
		!strings.Contains(diag.String(), `it'\''s.db' -- -request-1`+"\n") || !strings.Contains(diag.String(), "To see it: agentic requests show") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out.written.String(), diag.String())
	}
}

// Whoever waits for another execution of the same request is told so.
func TestWaitingIsSaid(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			close(arrived)
			<-leave
		}
		next.ServeHTTP(w, r)
	})
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	args := []string{"run", origin + "/agentic.json", "--approve", origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--json", "--request-id", "request-1", "--ledger", ledger}
	first := make(chan string, 1)
	go func() {
		var out, diag bytes.Buffer
		a := testApp(&out, &diag)
		a.run(context.WithoutCancel(t.Context()), args)
		first <- diag.String()
	}()
	<-arrived
	time.AfterFunc(waitNotice+500*time.Millisecond, func() { close(leave) })
	resume := []string{"resume", "request-1", "--approve", origin, "--allow-loopback", "--json", "--ledger", ledger}
	code, out, diag := runHere(t, resume...)
	if code != exitOK || strings.Count(diag, "waiting for another execution of this request") != 1 {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	if diag := <-first; strings.Contains(diag, "waiting") {
		t.Errorf("the first did not wait: %s", diag)
	}
}

// The scope that client.New refuses is refused before the ledger is opened.
func TestScopeIsChecked(t *testing.T) {
	for _, n := range []int{maxScopeBytes, maxScopeBytes + 1} {
		f := ledgerFlags{principal: strings.Repeat("p", n), environment: "e\xff"[:1+n-maxScopeBytes]}
		_, err := client.New(client.Config{Ledger: ledger{}, Transport: noTransport{}, Scope: f.scope()})
		if got := f.check(); (got == nil) != (err == nil) {
			t.Errorf("%d bytes: %v here and %v there", n, got, err)
		}
	}
	long := strings.Repeat("x", maxScopeBytes+1)
	for _, flag := range []string{"--principal", "--environment"} {
		for _, args := range [][]string{{"run", "absent.json", "--yes", "--input", "{}"}, {"prepare", "absent.json", "--input", "{}"},
			{"resume", "request-1"}, {"requests", "list"}, {"requests", "show", "request-1"}} {
			code, _, diag := runHere(t, append(args, flag, long, "--ledger", filepath.Join(t.TempDir(), "absent.db"))...)
			if code != exitUsage || !strings.Contains(diag, flag+" is longer than 256 bytes") {
				t.Errorf("%s %s: exit code %d, stderr %s", args, flag, code, diag)
			}
		}
	}
}

type noTransport struct{ client.Transport }
