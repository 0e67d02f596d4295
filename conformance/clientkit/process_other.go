//go:build !unix

package clientkit

import "os/exec"

// systemVariables are passed on beside PATH, HOME and TMPDIR: programs do not start
// without them.
var systemVariables = []string{"SystemRoot", "TEMP", "TMP", "USERPROFILE", "PATHEXT"}

// ownGroup leaves it at the program itself: there are no process groups.
func ownGroup(*exec.Cmd) {}

// endGroup has nothing to kill.
func endGroup(*exec.Cmd) {}
