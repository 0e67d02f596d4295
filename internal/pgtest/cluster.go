package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience bounds every wait for a server.
const patience = 60 * time.Second

// Mode is a way to end a server.
type Mode syscall.Signal

// Cluster is a PostgreSQL server. It is safe for concurrent use.
type Cluster struct {
	base url.URL // of any database of it

	// Of a cluster of our own; a server that was named cannot be stopped.
	programs programs
	owner    owner
	dir      string
	watchdog io.Writer // gets the id of the running server, a line each

	mu     sync.Mutex // a stop or a start is under way
	server *exec.Cmd  // nil when stopped
	exited chan struct{}
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Shared gives the one server of a test program: that which AGENTIC_TEST_POSTGRES
// names, or a cluster that lives until the program ends. Do not stop it: other
// tests use it.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	shared.once.Do(func() {
		if named := os.Getenv("AGENTIC_TEST_POSTGRES"); named != "" {
			shared.cluster, shared.err = namedServer(named)
		} else {
			shared.cluster, _, shared.err = newCluster()
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// Start gives a cluster for one test, which may stop and start it. It ends with
// the test.
func Start(tb testing.TB) *Cluster {
	tb.Helper()
	c, end, err := newCluster()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.Stop(tb, Immediate)
		if err := end(); err != nil {
			tb.Errorf("ending the watchdog: %v", err)
		}
	})
	return c
}

func namedServer(named string) (*Cluster, error) {
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("AGENTIC_TEST_POSTGRES is not a URL such as postgres://user@host/")
	}
	return &Cluster{base: *u}, nil
}

// newCluster makes the files of a cluster and starts it. end ends the watchdog,
// and with it whatever is left.
func newCluster() (_ *Cluster, end func() error, err error) {
	c := &Cluster{}
	if c.programs, err = findPrograms(debian); err != nil {
		return nil, nil, err
	}
	if c.owner, err = findOwner(); err != nil {
		return nil, nil, err
	}
	// Not a directory of the test's: those above it are closed to another user.
	if c.dir, err = os.MkdirTemp("", "agentic-pg-"); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(c.dir)
		}
	}()
	if err := c.owner.own(c.dir); err != nil {
		return nil, nil, err
	}
	c.base = url.URL{Scheme: "postgres", User: url.User("postgres"),
		RawQuery: url.Values{"host": {c.dir}, "port": {"5432"}, "sslmode": {"disable"}}.Encode()}
	initdb := c.command(c.programs.initdb, "--pgdata="+c.data(), "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if end, err = c.watch(); err != nil {
		return nil, nil, err
	}
	if err := c.start(); err != nil {
		_ = end()
		return nil, nil, err
	}
	return c, end, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *Cluster) log() string  { return filepath.Join(c.dir, "log") }

// command prepares a program of the cluster's owner, without what the
// environment says of other servers.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = c.owner.attributes()
	return cmd
}

// watchdog reads the id of the running server, a line each, an empty one for
// none. When its input ends the test program has ended: it ends the server, waits
// a while for it to let go of its files, and removes them.
const watchdog = `
while read -r line; do id=$line; done
if [ -n "$id" ] && kill -QUIT "$id"; then
	for i in $(seq 100); do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.1; done
fi
rm -rf "$1"`

func (c *Cluster) watch() (end func() error, err error) {
	cmd := c.command("/bin/sh", "-c", watchdog, "sh", c.dir)
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.watchdog = in
	return func() error { return errors.Join(in.Close(), cmd.Wait()) }, nil
}

// Start starts a stopped server and returns when it takes connections.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	if err := c.start(); err != nil {
		tb.Fatal(err)
	}
}

func (c *Cluster) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		return errors.New("the server that AGENTIC_TEST_POSTGRES names cannot be started by a test: use pgtest.Start")
	}
	if c.server != nil {
		return errors.New("the server runs already")
	}
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := c.command(c.programs.postgres, "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "port=5432",
		"-c", "shared_buffers=32MB", "-c", "max_connections=300", "-c", "dynamic_shared_memory_type=mmap",
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "logging_collector=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c.watchdog, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("the watchdog: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in the log
		close(exited)
	}()
	c.server, c.exited = cmd, exited
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ready(ctx); err != nil {
		err = fmt.Errorf("postgres does not start: %w\n%s", err, c.lastOfLog())
		return errors.Join(err, c.end(Immediate))
	}
	return nil
}

// ready returns when the server takes connections.
func (c *Cluster) ready(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.exited:
			return errors.New("it has ended")
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop ends the server and returns when its process is gone. A stopped server
// stays as it is.
func (c *Cluster) Stop(tb testing.TB, m Mode) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		tb.Fatal("the server that AGENTIC_TEST_POSTGRES names cannot be stopped by a test: use pgtest.Start")
	}
	if err := c.end(m); err != nil {
		tb.Fatal(err)
	}
}

// Restart is Stop and Start.
func (c *Cluster) Restart(tb testing.TB, m Mode) {
	tb.Helper()
	c.Stop(tb, m)
	c.Start(tb)
}

// end ends the server if there is one. The caller has c.mu.
func (c *Cluster) end(m Mode) error {
	if c.server == nil {
		return nil
	}
	if err := c.server.Process.Signal(syscall.Signal(m)); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.exited:
	case <-time.After(patience):
		return fmt.Errorf("postgres does not end\n%s", c.lastOfLog())
	}
	c.server = nil
	_, err := fmt.Fprintln(c.watchdog) // its id is free again
	return err
}

func (c *Cluster) lastOfLog() string {
	b, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(b, []byte("\n"))
	return strings.TrimSpace(string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n"))))
}
