package demo

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/ticket"
)

// The story itself, with and without a crash, is tested as a command in
// internal/cli.

// A receipt on the pipe is read as strictly as any other (D1).
func TestRelay(t *testing.T) {
	const receipt = `{"agentic":"0.1.0-draft","request_id":"r","action_id":"a","origin":"o","outcome":"pending","observed_at":"2026-09-07T10:00:00Z","resource_id":null,"reason":"x"}`
	const step = `{"step":{"who":"client","step":"sending","text":"a\nb"}}`
	for _, tt := range []struct {
		name, out string
		steps     []render.Step
		outcome   agentic.Outcome
		problem   string
	}{
		{"steps and a receipt", step + "\n" + `{"receipt":` + receipt + "}\n", []render.Step{{Who: "client", Name: "sending", Text: "a\nb"}}, agentic.Pending, ""},
		{"killed between two lines", step + "\n", []render.Step{{Who: "client", Name: "sending", Text: "a\nb"}}, "", ""},
		{"nothing", "", nil, "", ""},
		{"no JSON", "panic: x\n", nil, "", "does not understand"},
		{"a member twice", strings.Replace(step, `"who"`, `"who":"x","who"`, 1), nil, "", "duplicate"},
		{"an invalid receipt", `{"receipt":` + strings.Replace(receipt, "pending", "great", 1) + "}", nil, "", "gave no receipt"},
		{"a receipt in another case", `{"receipt":` + strings.Replace(receipt, "outcome", "Outcome", 1) + "}", nil, "", "gave no receipt"},
	} {
		var steps []render.Step
		got, err := relay(strings.NewReader(tt.out), func(s render.Step) error { steps = append(steps, s); return nil })
		if diff := cmp.Diff(tt.steps, steps); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", tt.name, diff)
		}
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) || (got == nil) != (tt.outcome == "") || got != nil && got.Outcome != tt.outcome {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	broken := errors.New("nobody reads")
	if _, err := relay(strings.NewReader(step), func(render.Step) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a step that cannot be shown: %v", err)
	}
}

// What a client process is asked to do comes through as it was meant.
func TestTask(t *testing.T) {
	for _, in := range []string{"", "[]]", `{"kill":true,"kill":false}`} {
		if _, err := readTask(t.Context(), strings.NewReader(in)); err == nil {
			t.Errorf("%q is taken as a task", in)
		}
	}
	got, err := readTask(t.Context(), strings.NewReader(`{"who":"client 2","origin":"o","ledger":"l","request_id":"r","resume":true,"kill":false}`))
	if diff := cmp.Diff(task{Who: "client 2", Origin: "o", Ledger: "l", RequestID: "r", Resume: true}, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if err := Client(t.Context(), strings.NewReader("{}"), io.Discard); err == nil {
		t.Error("a task without an origin was done")
	}
}

// An address that a profile could not name is refused before anything listens.
func TestLoopback(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1", "localhost:4318": "localhost", "[::1]:65535": "::1",
		"127.0.0.1:65536": "", "127.0.0.1:-1": "", "127.0.0.1:http": "", "127.0.0.1:": "", "127.0.0.1": "", "127.0.0.2:1": "", "0.0.0.0:1": "", ":1": "", "[::]:1": "", "": "",
	} {
		host, err := loopback(addr)
		e, ok := errors.AsType[*advice.Error](err)
		if host != want || (want == "") != ok || ok && (e.Code != advice.Usage || e.Remedy == "") {
			t.Errorf("loopback(%q) = %q, %v", addr, host, err)
		}
	}
}

// What keeps the service from starting is said with what to do.
func TestStartRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct{ addr, path, code string }{
		{l.Addr().String(), "", "address-in-use"},
		{"127.0.0.1:0", t.TempDir(), "database"},
		{"127.0.0.1:99999", "", advice.Usage},
	} {
		s, err := Start(t.Context(), tt.addr, ticket.Config{Path: tt.path}, nil)
		if e, ok := errors.AsType[*advice.Error](err); !ok || e.Code != tt.code || e.Remedy == "" || s != nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
