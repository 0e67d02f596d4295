//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
)

// The test binary runs itself as another process that shares the file: what a
// child does is named in this variable, and the file in the next.
const (
	childRole = "AGENTIC_SQLITE_CHILD"
	childPath = "AGENTIC_SQLITE_PATH"
	childArg  = "AGENTIC_SQLITE_ARG"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := children[role](os.Getenv(childPath), os.Getenv(childArg)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// children are what another process does. It tells on standard output.
var children = map[string]func(path, arg string) error{
	"hold":   childHold,
	"action": childAction,
	"kill":   childKill,
	"open":   childOpen,
}

// child starts another process.
func child(t *testing.T, role, path, arg string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path, childArg+"="+arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func line(t *testing.T, s *bufio.Scanner, want string) {
	t.Helper()
	if !s.Scan() || s.Text() != want {
		t.Fatalf("the child says %q (%v), want %q", s.Text(), s.Err(), want)
	}
}

// childHold begins a request and keeps it until it is killed.
func childHold(path, id string) error {
	l, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	h, err := l.Begin(context.Background(), request(id), client.IntendSubmit, time.Minute)
	if err != nil {
		return err
	}
	fmt.Println("held", h.MaySubmit())
	select {}
}

// A holder that is killed gives free at once, and the next one may not submit.
func TestKilledHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	cmd, out := child(t, "hold", path, "request-1")
	line(t, out, "held true")
	l := open(t, sqlite.Config{Path: path})

	var held *client.HeldError
	if _, err := l.Begin(t.Context(), request("request-1"), client.IntendSubmit, 100*time.Millisecond); !errors.As(err, &held) {
		t.Fatalf("Begin while another process holds: %v", err)
	}

	// The process is a zombie until Wait: its lock must be free all the same.
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	h, err := l.Begin(t.Context(), request("request-1"), client.IntendSubmit, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v to get the request of a dead holder", took)
	}
	if h.MaySubmit() || h.Record().State != client.Attempted {
		t.Fatalf("the next holder may submit: %v, %v", h.MaySubmit(), h.Record().State)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
}

// childAction runs one request as many processes do at once.
func childAction(path, id string) error {
	l, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	defer l.Close()
	b := request(id)
	submits := 0
	for range 10 {
		h, err := l.Begin(context.Background(), b, client.IntendSubmit, time.Minute)
		if err != nil {
			return err
		}
		// Nobody else is between these two: the file is made by one at a time.
		marker := path + ".marker"
		f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("two holders at once: %w", err)
		}
		if err := errors.Join(f.Close(), os.Remove(marker)); err != nil {
			return err
		}
		if h.MaySubmit() {
			submits++
		}
		r := succeeded(b)
		r.Outcome, r.Evidence, r.ResourceID = agentic.Pending, nil, nil
		if err := h.Finish(context.Background(), nil, r); err != nil {
			return err
		}
		if err := h.Release(); err != nil {
			return err
		}
	}
	fmt.Println("submits", submits)
	return nil
}

// Many processes that open a file that is not there, and run the same request.
func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "ledger.db")
	const n = 8
	cmds, outs := make([]*exec.Cmd, n), make([]*bufio.Scanner, n)
	for i := range n {
		cmds[i], outs[i] = child(t, "action", path, "request-1")
	}
	var said []string
	for i := range n {
		for outs[i].Scan() {
			said = append(said, outs[i].Text())
		}
		if err := cmds[i].Wait(); err != nil {
			t.Errorf("child %d: %v", i, err)
		}
	}
	all := strings.Join(said, "\n")
	if strings.Count(all, "submits 1") != 1 || strings.Count(all, "submits 0") != n-1 {
		t.Fatalf("the children say:\n%s", all)
	}
	r, err := open(t, sqlite.Config{Path: path}).Load(t.Context(), request("").Scope, "request-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Receipts) != 10*n {
		t.Fatalf("%d receipts of %d", len(r.Receipts), 10*n)
	}
}

// childKill runs one action and ends itself with SIGKILL at the nth kill point.
func childKill(path, arg string) error {
	var point, step int
	if _, err := fmt.Sscan(arg, &point); err != nil {
		return err
	}
	l, err := sqlite.Open(context.Background(), sqlite.Config{Path: path, KillPoint: func(name string) {
		if step++; step == point {
			fmt.Println(name)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		return err
	}
	b := request("request-1")
	h, err := l.Begin(context.Background(), b, client.IntendSubmit, time.Minute)
	if err != nil {
		return err
	}
	fmt.Println("may submit", h.MaySubmit())
	if err := h.Finish(context.Background(), nil, succeeded(b)); err != nil {
		return err
	}
	fmt.Println("finished")
	if err := h.Release(); err != nil {
		return err
	}
	fmt.Println("released")
	return l.Close()
}

// A process that dies at any boundary between two effects leaves what it told
// somebody, and a request that was told to be submittable is so only once.
func TestKilledAtEveryPoint(t *testing.T) {
	var points []string
	for point := 1; ; point++ {
		path := filepath.Join(t.TempDir(), "ledger.db")
		cmd, out := child(t, "kill", path, fmt.Sprint(point))
		var said []string
		for out.Scan() {
			said = append(said, out.Text())
		}
		killed := cmd.Wait() != nil
		all := strings.Join(said, "\n")

		l := open(t, sqlite.Config{Path: path})
		h, err := l.Begin(t.Context(), request("request-1"), client.IntendSubmit, time.Minute)
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		if strings.Contains(all, "may submit true") && h.MaySubmit() {
			t.Errorf("after %q a second holder may submit", all)
		}
		if last := h.Record().Last(); strings.Contains(all, "finished") && last == nil {
			t.Errorf("after %q the receipt is lost", all)
		}
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		if !killed {
			if !strings.HasSuffix(all, "released") {
				t.Fatalf("the child that lived says %q", all)
			}
			break
		}
		for _, s := range said {
			if strings.HasPrefix(s, "sqlite/") {
				points = append(points, s)
			}
		}
	}
	want := "sqlite/locked sqlite/commit sqlite/committed sqlite/commit sqlite/committed sqlite/released"
	if got := strings.Join(points, " "); got != want {
		t.Errorf("killed at %s, want %s", got, want)
	}
}
