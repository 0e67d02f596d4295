package agentic

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadExample(t *testing.T) {
	plan, err := Load(readTestdata(t, "profile.json"), readTestdata(t, "openapi.json"), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Warnings) != 0 {
		t.Errorf("warnings: %v", plan.Warnings)
	}
	want := Action{
		ID: "create-ticket", Description: "Create a support ticket and verify the original result.",
		OpenAPI: "/openapi.json", Submit: "createTicket", Status: "getRequestStatus", Verify: "getTicket",
		Header: "Idempotency-Key", Scope: "principal-action", Retention: 24 * time.Hour,
		StatusRequestID: "requestId", VerifyResourceID: "ticketId",
		Evidence: Evidence{ResourceIDPointer: "/id", RequestIDPointer: "/request_id", StatePointer: "/status",
			SuccessValues: []string{"open", "closed"}, InputBindings: []Pair{{"/subject", "/subject"}}},
		Recovery: Recovery{MaxChecks: 3, CheckDelay: 100 * time.Millisecond, Timeout: 3 * time.Second, Retry: "never-automatically"},
	}
	if diff := cmp.Diff(want, plan.Action); diff != "" {
		t.Error(diff)
	}
	status, err := plan.StatusURL("req-0001")
	if err != nil {
		t.Fatal(err)
	}
	resource, err := plan.ResourceURL("t/1")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{plan.SubmitURL(), status, resource, string(plan.RequestSchema())}
	if diff := cmp.Diff([]string{"https://support.example/tickets", "https://support.example/requests/req-0001", "https://support.example/tickets/t%2F1",
		`{"type":"object","properties":{"subject":{"type":"string","minLength":1,"maxLength":200}},"required":["subject"],"additionalProperties":false}`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadReportsBothDocuments(t *testing.T) {
	_, err := Load([]byte(`{`), []byte(`{"openapi":"3.0.3","paths":{}}`), "", Options{})
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok {
		t.Fatalf("error %v is not an *InvalidError", err)
	}
	var got []string
	for _, d := range invalid.Diagnostics {
		got = append(got, d.Document+" "+d.Code)
	}
	if diff := cmp.Diff([]string{"profile profile/not-json", "openapi openapi/version"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadUnknownAction(t *testing.T) {
	_, err := Load(readTestdata(t, "profile.json"), readTestdata(t, "openapi.json"), "delete-ticket", Options{})
	unknown, ok := errors.AsType[*UnknownActionError](err)
	if !ok {
		t.Fatalf("error %v is not an *UnknownActionError", err)
	}
	if diff := cmp.Diff(&UnknownActionError{Action: "delete-ticket", Known: []string{"create-ticket"}}, unknown); diff != "" {
		t.Error(diff)
	}
}

func TestChoose(t *testing.T) {
	one := &Profile{Actions: []Action{{ID: "a", Description: "first"}}}
	two := &Profile{Actions: []Action{{ID: "a"}, {ID: "b", Description: "second"}}}
	for _, tt := range []struct {
		profile     *Profile
		id          string
		description string
		err         error
	}{
		{one, "", "first", nil},
		{one, "a", "first", nil},
		{one, "b", "", &UnknownActionError{Action: "b", Known: []string{"a"}}},
		{two, "b", "second", nil},
		{two, "", "", &UnknownActionError{Known: []string{"a", "b"}}},
		{two, "A", "", &UnknownActionError{Action: "A", Known: []string{"a", "b"}}},
	} {
		action, err := tt.profile.Choose(tt.id)
		if diff := cmp.Diff(tt.err, err); diff != "" || action.Description != tt.description {
			t.Errorf("Choose(%q) = %+v, %v\n%s", tt.id, action, err, diff)
		}
	}
}
