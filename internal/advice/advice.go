// Package advice has errors that say what to do about them.
//
// Its job is to carry a stable code and words for people from the place that knows
// them to the command that shows them. Not its job: showing, or choosing an exit
// code. It imports the standard library only.
package advice

import "errors"

// Usage is the code of errors of the command line.
const Usage = "usage"

// Error is an error with advice. Its text can hold what a file, a flag or a service
// said, and has to be escaped before it is shown (D6).
type Error struct {
	Code   string // stable, such as "fetch"
	Err    error
	Remedy string // what to do; commands in it are quoted for a shell
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without advice.
func (e *Error) Unwrap() error { return e.Err }

// New adds advice to an error.
func New(code string, err error, remedy string) error {
	return &Error{Code: code, Err: err, Remedy: remedy}
}

// BadUsage says that a command line cannot be acted on.
func BadUsage(problem, remedy string) error {
	return &Error{Code: Usage, Err: errors.New(problem), Remedy: remedy}
}
