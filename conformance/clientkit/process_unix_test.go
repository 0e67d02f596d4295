//go:build unix

package clientkit

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKillGroup: what the program started dies with it.
func TestKillGroup(t *testing.T) {
	e, err := self(t, "parent").run(t.Context(), nil, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(e.stdout)))
	if err != nil || !e.late {
		t.Fatalf("%+v, %v", e, err)
	}
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if state := zombie(pid); state || time.Now().After(deadline) {
			if !state {
				t.Fatalf("the child %d lives", pid)
			}
			return // dead, and whoever inherited it has not waited for it
		}
	}
}

// zombie reports whether a process is dead but not yet waited for, where that can be
// told.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && strings.HasPrefix(after, "Z")
}
