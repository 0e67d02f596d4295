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

// TestKillGroup: what the program started dies with it, whether it is killed or ends by
// itself.
func TestKillGroup(t *testing.T) {
	for name, late := range map[string]bool{"parent": true, "leaves-a-child": false} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if late {
				limit = time.Second
			}
			e, err := self(t, name).run(t.Context(), nil, limit, nil)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(e.stdout)))
			if err != nil || e.late != late {
				t.Fatalf("%+v, %v", e, err)
			}
			dies(t, pid)
		})
	}
}

// dies waits for the end of a process.
func dies(t *testing.T, pid int) {
	t.Helper()
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

// A client that dies of a signal is told by it.
func TestSignal(t *testing.T) {
	sh, err := find([]string{"sh", "-c", "kill -SEGV $$"}, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := sh.run(t.Context(), nil, time.Minute, nil)
	if want := "-1, by signal 11 (segmentation fault)"; err != nil || !strings.HasPrefix(e.code(), want) {
		t.Errorf("%q, %v, want %q", e.code(), err, want)
	}
}
