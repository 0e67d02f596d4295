package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentic-go/agentic/internal/pgmigrate"
)

//go:embed migrations/00001_store.sql
var store1 string

//go:embed migrations/ledger/00001_ledger.sql
var ledger1 string

var (
	storeTables  = pgmigrate.Tables{Versions: "migration", Files: []string{store1}}
	ledgerTables = pgmigrate.Tables{Versions: "ledger_migration", Files: []string{ledger1}}
)

// Migrate makes or updates the tables of a store in a schema (empty: "agentic"), only
// ever forward. Any number of hosts may call it at once: one works, the others wait
// for it until ctx ends. The error wraps ErrNewer when the tables are newer than this
// program, and service.ErrUnavailable when the database cannot be reached.
//
// It uses two connections and holds an advisory lock of a session, so they must
// not go through a pooler that shares sessions. A schema that is there already is
// used as it is.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return migratePool(ctx, pool, schema, storeTables, failure)
}

// MigrateSQL is Migrate for database/sql.
func MigrateSQL(ctx context.Context, db *sql.DB, schema string) error {
	return migrate(ctx, db, schema, storeTables, failure)
}

// MigrateLedger is Migrate for the tables of a Ledger, which may stand in the same
// schema as those of a store, or without them. The error wraps client.ErrLedger instead
// of service.ErrUnavailable.
func MigrateLedger(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	failure := func(_ context.Context, op string, err error) error { return ledgerError(op, err) }
	return ledgerError("migrate", migratePool(ctx, pool, schema, ledgerTables, failure))
}

func migratePool(ctx context.Context, pool *pgxpool.Pool, schema string, t pgmigrate.Tables, failure failing) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close() // the pool stays open
	db.SetMaxOpenConns(int(pool.Config().MaxConns))
	return migrate(ctx, db, schema, t, failure)
}

// failing makes the error of a statement: a store's or a ledger's.
type failing func(ctx context.Context, op string, err error) error

func migrate(ctx context.Context, db *sql.DB, schema string, t pgmigrate.Tables, failure failing) error {
	schema, err := pgmigrate.CheckSchema(schema)
	if err != nil {
		return err
	}
	if db.Stats().MaxOpenConnections == 1 {
		return errors.New("postgres: migrate: two connections are needed, and the pool has one")
	}
	return failure(ctx, "migrate", t.Migrate(ctx, db, schema))
}

// checkVersion says whether the tables are as this program needs them.
func checkVersion(ctx context.Context, q queries, schema string, t pgmigrate.Tables) error {
	return t.Check(ctx, func(ctx context.Context, sql string) pgmigrate.Scanner { return q.row(ctx, sql) }, schema)
}
