package clientkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// programs are what the test binary is for the tests of processes.
var programs = map[string]func() int{
	"echo": func() int {
		_, err := io.Copy(os.Stdout, os.Stdin)
		fmt.Fprint(os.Stderr, "to standard error")
		if err != nil {
			return 1
		}
		return 7
	},
	"flood": func() int {
		block := bytes.Repeat([]byte("x"), 1<<16)
		for range 2 * maxStdout / len(block) {
			_, _ = os.Stdout.Write(block)
			_, _ = os.Stderr.Write(block)
		}
		return 0
	},
	"environment": func() int {
		fmt.Print(strings.Join(os.Environ(), "\n"))
		return 0
	},
	"folder": func() int {
		dir, _ := os.Getwd()
		fmt.Print(dir)
		return 0
	},
	"deaf": func() int { return 0 }, // does not read what it is given
	"sleep": func() int {
		time.Sleep(time.Minute)
		return 0
	},
	"late-words": func() int {
		fmt.Fprint(os.Stderr, strings.Repeat("x", 2*maxStderr), "the end")
		return 0
	},
	// leaves-a-child ends at once, and its child, whose ID it tells, does not.
	"leaves-a-child": func() int {
		child := exec.Command(os.Args[0], "as-program", "sleep")
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println(child.Process.Pid)
		return 0
	},
	// parent leaves behind a child that holds its standard output, and tells its ID.
	"parent": func() int {
		child := exec.Command(os.Args[0], "as-program", "sleep")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println(child.Process.Pid)
		time.Sleep(time.Minute)
		return 0
	},
}

func self(t *testing.T, name string) program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := find([]string{path, "as-program", name}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "GORACE=atexit_sleep_ms=0") // under the race detector every end takes a second
	return p
}

func TestRunProgram(t *testing.T) {
	t.Setenv("A_SECRET", "which is nobody's business")
	for name, check := range map[string]func(program, ended) bool{
		"echo": func(_ program, e ended) bool {
			return string(e.stdout) == "in" && e.stderr == "to standard error" && e.exit == 7 && !e.late && !e.killed && !e.overflow
		},
		"flood": func(_ program, e ended) bool {
			return len(e.stdout) == maxStdout && len(e.stderr) == maxStderr && e.overflow && e.exit == 0
		},
		"environment": func(_ program, e ended) bool {
			var names []string
			for v := range strings.SplitSeq(string(e.stdout), "\n") {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			return slices.Contains(names, "PATH") && !slices.Contains(names, "A_SECRET") && len(names) <= 4+len(systemVariables)
		},
		"folder": func(p program, e ended) bool {
			have, err := filepath.EvalSymlinks(string(e.stdout))
			want, err2 := filepath.EvalSymlinks(p.dir)
			return err == nil && err2 == nil && have == want
		},
		"late-words": func(_ program, e ended) bool {
			return len(e.stderr) == maxStderr && strings.HasSuffix(e.stderr, "the end")
		},
		"deaf": func(_ program, e ended) bool { return e.exit == 0 && len(e.stdout) == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := self(t, name)
			e, err := p.run(t.Context(), []byte("in"), time.Minute, nil)
			if err != nil || !check(p, e) {
				t.Errorf("exit %d, killed %v, late %v, %d bytes %.200q, standard error %.200q, error %v", e.exit, e.killed, e.late, len(e.stdout), e.stdout, e.stderr, err)
			}
		})
	}
}

func TestKillProgram(t *testing.T) {
	kill := make(chan struct{})
	close(kill)
	e, err := self(t, "sleep").run(t.Context(), nil, time.Minute, kill)
	if err != nil || !e.killed || e.late || e.exit == 0 {
		t.Errorf("killed: %+v, %v", e, err)
	}
	if e, err = self(t, "sleep").run(t.Context(), nil, 100*time.Millisecond, nil); err != nil || e.killed || !e.late {
		t.Errorf("late: %+v, %v", e, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err = self(t, "sleep").run(ctx, nil, time.Minute, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of the context is told as %v", err)
	}
}

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "client.exe")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"./client.exe": path, path: path, "client.exe": "", "./other.exe": "", "go": "go"} {
		p, err := find([]string{name, "a b"}, dir)
		if want == "" {
			if err == nil {
				t.Errorf("%s is %s", name, p.path)
			}
			continue
		}
		if err != nil || !filepath.IsAbs(p.path) || filepath.IsAbs(want) && p.path != want || p.dir != dir || !slices.Equal(p.args, []string{"a b"}) {
			t.Errorf("%s is %+v, %v", name, p, err)
		}
	}
}
