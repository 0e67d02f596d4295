package clientkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentic-go/agentic/conformance/clientkit/internal/excerpt"
)

// Bounds of what is kept of one call of a client.
const (
	maxStdout = 1 << 20
	maxStderr = 16 << 10
)

// afterKill is how long the pipes of a client that was killed may stay open: whoever
// left its process group may hold them.
const afterKill = 2 * time.Second

// client is what a trial calls: a program, or in tests a function.
type client interface {
	// run gives it stdin and waits for its end. It is ended when kill is closed or the time
	// is over. The error is the kit's own.
	run(ctx context.Context, stdin []byte, timeout time.Duration, kill <-chan struct{}) (ended, error)
}

// program is a client that can be started.
type program struct {
	path string // absolute
	args []string
	dir  string   // the working folder
	env  []string // all of it
}

// find looks up the program of a command: a name on the PATH, a path with a slash from
// dir.
func find(command []string, dir string) (program, error) {
	if len(command) == 0 {
		return program{}, errors.New("the command names no program")
	}
	dir, err := filepath.Abs(dir) // of "" the current folder
	if err != nil {
		return program{}, err
	}
	name := command[0]
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return program{}, fmt.Errorf("the client's program: %w", err)
	}
	p := program{path: path, args: command[1:], dir: dir}
	for _, v := range append([]string{"PATH", "HOME", "TMPDIR"}, systemVariables...) {
		if value, ok := os.LookupEnv(v); ok {
			p.env = append(p.env, v+"="+value)
		}
	}
	return p, nil
}

// ended is how a process ended.
type ended struct {
	exit     int    // -1 when a signal ended it
	signal   string // the signal, when it was not the kit's: "signal 11 (segmentation fault)"
	stdout   []byte
	overflow bool // there was more on standard output than is kept
	stderr   string
	killed   bool // by the kit, because it was to be
	late     bool // by the kit, because its time was over
}

// run starts the program, gives it stdin and waits for its end. It is killed when kill is
// closed or the time is over. What it started in its group ends with it in every case: a
// child that stays could send once nobody counts any more. The error is the kit's own:
// the program could not be started, or ctx ended.
func (p program) run(ctx context.Context, stdin []byte, timeout time.Duration, kill <-chan struct{}) (ended, error) {
	running, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	cmd := exec.CommandContext(running, p.path, p.args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.Stdin = bytes.NewReader(stdin)
	out, log := &excerpt.Buffer{Limit: maxStdout}, &excerpt.Buffer{Limit: maxStderr, End: true}
	cmd.Stdout, cmd.Stderr = out, log
	cmd.WaitDelay = afterKill
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return ended{}, fmt.Errorf("the client could not be started: %w", err)
	}
	done, watched := make(chan struct{}), make(chan bool)
	go func() {
		select {
		case <-kill: // never, when it is nil
			stop()
			watched <- true
		case <-done:
			watched <- false
		}
	}()
	_ = cmd.Wait() // what a client does wrong is in its state and its output
	endGroup(cmd)
	close(done)
	e := ended{exit: cmd.ProcessState.ExitCode(), stdout: out.Bytes(), stderr: string(log.Bytes())}
	_, e.overflow = out.State()
	e.killed = <-watched
	if ctx.Err() != nil {
		return e, ctx.Err()
	}
	if e.late = !e.killed && running.Err() != nil; !e.late && !e.killed {
		e.signal = signalOf(cmd.ProcessState)
	}
	return e, nil
}
