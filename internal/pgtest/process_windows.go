package pgtest

import (
	"errors"
	"os"
	"syscall"
)

// Ways to end a server. There is no cluster on Windows.
const (
	Fast      = Mode(syscall.SIGINT)
	Immediate = Mode(syscall.SIGKILL)
)

type owner struct{}

func findOwner() (owner, error) {
	return owner{}, errors.New("a throw-away cluster needs Unix: name a server in AGENTIC_TEST_POSTGRES")
}

func (owner) attributes() *syscall.SysProcAttr { return nil }

func (owner) own(string) error { return os.ErrInvalid }
