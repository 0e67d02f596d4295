package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgmigrate"
)

// Level is how bad a Finding is.
type Level string

// A problem can make the ledger break its word, or keeps it from working at all. A
// warning is for an operator to weigh.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is one thing that CheckLedger looked at.
type Finding struct {
	Name   string
	Level  Level
	Value  string
	Detail string // why it matters; "" when it is ok
	Remedy string // "" when there is nothing to do
}

// Health is what CheckLedger found, always all of it and in the same order.
type Health []Finding

// CheckLedger looks at what the ledger in a schema (empty: "agentic") needs of its
// database, and changes nothing. Tables that are missing are a Finding; the error is
// that the database cannot be asked, and wraps client.ErrLedger.
func CheckLedger(ctx context.Context, pool *pgxpool.Pool, schema string) (Health, error) {
	schema, err := pgmigrate.CheckSchema(schema)
	if err != nil {
		return nil, ledgerError("check", err)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, ledgerError("check", err)
	}
	defer conn.Release()
	h := health{pool: pool, conn: conn.Conn(), schema: schema}
	for _, look := range []func(context.Context) error{h.tables, h.server, h.durability, h.clock, h.way} {
		if err := look(ctx); err != nil {
			return nil, ledgerError("check", err)
		}
	}
	return h.found, nil
}

type health struct {
	pool   *pgxpool.Pool
	conn   *pgx.Conn
	schema string
	found  Health
}

// add adds a finding that is ok, or else what is the matter.
func (h *health) add(name, value string, ok bool, level Level, detail, remedy string) {
	f := Finding{Name: name, Level: OK, Value: value}
	if !ok {
		f.Level, f.Detail, f.Remedy = level, detail, remedy
	}
	h.found = append(h.found, f)
}

func (h *health) tables(ctx context.Context) error {
	err := checkVersion(ctx, pgxQueries{h.conn}, h.schema, ledgerTables)
	if err != nil && !errors.Is(err, ErrNotMigrated) && !errors.Is(err, ErrNewer) {
		return err
	}
	remedy := "Run 'agentic ledger migrate', or call postgres.MigrateLedger."
	if errors.Is(err, ErrNewer) {
		remedy = "Use the version of this program that made them, or a newer one."
	}
	detail, value := "", "version "+strconv.Itoa(len(ledgerTables.Files))+" in schema "+h.schema
	if err != nil {
		detail, value = err.Error(), "not usable"
	}
	h.add("schema", value, err == nil, Problem, detail, remedy)
	if err != nil {
		return nil
	}
	var may bool
	err = h.conn.QueryRow(ctx, `SELECT coalesce(bool_and(has_table_privilege(c.oid, p)), false)
FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p
WHERE c.oid = ANY (ARRAY[to_regclass($1::text || '.ledger_snapshot'), to_regclass($1::text || '.ledger_request'),
	to_regclass($1::text || '.ledger_entry'), to_regclass($1::text || '.ledger_note')])`, h.schema).Scan(&may)
	h.add("rights", "of this role", may, Problem, "the role may not read, insert, update and delete in the tables of the ledger",
		"Grant SELECT, INSERT, UPDATE and DELETE on them, and USAGE on the schema.")
	return err
}

func (h *health) server(ctx context.Context) error {
	var version, encoding string
	var number int
	var standby bool
	err := h.conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
	current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&version, &number, &encoding, &standby)
	if err != nil {
		return err
	}
	h.add("server", "PostgreSQL "+version, number >= pgmigrate.MinServer, Problem, "PostgreSQL 13 or newer is needed", "Upgrade the server.")
	h.add("encoding", encoding, encoding == "UTF8", Problem, "receipts have characters that this encoding has not",
		"Use a database with the encoding UTF8.")
	role := "primary"
	if standby {
		role = "standby"
	}
	h.add("writes", role, !standby, Problem, "a standby takes no writes, and what it shows is late",
		"Name the primary, or target_session_attrs=read-write with all of them.")
	return nil
}

func (h *health) durability(ctx context.Context) error {
	settings := map[string]*string{"fsync": new(string), "full_page_writes": new(string), "synchronous_commit": new(string),
		"wal_level": new(string), "synchronous_standby_names": new(string)}
	for name, value := range settings {
		if err := h.conn.QueryRow(ctx, `SELECT current_setting($1::text)`, name).Scan(value); err != nil {
			return err
		}
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		v := *settings[name]
		h.add(name, v, v == "on", Problem, "a crash of the server's machine can lose or damage what was said to be saved, and a request could be sent twice",
			"Set "+name+" = on.")
	}
	commit, standbys := *settings["synchronous_commit"], *settings["synchronous_standby_names"]
	h.add("synchronous_commit", commit, standbys == "" || commit != "local" && commit != "off", Warning,
		"commits do not wait for the synchronous standbys: after a fail-over the last of them can be missing. (off counts as on in the ledger's transactions)",
		"Set synchronous_commit = on for this role.")
	level := *settings["wal_level"]
	h.add("wal_level", level, level != "minimal", Warning, "without replication or an archive a lost disk is a lost ledger, and open requests with it",
		"Set wal_level = replica, and keep a standby or an archive.")
	return nil
}

// maxSkew is how far this host's clock and the database's may be apart without a word.
const maxSkew = time.Second

func (h *health) clock(ctx context.Context) error {
	var skew time.Duration
	best := time.Duration(-1)
	for range 5 { // the quickest answer is the best measure
		var server time.Time
		sent := time.Now()
		if err := h.conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
			return err
		}
		if took := time.Since(sent); best < 0 || took < best {
			best, skew = took, server.Sub(sent.Add(took/2))
		}
	}
	h.add("clock", fmt.Sprintf("%+.3f s against this host, round trip %.1f ms", skew.Seconds(), float64(best.Microseconds())/1000),
		skew.Abs() <= maxSkew+best, Warning, "the ledger goes by the database's clock alone, so nothing breaks; but times in this host's logs are others",
		"Have both clocks set by NTP.")
	return nil
}

// way looks at what stands between this host and the server.
func (h *health) way(ctx context.Context) error {
	var pid uint32
	if err := h.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	// Whoever pools sessions tells the client a process id of his own making.
	mode := h.pool.Config().ConnConfig.DefaultQueryExecMode
	if pid == h.conn.PgConn().PID() {
		h.add("pooler", "none", true, OK, "", "")
	} else {
		h.add("pooler", "between this host and the server, statements by "+mode.String(), mode != pgx.QueryExecModeCacheStatement, Warning,
			"prepared statements are of a session; a pooler that shares sessions between transactions has to keep track of them (PgBouncer from 1.21 with max_prepared_statements)",
			"Add default_query_exec_mode=exec to the URL unless it does. Migrate past the pooler.")
	}
	conns := h.pool.Config().MaxConns
	h.add("pool", fmt.Sprintf("%d connections", conns), conns >= 2, Problem, "two connections at least are needed", "Raise pool_max_conns.")
	return nil
}
