package conformcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/strictjson"
)

const serviceHelp = `Try a service of the draft that you own: submit, repeat, repeat many times at once,
change the input, use keys of others, drop connections, and judge by what the service
itself tells afterwards.

THIS MAKES REAL RESOURCES, which stay. Try a service that may hold test data. On a
terminal the command shows what it will do and asks; in a script --i-own-this-service
says that the service is yours. Requests are bounded by --max-requests, and go to the
one origin that is approved.

PROFILE and OPENAPI are as with 'agentic run': PROFILE is a file or a URL of the
approved origin, and without OPENAPI the document is read from that origin.

What a check needs and is not given is reported as not exercised:
  --other-input         a second input that succeeds
  --refused-input       an input that the business definitely refuses
  --second-principal-header-from-env   credentials of another principal
  --other-action and --other-action-input   another action of the profile
  --count-url           a GET that counts the resources, an exact judge while nobody
                        else uses the service
  --restart-command     restarts the service: a JSON array of a program and its
                        arguments, never a line for a shell. It has to end when the
                        service can be reached again, within a minute; what it
                        prints is dropped.

` + knownHelp + `
An input is JSON, @FILE, or - for standard input. Each but the refused one is checked
against the action's request schema before anything is sent. The values of inputs,
resources and credentials are in no report; the IDs of requests and resources are.
The report goes to standard output, as text or with --json as JSON. It states what was
observed and certifies nothing (docs/conformance.md).

Exit codes:
` + judgedExits + `
  2  usage: the command line cannot be acted on`

// maxInputFile bounds what is read as an input; agentic.Plan.CheckInput has the limit
// that counts.
const maxInputFile = 1 << 20

// restartTime is how long --restart-command may take: less than one check may.
const restartTime = time.Minute

type serviceFlags struct {
	runFlags
	action                          string
	input, otherInput, refusedInput string
	otherAction, otherActionInput   string
	second                          []string
	countURL, countPointer          string
	restart                         string
	owned                           bool
	maxRequests                     int
	settle                          time.Duration
	countPointerGiven               bool
	maxRequestsGiven                bool
	profile, openapi                string
}

func (c *Commands) service() *cobra.Command {
	var (
		f     serviceFlags
		reach Reach
	)
	cmd := &cobra.Command{
		Use:   "service PROFILE [OPENAPI] --input JSON|@FILE|-",
		Short: "Try a service that you own",
		Long:  serviceHelp,
		Example: `  agentic conformance service http://127.0.0.1:4318/agentic.json --approve http://127.0.0.1:4318 --allow-loopback \
      --input '{"subject":"a conformance test"}' --other-input '{"subject":"another one"}'
  agentic conformance service agentic.json openapi.json --approve https://staging.example --input @input.json \
      --header-from-env Authorization=FIRST --second-principal-header-from-env Authorization=SECOND \
      --i-own-this-service --junit report.xml`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.list {
			return c.listOnly(conformance.Service, f.only)
		}
		f.countPointerGiven, f.maxRequestsGiven = cmd.Flags().Changed("count-pointer"), cmd.Flags().Changed("max-requests")
		f.profile, f.openapi = at(args, 0), at(args, 1)
		return c.tryService(cmd.Context(), &f, reach)
	}
	cmd.Flags().StringVar(&f.input, "input", "", "the action's input, which makes a resource: `JSON`, @FILE, or - for standard input (required)")
	cmd.Flags().StringVar(&f.otherInput, "other-input", "", "another input that succeeds (`JSON`, @FILE or -)")
	cmd.Flags().StringVar(&f.refusedInput, "refused-input", "", "an input that the business definitely refuses (`JSON`, @FILE or -)")
	cmd.Flags().StringVar(&f.action, "action", "", "`ID` of the action (default: the profile's only one)")
	cmd.Flags().StringVar(&f.otherAction, "other-action", "", "`ID` of another action of the profile, in the same OpenAPI document")
	cmd.Flags().StringVar(&f.otherActionInput, "other-action-input", "", "its input (`JSON`, @FILE or -)")
	cmd.Flags().StringArrayVar(&f.second, "second-principal-header-from-env", nil, "like --header-from-env, for another principal (`Name=VAR`, repeat for more)")
	cmd.Flags().StringVar(&f.countURL, "count-url", "", "root-relative `PATH` of a GET whose JSON answer counts the action's resources")
	cmd.Flags().StringVar(&f.countPointer, "count-pointer", "", "JSON `POINTER` to the number in it, such as /total (default: the whole answer)")
	cmd.Flags().StringVar(&f.restart, "restart-command", "", "what restarts the service: a `JSON` array of program and arguments")
	cmd.Flags().BoolVar(&f.owned, "i-own-this-service", false, "do not ask: the service is yours, and may be tried")
	cmd.Flags().IntVar(&f.maxRequests, "max-requests", 0, fmt.Sprintf("send no more requests than this (default: %d for each repeat)", servicekit.DefaultMaxRequests))
	cmd.Flags().DurationVar(&f.settle, "settle", 0, "how long a new request may take to become final (`DURATION`, default: what the profile lets a client wait)")
	f.runFlags.add(cmd, conformance.Service)
	reach = c.host.ReachOne(cmd)
	for _, flag := range []string{"input", "other-input", "refused-input", "other-action-input", "second-principal-header-from-env", "count-url", "count-pointer", "restart-command"} {
		complete(cmd, flag)
	}
	complete(cmd, "settle", "2s", "10s", "1m")
	_ = cmd.RegisterFlagCompletionFunc("action", c.completeAction)
	_ = cmd.RegisterFlagCompletionFunc("other-action", c.completeAction)
	c.host.LeafBetween(cmd, 0, 2, "PROFILE [OPENAPI]")
	return cmd
}

