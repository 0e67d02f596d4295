package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// URL is that of a database of the server, as pgx and the program take it.
func (c *Cluster) URL(database string) string {
	u := c.base
	u.Path = "/" + database
	return u.String()
}

var databases atomic.Int64

// NewDatabase makes an empty database and gives its URL. It is dropped, and its
// sessions ended, when the test ends.
func (c *Cluster) NewDatabase(tb testing.TB) string {
	tb.Helper()
	// Several test programs may share a server that was named.
	name := fmt.Sprintf("agentic_%s_%d", strings.ToLower(rand.Text()[:8]), databases.Add(1))
	c.exec(tb, `CREATE DATABASE `+name+` TEMPLATE template0`)
	tb.Cleanup(func() { c.dropDatabase(tb, name) })
	return c.URL(name)
}

// dropDatabase leaves a database that a stopped server has: its files go with it.
func (c *Cluster) dropDatabase(tb testing.TB, name string) {
	tb.Helper()
	c.mu.Lock()
	stopped := c.dir != "" && c.server == nil
	c.mu.Unlock()
	if !stopped {
		c.exec(tb, `DROP DATABASE `+name+` WITH (FORCE)`)
	}
}

// TerminateBackend ends one session of the server by its process id.
func (c *Cluster) TerminateBackend(tb testing.TB, pid uint32) {
	tb.Helper()
	c.exec(tb, `SELECT pg_terminate_backend($1)`, int32(pid))
}

// TerminateAll ends every session of the database that a URL names.
func (c *Cluster) TerminateAll(tb testing.TB, databaseURL string) {
	tb.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	c.exec(tb, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, strings.TrimPrefix(u.Path, "/"))
}

// exec runs a statement over a connection of its own, in the database postgres.
func (c *Cluster) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}
