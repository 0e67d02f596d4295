package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
)

// failure is an error as it is shown: for people on stderr, and with --json as
// the member "error" of one object on stdout. Commands in Remedy are quoted for a
// shell, so its backslashes stay as they are.
type failure struct {
	Code        string              `json:"code"`
	Message     string              `json:"message"`
	Remedy      string              `json:"remedy,omitempty"`
	RequestID   string              `json:"request_id,omitempty"`
	Earlier     string              `json:"earlier_request_id,omitempty"` // of which RequestID is a duplicate
	Differences []difference        `json:"differences,omitempty"`
	Diagnostics agentic.Diagnostics `json:"diagnostics,omitempty"`

	exit int
}

type difference struct {
	Field string `json:"field"`
	Saved string `json:"saved"`
	Asked string `json:"asked"`
}

// unsettledError is an error of an execution, and of which request: whoever reads
// it must not start the action anew before that one is settled.
type unsettledError struct {
	requestID string
	sent      bool // by this command
	attempted bool // before this command, as far as anybody knows
	err       error
}

func (e *unsettledError) Error() string { return e.err.Error() }
func (e *unsettledError) Unwrap() error { return e.err }

// unsettled names the request in an error that leaves open what became of it: of
// the ledger, of a lost hold, or an interruption. Others say themselves that
// nothing was sent.
func unsettled(err error, requestID string, sent, attempted bool) error {
	if e, ok := errors.AsType[*client.InterruptedError](err); ok {
		requestID = e.RequestID
	}
	if requestID == "" || !sent && !errors.Is(err, client.ErrLedger) && !errors.Is(err, client.ErrLost) && !interrupted(err) {
		return err
	}
	return &unsettledError{requestID, sent, attempted, err}
}

func interrupted(err error) bool {
	_, ok := errors.AsType[*client.InterruptedError](err)
	return ok || errors.Is(err, context.Canceled)
}

// fail shows an error and gives its exit code.
func (a *app) fail(err error) int {
	f := a.explain(err)
	var b bytes.Buffer
	fmt.Fprintf(&b, "agentic: %s\n", escape.Terminal(f.Message))
	for _, d := range f.Diagnostics {
		render.Diagnostic(&b, a.names.Of(d.Document), d)
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "  %s\n", escape.Quoted(f.Remedy))
	}
	_, _ = a.stderr.Write(b.Bytes()) // there is nowhere left to say so
	if a.json && !a.mute {
		if err := a.writeJSON(struct {
			Error failure `json:"error"`
		}{f}); err != nil {
			return exitError
		}
	}
	return f.exit
}

