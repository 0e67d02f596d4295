package deskcmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
)

func TestParseAge(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2h30m": 150 * time.Minute, "7d": 7 * day, "106751d": 106751 * day,
		"": 0, "0": 0, "0d": 0, "-1h": 0, "-1d": 0, "d": 0, "1.5d": 0, "106752d": 0, "99999999999999999999d": 0, "1w": 0, "7 d": 0, "yesterday": 0,
	} {
		if got, err := parseAge(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("parseAge(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
}

func TestParseBefore(t *testing.T) {
	now := time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"2026-09-01":                "2026-09-01T00:00:00Z",
		"2026-09-07T11:00:00+02:00": "2026-09-07T09:00:00Z",
		"7d":                        "2026-08-31T12:00:00Z",
		"2026-09-08":                "", "2026-13-01": "", "0001-01-01": "", "": "", "soon": "", "-7d": "",
	} {
		got, err := parseBefore(s, now)
		if err == nil && got.Format(time.RFC3339) != want || (err == nil) != (want != "") {
			t.Errorf("parseBefore(%q) = %s, %v; want %q", s, got, err, want)
		}
	}
}

// A file appears whole, for its owner only, and replaces nothing, whatever the
// process was doing when it failed.
func TestNewFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.jsonl")
	broken := errors.New("the ledger is gone")
	fill := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, text)
			return errors.Join(werr, err)
		}
	}
	if err := newFile(name, fill("half", broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("a failure left %v, %v", files, err)
	}
	if err := newFile(name, fill("whole\n", nil)); err != nil {
		t.Fatal(err)
	}
	if err := newFile(name, fill("another\n", nil)); err == nil {
		t.Error("another export replaced it")
	}
	// It may appear while the export runs.
	late := filepath.Join(dir, "late.jsonl")
	if err := newFile(late, func(w io.Writer) error { return os.WriteFile(late, []byte("theirs"), 0o600) }); err == nil {
		t.Error("a file that appeared in between was replaced")
	}
	for file, want := range map[string]string{name: "whole\n", late: "theirs"} {
		b, err := os.ReadFile(file)
		info, serr := os.Stat(file)
		if err != nil || serr != nil || string(b) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %q, %v (%v)", file, b, info.Mode(), errors.Join(err, serr))
		}
	}
	// An error of the file names the file that was asked for.
	nowhere := filepath.Join(dir, "nowhere", "out.jsonl")
	err := newFile(nowhere, fill("whole\n", nil))
	if e, ok := errors.AsType[*advice.Error](err); !ok || e.Code != "file" || !strings.HasPrefix(err.Error(), "cannot write "+nowhere+": ") {
		t.Errorf("a folder that is not there: %v", err)
	}
	ledger := &client.LedgerError{Op: "load", Err: &fs.PathError{Op: "read", Path: "ledger.db", Err: errors.New("gone")}}
	if err := newFile(nowhere[:len(dir)+1]+"x", fill("half", ledger)); !errors.Is(err, client.ErrLedger) {
		t.Errorf("a ledger that is gone: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// A command that is shown has the ID behind '--' when it looks like a flag.
func TestWithID(t *testing.T) {
	for id, want := range map[string]string{"request-1": "agentic x request-1 --a", "-request-1": "agentic x --a -- -request-1"} {
		if got := withID("agentic x", " --a", id); got != want {
			t.Errorf("withID(%q) = %q, want %q", id, got, want)
		}
	}
	rec := &client.Record{Binding: client.Binding{RequestID: "request-1"}}
	rec.State = client.Attempted
	if got := stateOf(rec); got != "attempted" {
		t.Errorf("state %q", got)
	}
}

// A purge that ends early tells what it has removed.
func TestPurgedInPart(t *testing.T) {
	broken := &client.LedgerError{Op: "purge", Err: errors.New("gone")}
	for _, tt := range []struct {
		requests int
		err      error
		want     string
	}{
		{0, context.Canceled, "context canceled"},
		{1, context.Canceled, "interrupted: 1 request was purged before this, and the rest is as it was"},
		{0, broken, broken.Error()},
		{500, broken, "500 requests were purged before this: " + broken.Error()},
	} {
		if err := inPart(client.Purged{Requests: tt.requests}, tt.err); err.Error() != tt.want || errors.Is(err, client.ErrLedger) != (tt.err == error(broken)) {
			t.Errorf("%d and %v: %v", tt.requests, tt.err, err)
		}
	}
}

// What cannot be sent any more is not offered to be.
func TestChoiceCommand(t *testing.T) {
	at := time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)
	note := []client.Note{{Verb: client.Abandon}}
	for _, tt := range []struct {
		state client.State
		notes []client.Note
		now   time.Time
		want  string
	}{
		{client.Prepared, nil, at.Add(time.Hour - 1), "agentic resume request-1 --approve https://o.example --send to send it, or agentic requests abandon request-1 --reason TEXT"},
		{client.Prepared, nil, at.Add(time.Hour), "agentic requests VERB request-1 --reason TEXT"},
		{client.Prepared, note, at, "agentic requests VERB request-1 --reason TEXT"},
		{client.Attempted, nil, at, "agentic requests VERB request-1 --reason TEXT"},
	} {
		rec := &client.Record{Binding: client.Binding{RequestID: "request-1", Origin: "https://o.example", Window: time.Hour}, CreatedAt: at, State: tt.state, Notes: tt.notes}
		if got := choiceCommand(rec, noFlags{}, tt.now); got != tt.want {
			t.Errorf("%s with %d notes at %s: %q, want %q", tt.state, len(tt.notes), tt.now, got, tt.want)
		}
	}
}

type noFlags struct{ Place }

func (noFlags) Args() string { return "" }
