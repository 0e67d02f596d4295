//go:build unix

package clientkit

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// systemVariables are passed on beside PATH, HOME and TMPDIR.
var systemVariables []string

// ownGroup has the program and what it starts killed together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		// The leader is not yet waited for, so the group is still its own.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err == syscall.ESRCH {
			return os.ErrProcessDone
		}
		return nil
	}
}

// signalOf is the signal that ended a process, "" for none.
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("signal %d (%s)", int(w.Signal()), w.Signal())
	}
	return ""
}

// endGroup kills what the program left behind. Its number is the group's alone as long
// as anything is in it; nothing is there to be killed otherwise, but for a process that got
// the number, and made a group of it, since the program ended.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