// explain finds code, remedy and exit code of an error.
func (a *app) explain(err error) failure {
	f := failure{Code: "error", Message: render.OneLine(err.Error()), exit: exitError}
	var (
		stopped  *client.InterruptedError
		open     *unsettledError
		advised  *advice.Error
		invalid  *agentic.InvalidError
		input    *agentic.InputError
		action   *agentic.UnknownActionError
		binding  *client.BindingError
		held     *client.HeldError
		missing  *client.NotFoundError
		prepared *client.PreparedError
		twice    *client.DuplicateError
		settled  *client.SettledError
		expired  *client.ExpiredError
		purged   *client.PurgedError
		note     *client.NoteError
		id       *client.RequestIDError
		origin   *client.OriginError
		file     *fs.PathError
	)
	if !errors.As(err, &open) && errors.As(err, &stopped) {
		open = &unsettledError{requestID: stopped.RequestID, err: err}
	}
	switch {
	case open != nil:
		a.explainUnsettled(&f, open)
	case errors.As(err, &advised):
		f.Code, f.Remedy = advised.Code, advised.Remedy
		if f.Code == advice.Usage {
			f.exit = exitUsage
		}
		if errors.As(err, &input) {
			f.Diagnostics = input.Diagnostics
		}
	case errors.Is(err, errDeclined):
		f.Code, f.Remedy = "declined", "Run it again and answer y to send it."
	case errors.As(err, &invalid):
		f.Code, f.Diagnostics = "invalid-document", invalid.Diagnostics
		f.Message = "a document is invalid: " + render.Count(invalid.Diagnostics)
	case errors.As(err, &input):
		f.Code, f.Diagnostics = "invalid-input", input.Diagnostics
		f.Message = "the input is invalid: " + render.Count(input.Diagnostics)
	case errors.As(err, &action):
		f.Code, f.Remedy = "unknown-action", "Name one of them with --action."
		if action.Action != "" {
			f.Message = `the profile has no action "` + action.Action + `"; it has: ` + strings.Join(action.Known, ", ")
		}
	case errors.As(err, &binding):
		f.Code, f.RequestID, f.Remedy = "bound-to-another", binding.RequestID, "Leave out --request-id for a new action, or go on with the saved one: "+a.resumeCommand(binding.RequestID, "")
		if !a.begins {
			f.Remedy = "Give an ID with --new-id that is not in use, or leave it out for one that follows from the old request."
		}
		f.Message = fmt.Sprintf("request %s is already bound to another request", binding.RequestID)
		for _, d := range binding.Differences {
			what := d.Field
			if what != "origin" && what != "action" {
				what += "'s sha256"
			}
			f.Message += fmt.Sprintf("; its %s is %s, and here it is %s", what, d.Saved, d.Asked)
			f.Differences = append(f.Differences, difference(d))
		}
	case errors.As(err, &held):
		f.Code, f.RequestID, f.Remedy = "held", held.RequestID, "When the other execution has ended: "+a.resumeCommand(held.RequestID, "")
	case errors.As(err, &missing):
		f.Code, f.RequestID = "not-found", missing.RequestID
		f.Message = fmt.Sprintf(`no request %s of principal "%s" in environment "%s"`, missing.RequestID, missing.Scope.Principal, missing.Scope.Environment)
		f.Remedy = "Look at 'agentic requests list', and give --ledger, --principal and --environment as they were when it was saved."
	case errors.As(err, &prepared):
		f.Code, f.RequestID = "prepared", prepared.RequestID
		f.Message = fmt.Sprintf("request %s was prepared and never sent, so there is nothing to reconcile", prepared.RequestID)
		f.Remedy = "To send it: " + a.resumeCommand(prepared.RequestID, " --send")
	case errors.As(err, &twice):
		f.Code, f.RequestID, f.Earlier = "duplicate", twice.RequestID, twice.Earlier.RequestID
		f.Remedy = "Go on with the earlier one: " + a.earlierCommand(&twice.Earlier) + ". Or, if a second one is meant, add --allow-duplicate."
	case errors.As(err, &settled):
		f.Code, f.RequestID = "settled", settled.RequestID
		f.Message = fmt.Sprintf("request %s was never sent, and never will be: %s settled it (%s) at %s",
			settled.RequestID, settled.Note.By, settled.Note.Verb, agentic.FormatTime(settled.Note.At))
		f.Remedy = "If it is to be done after all, begin a new request. Why it was settled: " + a.showCommand(settled.RequestID)
	case errors.As(err, &expired):
		f.Code, f.RequestID = "expired", expired.RequestID
		f.Remedy = "Begin a new request, or take this one's input over: " + withID("agentic requests supersede", a.ledgerArgs+a.reachArgs+" --reason TEXT", expired.RequestID)
	case errors.As(err, &purged):
		f.Code, f.RequestID, f.Remedy = "purged", purged.RequestID, "Give a new request ID for a new action. What is left of this one: "+a.showCommand(purged.RequestID)
	case errors.As(err, &note):
		f.Code, f.RequestID, f.Remedy = "not-possible", note.RequestID, "Where it stands, and what can be done: "+a.showCommand(note.RequestID)
		f.Message = strings.Replace(f.Message, render.OneLine(note.Error()), render.Refused(note), 1)
	case errors.As(err, &id):
		f.Code, f.exit, f.Remedy = "request-id", exitUsage, "'agentic requests list' has the IDs that are saved."
		if a.begins {
			f.Remedy += " Leave out --request-id for a new one."
		}
		f.Message = `request ID "` + id.RequestID + `" is not 8 to 128 characters of A-Z, a-z, 0-9, _ and -`
	case errors.As(err, &origin):
		f.Code = "origin-not-approved"
		plain := unquoted(origin.Origin)
		f.Message = strings.Replace(f.Message, render.OneLine(origin.Error()), "the origin "+plain+" is not approved", 1)
		f.Remedy = "If you trust this origin, approve it with --approve " + escape.Shell(plain) + loopbackHint(plain)
		if why := neverApproved(plain); why != nil {
			f.Remedy = "No --approve can help: the origin " + why.Error() + "."
		}
	case errors.Is(err, client.ErrLost):
		f.Code, f.Remedy = "lost", "Look at 'agentic requests list --open' and resume the request."
	case errors.Is(err, client.ErrLedger):
		f.Code, f.Remedy = "ledger", place.Remedy(err)
	case errors.Is(err, context.Canceled):
		f.Code, f.Message, f.Remedy = "interrupted", "interrupted: nothing was sent by this command", "Run it again."
	case errors.As(err, &file) && file.Op != "write":
		f.Code, f.Remedy = "file", "Look at the name of the file and whether you may read it."
		if errors.Is(file.Err, fs.ErrNotExist) && hostLike.MatchString(file.Path) {
			f.Remedy = "If it is the address of a service, begin it with https://, or http:// on this machine."
		}
	}
	return f
}

