// Package cli is the agentic command: flags in, exit code out.
//
// Its job is to wire the parts together (it is the only package that knows all of
// them), to ask a person before something is sent, and to show what happened. All
// text that a publisher, a service, a file or a flag brings goes through
// internal/escape before it is shown (D6).
//
// Not its job: any decision about a request. Package client has the order of
// section 6 and package agentic the decisions; an outcome becomes an exit code
// here and nothing else. It imports the root package, client, transport, sqlite,
// and of internal ticket, inputschema, strictjson and escape.
//
// One command, straight down: Main makes an app of the process; app.run builds
// the tree of commands (root.go) and gives the arguments to cobra; the command's
// function returns an exit code or an error; failure.go turns an error into a
// message, a JSON object and a code.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/term"

	"github.com/agentic-go/agentic"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv,
		terminal: func() bool {
			return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
		},
	}
	return a.run(ctx, os.Args[1:])
}

// app is the process as the commands see it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	terminal       func() bool // a person can be asked: standard input and error are terminals

	json bool // --json: one JSON value on stdout
	exit int  // what the command came to, when it is not an error

	ledgerArgs string // --ledger and scope as they were given, for commands that a person can copy
	reachArgs  string // and the flags of reachFlags
}

// run executes one command line.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.newRoot()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		// The flags after a wrong one were not read, but --json still counts.
		a.json = a.json || slices.Contains(args, "--json")
		return a.fail(err)
	}
	return a.exit
}

// usageError says that the command line cannot be acted on.
type usageError struct {
	problem string
	remedy  string
}

func (e *usageError) Error() string { return e.problem }

// remedyError adds what to do to an error that does not know it.
type remedyError struct {
	err    error
	code   string
	remedy string
}

func (e *remedyError) Error() string { return e.err.Error() }
func (e *remedyError) Unwrap() error { return e.err }

// errDeclined says that the person did not agree.
var errDeclined = errors.New("you did not agree, so nothing was sent")

// resumeCommand is the command that goes on with a request, ready to copy.
func (a *app) resumeCommand(requestID string) string {
	return "agentic resume " + requestID + a.ledgerArgs + a.reachArgs
}