// at is an argument, "" if there is none.
func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// completeAction offers the actions of the profile that is already typed.
func (c *Commands) completeAction(cmd *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 || args[0] == "-" {
		return nil, none
	}
	data, err := c.host.ReadFile(cmd.Context(), args[0], agentic.MaxProfileBytes)
	if err != nil {
		return nil, none
	}
	if p, _ := agentic.ParseProfile(data, agentic.Options{AllowLoopback: true}); p != nil {
		for _, a := range p.Actions {
			words = append(words, a.ID)
		}
	}
	return words, none
}

// check refuses flags that cannot be acted on, before anything is read.
func (f *serviceFlags) check() error {
	stdin := 0
	for _, name := range []string{f.profile, f.openapi, f.input, f.otherInput, f.refusedInput, f.otherActionInput, f.baseline} {
		if strings.TrimPrefix(name, "@") == "-" {
			stdin++
		}
	}
	switch {
	case f.profile == "":
		return advice.BadUsage("the profile is missing", "Give its file, or its URL at the approved origin.")
	case f.input == "":
		return advice.BadUsage("--input is missing", "Give an input of the action as --input JSON, --input @FILE or --input -.")
	case stdin > 1:
		return advice.BadUsage("standard input can hold only one of the documents, the inputs and the baseline", "Save the others to files.")
	case stdin > 0 && !f.owned:
		return advice.BadUsage("standard input cannot hold both what is to be read and your answer", "Give a file instead of '-', or --i-own-this-service.")
	case (f.otherAction == "") != (f.otherActionInput == ""):
		return advice.BadUsage("--other-action and --other-action-input belong together", "Give both, or neither.")
	case f.otherAction != "" && f.otherAction == f.action:
		return advice.BadUsage("--other-action is the action itself", "Name another action of the profile.")
	case f.countPointerGiven && f.countURL == "":
		return advice.BadUsage("--count-pointer says nothing without --count-url", "Give the path of the GET that counts, too.")
	case f.maxRequestsGiven && f.maxRequests < 1:
		return advice.BadUsage(fmt.Sprintf("--max-requests %d is below one", f.maxRequests),
			fmt.Sprintf("Say how many requests may be sent at most, or leave it out for %d for each repeat.", servicekit.DefaultMaxRequests))
	case f.settle < 0:
		return advice.BadUsage("--settle "+f.settle.String()+" is below zero", "Give a duration such as 10s.")
	}
	if err := servicekit.CheckCount(f.countURL, ""); err != nil {
		return advice.BadUsage("--count-url "+f.countURL+" is not a root-relative path", "Give the path of the GET at the service's own origin, such as /tickets/count.")
	}
	if err := servicekit.CheckCount(f.countURL, f.countPointer); err != nil {
		return advice.BadUsage("--count-pointer "+f.countPointer+" is not a JSON Pointer", "Give a JSON Pointer (RFC 6901) such as /total, or leave it out when the whole answer is the number.")
	}
	return f.runFlags.check(f.sources()...)
}

// sources are the files that the flags name.
func (f *serviceFlags) sources() []source {
	all := []source{{"PROFILE", f.profile}, {"OPENAPI", f.openapi}}
	for _, in := range []source{{"--input", f.input}, {"--other-input", f.otherInput}, {"--refused-input", f.refusedInput}, {"--other-action-input", f.otherActionInput}} {
		if name, isFile := strings.CutPrefix(in.name, "@"); isFile {
			all = append(all, source{in.flag, name})
		}
	}
	return all
}

