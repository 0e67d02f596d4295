// Package privatefile makes files and directories that only this user may use, on
// stable storage, and finds the one true path of a file.
//
// Not its job: what is in the files. It imports nothing of this module.
package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ErrPlace says that there can be no file at a place.
var ErrPlace = errors.New("there can be no file at this place")

// Place gives the one true path of the file: every process has to find the same
// lock beside it. What is there has to be a regular file, or a symbolic link to one;
// a link that leads nowhere has no true path yet.
func Place(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%w: no path", ErrPlace)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%w: it is a symbolic link that leads to no file", ErrPlace)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		return filepath.Join(dir, filepath.Base(path)), err
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is not a regular file", ErrPlace)
	}
	return real, err
}

// MakeDir makes a directory and those above it, each on stable storage: what is
// committed into a directory that a power failure takes away is lost with it.
func MakeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := MakeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// Make makes the file with mode 0600, whatever the umask, before the
// one does that uses it. Of an existing one, and of those beside it with the
// suffixes, the rights of others are taken away. It is not opened for that: closing
// it could drop locks that others in this process have on it.
func Make(path string, suffixes ...string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return errors.Join(f.Chmod(0o600), f.Close(), SyncDir(filepath.Dir(path)))
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // the directory's access list counts there
	}
	for _, suffix := range append([]string{""}, suffixes...) {
		name := path + suffix
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			if err := os.Chmod(name, mode&^0o077); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open opens a file that only this user may use, making it when needed.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(name, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SyncDir puts the names in a directory on stable storage.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be synced there
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // others' directory: it may be written to but not be read
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
