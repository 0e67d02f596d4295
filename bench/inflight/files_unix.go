//go:build unix

package main

import "syscall"

// raiseFileLimit lets the process have as many open files as it may at most: every
// submission has a connection of its own.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}
