// Package cli is the agentic command: flags in, exit code out.
//
// Its job is to wire the parts together, to ask a person before something is sent,
// and to say what happened. All text that a publisher, a service, a file or a flag
// brings goes through internal/render or internal/escape before it is shown (D6).
//
// Not its job: any decision about a request. Package client has the order of
// section 6 and package agentic the decisions; an outcome becomes an exit code
// here and nothing else. The larger commands have rooms of their own, whose host it is:
// deskcmd, workcmd, conformcmd and mcpcmd. It imports the root package, client,
// conformance, desk, transport, and of internal advice, conformcmd, demo, deskcmd,
// documents, escape, inputschema, mcpcmd, place, render, scenario, telemetry, ticket and
// workcmd.
//
// One command, straight down: Main makes an app of the process; app.run builds
// the tree of commands (root.go) and gives the arguments to cobra; the command's
// function returns an exit code or an error; failure.go turns an error into a
// message, a JSON object and a code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
	"github.com/agentic-go/agentic/internal/telemetry"
)

// The exit codes of every command.
const (
	exitOK      = 0 // verified success, or valid
	exitError   = 1 // an error, or invalid
	exitUsage   = 2 // the command line cannot be acted on
	exitFailed  = 3 // the service says that the action did not complete
	exitPending = 4 // not resolved yet
	exitUnknown = 5 // nobody may conclude anything
	exitCrashed = 86
)

// outcomeExit is the exit code of a receipt.
func outcomeExit(o agentic.Outcome) int {
	switch o {
	case agentic.Succeeded:
		return exitOK
	case agentic.Failed:
		return exitFailed
	case agentic.Pending:
		return exitPending
	}
	return exitUnknown
}

// Main runs the command of this process and returns its exit code. SIGINT and
// SIGTERM end its context once; a second one ends the process.
func Main() int {
	// A standard stream that is closed when the process starts is /dev/null by now: the
	// runtime sees to it, so that no file of ours takes its number. It cannot be told
	// from one that the caller sent there, and is as good.
	//
	// Whoever stops reading the output must not end this process between the mark
	// "attempted" and the POST: the write fails instead.
	signal.Ignore(syscall.SIGPIPE)
	log.SetOutput(io.Discard) // net/http quotes a service there (transport's package comment)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv,
		terminal: func() bool {
			return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
		},
		live:   func() bool { return term.IsTerminal(int(os.Stderr.Fd())) },
		forget: func() error { return discardInput(os.Stdin.Fd()) },
		open:   openPlace,
	}
	return a.run(ctx, os.Args[1:])
}

// app is the process as the commands see it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	terminal       func() bool  // a person can be asked: standard input and error are terminals
	live           func() bool  // standard error is a terminal
	forget         func() error // drops what was typed before the question
	open           func(ctx context.Context, p place.Place, o place.Options) (ledger, error)

	telemetry *telemetry.Telemetry // nil is none; see startTelemetry

	json  bool // --json: one JSON value on stdout
	exit  int  // what the command came to, when it is not an error
	began bool // the command line was understood, and the command's own function runs
	mute  bool // nothing more goes to standard output: it is broken, or has the one value

	misused   error  // a wrong command line that asked for help
	unprinted error  // why a help text or a completion was not printed
	begun     func() // the execution holds its request; see executing

	ledgerArgs string // --ledger and scope as they were given, for commands that a person can copy
	reachArgs  string // and the flags of reachFlags
	begins     bool   // the command may make a new request

	names documents.Names // of the files behind diagnostics
}

// run executes one command line.
func (a *app) run(ctx context.Context, args []string) int {
	a.names = documents.Names{}
	root := a.newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.endTelemetry(ctx)
	if err == nil {
		err = errors.Join(a.misused, a.unprinted)
	}
	if err == nil {
		return a.exit
	}
	a.json = a.json || asksForJSON(args)
	if _, ok := errors.AsType[*advice.Error](err); !ok && !a.began {
		err = advice.BadUsage(err.Error(), "See 'agentic --help'.")
	}
	return a.fail(err)
}

// asksForJSON looks for --json where the command line was not understood: the
// flags after a wrong one were not read.
func asksForJSON(args []string) (asked bool) {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--json" {
			asked = true
		} else if value, ok := strings.CutPrefix(arg, "--json="); ok {
			asked, _ = strconv.ParseBool(value)
		}
	}
	return asked
}

// printer is standard output for cobra, which drops the error.
type printer struct{ *app }

func (p printer) Write(b []byte) (int, error) {
	if p.unprinted == nil {
		p.unprinted = p.print(b)
	}
	return len(b), nil
}

// errDeclined says that the person did not agree.
var errDeclined = errors.New("you did not agree, so nothing was sent")

// writeJSON prints one JSON value and a newline.
func (a *app) writeJSON(v any) error {
	b, err := render.JSON(v)
	if err != nil {
		return err
	}
	return a.print(b)
}

// writeReceipt prints a receipt: in one line with --json, indented without.
func (a *app) writeReceipt(r agentic.Receipt) error {
	if a.json {
		return a.writeJSON(r)
	}
	return a.print(append(render.Receipt(r), '\n'))
}

// print writes to stdout. A result that nobody can read is an error.
func (a *app) print(b []byte) error {
	if _, err := a.stdout.Write(b); err != nil {
		a.mute = true
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // without the name, which is standard output's
		}
		return advice.New("output", fmt.Errorf("cannot write to standard output: %w", err), "Look at what reads the output of this command.")
	}
	return nil
}

// say writes one line to stderr. Its arguments have to be escaped.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...) // progress is not worth an error
}
