package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/pgcheck"
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

// Migration is the command that makes the tables of a ledger, as it ends the Remedy of
// a Finding: it still wants to be told which ledger.
const Migration = "agentic ledger migrate"

// notPermitted is the SQLSTATE of a right that a role has not.
const notPermitted = "42501"

// CheckLedger looks at what the ledger in a schema (empty: "agentic") needs of its
// database, and changes nothing. Tables that are missing, or that this role may not use,
// are a Finding; the error is that the database cannot be asked, and wraps
// client.ErrLedger.
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
	h := health{conn: conn.Conn(), schema: schema}
	err = h.tables(ctx)
	if err == nil {
		err = pgcheck.Look(ctx, conn.Conn(), pool.Config(), func(name, value string, ok, problem bool, detail, remedy string) {
			level := Warning
			if problem {
				level = Problem
			}
			h.add(name, value, ok, level, detail, remedy)
		})
	}
	if err != nil {
		return nil, ledgerError("check", err)
	}
	return h.found, nil
}

type health struct {
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
	said, _ := errors.AsType[*pgconn.PgError](err)
	var remedy string
	switch {
	case err == nil:
	case errors.Is(err, ErrNotMigrated):
		remedy = "Call postgres.MigrateLedger, or run: " + Migration
	case errors.Is(err, ErrNewer):
		remedy = "Use the version of this program that made them, or a newer one."
	case said != nil && said.Code == notPermitted:
		remedy = "Grant this role USAGE on the schema, and the rights on its tables that the documentation of package postgres names."
	default:
		return err
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