func (c *Commands) tryService(ctx context.Context, f *serviceFlags, reach Reach) error {
	if err := f.check(); err != nil {
		return err
	}
	if !f.owned && !c.out.Terminal() {
		return advice.BadUsage("trying a service needs its owner's agreement, and there is no terminal to ask on", "Give --i-own-this-service if it is yours and may hold test data.")
	}
	infos, err := selected(conformance.Service, f.only)
	if err != nil {
		return err
	}
	cfg, plan, err := c.serviceConfig(ctx, f, reach)
	if err != nil {
		return err
	}
	known, err := c.readBaseline(ctx, f.baseline, plan.Origin, conformance.Service)
	if err != nil {
		return err
	}
	cfg.Match = ids(infos, f.only)
	if !f.owned {
		err := c.out.Ask(ctx, trying(plan, cfg, len(infos)), "Is this service yours, and may it be tried? [y/N] ", "you did not agree, so the service was not tried")
		if err != nil {
			return err
		}
	}
	cfg.Owned = true
	show, end := c.progress()
	cfg.Progress = func(done, total int, _ conformance.Result) { show(done, total) }
	rep, err := servicekit.Run(ctx, cfg)
	end()
	if err != nil {
		return interrupted(ctx, err, "there is no report, and what was sent until then may have made resources", shorter)
	}
	if n := servicekit.Unspent(rep); n > 0 {
		c.out.Say("agentic: %d of %s were not exercised, because the limit of requests was used up: give a larger --max-requests, or fewer checks with --only",
			n, render.Plural(len(rep.Checks), "check"))
	}
	return c.judge(rep, &f.runFlags, known)
}

// serviceConfig reads everything that is to be read, and checks it.
func (c *Commands) serviceConfig(ctx context.Context, f *serviceFlags, reach Reach) (cfg servicekit.Config, plan *agentic.Plan, err error) {
	if err := reach.Check(); err != nil {
		return cfg, nil, err
	}
	cfg = servicekit.Config{
		First:    &servicekit.Principal{Header: reach.Header()},
		CountURL: f.countURL, CountPointer: f.countPointer,
		AllowLoopback: reach.AllowLoopback(), MaxRequests: f.maxRequests, Settle: f.settle,
		Repeat: f.repeat, Seed: f.seed, Tool: c.host.Tool(),
	}
	if len(f.second) > 0 {
		h, err := c.host.HeaderFromEnv("--second-principal-header-from-env", f.second)
		if err != nil {
			return cfg, nil, err
		}
		if maps.EqualFunc(h, cfg.First.Header, slices.Equal) {
			return cfg, nil, advice.BadUsage("--second-principal-header-from-env has the headers of --header-from-env", "Give the credentials of another principal.")
		}
		cfg.Second = &servicekit.Principal{Header: h}
	}
	if cfg.Restart, err = restarter(f.restart, restartTime); err != nil {
		return cfg, nil, err
	}
	if plan, err = reach.Plan(ctx, f.profile, f.openapi, f.action); err != nil {
		return cfg, nil, err
	}
	cfg.Profile, cfg.OpenAPI, cfg.Action = plan.Profile.Source(), plan.OpenAPI.Source(), plan.Action.ID
	if strings.HasPrefix(f.profile, plan.Origin+"/") {
		cfg.ProfileURL = f.profile
	}
	other := plan
	if f.otherAction != "" {
		if _, ok := plan.Profile.Action(f.otherAction); !ok {
			return cfg, nil, advice.New("unknown-action", fmt.Errorf("--other-action: the profile has no action %q", f.otherAction), "Name another action of the profile.")
		}
		if f.otherAction == plan.Action.ID {
			return cfg, nil, advice.BadUsage("--other-action is the action itself", "Name another action of the profile.")
		}
		cfg.OtherAction = f.otherAction
		other, err = agentic.Load(cfg.Profile, cfg.OpenAPI, f.otherAction, agentic.Options{AllowLoopback: cfg.AllowLoopback})
		if err != nil {
			return cfg, nil, err
		}
		if other.Action.OpenAPI != plan.Action.OpenAPI {
			return cfg, nil, advice.New("invalid-document", errors.New("--other-action: the profile describes it in another OpenAPI document"), "Name an action that is in the same one.")
		}
	}
	if err := c.inputs(ctx, f, &cfg, plan, other); err != nil {
		return cfg, nil, err
	}
	return cfg, plan, nil
}

