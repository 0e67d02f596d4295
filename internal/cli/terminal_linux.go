package cli

import "golang.org/x/sys/unix"

// discardInput drops what was typed on a terminal and not read.
func discardInput(fd uintptr) error { return unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) }
