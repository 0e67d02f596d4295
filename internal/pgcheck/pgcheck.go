// Package pgcheck looks at what a PostgreSQL server does with what was committed, and at
// what stands between it and this host.
//
// Not its job: the tables of anything, and what a caller makes of it. It imports
// internal/pgmigrate and pgx.
package pgcheck

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgmigrate"
)

// Add takes one thing that was looked at. Where it is not ok, it is a problem or else a
// warning, with the detail why it matters and what to do.
type Add func(name, value string, ok, problem bool, detail, remedy string)

// Look adds what it finds, always all of it and in the same order, and changes nothing.
// The error is that the server cannot be asked.
func Look(ctx context.Context, conn *pgx.Conn, config *pgxpool.Config, add Add) error {
	l := look{conn, config, add}
	for _, at := range []func(context.Context) error{l.server, l.durability, l.clock, l.way} {
		if err := at(ctx); err != nil {
			return err
		}
	}
	return nil
}

type look struct {
	conn   *pgx.Conn
	config *pgxpool.Config
	add    Add
}

func (l *look) server(ctx context.Context) error {
	var version, encoding string
	var number int
	var standby bool
	err := l.conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
	current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&version, &number, &encoding, &standby)
	if err != nil {
		return err
	}
	l.add("server", "PostgreSQL "+version, number >= pgmigrate.MinServer, true, "PostgreSQL 13 or newer is needed", "Upgrade the server.")
	l.add("encoding", encoding, encoding == "UTF8", true, "receipts have characters that this encoding has not",
		"Use a database with the encoding UTF8.")
	role := "primary"
	if standby {
		role = "standby"
	}
	l.add("writes", role, !standby, true, "a standby takes no writes, and what it shows is late",
		"Name the primary, or target_session_attrs=read-write with all of them.")
	return nil
}

func (l *look) durability(ctx context.Context) error {
	settings := map[string]*string{"fsync": new(string), "full_page_writes": new(string), "synchronous_commit": new(string),
		"wal_level": new(string), "synchronous_standby_names": new(string)}
	for name, value := range settings {
		if err := l.conn.QueryRow(ctx, `SELECT current_setting($1::text)`, name).Scan(value); err != nil {
			return err
		}
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		v := *settings[name]
		l.add(name, v, v == "on", true, "a crash of the server's machine can lose or damage what was said to be saved, and a request could be sent twice",
			"Set "+name+" = on.")
	}
	commit, standbys := *settings["synchronous_commit"], *settings["synchronous_standby_names"]
	found := commit
	if commit == "off" {
		found += ", and on in the transactions of this program"
	}
	l.add("synchronous_commit", found, standbys == "" || commit != "local" && commit != "off", false,
		"commits do not wait for the synchronous standbys: after a fail-over the last of them can be missing",
		"Set synchronous_commit = on for this role.")
	level := *settings["wal_level"]
	l.add("wal_level", level, level != "minimal", false, "without replication or an archive a lost disk is a lost ledger, and open requests with it",
		"Set wal_level = replica, and keep a standby or an archive.")
	return nil
}

// maxSkew is how far this host's clock and the database's may be apart without a word.
const maxSkew = time.Second

func (l *look) clock(ctx context.Context) error {
	var skew time.Duration
	best := time.Duration(-1)
	for range 5 { // the quickest answer is the best measure
		var server time.Time
		sent := time.Now()
		if err := l.conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
			return err
		}
		if took := time.Since(sent); best < 0 || took < best {
			best, skew = took, server.Sub(sent.Add(took/2))
		}
	}
	l.add("clock", fmt.Sprintf("%+.3f s against this host, round trip %.1f ms", skew.Seconds(), float64(best.Microseconds())/1000),
		skew.Abs() <= maxSkew+best, false, "the ledger goes by the database's clock alone, so no outcome is wrong; but what a worker puts off comes earlier or later by as much, and times in logs are others",
		"Have both clocks set by NTP.")
	return nil
}

// way looks at what stands between this host and the server.
func (l *look) way(ctx context.Context) error {
	var pid uint32
	if err := l.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	// Whoever pools sessions tells the client a process id of his own making.
	mode := l.config.ConnConfig.DefaultQueryExecMode
	if pid == l.conn.PgConn().PID() {
		l.add("pooler", "none", true, false, "", "")
	} else {
		l.add("pooler", "between this host and the server, statements by "+mode.String(), mode != pgx.QueryExecModeCacheStatement, false,
			"prepared statements are of a session; a pooler that shares sessions between transactions has to keep track of them (PgBouncer from 1.21 with max_prepared_statements)",
			"Add default_query_exec_mode=exec to the URL unless it does. Migrate past the pooler.")
	}
	conns := l.config.MaxConns
	l.add("pool", fmt.Sprintf("%d connections", conns), conns >= 2, true, "two connections at least are needed", "Raise pool_max_conns.")
	return nil
}