// inputs reads the inputs and checks each against its action, but for the refused one,
// which only has to be an object: to be wrong is what it is for.
func (c *Commands) inputs(ctx context.Context, f *serviceFlags, cfg *servicekit.Config, plan, other *agentic.Plan) (err error) {
	digests := map[string]string{}
	for _, in := range []struct {
		flag, value string
		plan        *agentic.Plan
		to          *[]byte
	}{
		{"--input", f.input, plan, &cfg.Input}, {"--other-input", f.otherInput, plan, &cfg.OtherInput},
		{"--refused-input", f.refusedInput, plan, &cfg.RefusedInput}, {"--other-action-input", f.otherActionInput, other, &cfg.OtherActionInput},
	} {
		if in.value == "" {
			continue
		}
		if *in.to, err = c.readInput(ctx, in.value); err != nil {
			return err
		}
		if in.flag == "--refused-input" {
			if v, err := strictjson.Parse(*in.to); err != nil || v.Kind() != strictjson.Object {
				return badInput(in.flag, errors.Join(err, errors.New("the input is not a JSON object")))
			}
			continue
		}
		checked, err := in.plan.CheckInput(*in.to)
		if err == nil {
			err = c.host.CheckSchema(in.plan, checked)
		}
		if err != nil {
			return badInput(in.flag, err)
		}
		digests[in.flag] = checked.Digest()
	}
	if digests["--input"] == digests["--other-input"] {
		return badInput("--other-input", errors.New("it is the same as --input, however it is written"))
	}
	return nil
}

// readInput gives an input from JSON, @FILE or -.
func (c *Commands) readInput(ctx context.Context, flag string) ([]byte, error) {
	name, isFile := strings.CutPrefix(flag, "@")
	if !isFile && flag != "-" {
		return []byte(flag), nil
	}
	return c.host.ReadFile(ctx, name, maxInputFile)
}

// badInput says which of the inputs it is.
func badInput(flag string, err error) error {
	if flag == "--input" {
		return err
	}
	return advice.New("invalid-input", fmt.Errorf("%s: %w", flag, err), "Give a JSON object that the action takes.")
}

// restarter makes a function of a command, which may take that long: a JSON array of
// strings, or "" for none.
func restarter(text string, limit time.Duration) (func(context.Context) error, error) {
	if text == "" {
		return nil, nil
	}
	const remedy = `Write it as --restart-command '["systemctl", "restart", "tickets"]'.`
	v, err := strictjson.Parse([]byte(text))
	if err != nil {
		return nil, advice.BadUsage("--restart-command is not JSON: "+err.Error(), remedy)
	}
	var command []string
	for _, e := range v.Elements() {
		s, ok := e.Text()
		if !ok || strings.ContainsRune(s, 0) {
			return nil, advice.BadUsage("--restart-command has something in it that is no text", remedy)
		}
		command = append(command, s)
	}
	if len(command) == 0 || command[0] == "" {
		return nil, advice.BadUsage("--restart-command names no program", remedy)
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		// Its output goes nowhere: the service that it starts may keep a pipe open.
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		if err := cmd.Run(); err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the restart command did not end within %s, and was killed: let it start the service in the background", limit)
			}
			return errors.Join(fmt.Errorf("the restart command: %w", err), ctx.Err())
		}
		return nil
	}, nil
}

// trying shows the owner what is about to be done.
func trying(plan *agentic.Plan, c servicekit.Config, checks int) []byte {
	requests := c.MaxRequests
	if requests == 0 {
		requests = servicekit.DefaultMaxRequests * c.Repeat
	}
	names := func(h http.Header) string {
		if len(h) == 0 {
			return "none"
		}
		return strings.Join(slices.Sorted(maps.Keys(h)), ", ")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "About to try a service. This makes real resources, which stay.\n")
	render.Field(&b, "origin", plan.Origin)
	render.Field(&b, "action", plan.Action.ID)
	render.Field(&b, "submits to", plan.SubmitURL())
	render.Field(&b, "checks", fmt.Sprintf("%d, each tried %s", checks, render.Plural(c.Repeat, "time")))
	render.Field(&b, "requests", fmt.Sprintf("at most %d", requests))
	render.Field(&b, "headers", names(c.First.Header))
	if c.Second != nil {
		render.Field(&b, "and as another", names(c.Second.Header))
	}
	fmt.Fprintf(&b, "%-13s %s\n", "input", escape.Quoted(string(escape.JSON(c.Input))))
	if c.Restart != nil {
		render.Field(&b, "restarts", "the service, with --restart-command")
	}
	return b.Bytes()
}
