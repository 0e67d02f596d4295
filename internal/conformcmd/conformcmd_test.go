package conformcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/transport"
)

// house is a host and its output in memory.
type house struct {
	stdin          string
	stdout, stderr bytes.Buffer
	env            map[string]string
	terminal, live bool
	answer         error // of Ask
	asked          string
	failed         bool
	json           bool
	broken         error // of Print
	progress       []string
}

func (h *house) Group(*cobra.Command) {}

func (h *house) LeafBetween(cmd *cobra.Command, least, most int, _ string) {
	cmd.Args = cobra.RangeArgs(least, most)
	cmd.Flags().BoolVar(&h.json, "json", false, "one JSON value")
}

func (h *house) ReachOne(cmd *cobra.Command) Reach {
	r := &reachFlags{house: h}
	cmd.Flags().StringArrayVar(&r.approve, "approve", nil, "")
	cmd.Flags().BoolVar(&r.loopback, "allow-loopback", false, "")
	cmd.Flags().StringArrayVar(&r.headers, "header-from-env", nil, "")
	return r
}

func (h *house) HeaderFromEnv(flag string, specs []string) (http.Header, error) {
	header := make(http.Header)
	for _, spec := range specs {
		name, variable, _ := strings.Cut(spec, "=")
		if h.env[variable] == "" {
			return nil, advice.BadUsage(flag+" "+spec+": "+variable+" is not set", "Set it.")
		}
		header.Set(name, h.env[variable])
	}
	return header, nil
}

func (h *house) ReadFile(ctx context.Context, name string, limit int) ([]byte, error) {
	return documents.Read(ctx, strings.NewReader(h.stdin), name, limit)
}

func (h *house) CheckSchema(plan *agentic.Plan, in agentic.Input) error {
	if schema := plan.RequestSchema(); !bytes.Contains(schema, []byte(`"subject"`)) {
		return fmt.Errorf("another schema than the action's: %s", schema)
	}
	if bytes.Contains(in.Body(), []byte("forbidden")) {
		return &agentic.InputError{Diagnostics: agentic.Diagnostics{{Problem: "the schema forbids it"}}}
	}
	return nil
}

func (h *house) Tool() conformance.Tool { return conformance.Tool{Name: "agentic", Version: "test"} }
func (h *house) Fail()                  { h.failed = true }
func (h *house) JSON() bool             { return h.json }
func (h *house) Terminal() bool         { return h.terminal }
func (h *house) Live() bool             { return h.live }

func (h *house) Print(b []byte) error {
	h.stdout.Write(b)
	return h.broken
}

func (h *house) Say(format string, args ...any) { fmt.Fprintf(&h.stderr, format+"\n", args...) }

func (h *house) Ask(_ context.Context, shown []byte, question, declined string) error {
	h.asked = string(shown) + question
	if h.answer != nil {
		return errors.New(declined)
	}
	return nil
}

func (h *house) Progress(done, total int) {
	h.progress = append(h.progress, fmt.Sprintf("%d/%d", done, total))
}

type reachFlags struct {
	*house
	approve, headers []string
	loopback         bool
	header           http.Header
}

func (r *reachFlags) Check() (err error) {
	r.header, err = r.HeaderFromEnv("--header-from-env", r.headers)
	return err
}

func (r *reachFlags) Header() http.Header { return r.header }
func (r *reachFlags) AllowLoopback() bool { return r.loopback }

func (r *reachFlags) Plan(ctx context.Context, profile, openapi, action string) (*agentic.Plan, error) {
	t, err := transport.New(transport.Config{Origins: r.approve, AllowLoopback: r.loopback})
	if err != nil {
		return nil, err
	}
	s := documents.Source{Stdin: strings.NewReader(r.stdin), Transport: t, Options: agentic.Options{AllowLoopback: r.loopback}}
	plan, err := s.Plan(ctx, profile, openapi, action)
	if err != nil {
		return nil, err
	}
	return plan, t.Approve(plan.Origin, plan.Action.ID)
}

