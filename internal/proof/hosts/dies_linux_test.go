package hosts

import "syscall"

// diesWithTest leaves no host behind when the test is killed.
var diesWithTest = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
