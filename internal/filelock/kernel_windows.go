package filelock

import (
	"errors"
	"os"

	"github.com/agentic-go/agentic/internal/privatefile"
	"golang.org/x/sys/windows"
)

// newKernelLock opens PATH.lock. Each key is one byte of it; Windows frees the
// locks of a process that ends.
func newKernelLock(path string) (kernelLock, error) {
	f, err := privatefile.Open(path + ".lock")
	if err != nil {
		return nil, err
	}
	return rangeLock{f}, nil
}

type rangeLock struct{ f *os.File }

func (l rangeLock) try(k Key) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(l.f.Fd()), flags, 0, 1, 0, at(k))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func (l rangeLock) unlock(k Key) error {
	return windows.UnlockFileEx(windows.Handle(l.f.Fd()), 0, 1, 0, at(k))
}

func (l rangeLock) close() error { return l.f.Close() }

func at(k Key) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(uint64(k)), OffsetHigh: uint32(uint64(k) >> 32)}
}
