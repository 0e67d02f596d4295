// Package pgmigrate makes and updates the tables of a part of this module in a schema
// of a PostgreSQL database, and says whether they are as the program needs them.
//
// Not its job: what the tables are. It imports internal/pgfold and goose.
package pgmigrate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/agentic-go/agentic/internal/pgfold"
)

// What can be the matter with the tables.
var (
	ErrNotMigrated = errors.New("the tables are missing or older than this program: migrate them")
	ErrNewer       = errors.New("the tables were made by a newer version of this program")
)

// Tables are those of one part. Each part has its own migrations, in their order;
// the version is their number, and stands in a table of its own.
type Tables struct {
	Versions string   // name of that table
	Files    []string // SQL, in which {schema} is the schema
}

// MinServer is PostgreSQL 13, as server_version_num has it.
const MinServer = 130000

// DefaultSchema is where tables are unless a host or publisher says otherwise.
const DefaultSchema = "agentic"

// Scanner is one row or an error.
type Scanner interface{ Scan(dest ...any) error }

// Migrate makes or updates the tables in a schema, only ever forward. Any number of
// hosts may call it at once: one works, the others wait for it until ctx ends. It
// needs two connections of one session each.
func (t Tables) Migrate(ctx context.Context, db *sql.DB, schema string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, Lock("migrate", schema)); err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgfold.EndTime)
		defer cancel()
		_, unlocking := conn.ExecContext(end, `SELECT pg_advisory_unlock($1)`, Lock("migrate", schema))
		err = errors.Join(err, unlocking)
	}()
	if err := t.Check(ctx, func(ctx context.Context, sql string) Scanner { return conn.QueryRowContext(ctx, sql) }, schema); !errors.Is(err, ErrNotMigrated) {
		return err
	}
	if err := makeSchema(ctx, conn, schema); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(t.steps(schema)...),
		goose.WithTableName(schema+"."+t.Versions), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
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
func (t Tables) steps(schema string) []*goose.Migration {
	var list []*goose.Migration
	for i, text := range t.Files {
		up := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, strings.ReplaceAll(text, "{schema}", schema))
			return err
		}
		list = append(list, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: up}, nil))
	}
	return list
}

// Lock is the number of an advisory lock. Others who use such locks in the database
// have other numbers.
func Lock(purpose, schema string) int64 {
	sum := sha256.Sum256([]byte("github.com/agentic-go/agentic/postgres " + purpose + " " + schema))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Check compares server and tables with what this program needs, by one
// query. Its errors wrap ErrNotMigrated or ErrNewer.
func (t Tables) Check(ctx context.Context, row func(ctx context.Context, sql string) Scanner, schema string) error {
	var server int
	var found int64
	err := row(ctx, `SELECT current_setting('server_version_num')::int, coalesce(max(version_id), 0) FROM `+
		schema+`.`+t.Versions+` WHERE is_applied`).Scan(&server, &found)
	known := int64(len(t.Files))
	switch {
	case isMissing(err):
		return fmt.Errorf("%w: there is no table %s.%s", ErrNotMigrated, schema, t.Versions)
	case err != nil:
		return err
	case server < MinServer:
		return fmt.Errorf("PostgreSQL 13 or newer is needed: the server's version number is %d", server)
	case found > known:
		return fmt.Errorf("%w: the tables in schema %s have version %d, this program knows %d", ErrNewer, schema, found, known)
	case found < known:
		return fmt.Errorf("%w: the tables in schema %s have version %d, this program needs %d", ErrNotMigrated, schema, found, known)
	}
	return nil
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// CheckSchema gives the schema's name, which stands in statements as it is.
func CheckSchema(name string) (string, error) {
	switch {
	case name == "":
		return DefaultSchema, nil
	case !plainName.MatchString(name), strings.HasPrefix(name, "pg_"), name == "information_schema":
		return "", fmt.Errorf("schema %q: a plain name of [a-z0-9_] is needed that is not the system's", name)
	}
	return name, nil
}

// isMissing says that there is no such schema or table.
func isMissing(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "3F000" || said.Code == "42P01")
}
