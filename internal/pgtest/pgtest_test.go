package pgtest

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestDatabasesAreApartAndDurable(t *testing.T) {
	c := Shared(t)
	a, b := connect(t, c.NewDatabase(t)), connect(t, c.NewDatabase(t))
	if _, err := a.Exec(t.Context(), `CREATE TABLE mark (n int)`); err != nil {
		t.Fatal(err)
	}
	if query[bool](t, b, `SELECT to_regclass('mark') IS NOT NULL`) {
		t.Error("a table of one database is in another")
	}
	if got := query[string](t, a, `SELECT current_setting('fsync') || current_setting('synchronous_commit')`); got != "onon" {
		t.Errorf("fsync and synchronous_commit: %s", got)
	}
}

func TestDatabaseIsDroppedWithItsSessions(t *testing.T) {
	c := Shared(t)
	var url string
	t.Run("in use", func(t *testing.T) {
		url = c.NewDatabase(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Exec(context.Background(), `SELECT pg_sleep(60)`) }()
	})
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database outlives its test")
	}
}

func TestTerminate(t *testing.T) {
	c := Shared(t)
	url := c.NewDatabase(t)
	one, two, other := connect(t, url), connect(t, url), connect(t, c.NewDatabase(t))
	c.TerminateBackend(t, one.PgConn().PID())
	if err := one.Ping(t.Context()); err == nil {
		t.Error("a terminated session goes on")
	}
	if err := two.Ping(t.Context()); err != nil {
		t.Errorf("another session of the database: %v", err)
	}
	c.TerminateAll(t, url)
	if err := two.Ping(t.Context()); err == nil {
		t.Error("a session of the database goes on")
	}
	if err := other.Ping(t.Context()); err != nil {
		t.Errorf("a session of another database: %v", err)
	}
}

func TestRestartKeepsWhatWasCommitted(t *testing.T) {
	c := Start(t)
	url := c.NewDatabase(t)
	if _, err := connect(t, url).Exec(t.Context(), `CREATE TABLE mark (n int)`); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Mode{Fast, Immediate} {
		c.Stop(t, m)
		if conn, err := pgx.Connect(t.Context(), url); err == nil {
			_ = conn.Close(t.Context())
			t.Fatal("a stopped server answers")
		}
		c.Start(t)
		if n := query[int](t, connect(t, url), `SELECT count(*) FROM mark`); n != 0 {
			t.Errorf("%d rows", n)
		}
	}
}

// A test program that is killed leaves neither a server nor files.
func TestKilledProgramLeavesNothing(t *testing.T) {
	const role = "AGENTIC_PGTEST_VICTIM"
	if os.Getenv(role) != "" {
		c := Start(t)
		if _, err := os.Stdout.WriteString("\n" + c.dir + "\n"); err != nil {
			t.Fatal(err)
		}
		select {} // until killed
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	victim := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledProgramLeavesNothing$")
	victim.Env = append(os.Environ(), role+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		if filepath.IsAbs(lines.Text()) {
			dir = lines.Text()
		}
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	if dir == "" {
		t.Fatal("the victim started no cluster")
	}
	for {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%s is still there", dir)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestProgramsAreFoundOrNamed(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	if _, err := findPrograms(filepath.Join(empty, "*", "bin")); err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("without programs: %v", err)
	}
	for _, v := range []string{"9.6", "9", "15"} {
		for _, name := range []string{"initdb", "postgres"} {
			file := filepath.Join(empty, v, "bin", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, err := findPrograms(filepath.Join(empty, "*", "bin"))
	if want := filepath.Join(empty, "15", "bin", "postgres"); err != nil || p.postgres != want {
		t.Errorf("found %q, %v; want %q", p.postgres, err, want)
	}
}
