//go:build unix

package pgtest

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Ways to end a server: both end real processes by their id.
const (
	Fast      = Mode(syscall.SIGINT)  // transactions are rolled back, sessions are told
	Immediate = Mode(syscall.SIGQUIT) // as a crash: the next start recovers from the log
)

// owner is whom a cluster runs as: this user, or for root, whom PostgreSQL
// refuses, an unprivileged one.
type owner struct{ credential *syscall.Credential }

func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return owner{}, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

// attributes puts a process under the owner and in a group of its own, so that an
// interrupt from the keyboard reaches the test program alone.
func (o owner) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: o.credential, Setpgid: true}
}

func (o owner) own(dir string) error {
	if o.credential == nil {
		return nil
	}
	return os.Chown(dir, int(o.credential.Uid), int(o.credential.Gid))
}