// run runs one command line.
func (h *house) run(t *testing.T, args ...string) error {
	t.Helper()
	return h.runIn(t.Context(), args...)
}

func (h *house) runIn(ctx context.Context, args ...string) error {
	cmd := New(h, h).Conformance()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return cmd.ExecuteContext(ctx)
}

// usage reports whether an error is about the command line, and says want.
func usage(t *testing.T, err error, want string) {
	t.Helper()
	advised(t, err, advice.Usage, want)
}

func advised(t *testing.T, err error, code, want string) {
	t.Helper()
	e, ok := errors.AsType[*advice.Error](err)
	if !ok || e.Code != code || e.Remedy == "" || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v (%T), want %s with %q and a remedy", err, err, code, want)
	}
}

func save(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestList(t *testing.T) {
	h := &house{}
	if err := h.run(t, "list"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KIT", "\nclient ", " response-lost ", "\nservice "} {
		if !strings.Contains(h.stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, h.stdout.String())
		}
	}
	for _, args := range [][]string{{"list", "client"}, {"client", "--list"}} {
		h := &house{}
		if err := h.run(t, args...); err != nil || strings.Contains(h.stdout.String(), "\nservice") || !strings.Contains(h.stdout.String(), "response-lost") {
			t.Errorf("%v: %v\n%s", args, err, h.stdout.String())
		}
	}
	h = &house{}
	if err := h.run(t, "client", "--list", "--only", "normal", "--json"); err != nil || strings.Count(h.stdout.String(), `"id":`) != 1 || !strings.HasPrefix(h.stdout.String(), `{"checks":[{"kind":"client","id":"normal"`) {
		t.Errorf("%v\n%s", err, h.stdout.String())
	}
	usage(t, (&house{}).run(t, "list", "server"), `no kit "server"`)
	usage(t, (&house{}).run(t, "service", "--list", "--only", "nothing/*"), `no check is named by "nothing/*"`)
	usage(t, (&house{}).run(t, "client", "--list", "--only", "["), `the pattern "["`)
}

// Every check that a kit lists is told in the form that a report needs.
func TestChecksAreTold(t *testing.T) {
	for _, kind := range []conformance.Kind{conformance.Client, conformance.Service} {
		seen := map[string]bool{}
		for _, c := range checks(kind) {
			if seen[c.ID] {
				t.Errorf("%s is there twice", c.ID)
			}
			seen[c.ID] = true
			for _, s := range c.Sections {
				if !section.MatchString(s) {
					t.Errorf("%s cites %q", c.ID, s)
				}
			}
			if strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyz0123456789-/") != "" || c.Group == "" || c.Title == "" || c.Asks == "" || len(c.Sections) == 0 {
				t.Errorf("%s %+v lacks something", kind, c)
			}
			if c.Level != conformance.Must && c.Level != conformance.Should && c.Level != conformance.Reading {
				t.Errorf("%s has the level %q", c.ID, c.Level)
			}
		}
	}
}

// section is one of the draft, or a decision of this project.
var section = regexp.MustCompile(`^([1-8](\.[0-9]+)?|D[0-9]+)$`)

// What the shell offers: IDs of checks, kits and the actions of a profile.
func TestCompletion(t *testing.T) {
	profile := save(t, t.TempDir(), "agentic.json", exampleProfile(t))
	for _, tt := range []struct{ args, want string }{
		{"list ", "client"}, {"client --only resp", "response-lost"}, {"service --only ", ":4"},
		{"service " + profile + " --action ", "create-ticket"}, {"service absent.json --action ", ":4"}, {"service --action ", ":4"}, {"client --adapter ", "json"}, {"client --timeout ", "30s"},
	} {
		cmd := New(&house{}, &house{}).Conformance()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, strings.Split(tt.args, " ")...))
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v\n%s", tt.args, err, out.String())
		}
	}
}
