package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
)

func scenarioText(origin, requestID, ledger string) string {
	return `{"profile":` + string(ticket.Profile(origin)) + `,"openapi":` + string(ticket.OpenAPI(origin)) +
		`,"request_id":"` + requestID + `","input":{"subject":"x"},"ledger_path":"` + ledger + `"}`
}

// adapterHere gives the adapter a scenario in this process; more begins with a comma.
func adapterHere(t *testing.T, scenario, more string) (code int, r *agentic.Receipt, diag string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := testApp(&out, &errs)
	a.stdin = strings.NewReader(strings.TrimSuffix(scenario, "}") + more + "}")
	code = a.run(t.Context(), []string{"adapter"})
	r, _ = agentic.ParseReceipt(out.Bytes())
	return code, r, errs.String()
}

// A harness that sets the clock of each call sees the window end and the clock go
// backwards: unknown, and the service is not asked (section 6.9, D16).
func TestAdapterClock(t *testing.T) {
	start := time.Date(2026, 9, 7, 12, 0, 0, 1000, time.UTC) // one microsecond past
	window := 24 * time.Hour
	for _, tt := range []struct {
		name   string
		second time.Duration // after the first call
		want   agentic.Outcome
		reason string
		reads  int // of the status, by the second call
	}{
		{"a moment before the end", window - time.Microsecond, agentic.Pending, "not resolved yet", 3},
		{"the end", window, agentic.Unknown, "window", 0},
		{"the same time", 0, agentic.Pending, "not resolved yet", 3},
		{"back by a microsecond", -time.Microsecond, agentic.Unknown, "clock", 0},
		{"back by years", -20 * 365 * 24 * time.Hour, agentic.Unknown, "clock", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startTestTickets(t, "pending")
			text := scenarioText(s.Origin, "request-1", filepath.Join(t.TempDir(), "ledger.db"))
			call := func(at time.Time) *agentic.Receipt {
				code, r, diag := adapterHere(t, text, `,"test_now":"`+agentic.FormatTime(at)+`"`)
				if code != exitOK || r == nil {
					t.Fatalf("exit code %d, stderr %s", code, diag)
				}
				return r
			}
			if r := call(start); r.Outcome != agentic.Pending || r.ObservedAt != agentic.FormatTime(start) {
				t.Fatalf("first %+v", r)
			}
			before, err := s.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r := call(start.Add(tt.second)); r.Outcome != tt.want || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("%s: %s, want %s for its %s", r.Outcome, r.Reason, tt.want, tt.reason)
			}
			after, err := s.State(t.Context())
			if err != nil || after.Posts != 1 || after.Reads-before.Reads != tt.reads {
				t.Errorf("before %+v, after %+v, want %d reads and 1 POST (%v)", before, after, tt.reads, err)
			}
		})
	}
}

// Of a profile with several actions a harness names the one that it means, and an
// identity stays with it (D8).
func TestAdapterAction(t *testing.T) {
	s := startTestTickets(t, "normal")
	text := scenarioText(s.Origin, "request-1", filepath.Join(t.TempDir(), "ledger.db"))
	_, actions, _ := strings.Cut(string(ticket.Profile(s.Origin)), `"actions": [`)
	other := strings.Replace(actions[:strings.LastIndex(actions, "]")], "create-ticket", "other-action", 1)
	text = strings.Replace(text, `"actions": [`, `"actions": [`+other+",", 1)
	code, r, diag := adapterHere(t, text, `,"action_id":"other-action"`)
	if code != exitOK || r == nil || r.Outcome != agentic.Succeeded || r.ActionID != "other-action" {
		t.Errorf("exit code %d, %+v, stderr %s", code, r, diag)
	}
	if code, r, diag := adapterHere(t, text, `,"action_id":"create-ticket"`); code != exitError || r != nil || !strings.Contains(diag, "action other-action instead of create-ticket") {
		t.Errorf("under another action: exit code %d, %+v, stderr %s", code, r, diag)
	}
	if state, err := s.State(t.Context()); err != nil || state.Posts != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}

// A harness may have the process end at every boundary of an execution. Whatever
// was attempted is not sent again (section 6.3).
func TestAdapterCrashAt(t *testing.T) {
	for _, p := range client.Points() {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			crashed, posts, want := exitCrashed, 1, agentic.Succeeded
			switch p {
			case client.BeforeSubmit:
				posts, want = 0, agentic.Unknown
			case client.AfterRefusal: // no refusal, no crash
				crashed = exitOK
			}
			s := startTestTickets(t, "normal")
			text := scenarioText(s.Origin, "request-1", filepath.Join(t.TempDir(), "ledger.db"))
			cmd := command(t, "adapter")
			cmd.Stdin = strings.NewReader(strings.TrimSuffix(text, "}") + fmt.Sprintf(`,"test_crash_at":%q}`, p))
			if code, out, diag := exitOf(t, cmd); code != crashed || code == exitCrashed && out != "" {
				t.Fatalf("exit code %d, want %d, stdout %s, stderr %s", code, crashed, out, diag)
			}
			code, r, diag := adapterHere(t, text, "")
			if code != exitOK || r == nil || r.Outcome != want {
				t.Errorf("exit code %d, %+v, want %s, stderr %s", code, r, want, diag)
			}
			if state, err := s.State(t.Context()); err != nil || state.Posts != posts {
				t.Errorf("%+v, want %d POSTs (%v)", state, posts, err)
			}
		})
	}
}
