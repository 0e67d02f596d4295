package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// tables are those of a store or of a ledger. Each has its own migrations, in their
// order; the version is their number, and stands in a table of its own.
type tables struct {
	versions string
	files    []string
}

var (
	storeTables  = tables{"migration", []string{"migrations/00001_store.sql"}}
	ledgerTables = tables{"ledger_migration", []string{"migrations/ledger/00001_ledger.sql"}}
)

// minServer is PostgreSQL 13, as server_version_num has it.
const minServer = 130000

// defaultSchema is where the tables are unless the publisher says otherwise.
const defaultSchema = "agentic"

// Migrate makes or updates the tables of a store in a schema (empty: "agentic"), only
// ever forward. Any number of hosts may call it at once: one
// works, the others wait for it until ctx ends. The error wraps ErrNewer when the
// tables are newer than this program, and service.ErrUnavailable when the
// database cannot be reached.
//
// It uses two connections and holds an advisory lock of a session, so they must
// not go through a pooler that shares sessions. A schema that is there already is
// used as it is.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return storeTables.migratePool(ctx, pool, schema)
}

// MigrateLedger is Migrate for the tables of a Ledger, which may stand in the same
// schema as those of a store, or without them. The error wraps client.ErrLedger too.
func MigrateLedger(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return ledgerError("migrate", ledgerTables.migratePool(ctx, pool, schema))
}

func (t tables) migratePool(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close() // the pool stays open
	db.SetMaxOpenConns(int(pool.Config().MaxConns))
	return t.migrateSQL(ctx, db, schema)
}

// MigrateSQL is Migrate for database/sql.
func MigrateSQL(ctx context.Context, db *sql.DB, schema string) error {
	return storeTables.migrateSQL(ctx, db, schema)
}

func (t tables) migrateSQL(ctx context.Context, db *sql.DB, schema string) error {
	schema, err := checkSchema(schema)
	if err != nil {
		return err
	}
	if db.Stats().MaxOpenConnections == 1 {
		return errors.New("postgres: migrate: two connections are needed, and the pool has one")
	}
	return failure(ctx, "migrate", t.migrate(ctx, db, schema))
}

func (t tables) migrate(ctx context.Context, db *sql.DB, schema string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, migrationLock(schema)); err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_, unlocking := conn.ExecContext(end, `SELECT pg_advisory_unlock($1)`, migrationLock(schema))
		err = errors.Join(err, unlocking)
	}()
	if err := t.checkVersion(ctx, sqlQueries{conn}, schema); !errors.Is(err, ErrNotMigrated) {
		return err
	}
	if err := makeSchema(ctx, conn, schema); err != nil {
		return err
	}
	steps, err := t.steps(schema)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(steps...),
		goose.WithTableName(schema+"."+t.versions), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// makeSchema makes the schema if it is not there: CREATE SCHEMA IF NOT EXISTS
// would want the right to make one in either case.
func makeSchema(ctx context.Context, conn *sql.Conn, schema string) error {
	var there bool
	err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.ExecContext(ctx, `CREATE SCHEMA `+schema)
	return err
}

// steps are the migrations for goose, with the schema's name in them.
func (t tables) steps(schema string) ([]*goose.Migration, error) {
	var list []*goose.Migration
	for i, file := range t.files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, strings.ReplaceAll(string(text), "{schema}", schema))
			return err
		}
		list = append(list, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: up}, nil))
	}
	return list, nil
}

// migrationLock is the advisory lock that keeps two migrations of a schema apart.
func migrationLock(schema string) int64 { return advisoryLock("migrate", schema) }

// advisoryLock is the number of a lock. Others who use such locks in the database
// have other numbers.
func advisoryLock(purpose, schema string) int64 {
	sum := sha256.Sum256([]byte("github.com/agentic-go/agentic/postgres " + purpose + " " + schema))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// checkVersion compares server and tables with what this program needs, by one
// query. Its errors wrap ErrNotMigrated or ErrNewer.
func (t tables) checkVersion(ctx context.Context, q queries, schema string) error {
	var server int
	var found int64
	err := q.row(ctx, `SELECT current_setting('server_version_num')::int, coalesce(max(version_id), 0) FROM `+
		schema+`.`+t.versions+` WHERE is_applied`).Scan(&server, &found)
	known := int64(len(t.files))
	switch {
	case isMissing(err):
		return fmt.Errorf("%w: there is no table %s.%s", ErrNotMigrated, schema, t.versions)
	case err != nil:
		return err
	case server < minServer:
		return fmt.Errorf("PostgreSQL 13 or newer is needed: the server's version number is %d", server)
	case found > known:
		return fmt.Errorf("%w: the tables in schema %s have version %d, this program knows %d", ErrNewer, schema, found, known)
	case found < known:
		return fmt.Errorf("%w: the tables in schema %s have version %d, this program needs %d", ErrNotMigrated, schema, found, known)
	}
	return nil
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// checkSchema gives the schema's name, which stands in statements as it is.
func checkSchema(name string) (string, error) {
	switch {
	case name == "":
		return defaultSchema, nil
	case !plainName.MatchString(name), strings.HasPrefix(name, "pg_"), name == "information_schema":
		return "", fmt.Errorf("schema %q: a plain name of [a-z0-9_] is needed that is not the system's", name)
	}
	return name, nil
}