// hostLike is the name of a file that looks like a URL without its scheme.
var hostLike = regexp.MustCompile(`^([A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\]):[0-9]+(/|$)|^(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)/`)

// explainUnsettled says what may have been sent under which ID, and how to settle
// it: never by another ledger, which knows nothing of the request and would send
// the action a second time.
func (a *app) explainUnsettled(f *failure, e *unsettledError) {
	f.RequestID = e.requestID
	stopped, _ := errors.AsType[*client.InterruptedError](e.err)
	broken, _ := errors.AsType[*client.LedgerError](e.err)
	switch {
	case interrupted(e.err):
		f.Code, f.Message = "interrupted", "interrupted"
		if broken != nil {
			f.Message += "; " + render.OneLine(broken.Error())
		}
	case errors.Is(e.err, client.ErrLost):
		f.Code = "lost"
	case errors.Is(e.err, client.ErrLedger):
		f.Code = "ledger"
	}
	switch {
	case e.sent:
		f.Message += "; the action may have been sent as request " + e.requestID
	case e.attempted:
		f.Message += "; nothing was sent by this command, and request " + e.requestID + " may have been sent before it"
	default:
		f.Message += "; nothing was sent by this command, and request " + e.requestID + " may be saved"
	}
	if e.sent || e.attempted || stopped != nil && stopped.Saved {
		f.Remedy = "To go on, by reading only: " + a.resumeCommand(e.requestID, "")
	} else {
		f.Remedy = "To see whether it was saved: " + a.showCommand(e.requestID)
	}
	if errors.Is(e.err, client.ErrLedger) {
		f.Remedy = place.Remedy(e.err) + " " + f.Remedy
	}
}

// resumeCommand is the command that goes on with a request, ready to copy.
func (a *app) resumeCommand(requestID, more string) string {
	return withID("agentic resume", a.ledgerArgs+a.reachArgs+more, requestID)
}

// earlierCommand is the command that goes on with what a new request duplicates.
func (a *app) earlierCommand(s *client.Summary) string {
	switch {
	case !s.Open():
		return a.showCommand(s.RequestID)
	case s.State == client.Prepared:
		return a.resumeCommand(s.RequestID, " --send")
	}
	return a.resumeCommand(s.RequestID, "")
}

// showCommand is the command that shows a request, ready to copy.
func (a *app) showCommand(requestID string) string {
	return withID("agentic requests show", a.ledgerArgs, requestID)
}

// withID completes a command. A request ID may begin with '-' (D7).
func withID(command, flags, requestID string) string {
	if strings.HasPrefix(requestID, "-") {
		return command + flags + " -- " + escape.Shell(requestID)
	}
	return command + " " + escape.Shell(requestID) + flags
}

// unquoted is the origin of a client.OriginError, which quotes what is not plain
// text: it is escaped where it is shown, and once.
func unquoted(origin string) string {
	if plain, err := strconv.Unquote(origin); err == nil {
		return plain
	}
	return origin
}

// neverApproved says why no host may approve an origin, or nil (section 2, D3).
func neverApproved(origin string) error {
	return agentic.CheckOrigin(origin, agentic.Options{AllowLoopback: true})
}

// loopbackHint names the flag that an http origin also needs.
func loopbackHint(origin string) string {
	if strings.HasPrefix(origin, "http://") {
		return " --allow-loopback"
	}
	return ""
}
