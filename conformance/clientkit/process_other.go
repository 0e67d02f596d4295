//go:build !unix

package clientkit

import (
	"os"
	"os/exec"
)

// systemVariables are passed on beside PATH, HOME and TMPDIR: programs do not start
// without them.
var systemVariables = []string{"SystemRoot", "TEMP", "TMP", "USERPROFILE", "PATHEXT"}

// ownGroup leaves it at the program itself: there are no process groups.
func ownGroup(*exec.Cmd) {}

// signalOf: there are no signals.
func signalOf(*os.ProcessState) string { return "" }

// endGroup has nothing to kill.
func endGroup(*exec.Cmd) {}
