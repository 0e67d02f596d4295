//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package cli

import "golang.org/x/sys/unix"

// discardInput drops what was typed on a terminal and not read.
func discardInput(fd uintptr) error {
	const read = 1 // FREAD
	return unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, read)
}
