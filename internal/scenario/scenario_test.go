package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/scenario"
)

func TestParse(t *testing.T) {
	const whole = `{"profile": {"a": 1.0}, "openapi": {}, "input": { }, "request_id": "r", "ledger_path": "l", "test_crash_after_submit": true, "more": 1}`
	s, err := scenario.Parse([]byte(whole))
	if err != nil || string(s.Profile) != `{"a":1.0}` || string(s.Input) != `{}` || s.RequestID != "r" || s.Ledger != "l" || s.CrashAt != client.AfterSubmit || !s.Now.IsZero() || s.Action != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		`[]`:                         "not a JSON object",
		`{"secret": 1, "secret": 2}`: "in line 1",
		strings.Replace(whole, `"input": { }`, `"input": []`, 1):                     `"input" is an array, not an object`,
		strings.Replace(whole, `"r"`, `""`, 1):                                       "may not be empty",
		strings.Replace(whole, `"ledger_path"`, `"ledger"`, 1):                       `"ledger_path"`,
		strings.Replace(whole, `"test_crash_after_submit": true`, `"profile": 1`, 1): "in line 1",
	} {
		if _, err := scenario.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What may be left out is checked as strictly as the rest when it is there.
func TestOptionalMembers(t *testing.T) {
	parse := func(more string) (scenario.Scenario, error) {
		return scenario.Parse([]byte(`{"profile": {}, "openapi": {}, "input": {}, "request_id": "r", "ledger_path": "l"` + more + `}`))
	}
	type optional struct {
		Action, At, Now string
	}
	for more, want := range map[string]optional{
		``: {Now: "0001-01-01T00:00:00Z"},
		`, "action_id": "b", "test_crash_at": "before-save", "test_now": "2026-09-07T12:00:00.123456Z"`: {"b", "before-save", "2026-09-07T12:00:00.123456Z"},
		`, "test_crash_after_submit": false, "test_crash_at": "after-receipt"`:                          {At: "after-receipt", Now: "0001-01-01T00:00:00Z"},
		`, "test_now": "1970-01-01T00:00:00Z"`:                                                          {Now: "1970-01-01T00:00:00Z"},
		`, "test_now": "9999-12-31T23:59:59.9Z"`:                                                        {Now: "9999-12-31T23:59:59.9Z"},
	} {
		s, err := parse(more)
		if got := (optional{s.Action, string(s.CrashAt), s.Now.Format(time.RFC3339Nano)}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", more, got, err)
		}
	}
	for more, want := range map[string]string{
		`, "action_id": 1`:            `"action_id" is a number, not a string`,
		`, "action_id": null`:         `"action_id" is null`,
		`, "action_id": ""`:           `"action_id" may not be empty`,
		`, "test_crash_at": true`:     `"test_crash_at" is a boolean, not a string`,
		`, "test_crash_at": ""`:       "names no point",
		`, "test_crash_at": "secret"`: "names no point",
		`, "test_crash_after_submit": true, "test_crash_at": "after-submit"`: "both ask for a crash",
		`, "test_now": 1`:                              `"test_now" is a number, not a string`,
		`, "test_now": ""`:                             "not a time",
		`, "test_now": "2026-09-07T12:00:00+00:00"`:    "not a time",
		`, "test_now": "2026-09-07T12:00:00z"`:         "not a time",
		`, "test_now": "2026-09-07 12:00:00Z"`:         "not a time",
		`, "test_now": "2026-09-07T12:00:00,5Z"`:       "not a time",
		`, "test_now": "2026-09-07T12:00:00.1234567Z"`: "not a time",
		`, "test_now": "2026-02-30T12:00:00Z"`:         "not a time",
		`, "test_now": "2026-09-07T24:00:00Z"`:         "not a time",
		`, "test_now": "1969-12-31T23:59:59.999999Z"`:  "not a time",
	} {
		s, err := parse(more)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || s.RequestID != "" {
			t.Errorf("%s: %+v, %v", more, s, err)
		}
	}
}

func TestErrorHasNoFlagsAndNoLines(t *testing.T) {
	err := scenario.Error(&agentic.InvalidError{Diagnostics: agentic.Diagnostics{{Line: 1, Column: 2}}})
	if e, ok := err.(*agentic.InvalidError); !ok || e.Diagnostics[0].Line != 0 || e.Diagnostics[0].Column != 0 {
		t.Errorf("%#v", err)
	}
	if err := scenario.Error(&client.RequestIDError{RequestID: "x"}); !strings.Contains(err.Error(), `"request_id" is "x"`) {
		t.Error(err)
	}
}
