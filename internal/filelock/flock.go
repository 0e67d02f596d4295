//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// flockDir locks one file of a directory for each key with flock(2), where there
// are no locks of an open file description. A file is deleted by its holder before
// it is given free; so whoever gets the lock looks whether the file is still the
// one of that name, and otherwise tries again.
type flockDir struct {
	dir string

	mu    sync.Mutex
	files map[Key]*os.File
}

func newFlockDir(path string) (*flockDir, error) {
	dir := path + ".locks"
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return &flockDir{dir: dir, files: map[Key]*os.File{}}, nil
}

func (d *flockDir) try(k Key) (bool, error) {
	name := filepath.Join(d.dir, fmt.Sprintf("%016x", int64(k)))
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return false, err
		}
		err = flock(f)
		if err == nil && sameFile(f, name) {
			d.mu.Lock()
			d.files[k] = f
			d.mu.Unlock()
			return true, nil
		}
		_ = f.Close() // nothing was written to it
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case err != nil:
			return false, &os.PathError{Op: "lock", Path: name, Err: err}
		}
	}
}

func flock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) {
		for {
			if lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); lockErr != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, lockErr)
}

// sameFile reports whether the name still stands for the open file.
func sameFile(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(opened, named)
}

func (d *flockDir) unlock(k Key) error {
	d.mu.Lock()
	f := d.files[k]
	delete(d.files, k)
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

func (d *flockDir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, f := range d.files {
		err = errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	clear(d.files)
	return err
}
