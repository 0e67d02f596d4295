//go:build unix

package proof

import (
	"syscall"
	"time"
)

// processorTime is what this process has used so far, 0 where that is not known.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
