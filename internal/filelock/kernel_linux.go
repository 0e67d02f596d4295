package filelock

import (
	"errors"
	"io"
	"os"

	"github.com/agentic-go/agentic/internal/privatefile"
	"golang.org/x/sys/unix"
)

// newKernelLock opens PATH.lock. Each key is one byte of it, locked through an
// open file description: such a lock ends when the last descriptor of it does, it
// works between PID namespaces, and closing another descriptor of the file does
// not drop it as it drops a POSIX lock.
func newKernelLock(path string) (kernelLock, error) {
	f, err := privatefile.Open(path + ".lock")
	if err != nil {
		return nil, err
	}
	return ofdLock{f}, nil
}

type ofdLock struct{ f *os.File }

func (l ofdLock) try(k Key) (bool, error) {
	err := l.set(k, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func (l ofdLock) unlock(k Key) error { return l.set(k, unix.F_UNLCK) }

func (l ofdLock) set(k Key, kind int16) error {
	raw, err := l.f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) {
		for {
			lk := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(k), Len: 1}
			if lockErr = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &lk); lockErr != unix.EINTR {
				return
			}
		}
	})
	if err == nil && lockErr != nil {
		err = &os.PathError{Op: "lock", Path: l.f.Name(), Err: lockErr}
	}
	return err
}

func (l ofdLock) close() error { return l.f.Close() }
