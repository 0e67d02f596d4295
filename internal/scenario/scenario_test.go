package scenario_test

import (
	"strings"
	"testing"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/scenario"
)

func TestParse(t *testing.T) {
	const whole = `{"profile": {"a": 1.0}, "openapi": {}, "input": { }, "request_id": "r", "ledger_path": "l", "test_crash_after_submit": true, "more": 1}`
	s, err := scenario.Parse([]byte(whole))
	if err != nil || string(s.Profile) != `{"a":1.0}` || string(s.Input) != `{}` || s.RequestID != "r" || s.Ledger != "l" || !s.Crash {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		`[]`:                         "not a JSON object",
		`{"secret": 1, "secret": 2}`: "in line 1",
		strings.Replace(whole, `"input": { }`, `"input": []`, 1):                     `"input" is array`,
		strings.Replace(whole, `"r"`, `""`, 1):                                       "may not be empty",
		strings.Replace(whole, `"ledger_path"`, `"ledger"`, 1):                       `"ledger_path"`,
		strings.Replace(whole, `"test_crash_after_submit": true`, `"profile": 1`, 1): "in line 1",
	} {
		if _, err := scenario.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
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
