package proof

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/sqlite"
)

// shop is a publisher as a test sees it: its database, its socket, and its
// processes. The socket is the test's and handed down, so that whoever calls while
// no process runs waits for the next one.
type shop struct {
	t      testing.TB
	spec   publication
	socket *os.File
	db     *sql.DB // the test's own connections
	// endSessions ends the database's connections from its side, where it has one.
	endSessions func()

	mu    sync.Mutex
	hosts []*shopHost
}

// shopHost is one process of a shop.
type shopHost struct {
	cmd    *exec.Cmd
	in     interface{ Close() error }
	stderr *bytes.Buffer
}

// shopKinds open a shop without a process on each store.
var shopKinds = map[string]func(testing.TB) *shop{
	"sqlite":   newSQLiteShop,
	"postgres": func(t testing.TB) *shop { return newPostgresShop(t, pgtest.Shared(t)) },
}

// onEachStore runs a test on every store.
func onEachStore(t *testing.T, f func(t *testing.T, s *shop)) {
	t.Helper()
	for name, open := range shopKinds {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

const thingTable = `CREATE TABLE thing (id TEXT NOT NULL, principal TEXT NOT NULL, action TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL)`

func newSQLiteShop(t testing.TB) *shop {
	t.Helper()
	dsn, err := sqlite.DSN(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return newShop(t, publication{Store: "sqlite", Database: dsn}, db, func() error { return sqlite.Migrate(t.Context(), db) })
}

func newPostgresShop(t testing.TB, c *pgtest.Cluster) *shop {
	t.Helper()
	url := c.NewDatabase(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, publication{Store: "postgres", Database: url}, db, func() error { return postgres.MigrateSQL(t.Context(), db, "") })
	s.endSessions = func() { c.TerminateAll(t, url) }
	return s
}

func newShop(t testing.TB, spec publication, db *sql.DB, migrate func() error) *shop {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	if err := migrate(); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{thingTable, `CREATE INDEX thing_id ON thing (id)`} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // the file below keeps the socket
	spec.Origin = "http://" + ln.Addr().String()
	s := &shop{t: t, spec: spec, db: db, endSessions: func() {}}
	if s.socket, err = ln.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		_ = s.socket.Close()
	})
	return s
}

// open starts a process and returns when it serves.
func (s *shop) open() {
	s.t.Helper()
	spec, err := json.Marshal(s.spec)
	if err != nil {
		s.t.Fatal(err)
	}
	h := &shopHost{cmd: exec.Command(os.Args[0]), stderr: &bytes.Buffer{}}
	h.cmd.Env = append(os.Environ(), publisherRole+"="+string(spec))
	h.cmd.ExtraFiles = []*os.File{s.socket}
	h.cmd.Stderr = h.stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		s.t.Fatalf("the publisher does not start: %q, %v\n%s", line, err, h.stderr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, h)
}

// kill ends every process by SIGKILL.
func (s *shop) kill() {
	s.t.Helper()
	s.mu.Lock()
	hosts := s.hosts
	s.hosts = nil
	s.mu.Unlock()
	for _, h := range hosts {
		h.kill(s.t)
	}
}

// killOne ends the oldest process.
func (s *shop) killOne() {
	s.t.Helper()
	s.mu.Lock()
	h := s.hosts[0]
	s.hosts = s.hosts[1:]
	s.mu.Unlock()
	h.kill(s.t)
}

func (h *shopHost) kill(t testing.TB) {
	t.Helper()
	_ = h.cmd.Process.Kill()
	err := h.cmd.Wait()
	status, ok := h.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("a publisher's process ended by itself: %v\n%s", err, h.stderr)
	}
	_ = h.in.Close()
	// net/http and the race detector write there.
	if h.stderr.Len() > 0 {
		t.Errorf("a publisher's process wrote:\n%.4000s", h.stderr)
	}
}

// rows are the publisher's rows: the IDs of each request.
func (s *shop) rows() map[orderKey][]string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, `SELECT id, principal, action, key FROM thing`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	all := map[orderKey][]string{}
	for rows.Next() {
		var id string
		var k orderKey
		if err := rows.Scan(&id, &k.principal, &k.action, &k.key); err != nil {
			s.t.Fatal(err)
		}
		all[k] = append(all[k], id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// orderKey names one request.
type orderKey struct{ principal, action, key string }

// newCaller makes a client with connections of its own, at most n.
func newCaller(t testing.TB, n int) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}
